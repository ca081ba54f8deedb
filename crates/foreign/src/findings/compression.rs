//! Whether runs that are called compressed moved fewer bytes than those that are not.

use std::collections::BTreeMap;

use super::{About, Case, Finding, Grade, finding};
use crate::figure::bytes;
use crate::run::Run;
use crate::source::Transcript;
use crate::words::{self, Compression};

/// Sizes nearer than this are the same: tools print them with two or three digits after the point.
const SAME: f64 = 0.01;

/// Runs that differ in compression by name and moved the same bytes.
pub fn never_negotiated(files: &[Transcript], runs: &[Run]) -> Option<Finding> {
    let sized: Vec<Moved> =
        runs.iter().enumerate().filter_map(|(index, run)| Moved::of(index, run)).collect();
    let with = sized.iter().filter(|one| one.says == Some(Compression::On));
    let named: Vec<Case> = with.filter_map(|one| one.against(&sized)).collect();
    if !named.is_empty() {
        let statement = "the compressed runs moved the same bytes per response as the others: compression was never negotiated";
        let remedy = remedy(runs, &named);
        return finding("no_compression", (Grade::Void, About::Comparison), named, statement, remedy);
    }
    let spoken = files.iter().find_map(|file| Some((file, file.speaks_of_compression?)))?;
    let silent = sized.iter().all(|one| one.says.is_none());
    let groups: std::collections::BTreeSet<&str> = sized.iter().map(|one| one.run.label.as_str()).collect();
    let first = sized.first()?;
    let alike = sized.iter().all(|one| near(one.size, first.size) && one.path == first.path);
    let nothing_asked = sized.iter().all(|one| one.run.asks_for_no_coding());
    if !(silent && alike && nothing_asked && groups.len() > 1) {
        return None;
    }
    let case = Case {
        label: format!("all {} labels", groups.len()),
        runs: sized.iter().map(|one| one.index).collect(),
        evidence: format!(
            "{} a response in every run; line {} speaks of compression",
            bytes(first.size),
            spoken.1
        ),
        figures: BTreeMap::from([("bytes_per_response", first.size)]),
    };
    let remedy = remedy(runs, std::slice::from_ref(&case));
    let statement = "this text speaks of compression, and every run moved the same bytes per response";
    finding("no_compression", (Grade::Warning, About::Comparison), vec![case], statement, remedy)
}

/// A run whose bytes per response are known.
struct Moved<'r> {
    index: usize,
    run: &'r Run,
    says: Option<Compression>,
    size: f64,
    path: &'r str,
}

impl<'r> Moved<'r> {
    fn of(index: usize, run: &'r Run) -> Option<Self> {
        if run.tool.facts().counts_unpacked_bytes && run.load.accept_encoding.is_none() {
            return None;
        }
        let size = run.bytes_per_response().filter(|size| *size > 0.0)?;
        let path = run.url.as_deref().and_then(|url| url.split_once("://")).map_or("", |(_, rest)| rest);
        let path = path.find('/').map_or("/", |at| &path[at..]);
        Some(Self { index, run, says: says(run), size, path })
    }

    fn headings_shared(&self, other: &Moved) -> usize {
        let pairs = self.run.headings.iter().zip(&other.run.headings);
        pairs.take_while(|(one, other)| one == other).count()
    }

    /// The case against this run, where one without compression moved as much.
    fn against(&self, all: &[Moved]) -> Option<Case> {
        let same_work = |one: &&Moved| one.path == self.path && one.says == Some(Compression::Off);
        // The one that differs in the fewest headings.
        let without = all.iter().filter(same_work).max_by_key(|one| self.headings_shared(one))?;
        if !near(self.size, without.size) {
            return None;
        }
        let evidence = format!("{} a response, and {} without", bytes(self.size), bytes(without.size));
        Some(Case {
            label: self.run.label.clone(),
            runs: vec![self.index],
            evidence,
            figures: BTreeMap::from([
                ("bytes_per_response", self.size),
                ("bytes_per_response_without", without.size),
            ]),
        })
    }
}

fn near(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() <= SAME
}

/// What a run's headings say of compression, the innermost first.
fn says(run: &Run) -> Option<Compression> {
    let outer = |at: usize| run.headings[..at].iter().any(|heading| words::compression(heading).is_some());
    let inner = run.headings.iter().enumerate().rev().find_map(|(at, heading)| {
        words::compression(heading).or_else(|| {
            // `none` below a heading that speaks of compression.
            (words::says_none(heading) && outer(at)).then_some(Compression::Off)
        })
    });
    inner.or_else(|| words::compression(&run.label))
}

impl Run {
    /// Whether the request had no Accept-Encoding, as far as the tool and the command line tell.
    fn asks_for_no_coding(&self) -> bool {
        match &self.load.accept_encoding {
            Some(coding) => coding.is_empty() || coding == "identity",
            None => !self.tool.facts().sends_accept_encoding,
        }
    }
}

fn remedy(runs: &[Run], cases: &[Case]) -> String {
    let concerned = || cases.iter().flat_map(|case| &case.runs).filter_map(|index| runs.get(*index));
    let silent = concerned().find(|run| run.asks_for_no_coding());
    let why = match silent {
        Some(run) => {
            let tool = run.tool.name();
            format!("{tool} sends no Accept-Encoding unless told (-H 'Accept-Encoding: gzip'), so no service compresses for it. ")
        }
        None => "The request allowed a coding, so the service declined: the type is not one it compresses, the body is below its \
                 threshold, or the setting never reached it. "
            .to_owned(),
    };
    format!(
        "{why}What the labels compare was never there. Look at a response with `curl -sD- -o/dev/null --compressed URL`."
    )
}
