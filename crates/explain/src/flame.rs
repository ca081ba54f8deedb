//! Flame graphs of what a request costs: drawings as SVG, and one HTML page of them that needs nothing but itself.
//!
//! It draws what it is given and concludes nothing. Names come out of somebody's code and may be anything: none may become markup,
//! style or script. The only script of a page widens a frame that is clicked, and the page's policy lets no other run.

mod svg;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::text::{line, markup};
use sha2::{Digest as _, Sha256};

use crate::label::shown;
use crate::{Explanation, Subject, Tree, Unit};

pub use svg::{svg, svg_difference};

const STYLE: &str = include_str!("flame/page.css");
const SCRIPT: &str = include_str!("flame/zoom.js");
/// Graphs that would make a page larger than this are left out, and the page says so.
const BYTES_MAX: usize = 3_000_000;
/// Comparisons whose graphs are open from the start.
const OPEN_MAX: usize = 2;

/// A page while it is made: its body so far, and how many graphs had no room.
#[derive(Default)]
struct Page {
    body: String,
    left_out: usize,
}

/// The page for an explanation: the difference of each comparison, then each variant by itself, for each service, CPU time and memory.
pub fn page(explanation: &Explanation, title: &str) -> String {
    let mut page = Page::default();
    let several = explanation.subjects.iter().any(|one| one.service != explanation.subjects[0].service);
    let of = |variant: &str, service: &str| {
        explanation.subjects.iter().find(|one| one.variant == variant && one.service == service)
    };
    for (index, comparison) in explanation.comparisons.iter().enumerate() {
        page.body += &format!("<h2>{} vs {}</h2>\n", text(&comparison.variant), text(&comparison.baseline));
        let said = [Some(&comparison.reconciliation), comparison.story.as_ref(), comparison.waiting.as_ref()];
        page.body.extend(said.into_iter().flatten().map(|said| format!("<p>{}</p>\n", markup(&line(said)))));
        for variant in explanation.subjects.iter().filter(|one| one.variant == comparison.variant) {
            let Some(baseline) = of(&comparison.baseline, &variant.service) else { continue };
            let pair = format!("{} vs {}", variant.variant, baseline.variant);
            for ((one, unit), (other, _)) in trees(baseline).zip(trees(variant)) {
                let title = titled(&pair, variant, several, unit);
                let (one, other) = ((&*baseline.variant, one), (&*variant.variant, other));
                page.graph(&svg_difference(one, other, unit, &title), &title, index < OPEN_MAX);
            }
        }
    }
    let alone = explanation.comparisons.is_empty();
    page.body += "<h2>Each variant</h2>\n";
    for subject in &explanation.subjects {
        for (tree, unit) in trees(subject) {
            let title = titled(&subject.variant, subject, several, unit);
            page.graph(&svg(tree, unit, &title), &title, alone);
        }
    }
    if !explanation.doubts.is_empty() {
        page.body += "<h2>Notes</h2>\n<ul>\n";
        page.body.extend(explanation.doubts.iter().map(|doubt| {
            let evidence = markup(&line(doubt.evidence.as_str().trim_end_matches('.')));
            format!("<li>{evidence}. {}</li>\n", text(&doubt.remedy))
        }));
        page.body += "</ul>\n";
    }
    page.finish(title, "RECORD")
}

/// The page for trees by themselves, such as those of files; of two the first is the baseline.
pub fn page_of_trees(trees: &[(&str, &Tree)], unit: Unit, title: &str) -> String {
    let mut page = Page::default();
    if let [one, other] = trees {
        page.graph(&svg_difference(*one, *other, unit, title), title, true);
    }
    for (name, tree) in trees {
        page.graph(&svg(tree, unit, name), name, trees.len() == 1);
    }
    page.finish(title, "FILE")
}

fn trees(subject: &Subject) -> impl Iterator<Item = (&Tree, Unit)> {
    let memory = subject.heap.as_ref().map(|heap| (heap, Unit::BytesPerRequest));
    std::iter::once((&subject.tree, Unit::MicrosPerRequest)).chain(memory)
}

fn titled(what: &str, subject: &Subject, several: bool, unit: Unit) -> String {
    let service = if several { format!(", {}", subject.service) } else { String::new() };
    format!("{what}{service}: {}", unit.of_what())
}

impl Page {
    fn graph(&mut self, drawing: &str, title: &str, open: bool) {
        if self.body.len() + drawing.len() > BYTES_MAX {
            self.left_out += 1;
            return;
        }
        let (open, title) = (if open { " open" } else { "" }, text(title));
        self.body += &format!(
            "<details{open}><summary>{title}</summary>\n<div class=\"graph\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n\
             {drawing}</div></details>\n"
        );
    }

    fn finish(self, title: &str, what: &str) -> String {
        // Trusted Types make a browser that knows them refuse every assignment of text as markup, ours included.
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
            source_of(SCRIPT),
            source_of(STYLE),
        );
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!(
                "<p>{count} more graphs have no room on this page: <code>proofload profile {what} --variant NAME --format svg</code></p>\n"
            ),
        };
        format!(
            include_str!("flame/page.html"),
            policy = policy,
            left_out = left_out,
            what = what,
            title = text(title),
            body = self.body,
            style = STYLE,
            script = SCRIPT
        )
    }
}

/// A text's hash as a content security policy has it.
pub fn source_of(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// A name inside HTML or XML, in an attribute too.
fn text(name: &str) -> String {
    markup(&shown(name))
}

#[cfg(test)]
mod tests;
