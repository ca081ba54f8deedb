//! Another process listened on the port
//!
//! **Seen.** `another process listened where the load was sent to: node old.js (pid 812) on port 3000`, or
//! the service `began to listen on further ports while it was loaded`.
//!
//! **Why.** It may have responded.
//!
//! **What to do.** Stop the other process (`systemctl`, `docker ps`, `pm2 ls`), name the port (`port`,
//! `--port`), or omit it to get a free one.
//!
//! **Threshold.** One process.

use model::quantity::counted;
use model::{Quantity, evidence};

use super::finding::{CheckFinding, void};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, VOID, row};

pub(super) static ROW: CheckRow =
    row(Subject::Treatment, VOID, &[Maker::Each(stale_server)]).ending_run();

fn stale_server(_: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let ended: Vec<_> = variant
        .all_trials
        .iter()
        .filter_map(|trial| trial.ended)
        .collect();
    let late: Vec<_> = ended
        .iter()
        .filter(|ended| !ended.late_ports.is_empty())
        .collect();
    if let Some(first) = late.first() {
        let (ports, block) = (first.late_ports.join("; "), first.block);
        return Some(void(
            evidence!("a service that does not heed PORT began to listen on further ports while it was loaded: {ports} (block {block}; so \
                in {hit} of {trials})";
                hit = Quantity::count(late.len() as u64), trials = counted(ended.len() as u64, "trial")),
            "the load may not have reached the application; name its port: --port, or `port` of the service",
        ));
    }
    let hit: Vec<_> = ended
        .iter()
        .filter(|ended| !ended.strangers_listening.is_empty())
        .collect();
    let first = hit.first()?;
    let (who, block) = (first.strangers_listening.join("; "), first.block);
    Some(void(
        evidence!("another process listened where the load was sent to: {who} (block {block}; so in {hit} of {trials})";
            hit = Quantity::count(hit.len() as u64), trials = counted(ended.len() as u64, "trial")),
        "it may have responded in the service's place; end it, see what starts it, and run again",
    ))
}
