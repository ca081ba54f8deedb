//! Flame graphs of what a request costs: one HTML page that needs nothing but itself, and drawings as SVG that stand still.
//!
//! It draws what it is given and concludes nothing. Names come out of somebody's code and may be anything: none may become
//! markup, style or script, which is why the page's own script is the only one that its policy lets run.

mod aligned;
mod colour;
mod data;
mod drawing;
mod forest;
mod svg;

use explain::{Explanation, Tree};

use crate::html::{filled, markup, source_of};
use crate::names;

pub use svg::{svg, svg_difference, svg_difference_in, svg_in};

const TEMPLATE: &str = include_str!("flame/page.html");
const STYLE: &str = include_str!("flame/page.css");
/// In the order in which one needs the other. The first three are pure, and tested without a browser.
const SCRIPTS: [&str; 9] = [
    include_str!("flame/model.js"),
    include_str!("flame/layout.js"),
    include_str!("flame/shade.js"),
    include_str!("flame/elements.js"),
    include_str!("flame/chart.js"),
    include_str!("flame/table.js"),
    include_str!("flame/view.js"),
    include_str!("flame/words.js"),
    include_str!("flame/controls.js"),
];

/// The page for an explanation: any two of its variants against each other, for each service, CPU time and memory. Always below
/// 3 MB for what a run can hold: calls that are too small for that are summed up, and the page says so.
///
/// Where no subject has requests, as where two profile files are compared, values are taken to be milliseconds.
pub fn page(explanation: &Explanation, title: &str) -> String {
    assembled(&data::of_explanation(&aligned::of_explanation(explanation)), title)
}

/// The same page for trees by themselves, such as those of files; of two the first is the baseline. Their values are in `unit`.
pub fn page_of_trees(trees: &[(&str, &Tree)], unit: &str, title: &str) -> String {
    let [(name, baseline), (other, variant)] = trees else {
        return assembled(&data::of_trees(trees, unit), title);
    };
    let baseline = aligned::like(baseline, variant);
    assembled(&data::of_trees(&[(name, &baseline), (other, variant)], unit), title)
}

fn assembled(data: &str, title: &str) -> String {
    let style = format!("{}{STYLE}", colour::style());
    let script = format!("(() => {{\n{}\n}})();", SCRIPTS.join("\n"));
    // Trusted Types make a browser that knows them refuse every assignment of text as markup, ours included.
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        source_of(&script),
        source_of(&style),
    );
    let title = markup(&names::shown(title));
    let values = [
        ("title", title.as_str()),
        ("policy", &policy),
        ("style", &style),
        ("data", data),
        ("script", &script),
    ];
    filled(TEMPLATE, &values)
}

#[cfg(test)]
mod tests;
