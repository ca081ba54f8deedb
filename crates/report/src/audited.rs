//! An audit of other tools' output as people read it, and as JSON. Pure; nothing is concluded here, that is `transcript`'s
//! work.

use anstyle::{AnsiColor, Style};
use foreign::{About, Audit, Case, Comparison, Finding, Grade, Run, Sides, figure};
use serde_json::{Value, json};

use crate::drawing::{BOLD, FAINT, wrapped};

mod table;

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
/// Where the text of a finding begins.
const INDENT: &str = "      ";
/// Places of a finding that are told one by one.
const CASES_MAX: usize = 5;
/// Labels that are told one by one where they say the same.
const LABELS_MAX: usize = 8;
/// An interval from one rate to more than so many times it is not worth printing.
const INTERVAL_MAX: f64 = 4.0;
/// Longer labels stand in the table, and are told by their number there.
const LABEL_SHORT: usize = 24;

/// An audit, and the comparison that was asked for.
#[derive(Debug)]
pub struct Audited<'a> {
    /// What was read and what follows.
    pub audit: &'a Audit,
    /// The comparison, where one was asked for.
    pub comparison: Option<Comparison>,
}

impl Audited<'_> {
    /// The whole audit, in lines of at most `width` columns where that can be.
    pub fn text(&self, width: usize) -> String {
        let mut out = format!("{BOLD}{}{BOLD:#}\n", self.title());
        out += &table::text(self.audit, width);
        out.push('\n');
        if let Some(comparison) = &self.comparison {
            out += &compared(comparison, width);
            out.push('\n');
        }
        let mut remedy = "";
        for finding in &self.audit.findings {
            out += &finding_text(finding, self.audit, width);
            // Findings of one kind have one remedy, and once is enough.
            if finding.remedy != remedy {
                out += &format!("{FAINT}{}{FAINT:#}", wrapped(&finding.remedy, INDENT, INDENT, width));
            }
            remedy = &finding.remedy;
        }
        if !self.audit.findings.is_empty() {
            out.push('\n');
        }
        out + &self.stands(width)
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "audit_version": VERSION,
            "files": self.audit.files,
            "runs": self.audit.runs,
            "groups": self.audit.groups,
            "findings": self.audit.findings,
            "comparison": self.comparison,
        })
    }

    fn title(&self) -> String {
        let runs = figure::many(self.audit.runs.len() as u64, "run");
        let labels = match self.audit.groups.len() {
            all if all == self.audit.runs.len() => String::new(),
            all => format!(" of {}", figure::many(all as u64, "label")),
        };
        let [file] = self.audit.files.as_slice() else {
            return format!("{runs}{labels} in {} files", self.audit.files.len());
        };
        format!("{runs}{labels} in {}", if file.file == "-" { "what was piped in" } else { &file.file })
    }

    /// What may be said all the same.
    fn stands(&self, width: usize) -> String {
        let mut lines: Vec<String> =
            self.audit.groups.iter().filter_map(|group| self.pooled(group)).collect();
        let void = |about: About| {
            self.audit.findings.iter().any(|one| one.grade == Grade::Void && one.about == about)
        };
        if lines.is_empty() {
            let text = match self.audit.runs.len() {
                1 if self.audit.is_void() => {
                    "What is void above says nothing; all else describes this one run."
                }
                1 => {
                    "The figures describe this one run. How far another would come out from it, one run cannot tell."
                }
                _ if void(About::Run) || void(About::Throughput) => {
                    "No difference between labels. What is not void above describes single runs."
                }
                _ => "The requests per second, as figures of single runs, and no difference between labels.",
            };
            lines.push(text.to_owned());
        }
        let lines: String = lines.iter().map(|line| wrapped(line, "  ", "    ", width)).collect();
        let mut out = format!("{BOLD}What stands{BOLD:#}\n{lines}");
        if self.comparison.is_none() && self.audit.groups.len() > 1 {
            out += &format!(
                "{FAINT}{}{FAINT:#}",
                wrapped(
                    "--compare A B sets two labels against each other (by name or number).",
                    "  ",
                    "  ",
                    width
                )
            );
        }
        out
    }

    /// The interval of a label's repeats, unless it is void.
    fn pooled(&self, group: &foreign::Group) -> Option<String> {
        let pooled = group.pooled?;
        let void =
            self.audit.findings.iter().any(|finding| {
                finding.about != About::Comparison && finding.voids_throughput_of(&group.runs)
            });
        let far = pooled.high_per_s / pooled.low_per_s > INTERVAL_MAX;
        let (mean, runs) = (figure::digits(pooled.rate_per_s), pooled.runs);
        let said = if far {
            format!(
                "{mean}/s on average of {runs} runs, too few or too far apart for an interval that says anything"
            )
        } else {
            let (low, high) = (figure::digits(pooled.low_per_s), figure::digits(pooled.high_per_s));
            format!("{mean}/s, {low} to {high} (95 % over {runs} runs)")
        };
        (!void).then(|| format!("{}: {said}", group.label))
    }
}

fn compared(comparison: &Comparison, width: usize) -> String {
    let sides = format!("{} against {}", comparison.candidate, comparison.baseline);
    let mut out = match (&comparison.answer, comparison.answer.shown()) {
        (Sides::Void { reasons }, _) => {
            let (style, name) = look(Grade::Void);
            let head = wrapped(&format!("{style}{name}{style:#}  {sides}: no ratio"), "", INDENT, width);
            let reasons =
                reasons.iter().map(|reason| wrapped(&format!("– {reason}"), INDENT, "        ", width));
            head + &reasons.collect::<String>()
        }
        (_, Some(ratio)) => wrapped(&format!("{BOLD}{ratio}{BOLD:#} throughput  {sides}"), "", INDENT, width),
        (_, None) => String::new(),
    };
    for worth in &comparison.worth {
        out += &format!("{FAINT}{}{FAINT:#}", wrapped(&format!("– {worth}"), INDENT, "        ", width));
    }
    out
}

fn finding_text(finding: &Finding, audit: &Audit, width: usize) -> String {
    let (style, name) = look(finding.grade);
    let about = match (finding.grade, finding.about) {
        (Grade::Void, About::Latency) => "latency: ",
        (Grade::Void, About::Throughput) => "throughput: ",
        (Grade::Void, About::Comparison) => "comparison: ",
        _ => "",
    };
    let statement = finding.statement.strip_prefix(about).unwrap_or(&finding.statement);
    let head = format!("{style}{name}{style:#}  {BOLD}{about}{statement}{BOLD:#}");
    let mut out = wrapped(&head, "", INDENT, width);
    for line in case_lines(finding, audit) {
        out += &wrapped(&line, INDENT, "        ", width);
    }
    out
}

/// Cases that say the same in one line, and no more lines than can be read.
fn case_lines(finding: &Finding, audit: &Audit) -> Vec<String> {
    let mut alike: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in &finding.cases {
        let place = alike.iter().position(|(evidence, _)| *evidence == case.evidence);
        match place {
            Some(at) => alike[at].1.push(case),
            // Beyond what is told, nothing needs to be put together.
            None if alike.len() <= CASES_MAX => alike.push((&case.evidence, vec![case])),
            None => {}
        }
    }
    let told: usize = alike.iter().take(CASES_MAX).map(|(_, cases)| cases.len()).sum();
    // What holds for all runs, and has no figure, is said by the statement.
    if let [("", cases)] = alike.as_slice()
        && cases.len() == audit.runs.len()
    {
        return Vec::new();
    }
    let mut lines: Vec<String> =
        alike.iter().take(CASES_MAX).map(|(evidence, cases)| case_line(evidence, cases, audit)).collect();
    let rest = finding.cases.len() - told.min(finding.cases.len());
    if rest > 0 {
        lines.push(format!("and in {} more (--json lists them)", figure::count(rest as u64)));
    }
    lines
}

fn case_line(evidence: &str, cases: &[&Case], audit: &Audit) -> String {
    let runs: Vec<&Run> =
        cases.iter().flat_map(|case| &case.runs).filter_map(|at| audit.runs.get(*at)).collect();
    let mut labels: Vec<String> = cases.iter().map(|case| short(&case.label, audit)).collect();
    labels.dedup();
    let names = match labels.as_slice() {
        _ if audit.runs.len() == 1 => String::new(),
        _ if runs.len() == audit.runs.len() && labels.len() > 1 => "all runs: ".to_owned(),
        few if few.len() <= LABELS_MAX => format!("{}: ", few.join(", ")),
        many => format!("{} and {} more: ", many[..LABELS_MAX - 1].join(", "), many.len() - (LABELS_MAX - 1)),
    };
    let place = match runs.as_slice() {
        [one] => format!(" (line {})", one.lines.first),
        _ => String::new(),
    };
    let said = if evidence.is_empty() { names.trim_end_matches(": ") } else { &names };
    format!("{said}{evidence}{place}")
}

/// A label, or its number in the table where it is long.
fn short(label: &str, audit: &Audit) -> String {
    let number = audit.groups.iter().position(|group| group.label == label);
    match number {
        Some(at) if label.chars().count() > LABEL_SHORT => format!("#{}", at + 1),
        _ => label.to_owned(),
    }
}

fn look(grade: Grade) -> (Style, &'static str) {
    match grade {
        Grade::Void => (AnsiColor::Red.on_default().bold(), "VOID"),
        Grade::Warning => (AnsiColor::Yellow.on_default().bold(), "WARN"),
        Grade::Note => (FAINT, "NOTE"),
    }
}
