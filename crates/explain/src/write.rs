//! A tree as other tools read it. Values go out as text or JSON; nothing is written to a disk here.

mod cpuprofile;
mod firefox;
mod folded;
mod speedscope;

pub use cpuprofile::cpuprofile;
pub use firefox::firefox;
pub use folded::folded;
pub use speedscope::speedscope;

use crate::{Frame, Package};

/// A function with its place, for formats that have only one text for it: `handle lib/router.js:12 express@5.1.0`.
fn label(frame: &Frame) -> String {
    let mut label = frame.function.clone();
    // A name without a function's own has the place in it already.
    if !frame.file.is_empty() && !label.contains(&frame.file) {
        label.push(' ');
        label.push_str(&frame.file);
        if frame.line > 0 {
            label.push_str(&format!(":{}", frame.line));
        }
    }
    if let Some(Package { name, version }) = &frame.package {
        label.push_str(&format!(" {name}"));
        if let Some(version) = version {
            label.push_str(&format!("@{version}"));
        }
    }
    label
}

/// A file as a path that other tools can tell apart, and that is read back as what it was.
fn path(frame: &Frame) -> String {
    match &frame.package {
        Some(package) if !frame.file.is_empty() => format!("node_modules/{}/{}", package.name, frame.file),
        _ => frame.file.clone(),
    }
}

#[cfg(test)]
mod tests;
