//! The cause of a difference in plain language, for clear cases only.
//!
//! **Method.** Each rule checks for one known cause, which must account for at least half of the profiled
//! difference. If several do, the largest is reported. If none does, a single function that accounts for 60 %
//! or more is named. Otherwise there is no story. A story needs profiles that explain the measured difference
//! (see `comparison`).
//!
//! One case is different: work that *moves* from the main thread to the thread pool or back. Then costs may
//! differ little while everything else changes, so profiles are compared with the whole CPU time of both
//! variants instead. They must have seen 80 % to 125 % of it. The moved work must be at least half of all
//! that changed places, and the pool must gain (or lose) at least half of it. The remaining difference must
//! be less than half of the moved work.
//!
//! Rules use names and times only. They see no source and no configuration, so a story reports the
//! observation and the usual remedy.

use model::quantity::{micros, share};

use crate::comparison::is_sound;
use crate::label::{has_part, shown};
use crate::{CodeKind, CostChange, CostComparison, ExplainedService, Frame, Tree};
use topic::TopicCost;

mod topic;

/// Share of the profiled difference that a rule's cause must account for.
pub const CAUSE_SHARE_MIN: f64 = 0.5;
/// Share of it that a single function must account for if no rule applies.
pub const FUNCTION_SHARE_MIN: f64 = 0.6;
/// For work to have moved, the share of the main thread's loss that the pool must gain, or vice versa.
pub const MOVED_SHARE_MIN: f64 = 0.5;

/// Share of a service's CPU time from which on a change of its code is worthwhile.
pub const PROPOSED_SHARE_MIN: f64 = 0.05;

/// The input of a story.
#[derive(Debug)]
pub(crate) struct CauseInput<'a> {
    pub of: &'a CostComparison,
    /// Costs per request of both variants.
    pub trees: (&'a Tree, &'a Tree),
    /// Seen ÷ counted by the kernel, for both. Not a number if it counted nothing.
    pub seen: (f64, f64),
    /// Content coding of both variants' responses, such as `br`.
    pub codings: (Option<String>, Option<String>),
    /// Whether the profiles explain the measured difference.
    pub sound: bool,
}

/// The share of the difference that a cause accounts for, and its text.
type CostCause = (f64, String);

/// A topic that may be a cause: its own functions, whether the packages they call are part of it, and its
/// text. The text is made from the entry function, the cost of the topic in the more expensive variant, and
/// its figures.
type Topic = (
    fn(&Frame) -> bool,
    bool,
    fn(&Frame, &TopicCost, String) -> Option<String>,
);

const TOPICS: [Topic; 6] = [
    (topic::sync_crypto, true, crypto),
    (topic::templates, true, templates),
    (topic::json, false, json),
    (topic::logging, false, logging),
    (topic::apm, false, apm),
    // Last, because for the same calls the topics above say more.
    (topic::sync_calls, false, sync_calls),
];

/// The story. `None` if nothing is clear.
pub(crate) fn story(case: &CauseInput<'_>) -> Option<String> {
    if let Some(text) = moved_crypto(case) {
        return Some(text);
    }
    if !case.sound {
        return None;
    }
    let topics = TOPICS.iter().map(|(own, with_packages, text)| {
        let (before, after) = case.both(*own, *with_packages);
        let found = more_expensive(&before, &after);
        case.cause(before.us, after.us, |figures| {
            text(found.begin(|_| true)?, found, figures)
        })
    });
    let causes = topics.chain([compression(case), garbage(case)]).flatten();
    let cause = causes.reduce(|best, next| if next.0 > best.0 { next } else { best });
    cause
        .map(|(_, text)| text)
        .or_else(|| largest_function(case))
}

/// Costs that a service could reduce by changing its code, with their place, most expensive first.
pub fn proposals(subject: &ExplainedService) -> Vec<String> {
    let all = subject.share_of(|_| true).0;
    let found = TOPICS.iter().filter_map(|(own, with_packages, text)| {
        let found = topic::find(&subject.tree, *own, *with_packages);
        let part = found.us / all;
        let figures = format!(
            "{}/request, {} of its CPU time",
            micros(found.us),
            share(part)
        );
        let text = (part >= PROPOSED_SHARE_MIN)
            .then(|| text(found.begin(|_| true)?, &found, figures))??;
        Some((part, text))
    });
    let mut found: Vec<(f64, String)> = found.collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found.into_iter().map(|(_, text)| text).collect()
}

impl CauseInput<'_> {
    /// The parts of a topic in both variants.
    fn both(&self, own: fn(&Frame) -> bool, with_packages: bool) -> (TopicCost, TopicCost) {
        (
            topic::find(self.trees.0, own, with_packages),
            topic::find(self.trees.1, own, with_packages),
        )
    }

    /// The change as a share of the difference.
    fn share(&self, before: f64, after: f64) -> f64 {
        let share = (after - before) / self.of.profiled_us.value;
        if share.is_finite() { share } else { 0.0 }
    }

    /// Cost of a kind of code in both variants.
    fn kind(&self, kind: CodeKind) -> (f64, f64) {
        let change = self.of.kinds.iter().find(|change| change.what == kind);
        change.map_or((0.0, 0.0), |change| (change.baseline, change.variant))
    }

    /// A cause with these costs in both variants, if it accounts for enough of the difference.
    fn cause(
        &self,
        before: f64,
        after: f64,
        text: impl FnOnce(String) -> Option<String>,
    ) -> Option<CostCause> {
        let share = self.share(before, after);
        let text = (share >= CAUSE_SHARE_MIN).then(|| text(self.figures(before, after)))??;
        Some((share, text))
    }

    /// `4.80 ms/request in development, 3.00 µs in production: 94 % of the difference`.
    fn figures(&self, before: f64, after: f64) -> String {
        format!(
            "{}/request in {}, {} in {}: {} of the difference",
            micros(before),
            shown(&self.of.baseline),
            micros(after),
            shown(&self.of.variant),
            share(self.share(before, after)),
        )
    }
}

/// A single function that accounts for nearly all.
fn largest_function(case: &CauseInput<'_>) -> Option<String> {
    let named = |change: &&CostChange<Frame>| {
        let javascript = change.what.kind.is_javascript();
        let compiled =
            change.what.kind == CodeKind::Native && !change.what.function.starts_with('(');
        (javascript || compiled)
            && case.share(change.baseline, change.variant) >= FUNCTION_SHARE_MIN
    };
    let change = case.of.functions.iter().find(named)?;
    let whose = match (&change.what.package, change.what.kind) {
        (Some(_), _) => format!(" of {}", change.what.package_name().unwrap_or_default()),
        (None, CodeKind::Application) => " of the service itself".into(),
        (None, kind) => format!(" ({})", kind.name()),
    };
    Some(format!(
        "One function makes most of the difference: {}{whose} takes {}.",
        change.what.in_sentence(),
        case.figures(change.baseline, change.variant)
    ))
}

fn more_expensive<'f>(before: &'f TopicCost, after: &'f TopicCost) -> &'f TopicCost {
    if after.us >= before.us { after } else { before }
}

/// `, called by check (users.js:31) for the handler (anonymous server.js:49)`. Empty if no code of the
/// service calls it.
fn called_by(found: &TopicCost) -> String {
    match found.caller() {
        Some((caller, handler)) if caller == handler => {
            format!(", called by {}", caller.in_sentence())
        }
        Some((caller, handler)) => {
            format!(
                ", called by {} for {}",
                caller.in_sentence(),
                handler.in_sentence()
            )
        }
        None => String::new(),
    }
}

fn crypto(begin: &Frame, found: &TopicCost, figures: String) -> Option<String> {
    let help = "a call that does not block does the same on the thread pool";
    blocking("Synchronous crypto on", begin, found, &figures, help)
}

fn sync_calls(begin: &Frame, found: &TopicCost, figures: String) -> Option<String> {
    let help = "there is a call that does not block, or what it gives may be kept from the start";
    blocking("A call that blocks", begin, found, &figures, help)
}

fn blocking(
    what: &str,
    begin: &Frame,
    found: &TopicCost,
    figures: &str,
    help: &str,
) -> Option<String> {
    let (begin, called_by) = (begin.in_sentence(), called_by(found));
    Some(format!(
        "{what} the main thread: {begin}{called_by}, takes {figures}. The process serves no other request while it runs; {help}."
    ))
}

/// Crypto that is on the main thread in one variant and on the thread pool in the other.
fn moved_crypto(case: &CauseInput<'_>) -> Option<String> {
    let (before, after) = case.both(topic::sync_crypto, true);
    let found = more_expensive(&before, &after);
    let (before, after) = (before.us, after.us);
    // The names of the pool's functions do not matter: it gains what the main thread loses.
    let (pool_before, pool_after) = case.kind(CodeKind::ThreadPool);
    let (main, taken) = (after - before, pool_after - pool_before);
    // At most the smaller of all increases and all decreases may have moved.
    let changes = || {
        case.of
            .functions
            .iter()
            .map(|change| change.difference.value)
    };
    let turned_over = changes()
        .map(|us| us.max(0.0))
        .sum::<f64>()
        .min(changes().map(|us| (-us).max(0.0)).sum());
    let large = main.abs() > 0.0 && main.abs() >= CAUSE_SHARE_MIN * turned_over;
    let moved = main * taken < 0.0 && taken.abs() >= MOVED_SHARE_MIN * main.abs();
    // If the difference is not smaller than the moved work, the difference is to be explained.
    let mostly = case.of.profiled_us.value.abs() < MOVED_SHARE_MIN * main.abs();
    // Profiles must have seen enough of both variants, because there is no difference to compare them with.
    if !(large && moved && mostly && is_sound(case.seen.0) && is_sound(case.seen.1)) {
        return None;
    }
    let (before_name, after_name) = (shown(&case.of.baseline), shown(&case.of.variant));
    let (blocking, free) = if main > 0.0 {
        (after_name, before_name)
    } else {
        (before_name, after_name)
    };
    let (on_main, left) = (micros(before.max(after)), micros(before.min(after)));
    let (on_pool, little) = (
        micros(pool_before.max(pool_after)),
        micros(pool_before.min(pool_after)),
    );
    Some(format!(
        "Crypto runs on the main thread in {blocking} and on the thread pool in {free}: {}{}, takes {on_main}/request of the main \
         thread in {blocking} and {left} in {free}, while the pool's threads take {little} in {blocking} and {on_pool} in {free}. About \
         as much CPU time is spent either way. What changes is that it holds up the event loop in {blocking}, and not in {free}, where \
         the pool's threads (UV_THREADPOOL_SIZE, 4 by default) can use processors that are idle.",
        found.begin(|_| true)?.in_sentence(),
        called_by(found),
    ))
}

fn templates(_: &Frame, found: &TopicCost, figures: String) -> Option<String> {
    let engine = found
        .begin(|frame| !topic::view_lookup(frame))
        .and_then(Frame::package_name);
    let called_by = called_by(found);
    Some(match engine {
        Some(engine) => format!(
            "Templates are compiled while requests are served: {engine} does it{called_by}, for {figures}. Express keeps compiled views \
             where NODE_ENV is production (`view cache`); engines of their own have a cache to turn on.",
        ),
        None => format!(
            "Views are looked up in the file system while requests are served{called_by}: {figures}. Express keeps what it found where \
             NODE_ENV is production (`view cache`).",
        ),
    })
}

/// Compression costs on the main thread or, for streams, on the pool. Both are counted.
fn compression(case: &CauseInput<'_>) -> Option<CostCause> {
    let (main_before, main_after) = case.both(topic::compression, false);
    if main_before.us + main_after.us <= 0.0 {
        return None;
    }
    let with_pool = |tree: &Tree, main: &TopicCost| {
        let (all, named) = topic::pool(tree, |function| {
            has_part(COMPRESSING, &function.to_ascii_lowercase())
        });
        let rival = topic::find(tree, asks_for_crypto, false);
        // If the pool's functions have no names, its work belongs to whatever keeps the main thread busier
        // with calls.
        let unnamed = if main.us > rival.us { all } else { 0.0 };
        main.us + if named > 0.0 { named } else { unnamed }
    };
    let (before, after) = (
        with_pool(case.trees.0, &main_before),
        with_pool(case.trees.1, &main_after),
    );
    let (all, found, tree, coding) = match after >= before {
        true => (after, &main_after, case.trees.1, &case.codings.1),
        false => (before, &main_before, case.trees.0, &case.codings.0),
    };
    let by = found
        .begin(|frame| frame.kind == CodeKind::Middleware)
        .and_then(Frame::package_name);
    case.cause(before, after, |figures| {
        Some(format!(
            "Compressing responses{}{}: {figures}, {} of it on the thread pool{}. It saves bytes and costs CPU time, so whether it pays is \
             decided by the link; a lower level is the first thing to try.",
            algorithm(tree, coding.as_deref()),
            by.map(|by| format!(" ({by})")).unwrap_or_default(),
            share((all - found.us) / all),
            level(tree).map(|level| format!("; {level}")).unwrap_or_default(),
        ))
    })
}

const COMPRESSING: &str = "brotli deflate inflate zlib zstd gzip longest_match crc32";

fn asks_for_crypto(frame: &Frame) -> bool {
    frame.kind == CodeKind::Core && frame.file.starts_with("node:internal/crypto/")
}

/// ` with Brotli`: from the responses, otherwise from function names.
fn algorithm(tree: &Tree, coding: Option<&str>) -> &'static str {
    const KNOWN: [(&[&str], &str, &str); 4] = [
        (&["br"], "brotli", " with Brotli"),
        (&["zstd"], "zstd", " with zstd"),
        (&["gzip", "x-gzip"], "gzip", " with gzip"),
        (&["deflate"], "deflate", " with deflate"),
    ];
    let called = |part: &str| {
        tree.frames
            .iter()
            .any(|frame| frame.function.to_ascii_lowercase().contains(part))
    };
    let said = KNOWN
        .iter()
        .find(|(codings, _, _)| coding.is_some_and(|coding| codings.contains(&coding)));
    let found = said.or_else(|| KNOWN.iter().find(|(_, part, _)| called(part)));
    found.map_or("", |(_, _, text)| *text)
}

/// The compression level, derived from library functions that are specific to a level.
fn level(tree: &Tree) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 3] = [
        ("Zopfli", "its search is that of Brotli's levels 10 and 11"),
        ("deflate_slow", "its search is that of zlib's levels 4 to 9"),
        ("deflate_fast", "its search is that of zlib's levels 1 to 3"),
    ];
    let called = |part: &str| {
        tree.frames
            .iter()
            .any(|frame| frame.function.contains(part))
    };
    KNOWN
        .iter()
        .find(|(part, _)| called(part))
        .map(|(_, text)| *text)
}

fn json(begin: &Frame, found: &TopicCost, figures: String) -> Option<String> {
    Some(format!(
        "JSON: {}{}{}, takes {figures}. V8 shows JSON.stringify and JSON.parse as time of the function that calls them; what is \
         sent as it was last time need not be made again.",
        begin.in_sentence(),
        begin
            .package_name()
            .map(|package| format!(" of {package}"))
            .unwrap_or_default(),
        called_by(found),
    ))
}

fn logging(begin: &Frame, found: &TopicCost, figures: String) -> Option<String> {
    let (who, help) = match begin.package_name() {
        Some(package) => (
            package,
            "fewer lines, or a destination that gathers them, cost less",
        ),
        None => (
            "console.log".to_owned(),
            "it writes each line before it returns, to files, terminals and pipes alike; a logger that gathers lines costs less",
        ),
    };
    Some(format!(
        "Writing log lines: {who}{}, takes {figures}; {help}.",
        called_by(found)
    ))
}

fn apm(begin: &Frame, _: &TopicCost, figures: String) -> Option<String> {
    let package = begin.package_name()?;
    Some(format!(
        "PM2's monitoring inside of the process ({package}) takes {figures}. `pm2 start --no-pmx` (`pmx = false`) goes without it."
    ))
}

fn garbage(case: &CauseInput<'_>) -> Option<CostCause> {
    let (before, after) = case.kind(CodeKind::Gc);
    case.cause(before, after, |figures| {
        Some(format!(
            "Garbage collection makes most of the difference: it takes {figures}. One variant makes more objects a request, or keeps more \
             of them; the heap's tree shows who allocates."
        ))
    })
}

#[cfg(test)]
mod tests;
