//! Presentations of a record: text for a terminal, Markdown, JSON, CSV, a page, the verdict plot. Pure.
//!
//! Every report builds one [`Document`] of typed blocks, in which each text is chosen once. [`FORMS`] render
//! it without knowledge of its contents. `analysis` draws the conclusions.

mod across;
mod advice;
mod axis;
mod calibration;
mod chart;
mod csv;
mod experiment;
mod foreign;
mod form;
mod gate;
mod html;
mod markdown;
mod measurement;
mod text;

pub mod history;
pub mod page;
pub mod plot;
pub mod validity;

pub use self::csv::{CsvRows, csv};
pub use self::foreign::Audited;
pub use across::ComparedRecords;
pub use advice::Advice;
pub use calibration::{Calibrated, Surveyed};
pub use experiment::answer::{compared_as, known, so_far};
pub use experiment::{
    LatencyQuantile, MeasuredRecord, REPORT_PAGE, load_schema, quantiles, schema,
};
pub use form::{
    CSV, FORMAT, FORMS, Form, FormOptions, HTML, JSON, JUNIT, MARKDOWN, Report, SVG, TEXT, render,
    with_format,
};
pub use gate::Gated;
pub use markdown::markdown;
pub use model::document::Document;
pub use model::quantity::{bytes, count, micros, rate, share, span as seconds};
pub use text::text;

/// The record that is stored in the repository.
#[cfg(test)]
fn kept() -> record::Record {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");
    record::open(path.as_ref()).expect("the kept record opens")
}
