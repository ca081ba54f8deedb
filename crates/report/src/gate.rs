//! A gate as a document, as JSON, as workflow commands of GitHub's runner (one line for each failed or
//! inconclusive limit, at its line in the experiment file), and as JUnit XML. Pure. `analysis` judges the
//! limits.

use analysis::{Gate, Judgement, MeasuredFigure, Ruling};
use model::document::{
    Cell, ColumnFit, Document, DocumentPart, NamedText, QuestionAnswer, Table, Tone,
};
use model::quantity::{Quantity, Unit, interval, many, share, small_share};
use plan::{Bound, LimitSubject};
use record::Record;
use serde_json::{Value, json};

use crate::experiment::answer::forecast;
use crate::experiment::processor;
use crate::form::Report;
use crate::html::text as xml;

/// Replaces the rulings if there are none.
const UNFIT: &str = "the gate judged nothing";
/// Maximum number of limits whose reasons are listed below the table.
const REASONS_MAX: usize = 10;

/// A gate and the record from which it was judged.
#[derive(Debug)]
pub struct Gated<'a> {
    /// The record.
    pub record: &'a Record,
    /// Results of its limits.
    pub gate: &'a Gate,
    /// Whether inconclusive limits pass.
    pub allow_open: bool,
}

impl Report for Gated<'_> {
    fn document(&self) -> Document {
        let ruling = self.gate.ruling();
        let (tone, word) = ruling.map_or((Tone::Bad, "not judged"), ruling_word);
        use ColumnFit::{Figure, Whole, Wrapped};
        let columns = [
            ("limit", Whole),
            ("of", Wrapped),
            ("", Whole),
            ("measured", Figure),
            ("interval", Figure),
        ];
        let mut table = Table::new("", columns);
        self.gate
            .judgements
            .iter()
            .for_each(|judgement| table.push(row(judgement)));
        let reasons = self
            .reasons()
            .into_iter()
            .map(|reason| DocumentPart::Paragraph(Tone::Plain, reason));
        let Record {
            header, directory, ..
        } = self.record;
        let measured = format!("{} on {}", header.created, processor(&header.environment));
        let mut place = vec![NamedText::new("measured", measured)];
        // A record that is not stored has no folder.
        if !directory.as_os_str().is_empty() {
            place.push(NamedText::new("record", directory.display().to_string()));
        }
        let answer = QuestionAnswer::new(self.conclusion(), tone, word, "");
        let blocks = [
            DocumentPart::Answers(vec![answer]),
            DocumentPart::Table(table),
        ]
        .into_iter()
        .chain(reasons);
        Document::new(
            format!("Gate: {word}"),
            blocks.chain([DocumentPart::Lines(place)]),
        )
    }

    fn data(&self) -> Value {
        let (unfit, ruling) = (self.gate.unfit.as_ref(), self.gate.ruling());
        let let_pass = ruling == Some(Ruling::Inconclusive) && self.lets_pass();
        json!({
            "record": self.record.directory.display().to_string(),
            "outcome": ruling.map_or_else(|| json!("not_judged"), |ruling| json!(ruling)),
            "passes": ruling == Some(Ruling::Pass) || let_pass,
            "allow_open": self.allow_open,
            "not_judged": unfit.map(|(unfit, reason)| json!({ "because": unfit, "reason": reason })),
            "limits": self.gate.judgements.iter().map(judgement_json).collect::<Vec<_>>(),
        })
    }

    fn junit(&self) -> Option<String> {
        let plan = &self.record.header.plan.name;
        let reason = self.gate.unfit.as_ref().map_or("", |(_, reason)| reason);
        let unjudged = self.gate.unjudged.iter();
        let unjudged: Vec<_> = unjudged
            .map(|(limit, name)| {
                (
                    Fate::Error,
                    limit.to_string(),
                    name.as_str(),
                    reason.to_owned(),
                )
            })
            .collect();
        let judged = self.gate.judgements.iter().map(|of| {
            let fate = match of.ruling {
                Ruling::Pass => Fate::Passed,
                Ruling::Fail => Fate::Failed,
                Ruling::Inconclusive if self.lets_pass() => Fate::Skipped,
                Ruling::Inconclusive => Fate::Error,
            };
            let seen = format!("{}: {}", ruling_word(of.ruling).1, seen(of));
            (fate, of.limit.to_string(), of.name.as_str(), seen)
        });
        let cases: Vec<JunitCase<'_>> = unjudged.into_iter().chain(judged).collect();
        let suite = JunitSuite {
            name: plan,
            timestamp: &self.record.header.created,
            seconds: self
                .record
                .ended
                .as_ref()
                .map_or(0.0, |ended| ended.seconds),
        };
        Some(junit(&suite, &cases))
    }
}

impl Gated<'_> {
    /// Whether inconclusive limits pass: if requested, and all of them have intervals that are only too wide.
    pub fn lets_pass(&self) -> bool {
        let has_intervals = self
            .of(Ruling::Inconclusive)
            .all(|of| of.measured.is_some());
        self.allow_open && self.record.damage.is_empty() && has_intervals
    }

    /// Limits with this ruling.
    fn of(&self, ruling: Ruling) -> impl Iterator<Item = &Judgement> {
        self.gate
            .judgements
            .iter()
            .filter(move |judgement| judgement.ruling == ruling)
    }

    /// The sentence after the overall result.
    fn conclusion(&self) -> String {
        if let Some((unfit, reason)) = &self.gate.unfit {
            return unfit.sentence(reason);
        }
        let (open, failing) = (
            self.of(Ruling::Inconclusive).count(),
            self.of(Ruling::Fail).count(),
        );
        let all = self.gate.judgements.len();
        let some = |some: usize, one: &str, several: &str| {
            let all = many(all as u64, "limit");
            format!("{some} of {all} {}", if some == 1 { one } else { several })
        };
        match self.gate.ruling() {
            Some(Ruling::Fail) => {
                let open = if open > 0 {
                    format!(", {open} inconclusive")
                } else {
                    String::new()
                };
                some(failing, "fails", "fail") + &open
            }
            Some(Ruling::Inconclusive) => {
                let passing = match self.allow_open {
                    true if self.lets_pass() => "; let pass by --allow-open",
                    true => {
                        "; --allow-open lets nothing pass that has no interval, and no damaged record"
                    }
                    false => "",
                };
                let told = some(open, "is inconclusive", "are inconclusive");
                format!("{told}, none fails{}{passing}", self.advice())
            }
            Some(Ruling::Pass) | None if all == 1 => "the limit passes".to_owned(),
            Some(Ruling::Pass) | None => format!("all {} pass", many(all as u64, "limit")),
        }
    }

    /// The effort to decide all inconclusive limits, given by the slowest one. Empty if it is unknown for one
    /// of them.
    fn advice(&self) -> String {
        let needed = self
            .of(Ruling::Inconclusive)
            .map(|of| Some((of.blocks_needed?, of)));
        let most = needed
            .collect::<Option<Vec<_>>>()
            .and_then(|all| all.into_iter().max_by_key(|of| of.0));
        most.map_or(String::new(), |(blocks, judgement)| {
            let what = match judgement.limit.bound {
                Bound::Change(_) => share((judgement.limit.bound.value() - 1.0).abs()),
                Bound::Amount(..) => "so small a difference".to_owned(),
            };
            format!("; {}", forecast(&what, blocks, judgement.seconds_needed))
        })
    }

    /// Reasons of limits without an interval.
    fn reasons(&self) -> Vec<String> {
        let told = |judgement: &Judgement| {
            let reason = judgement.reason.as_ref()?;
            let Judgement {
                limit,
                name,
                ruling,
                ..
            } = judgement;
            Some(format!(
                "{limit}, {name}: {}, because {reason}",
                ruling_word(*ruling).1
            ))
        };
        let mut reasons: Vec<String> = self.gate.judgements.iter().filter_map(told).collect();
        let more = reasons.len().saturating_sub(REASONS_MAX);
        reasons.truncate(REASONS_MAX);
        if more > 0 {
            reasons.push(format!("and {more} more of this kind; see the JSON"));
        }
        reasons
    }
}

/// A limit's result in a word.
fn ruling_word(ruling: Ruling) -> (Tone, &'static str) {
    match ruling {
        Ruling::Pass => (Tone::Good, "pass"),
        Ruling::Inconclusive => (Tone::Doubtful, "inconclusive"),
        Ruling::Fail => (Tone::Bad, "fail"),
    }
}

fn row(judgement: &Judgement) -> Vec<Cell> {
    let (tone, word) = ruling_word(judgement.ruling);
    let (value, ends) = judgement
        .measured
        .map(|found| figures(judgement, &found))
        .unzip();
    vec![
        Cell::Text(judgement.limit.to_string()),
        Cell::text(&judgement.name),
        Cell::Word(tone, word.to_owned()),
        Cell::optional(value),
        Cell::optional(ends),
    ]
}

/// Unit of a limit's figure.
fn unit(judgement: &Judgement) -> Unit {
    match judgement.limit.bound {
        Bound::Change(_) => Unit::Ratio,
        Bound::Amount(..) => judgement.limit.figure.unit(),
    }
}

/// The value and its interval in the unit of the limit's figure.
fn figures(judgement: &Judgement, measured: &MeasuredFigure) -> (String, String) {
    let unit = unit(judgement);
    // A ratio's estimate never has a lower end of 0.
    let is_bound = unit == Unit::Ratio && measured.low == 0.0;
    if let (Unit::Ratio, Some(high), false) = (unit, measured.high, is_bound) {
        return interval(measured.value, measured.low, high);
    }
    let figure = |value: f64| match unit {
        Unit::Share => small_share(value),
        unit => Quantity { value, unit }.to_string(),
    };
    match measured.high {
        // The load generator limited only the baseline.
        Some(high) if is_bound => (
            format!("≤ {}", figure(high)),
            format!("{} or less", figure(high)),
        ),
        // A single measurement: the figure itself.
        Some(high) if measured.low == high => (figure(measured.value), "–".to_owned()),
        Some(high) => (
            figure(measured.value),
            format!("{} to {}", figure(measured.low), figure(high)),
        ),
        None => (
            format!("≥ {}", figure(measured.value)),
            format!("{} or more", figure(measured.low)),
        ),
    }
}

fn judgement_json(judgement: &Judgement) -> Value {
    let limit = &judgement.limit;
    json!({
        "limit": limit.to_string(),
        "figure": limit.figure.name(),
        "relation": if limit.figure.wants_more() { ">" } else { "<" },
        "bound": limit.bound.value(),
        "unit": unit(judgement),
        "subject": match judgement.subject {
            LimitSubject::Comparison(_) => "comparison",
            LimitSubject::Variant(_) => "variant",
        },
        "name": judgement.name,
        "line": judgement.line,
        "measured": judgement.measured,
        "outcome": judgement.ruling,
        "reason": judgement.reason,
        "blocks_needed": judgement.blocks_needed,
        "seconds_needed": judgement.seconds_needed,
    })
}

/// Maximum number of annotations of each kind that the runner shows for a step.
const SHOWN_MAX: usize = 10;

impl Gated<'_> {
    /// Workflow commands, one for each line. Empty if everything passes. `file` is the path of the experiment
    /// file in the repository.
    pub fn annotations(&self, file: Option<&str>) -> String {
        if let Some((_, reason)) = &self.gate.unfit {
            return command("error", (file, None), UNFIT, reason);
        }
        let of = |ruling, kind: &'static str| {
            self.of(ruling)
                .take(SHOWN_MAX)
                .map(move |judgement| annotation(kind, file, judgement))
        };
        of(Ruling::Fail, "error")
            .chain(of(Ruling::Inconclusive, "warning"))
            .collect()
    }
}

fn annotation(kind: &str, file: Option<&str>, judgement: &Judgement) -> String {
    let title = format!("{}: {}", judgement.limit, ruling_word(judgement.ruling).1);
    let said = format!("{}: {}", judgement.name, seen(judgement));
    // A limit from a flag is in no file.
    command(
        kind,
        (file.filter(|_| judgement.line.is_some()), judgement.line),
        &title,
        &said,
    )
}

/// The measured value, or why there is none.
fn seen(judgement: &Judgement) -> String {
    match &judgement.measured {
        Some(measured) => {
            let (value, interval) = figures(judgement, measured);
            format!("{value} ({interval})")
        }
        None => judgement
            .reason
            .clone()
            .unwrap_or_else(|| "not measured".to_owned()),
    }
}

fn command(
    kind: &str,
    (file, line): (Option<&str>, Option<u32>),
    title: &str,
    said: &str,
) -> String {
    let file = file
        .map(|file| format!("file={},", property(file)))
        .unwrap_or_default();
    let line = line.map(|line| format!("line={line},")).unwrap_or_default();
    format!(
        "::{kind} {file}{line}title={}::{}\n",
        property(title),
        data(said)
    )
}

/// Escapes a message like the runner's own toolkit (`escapeData` in actions/toolkit).
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

// Cases that pass or fail as JUnit XML, which CI servers other than GitHub show together with test results.
// There is no standard. These elements are read by Jenkins and GitLab.

/// Result of a case. An undecided limit is an error, unless it is permitted to pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passed,
    Failed,
    Error,
    Skipped,
}

/// A case: its result, the limit, its subject, and the measured value. Limit and subject are the same in each
/// run, because CI servers recognise a test by its name.
type JunitCase<'a> = (Fate, String, &'a str, String);

/// Attributes of all cases together.
struct JunitSuite<'a> {
    name: &'a str,
    /// Creation time of the record, RFC 3339.
    timestamp: &'a str,
    /// Duration of the run.
    seconds: f64,
}

/// The document. Each case has an equal part of the duration, because the run measures all limits at once.
fn junit(suite: &JunitSuite<'_>, cases: &[JunitCase<'_>]) -> String {
    let of = |fate| cases.iter().filter(|(one, ..)| *one == fate).count();
    let each_s = suite.seconds / cases.len().max(1) as f64;
    let elements: String = cases.iter().map(|of| case(of, each_s)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
         skipped=\"{}\" time=\"{}\" timestamp=\"{}\">\n{elements}</testsuite>\n</testsuites>\n",
        xml(suite.name),
        cases.len(),
        of(Fate::Failed),
        of(Fate::Error),
        of(Fate::Skipped),
        to_ms(suite.seconds),
        xml(suite.timestamp),
    )
}

fn case((fate, limit, of, seen): &JunitCase<'_>, seconds: f64) -> String {
    let (limit, of, seen) = (xml(limit), xml(of), xml(seen));
    let inside = match fate {
        Fate::Passed => format!("<system-out>{seen}</system-out>"),
        Fate::Failed => format!("<failure message=\"{seen}\"/>"),
        Fate::Error => format!("<error message=\"{seen}\"/>"),
        Fate::Skipped => format!("<skipped message=\"{seen}\"/>"),
    };
    let seconds = to_ms(seconds);
    format!(
        "<testcase name=\"{limit}\" classname=\"{of}\" time=\"{seconds}\">{inside}</testcase>\n"
    )
}

/// Seconds to the millisecond.
fn to_ms(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fate_is_counted_and_no_name_is_markup() {
        let cases = [
            (Fate::Passed, "+1 %"),
            (Fate::Failed, "-9 %\n</testcase>"),
            (Fate::Error, "too wide"),
            (Fate::Skipped, "too wide"),
        ]
        .map(|(fate, seen)| {
            (
                fate,
                "throughput > -3%".to_owned(),
                "b & \"a\"",
                seen.to_owned(),
            )
        });
        let suite = JunitSuite {
            name: "<x>",
            timestamp: "2026-01-01T00:00:00Z",
            seconds: 10.0,
        };
        let xml = junit(&suite, &cases);
        for there in [
            "name=\"&lt;x&gt;\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"10\" timestamp=\"2026-01-01T00:00:00Z\"",
            "name=\"throughput &gt; -3%\" classname=\"b &amp; &quot;a&quot;\" time=\"2.5\"><system-out>+1 %<",
            "<failure message=\"-9 % &lt;/testcase&gt;\"/>",
        ] {
            assert!(xml.contains(there), "{there} in {xml}");
        }
        assert_eq!(xml.matches("</testcase>").count(), 4);
    }
}
