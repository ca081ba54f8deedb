//! What the plan needs of this machine, and whether it is there: prepared data, and the right to make a link.
//!
//! It looks and changes nothing.

use std::fmt::Write;

use plan::{Plan, Preparation};
use report::bytes;
use services::Cache;

/// Some lines, or nothing where the plan needs neither.
pub fn lines(plan: &Plan) -> String {
    let mut out = String::new();
    if plan.variants.iter().any(|variant| variant.load.network.is_some())
        && let Err(error) = services::networks_can_be_made()
    {
        let _ = writeln!(out, "cannot be run here: {error}");
    }
    if !plan.prepare.is_empty() {
        let _ = writeln!(out, "\nmade before the first block, outside of the budget:");
    }
    for step in &plan.prepare {
        let _ = writeln!(out, "  {}: {}", step.name, state(step));
    }
    out
}

fn state(step: &Preparation) -> String {
    let place = match Cache::of_this_user().and_then(|cache| cache.place(step)) {
        Ok(place) => place,
        Err(error) => return format!("cannot be made: {error}"),
    };
    if place.there {
        return format!("there, in {}", place.path.display());
    }
    let space = step.space_bytes.map(|space| format!(", takes {}", bytes(space as f64))).unwrap_or_default();
    format!("to be made by {}{space}", step.command.join(" "))
}
