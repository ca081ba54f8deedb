//! The sentence on how long it takes to find a difference, wherever one stands.

use analysis::POWER;
use model::quantity::{count, share, span};

/// `detecting 3 % here takes about 75 blocks, 1h15m (80 % power)`: of what, in how many blocks, and how long they take where one run can have
/// as many.
pub fn forecast(what: &str, blocks: u32, run_s: Option<f64>) -> String {
    let power = share(POWER);
    match run_s {
        Some(run_s) => {
            format!(
                "detecting {what} here takes about {} blocks, {} ({power} power)",
                count(blocks.into()),
                span(run_s)
            )
        }
        None => format!("no run is long enough to detect {what} here ({power} power)"),
    }
}
