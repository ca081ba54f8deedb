//! What people see of a record: text for a terminal, Markdown, JSON, flame graphs. Pure.
//!
//! Every form of a report is drawn from one [`Sheet`], so that none can say what another does not. Nothing is
//! concluded here; that is `audit`'s work.

mod across;
mod audited;
mod calibration;
mod drawing;
mod figure;
mod json;
mod markdown;
mod sheet;
mod surveyed;
mod text;

pub mod flame;
pub mod validity;
pub mod why;

pub use across::Compared;
pub use audited::Audited;
pub use calibration::Calibrated;
pub use figure::{bytes, change, count, rate, seconds, share};
pub use json::json;
pub use markdown::markdown;
pub use sheet::{Answer, EffectLine, Effects, Judged, Part, Remark, Row, Sheet};
pub use surveyed::Surveyed;
pub use text::{so_far, text};
