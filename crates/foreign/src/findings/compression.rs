//! Whether runs labelled as compressed transferred fewer bytes than others.

use std::borrow::Cow;
use std::collections::BTreeSet;

use model::{Grade, Quantity, evidence};

use super::{CheckInput, FindingCase};
use crate::run::ToolRun;
use crate::words::{self, Compression};

/// Closer sizes count as equal, because tools print them with two or three decimals.
const SAME: f64 = 0.01;

/// Runs that differ in compression by name but transferred the same bytes, or all runs of a text that
/// mentions compression.
pub fn never_negotiated(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let sized: Vec<Moved> = of
        .runs
        .iter()
        .enumerate()
        .filter_map(|(at, run)| Moved::of(at, run))
        .collect();
    let with = sized.iter().filter(|one| one.says == Some(Compression::On));
    let named: Vec<(Grade, FindingCase)> = with
        .filter_map(|one| Some((Grade::Invalid, one.as_large_as_without(&sized)?)))
        .collect();
    if !named.is_empty() {
        return named;
    }
    let spoken = of.files.iter().find_map(|file| file.speaks_of_compression);
    let (Some(line), Some(first)) = (spoken, sized.first()) else {
        return Vec::new();
    };
    let labels: BTreeSet<&str> = sized.iter().map(|one| one.run.label.as_str()).collect();
    let silent = |one: &Moved| {
        let alike = near(one.size, first.size) && one.path == first.path;
        one.says.is_none() && alike && one.run.asks_for_no_coding()
    };
    if labels.len() < 2 || !sized.iter().all(silent) {
        return Vec::new();
    }
    let case = FindingCase {
        label: format!("all {} labels", labels.len()),
        runs: sized.iter().map(|one| one.index).collect(),
        evidence: evidence!("{bytes_per_response} a response in every run; line {line} speaks of compression";
            bytes_per_response = Quantity::bytes(first.size)),
    };
    vec![(Grade::Warning, case)]
}

/// A run with a known number of bytes per response.
struct Moved<'r> {
    index: usize,
    run: &'r ToolRun,
    says: Option<Compression>,
    size: f64,
    path: &'r str,
}

impl<'r> Moved<'r> {
    fn of(index: usize, run: &'r ToolRun) -> Option<Self> {
        if run.tool.row().counts_unpacked_bytes && run.load.accept_encoding.is_none() {
            return None;
        }
        let size = run.bytes_per_response().filter(|size| *size > 0.0)?;
        Some(Self {
            index,
            run,
            says: says(run),
            size,
            path: run.path().unwrap_or_default(),
        })
    }

    fn headings_shared(&self, other: &Moved) -> usize {
        let pairs = self.run.headings.iter().zip(&other.run.headings);
        pairs.take_while(|(one, other)| one == other).count()
    }

    /// The case of this run, if one without compression transferred as much.
    fn as_large_as_without(&self, all: &[Moved]) -> Option<FindingCase> {
        let same_work = |one: &&Moved| one.path == self.path && one.says == Some(Compression::Off);
        // The one that differs in the fewest headings.
        let without = all
            .iter()
            .filter(same_work)
            .max_by_key(|one| self.headings_shared(one))?;
        let evidence = evidence!("{bytes_per_response} a response, and {bytes_per_response_without} without";
            bytes_per_response = Quantity::bytes(self.size),
            bytes_per_response_without = Quantity::bytes(without.size));
        let case = || FindingCase {
            label: self.run.label.clone(),
            runs: vec![self.index],
            evidence,
        };
        near(self.size, without.size).then(case)
    }
}

fn near(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() <= SAME
}

/// The statement of a run's headings about compression, innermost first.
fn says(run: &ToolRun) -> Option<Compression> {
    let outer = |at: usize| {
        run.headings[..at]
            .iter()
            .any(|heading| words::compression(heading).is_some())
    };
    let inner = run
        .headings
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, heading)| {
            words::compression(heading).or_else(|| {
                // `none` below a heading that mentions compression.
                (words::says_none(heading) && outer(at)).then_some(Compression::Off)
            })
        });
    inner.or_else(|| words::compression(&run.label))
}

impl ToolRun {
    /// Whether the request had no Accept-Encoding, as far as the tool and the command line show.
    fn asks_for_no_coding(&self) -> bool {
        match &self.load.accept_encoding {
            Some(coding) => coding.is_empty() || coding == "identity",
            None => !self.tool.row().sends_accept_encoding,
        }
    }
}

/// The reason nothing was compressed.
pub fn why(run: &ToolRun) -> Cow<'static, str> {
    Cow::Borrowed(match run.asks_for_no_coding() {
        true => {
            "The tool sends no Accept-Encoding unless told (-H 'Accept-Encoding: gzip'), so no service compresses for it."
        }
        false => {
            "The request allowed a coding, so the service declined: the type is not one it compresses, the body is below its \
             threshold, or the setting never reached it."
        }
    })
}
