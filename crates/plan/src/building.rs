//! How services are built at another commit: whether what the file says of it is possible.
//!
//! Pure: what is built where, and whether that is needed, is found out by whoever does it.

use crate::file;
use crate::model::Building;
use crate::problem::Problem;
use crate::site::Site;
use crate::text_form::Period;

const TIMEOUT_MIN: Period = Period::seconds(1);
const TIMEOUT_MAX: Period = Period::seconds(24 * 3600);

pub(crate) fn building(site: &mut Site<'_>, written: &file::Against) -> Building {
    let timeout = site.within(&["against", "timeout"], written.timeout, TIMEOUT_MIN, TIMEOUT_MAX);
    for (index, text) in written.build.iter().enumerate() {
        let span = site.tree.item_place(&["against", "build"], index);
        if index == 0 && text.is_empty() {
            let message = "`against.build` has no program";
            site.report(Problem::new(span.clone(), message, "expected the name of a program"));
        }
        if text.contains('\0') {
            let message = "a NUL character cannot be handed to a process";
            site.report(Problem::new(span, message, "contains NUL"));
        }
    }
    Building { command: written.build.clone(), timeout }
}
