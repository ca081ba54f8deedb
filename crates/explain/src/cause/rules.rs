//! The causes that are known, one rule each: what to look for, how much of the difference it is, and how it is told.
//!
//! A rule gives its share of the difference, however small; whether that is enough is judged by whoever asks.

use super::topic::{self, APM, COMPRESSION, Found, JSON, LOGGING, SYNC_CRYPTO, TEMPLATES, Topic};
use super::{CAUSE_SHARE_MIN, Case, Cause, MOVED_SHARE_MIN, kind};
use crate::figure::{amount, percent};
use crate::label::shown;
use crate::{Frame, Kind, Tree};

/// Every rule; where two account for as much, the first one is told.
pub(super) const ALL: [fn(&Case<'_>) -> Option<Cause>; 7] =
    [crypto, templates, compression, json, logging, apm, garbage];

/// A topic in both variants.
struct Both {
    before: Found,
    after: Found,
}

impl Both {
    fn of(case: &Case<'_>, topic: &Topic) -> Both {
        Both { before: topic::find(case.trees.0, topic), after: topic::find(case.trees.1, topic) }
    }

    fn us(&self) -> (f64, f64) {
        (self.before.us, self.after.us)
    }

    /// Where it costs more.
    fn more_expensive(&self) -> &Found {
        if self.after.us >= self.before.us { &self.after } else { &self.before }
    }

    /// The rule's answer where there is anything at all.
    fn cause(&self, case: &Case<'_>, text: impl FnOnce(&Found) -> Option<String>) -> Option<Cause> {
        let (before, after) = self.us();
        let share = case.share(before, after);
        // Text is made for what may be told alone.
        (share >= CAUSE_SHARE_MIN)
            .then(|| text(self.more_expensive()))
            .flatten()
            .map(|text| Cause { share, text })
    }
}

/// `, called by check (users.js:31) for the handler (anonymous server.js:49)`; empty where nobody of the service calls it.
fn called_by(found: &Found) -> String {
    match found.caller() {
        Some((caller, handler)) if caller == handler => format!(", called by {}", caller.in_sentence()),
        Some((caller, handler)) => {
            format!(", called by {} for {}", caller.in_sentence(), handler.in_sentence())
        }
        None => String::new(),
    }
}

fn crypto(case: &Case<'_>) -> Option<Cause> {
    let both = Both::of(case, &SYNC_CRYPTO);
    let (before, after) = both.us();
    both.cause(case, |found| {
        Some(format!(
            "Synchronous crypto on the main thread: {}{}, takes {}. The process serves no other request while it runs; a call \
             that does not block does the same on the thread pool.",
            found.begin(|_| true)?.in_sentence(),
            called_by(found),
            case.figures(before, after)
        ))
    })
}

fn names_compression(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["brotli", "deflate", "inflate", "zlib", "zstd", "gzip", "longest_match", "crc32"]
        .iter()
        .any(|part| name.contains(part))
}

/// Crypto that is on the main thread in one variant and on the thread pool in the other.
pub(super) fn moved_crypto(case: &Case<'_>) -> Option<String> {
    let both = Both::of(case, &SYNC_CRYPTO);
    let (before, after) = both.us();
    // Whatever its functions are called: that it takes what the main thread gives is what tells.
    let (pool_before, pool_after) = kind(case, Kind::ThreadPool);
    let (main, taken) = (after - before, pool_after - pool_before);
    let large = main.abs() > 0.0 && main.abs() >= CAUSE_SHARE_MIN * case.turned_over();
    let moved = main * taken < 0.0 && taken.abs() >= MOVED_SHARE_MIN * main.abs();
    // Where the difference is no smaller than what moved, it is the difference that is to be explained.
    let mostly = case.total.value.abs() < MOVED_SHARE_MIN * main.abs();
    if !(large && moved && mostly && case.saw_all()) {
        return None;
    }
    let found = both.more_expensive();
    let (blocking, free) =
        if main > 0.0 { (case.names.1, case.names.0) } else { (case.names.0, case.names.1) };
    let (blocking, free) = (shown(blocking), shown(free));
    let (on_main, left) = (amount(before.max(after)), amount(before.min(after)));
    let (on_pool, little) = (amount(pool_before.max(pool_after)), amount(pool_before.min(pool_after)));
    Some(format!(
        "Crypto runs on the main thread in {blocking} and on the thread pool in {free}: {}{}, takes {on_main}/request of the main \
         thread in {blocking} and {left} in {free}, while the pool's threads take {little} in {blocking} and {on_pool} in {free}. About \
         as much CPU time is spent either way. What changes is that it holds up the event loop in {blocking}, and not in {free}, where \
         the pool's threads (UV_THREADPOOL_SIZE, 4 by default) can use processors that are idle.",
        found.begin(|_| true)?.in_sentence(),
        called_by(found),
    ))
}

fn templates(case: &Case<'_>) -> Option<Cause> {
    let both = Both::of(case, &TEMPLATES);
    let (before, after) = both.us();
    both.cause(case, |found| {
        let engine = found.begin(|frame| !topic::view_lookup(frame));
        let figures = case.figures(before, after);
        Some(match engine.and_then(Frame::package_name) {
            Some(engine) => format!(
                "Templates are compiled while requests are served: {} does it{}, for {figures}. Express keeps compiled views where NODE_ENV is \
                 production (`view cache`); engines of their own have a cache to turn on.",
                engine,
                called_by(found),
            ),
            None => format!(
                "Views are looked up in the file system while requests are served{}: {figures}. Express keeps what it found where NODE_ENV \
                 is production (`view cache`).",
                called_by(found),
            ),
        })
    })
}

/// Compression costs on the main thread or, as streams, on the pool; both are of it.
fn compression(case: &Case<'_>) -> Option<Cause> {
    let both = Both::of(case, &COMPRESSION);
    let pool = |tree: &Tree, main: &Found, rival: &Found| {
        let pool = topic::pool(tree, names_compression);
        // Where its functions have no names, it works for whoever keeps the main thread busier with asking.
        match pool.named > 0.0 {
            true => pool.named,
            false if main.us > rival.us => pool.all,
            false => 0.0,
        }
    };
    let crypto = |tree: &Tree| topic::find(tree, &Topic { own: asks_for_crypto, with_packages: false });
    let (rival_before, rival_after) = (crypto(case.trees.0), crypto(case.trees.1));
    let before = both.before.us + pool(case.trees.0, &both.before, &rival_before);
    let after = both.after.us + pool(case.trees.1, &both.after, &rival_after);
    let share = case.share(before, after);
    let seen = both.before.us + both.after.us > 0.0;
    if share < CAUSE_SHARE_MIN || !seen {
        return None;
    }
    let tree = case.more_expensive(before, after);
    let coding = if after >= before { case.codings.1 } else { case.codings.0 };
    let found = if after >= before { &both.after } else { &both.before };
    let (on_pool, all) = (before.max(after) - found.us, before.max(after));
    let by = found.begin(|frame| frame.kind == Kind::Middleware).and_then(Frame::package_name);
    let text = format!(
        "Compressing responses{}{}: {}, {} of it on the thread pool{}. It saves bytes and costs CPU time, so whether it pays is \
         decided by the link; a lower level is the first thing to try.",
        algorithm(tree, coding),
        by.map(|by| format!(" ({})", by)).unwrap_or_default(),
        case.figures(before, after),
        percent(on_pool / all),
        level(tree).map(|level| format!("; {level}")).unwrap_or_default(),
    );
    Some(Cause { share, text })
}

fn asks_for_crypto(frame: &Frame) -> bool {
    frame.kind == Kind::Core && frame.file.starts_with("node:internal/crypto/")
}

/// ` with Brotli`: as the responses say, else as functions are called.
fn algorithm(tree: &Tree, coding: Option<&str>) -> &'static str {
    const KNOWN: [(&[&str], &str, &str); 4] = [
        (&["br"], "brotli", " with Brotli"),
        (&["zstd"], "zstd", " with zstd"),
        (&["gzip", "x-gzip"], "gzip", " with gzip"),
        (&["deflate"], "deflate", " with deflate"),
    ];
    let called =
        |part: &str| tree.frames.iter().any(|frame| frame.function.to_ascii_lowercase().contains(part));
    let said = KNOWN.iter().find(|(codings, _, _)| coding.is_some_and(|coding| codings.contains(&coding)));
    let found = said.or_else(|| KNOWN.iter().find(|(_, part, _)| called(part)));
    found.map_or("", |(_, _, text)| *text)
}

/// What functions of the libraries tell of the level: each level has its own.
fn level(tree: &Tree) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 3] = [
        ("Zopfli", "its search is that of Brotli's levels 10 and 11"),
        ("deflate_slow", "its search is that of zlib's levels 4 to 9"),
        ("deflate_fast", "its search is that of zlib's levels 1 to 3"),
    ];
    let called = |part: &str| tree.frames.iter().any(|frame| frame.function.contains(part));
    KNOWN.iter().find(|(part, _)| called(part)).map(|(_, text)| *text)
}

fn json(case: &Case<'_>) -> Option<Cause> {
    let both = Both::of(case, &JSON);
    let (before, after) = both.us();
    both.cause(case, |found| {
        let begin = found.begin(|_| true)?;
        let whose = begin.package_name().map(|package| format!(" of {}", package)).unwrap_or_default();
        Some(format!(
            "JSON: {}{whose}{}, takes {}. V8 shows JSON.stringify and JSON.parse as time of the function that calls them; what is \
             sent as it was last time need not be made again.",
            begin.in_sentence(),
            called_by(found),
            case.figures(before, after)
        ))
    })
}

fn logging(case: &Case<'_>) -> Option<Cause> {
    let both = Both::of(case, &LOGGING);
    let (before, after) = both.us();
    both.cause(case, |found| {
        let begin = found.begin(|_| true)?;
        let (who, help) = match begin.package_name() {
            Some(package) => (package, "fewer lines, or a destination that gathers them, cost less"),
            None => (
                "console.log".to_owned(),
                "it writes each line before it returns, to files, terminals and pipes alike; a logger that gathers lines costs less",
            ),
        };
        Some(format!("Writing log lines: {who}{}, takes {}; {help}.", called_by(found), case.figures(before, after)))
    })
}

fn apm(case: &Case<'_>) -> Option<Cause> {
    let both = Both::of(case, &APM);
    let (before, after) = both.us();
    both.cause(case, |found| {
        Some(format!(
            "PM2's monitoring inside of the process ({}) takes {}. `pm2 start --no-pmx` (`pmx = false`) goes without it.",
            found.begin(|_| true)?.package_name()?,
            case.figures(before, after)
        ))
    })
}

fn garbage(case: &Case<'_>) -> Option<Cause> {
    let (before, after) = kind(case, Kind::Gc);
    let share = case.share(before, after);
    (share >= CAUSE_SHARE_MIN).then(|| Cause {
        share,
        text: format!(
            "Garbage collection makes most of the difference: it takes {}. One variant makes more objects a request, or keeps more of them; \
             the heap's tree shows who allocates.",
            case.figures(before, after)
        ),
    })
}
