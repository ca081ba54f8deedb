//! Flame graphs of the cost of a request: SVG drawings, and one self-contained HTML page with them.
//!
//! This module draws its input and draws no conclusions. Names come from foreign code and may contain
//! anything: none may become markup, style or script. The only script of a page widens a clicked frame, and
//! the page's policy allows no other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::quantity::share;
use model::text::{line, markup};
use sha2::{Digest as _, Sha256};

use crate::comparison::moved;
use crate::label::shown;
use crate::tree::{KINDS, without_waiting};
use crate::{CodeKind, CostInterval, ExplainedService, Explanation, Frame, Tree, TreeUnit, merge};

const STYLE: &str = include_str!("flame/page.css");
const SCRIPT: &str = include_str!("flame/zoom.js");
/// Graphs that would make a page larger than this are omitted, and the page says so.
const BYTES_MAX: usize = 3_000_000;
/// Number of comparisons whose graphs are initially open.
const OPEN_MAX: usize = 2;

/// A page under construction: its body so far, and the number of omitted graphs.
#[derive(Default)]
struct Page {
    body: String,
    left_out: usize,
}

/// The page of an explanation: the difference of each comparison, then each variant, for each service, CPU
/// time and memory.
pub fn page(explanation: &Explanation, title: &str) -> String {
    let mut page = Page::default();
    let several = explanation
        .subjects
        .iter()
        .any(|one| one.service != explanation.subjects[0].service);
    for (index, comparison) in explanation.comparisons.iter().enumerate() {
        page.body += &format!(
            "<h2>{} vs {}</h2>\n",
            text(&comparison.variant),
            text(&comparison.baseline)
        );
        let said = [
            Some(&comparison.reconciliation),
            comparison.story.as_ref(),
            comparison.waiting.as_ref(),
        ];
        page.body.extend(
            said.into_iter()
                .flatten()
                .map(|said| format!("<p>{}</p>\n", markup(&line(said)))),
        );
        for variant in services(explanation, &comparison.variant) {
            let Some(baseline) = counterpart(explanation, &comparison.baseline, variant) else {
                continue;
            };
            let pair = format!("{} vs {}", variant.variant, baseline.variant);
            for ((one, unit), (other, _)) in trees(baseline).zip(trees(variant)) {
                let title = titled(&pair, variant, several, unit);
                let (one, other) = ((&*baseline.variant, one), (&*variant.variant, other));
                page.graph(
                    &svg_difference(one, other, unit, &title),
                    &title,
                    index < OPEN_MAX,
                );
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

/// The page of separate trees, such as trees read from files. The first of two is the baseline.
pub fn page_of_trees(trees: &[(&str, &Tree)], unit: TreeUnit, title: &str) -> String {
    let mut page = Page::default();
    if let [one, other] = trees {
        page.graph(&svg_difference(*one, *other, unit, title), title, true);
    }
    for (name, tree) in trees {
        page.graph(&svg(tree, unit, name), name, trees.len() == 1);
    }
    page.finish(title, "FILE")
}

/// The services of a variant, its entry first.
fn services<'e>(
    explanation: &'e Explanation,
    variant: &'e str,
) -> impl Iterator<Item = &'e ExplainedService> {
    explanation
        .subjects
        .iter()
        .filter(move |one| one.variant == variant)
}

/// The service of the baseline that a service is compared with: the one with the same name. If two entries
/// have different names, such as two servers in front of the same application, they are compared with each
/// other.
fn counterpart<'e>(
    explanation: &'e Explanation,
    baseline: &'e str,
    of: &'e ExplainedService,
) -> Option<&'e ExplainedService> {
    let named = services(explanation, baseline).find(|one| one.service == of.service);
    named.or_else(|| {
        let is_entry = services(explanation, &of.variant).next()?.service == of.service;
        let entry = services(explanation, baseline).next()?;
        let is_taken = services(explanation, &of.variant).any(|one| one.service == entry.service);
        (is_entry && !is_taken).then_some(entry)
    })
}

fn trees(subject: &ExplainedService) -> impl Iterator<Item = (&Tree, TreeUnit)> {
    let memory = subject
        .heap
        .as_ref()
        .map(|heap| (heap, TreeUnit::BytesPerRequest));
    std::iter::once((&subject.tree, TreeUnit::MicrosPerRequest)).chain(memory)
}

fn titled(what: &str, subject: &ExplainedService, several: bool, unit: TreeUnit) -> String {
    let service = if several {
        format!(", {}", subject.service)
    } else {
        String::new()
    };
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
        // Trusted Types make a supporting browser refuse every assignment of text as markup, including ours.
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

/// A text's hash in the form of a content security policy.
pub fn source_of(text: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}

/// Escapes a name for HTML or XML, including attributes.
fn text(name: &str) -> String {
    markup(&shown(name))
}

// Flame graphs as SVG: drawings without script, for static pages and papers.
//
// The crate inferno draws them too, but its licence, the CDDL, does not permit this project's distribution.
// The output contains nothing that runs, loads or links.

type Rgb = [u8; 3];

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
/// Height above and below the graph.
const HEAD: f64 = 52.0;
const FOOT: f64 = 34.0;
/// Width of a character in the monospaced typeface.
const LETTER: f64 = 6.65;
const LETTERS_MIN: usize = 3;
/// Narrower spans have no outline, because nothing else of them would be visible.
const OUTLINE_MIN: f64 = 6.0;
/// Narrower spans are not drawn, because they are invisible.
const PIXELS_MIN: f64 = 0.3;
/// Deeper calls are not drawn. V8 itself stores at most 255 callers.
const DEPTH_MAX: usize = 500;
/// Colours of text, no change, less and more.
const INK: &str = "#101216";
const SAME: Rgb = [0xec, 0xed, 0xf0];
const LESS: Rgb = [0x5a, 0xa0, 0xe6];
const MORE: Rgb = [0xf0, 0x83, 0x2c];

/// The flame graph of a tree, callers above callees.
pub fn svg(tree: &Tree, unit: TreeUnit, title: &str) -> String {
    // In canonical form, so that each path of calls is one span.
    let after = merge(&[(&without_waiting(tree), 1.0)]);
    FlameSheet::of(vec![("", after)], unit).draw(title)
}

/// Two trees with their names, one above the other. Calls are orange if they take more in the second and blue
/// if less. Removed calls have a dashed outline, new ones a solid one.
pub fn svg_difference(
    one: (&str, &Tree),
    other: (&str, &Tree),
    unit: TreeUnit,
    title: &str,
) -> String {
    let (mut before, after) = (without_waiting(one.1), without_waiting(other.1));
    // Moved functions get their name from the other tree, so that they align.
    let mut moved = moved(&before, &after);
    for frame in &mut before.frames {
        if let Some(to) = moved.remove(frame) {
            *frame = to;
        }
    }
    // Both have the nodes of both, in the same order.
    let weighed = |one: f64, other: f64| merge(&[(&before, one), (&after, other)]);
    FlameSheet::of(
        vec![(one.0, weighed(1.0, 0.0)), (other.0, weighed(0.0, 1.0))],
        unit,
    )
    .draw(title)
}

/// Data shared by all parts of a drawing.
struct FlameSheet<'a> {
    /// The tree that is drawn, or two trees with the same nodes. With their names.
    trees: Vec<(&'a str, Tree)>,
    /// Total of each node in each tree, including its callees.
    totals: Vec<Vec<f64>>,
    sums: Vec<f64>,
    /// The largest change of any call.
    change_max: f64,
    unit: TreeUnit,
}

/// The position of a node: offset from the left and width in the trees' unit, and number of callers above.
struct FlameSpan {
    place: usize,
    left: f64,
    width: f64,
    depth: usize,
}

impl<'a> FlameSheet<'a> {
    fn of(trees: Vec<(&'a str, Tree)>, unit: TreeUnit) -> FlameSheet<'a> {
        let totals = trees.iter().map(|(_, tree)| tree.totals()).collect();
        let sums = trees.iter().map(|(_, tree)| tree.total()).collect();
        let mut sheet = FlameSheet {
            trees,
            totals,
            sums,
            change_max: 0.0,
            unit,
        };
        let changes = (0..sheet.tree().nodes.len()).map(|place| sheet.change(place).abs());
        sheet.change_max = changes.fold(0.0, f64::max);
        sheet
    }

    /// The last tree, which has the nodes of all trees.
    fn tree(&self) -> &Tree {
        &self.trees[self.trees.len() - 1].1
    }

    /// Self value of a node in each tree.
    fn own(&self, place: usize) -> impl Iterator<Item = f64> {
        self.trees
            .iter()
            .map(move |(_, tree)| tree.nodes[place].self_value)
    }

    fn change(&self, place: usize) -> f64 {
        match self.totals.as_slice() {
            [before, after] => after[place] - before[place],
            _ => 0.0,
        }
    }

    /// The spans that are wide enough to be visible, callers before callees, and the pixels per unit.
    ///
    /// A node is as wide as its callees, plus the larger of its self values in the trees. So a node removed
    /// from the second tree is visible beside a new one.
    fn spans(&self) -> (Vec<FlameSpan>, f64) {
        let mut widest = self.tree().clone();
        for (place, node) in widest.nodes.iter_mut().enumerate() {
            node.self_value = self.own(place).fold(0.0, f64::max);
        }
        let (widths, (roots, calls)) = (widest.totals(), widest.children());
        let all: f64 = roots.iter().map(|root| widths[*root]).sum();
        let scale = if all > 0.0 {
            (WIDTH - 2.0 * MARGIN) / all
        } else {
            0.0
        };
        // Widest first. In reverse order, because they are taken from the end.
        let row = |places: &[usize], mut left: f64, depth: usize| {
            let mut places = places.to_vec();
            places
                .sort_by(|one, other| widths[*other].total_cmp(&widths[*one]).then(one.cmp(other)));
            let span = |place: usize| {
                let span = FlameSpan {
                    place,
                    left,
                    width: widths[place],
                    depth,
                };
                left += span.width;
                span
            };
            let row: Vec<FlameSpan> = places.into_iter().map(span).collect();
            row.into_iter().rev()
        };
        let (mut spans, mut open) = (Vec::new(), row(&roots, 0.0, 0).collect::<Vec<_>>());
        while let Some(span) = open.pop() {
            if span.width * scale >= PIXELS_MIN && span.depth < DEPTH_MAX {
                open.extend(row(&calls[span.place], span.left, span.depth + 1));
                spans.push(span);
            }
        }
        (spans, scale)
    }

    fn draw(&self, title: &str) -> String {
        let (spans, scale) = self.spans();
        let rows = spans
            .iter()
            .map(|span| span.depth + 1)
            .max()
            .unwrap_or_default() as f64;
        let height = HEAD + rows * ROW + FOOT;
        let (title, middle, subtitle) = (text(title), WIDTH / 2.0, markup(&self.subtitle()));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-label=\"{title}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"11\" fill=\"{INK}\">\n\
             <title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{middle}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{title}</text>\n\
             <text x=\"{middle}\" y=\"40\" text-anchor=\"middle\">{subtitle}</text>\n",
        );
        out.extend(spans.iter().map(|span| self.span(span, scale)));
        out += &self.legend(height - FOOT / 2.0 + 4.0);
        out + "</svg>\n"
    }

    fn subtitle(&self) -> String {
        let (unit, of_what) = (self.unit, self.unit.of_what());
        match (self.trees.as_slice(), self.sums.as_slice()) {
            ([(one, _), (other, _)], [before, after]) => format!(
                "{}: {}, {}: {}, {} of {of_what}",
                shown(one),
                unit.quantity(*before),
                shown(other),
                unit.quantity(*after),
                self.signed(after - before),
            ),
            (_, sums) => format!("{} of {of_what}", unit.quantity(sums.iter().sum())),
        }
    }

    fn signed(&self, difference: f64) -> String {
        self.unit.difference(&CostInterval::exactly(difference)).0
    }

    fn span(&self, span: &FlameSpan, scale: f64) -> String {
        let frame = &self.tree().frames[self.tree().nodes[span.place].frame];
        let (x, y) = (MARGIN + span.left * scale, HEAD + span.depth as f64 * ROW);
        let width = span.width * scale;
        // A gap between neighbours, if there is room for one.
        let (width, height) = (if width > 2.0 { width - 0.5 } else { width }, ROW - 1.0);
        let area = format!("x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\"");
        let (mark, dashes) = match self.totals.as_slice() {
            [_, after] if after[span.place] <= 0.0 => ("− ", Some(" stroke-dasharray=\"3 2\"")),
            [before, _] if before[span.place] <= 0.0 => ("+ ", Some("")),
            _ => ("", None),
        };
        let outline = match dashes.filter(|_| width >= OUTLINE_MIN) {
            None => String::new(),
            Some(dashes) => {
                format!(
                    "<rect {area} fill=\"none\" stroke=\"{INK}\" stroke-width=\"0.8\"{dashes}/>"
                )
            }
        };
        let name = format!("{mark}{}", shown(&frame.function));
        let label = label(&name, width).map(|label| {
            format!(
                "<text x=\"{:.2}\" y=\"{:.1}\">{}</text>",
                x + 3.0,
                y + 12.0,
                markup(&label)
            )
        });
        let (hint, fill) = (
            markup(&self.hint(frame, span.place)),
            hex(self.fill(frame.kind, span.place)),
        );
        format!(
            "<g><title>{hint}</title><rect {area} rx=\"1.5\" fill=\"{fill}\"/>{outline}{}</g>\n",
            label.unwrap_or_default()
        )
    }

    fn fill(&self, kind: CodeKind, place: usize) -> Rgb {
        match self.trees.as_slice() {
            [_, _] if self.change_max > 0.0 => of_change(self.change(place) / self.change_max),
            [_, _] => SAME,
            _ => kind.row().fill,
        }
    }

    /// The tooltip of a span.
    fn hint(&self, frame: &Frame, place: usize) -> String {
        let mut out = format!("{} ({})", shown(&frame.function), frame.kind.name());
        if let Some(package) = frame.package_name() {
            out += &format!("\n{package}");
        }
        if !frame.file.is_empty() {
            out += &format!("\n{}", frame.file_at(frame.line));
        }
        for (index, own) in self.own(place).enumerate() {
            let (name, total, sum) = (
                self.trees[index].0,
                self.totals[index][place],
                self.sums[index],
            );
            let of = if name.is_empty() {
                String::new()
            } else {
                shown(name) + ": "
            };
            let part = share(if sum > 0.0 { total / sum } else { 0.0 });
            let [total, own] = [total, own].map(|value| self.unit.quantity(value));
            out += &format!("\n{of}{total} ({part}), itself {own}");
        }
        if self.trees.len() == 2 {
            out += &format!("\ndifference: {}", self.signed(self.change(place)));
        }
        out
    }

    fn legend(&self, y: f64) -> String {
        let colours: Vec<(Rgb, &str)> = match self.trees.as_slice() {
            [_, _] => vec![(LESS, "less"), (SAME, "no change"), (MORE, "more")],
            _ => {
                let sums = self.tree().sums(|frame| Some(frame.kind));
                let there = KINDS.iter().filter(|row| sums.contains_key(&row.kind));
                there.map(|row| (row.fill, row.name)).collect()
            }
        };
        let (mut out, mut x) = (String::new(), MARGIN);
        for (fill, name) in colours {
            let (fill, above, after) = (hex(fill), y - 10.0, x + 16.0);
            out += &format!(
                "<rect x=\"{x:.1}\" y=\"{above:.1}\" width=\"11\" height=\"11\" fill=\"{fill}\"/>"
            );
            out += &format!("<text x=\"{after:.1}\" y=\"{y:.1}\">{name}</text>\n");
            x = after + (name.chars().count() as f64 + 2.5) * LETTER;
        }
        if let [_, (other, _)] = self.trees.as_slice() {
            let other = text(other);
            out += &format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\">− and dashed: gone in {other}   + and outlined: new in {other}</text>\n"
            );
        }
        out
    }
}

/// Colour of a change: `part` ranges from −1, the largest decrease, to 1. Uses its square root, so that small
/// changes are visible.
fn of_change(part: f64) -> Rgb {
    let end = if part < 0.0 { LESS } else { MORE };
    let share = part.abs().min(1.0).sqrt();
    std::array::from_fn(|index| {
        let (from, to) = (f64::from(SAME[index]), f64::from(end[index]));
        (from + (to - from) * share).round() as u8
    })
}

fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The part of a name that fits, or none.
fn label(name: &str, width: f64) -> Option<String> {
    let room = ((width - 5.0) / LETTER).max(0.0) as usize;
    if name.chars().count() <= room {
        return Some(name.to_owned());
    }
    let cut = name
        .chars()
        .take(room.saturating_sub(1))
        .collect::<String>()
        + "…";
    (room >= LETTERS_MIN).then_some(cut)
}

#[cfg(test)]
mod tests;
