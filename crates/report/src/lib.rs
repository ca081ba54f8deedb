//! What people see of a record: text for a terminal, Markdown, JSON, CSV, a page, the verdict plot, flame graphs. Pure.
//!
//! Every form of a report is drawn from one [`Sheet`], so that none can say what another does not. Nothing is
//! concluded here; that is `audit`'s work.

mod across;
mod audited;
mod calibration;
mod drawing;
mod figure;
mod gate;
mod html;
mod json;
mod markdown;
mod names;
mod sheet;
mod shell;
mod spreadsheet;
mod surveyed;
mod text;

pub mod flame;
pub mod history;
pub mod page;
pub mod plot;
pub mod validity;
pub mod why;

pub use across::Compared;
pub use audited::Audited;
pub use calibration::Calibrated;
pub use drawing::table;
pub use figure::{bytes, change, change_alone, count, factor, rate, seconds, share};
pub use gate::Gated;
pub use json::{json, schema};
pub use markdown::markdown;
pub use model::quantity::micros;
pub use page::{page, page_data};
pub use sheet::{Answer, EffectLine, Effects, Judged, Part, REPORT_PAGE, Remark, Row, Sheet, metric_name};
pub use shell::shell_line;
pub use spreadsheet::csv;
pub use surveyed::Surveyed;
pub use text::{so_far, text};
