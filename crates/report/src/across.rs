//! Two records side by side, as people read them, and as JSON. Pure; what may be compared is `audit`'s business.

use analysis::{Across, Shift};
use record::Record;
use serde_json::{Value, json};

use crate::drawing::{BOLD, FAINT, explained, named, remark, table, wrapped};
use crate::figure::{column, interval};
use crate::sheet::metric_name;
use crate::validity::explained_by;

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// Two records and what may be said of them.
#[derive(Debug)]
pub struct Compared<'a> {
    /// The earlier one.
    pub before: &'a Record,
    /// The later one.
    pub after: &'a Record,
    /// What may be said.
    pub across: &'a Across,
}

impl Compared<'_> {
    /// All of it, in lines of at most `width` columns where that can be.
    pub fn text(&self, width: usize) -> String {
        let mut out = format!("{BOLD}{}{BOLD:#}\n\n", self.title());
        for (name, record) in [("before", self.before), ("after", self.after)] {
            let line = format!("{}, {}", record.header.created, record.directory.display());
            out += &named(FAINT, name, &line, width);
        }
        out.push('\n');
        if !self.across.shifts.is_empty() {
            let rows = rows(&self.across.shifts);
            out += &format!("{}\n\n", table(&HEADS.map(str::to_owned), rows.iter(), 2));
        }
        for finding in &self.across.findings {
            out += &remark(
                finding.grade,
                Some(finding.check.number()),
                finding.evidence.as_str(),
                &finding.remedy.text,
                width,
            );
        }
        let numbers = self.across.findings.iter().map(|finding| Some(finding.check.number()));
        out += &explained(explained_by(numbers).as_deref(), width);
        for line in &self.across.left_out {
            out += &wrapped(&format!("not compared: {line}"), "", "  ", width);
        }
        if !self.across.shifts.is_empty() {
            out += &wrapped(APART, "", "", width);
        }
        out
    }

    fn title(&self) -> &str {
        let plan = &self.after.header.plan;
        plan.question.as_ref().unwrap_or(&plan.name)
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let of = |record: &Record| json!({ "record": record.directory.display().to_string(), "created": record.header.created });
        json!({
            "compare_version": VERSION,
            "before": of(self.before),
            "after": of(self.after),
            "across": self.across,
        })
    }
}

/// What every comparison of two runs takes for granted.
const APART: &str = "The intervals hold 95 % for all lines together, as far as blocks tell. The runs were not interleaved: what else \
                     changed on this machine between them (neighbours on the host, temperature, updates) is inside. A \
                     difference that matters deserves one experiment with both as variants.";

const HEADS: [&str; 7] = ["variant", "metric", "before", "after", "change", "interval", "blocks"];

/// Figures of one metric have one unit, in both records and in all variants.
fn rows(shifts: &[Shift]) -> Vec<Vec<String>> {
    let of_metric = |shift: &Shift| {
        let alike = shifts.iter().filter(|other| other.metric == shift.metric);
        let values: Vec<_> = alike.clone().flat_map(|of| [Some(of.before), Some(of.after)]).collect();
        let place = alike.take_while(|other| !std::ptr::eq(*other, shift)).count();
        let cells = column(shift.metric.unit(), &values);
        (cells[2 * place].clone(), cells[2 * place + 1].clone())
    };
    shifts.iter().map(|shift| row(shift, of_metric(shift))).collect()
}

fn row(shift: &Shift, (before, after): (String, String)) -> Vec<String> {
    let change = shift.ratio.map(|ratio| interval(ratio.ratio, ratio.low, ratio.high));
    let (change, interval) = change.unwrap_or_else(|| ("–".into(), "too few blocks".into()));
    vec![
        shift.variant.clone(),
        metric_name(shift.metric).to_owned(),
        before,
        after,
        change,
        interval,
        format!("{} and {}", shift.blocks.0, shift.blocks.1),
    ]
}
