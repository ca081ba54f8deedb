//! Topics: which calls belong to synchronous crypto, to templates, to compression and so on, and how much of a tree is theirs.
//!
//! A call belongs to a topic from the first function that is the topic's own down to where somebody else's code begins: what a logger or a
//! compressor calls back into is not its cost. Names and packages here are those of real versions; a package that is not
//! listed only means that no story is told. Judges nothing.

use std::collections::BTreeMap;

use crate::{Frame, Kind, Tree};

/// Calls that belong together.
pub(crate) struct Topic {
    /// Whether a function is the topic's own.
    pub own: fn(&Frame) -> bool,
    /// Whether packages that its own functions call are part of it.
    pub with_packages: bool,
}

/// The main thread's time for crypto by a call that blocks it.
pub(crate) const SYNC_CRYPTO: Topic = Topic { own: sync_crypto, with_packages: true };
/// Looking up, reading and compiling templates, not filling them in.
pub(crate) const TEMPLATES: Topic = Topic { own: templates, with_packages: true };
/// zlib, Brotli and zstd as the JavaScript side sees them.
pub(crate) const COMPRESSION: Topic = Topic { own: compression, with_packages: false };
/// Making JSON and reading it.
pub(crate) const JSON: Topic = Topic { own: json, with_packages: false };
/// Writing log lines.
pub(crate) const LOGGING: Topic = Topic { own: logging, with_packages: false };
/// PM2's monitoring from inside.
pub(crate) const APM: Topic = Topic { own: apm, with_packages: false };

fn package(frame: &Frame) -> &str {
    frame.package.as_ref().map_or("", |package| package.name.as_str())
}

/// The last part of a name such as `exports.compile` or `Template.compile`.
fn last(frame: &Frame) -> &str {
    frame.function.rsplit('.').next().unwrap_or_default()
}

fn of_node(frame: &Frame, module: &str) -> bool {
    frame.kind == Kind::Core && frame.file.strip_prefix("node:").is_some_and(|file| file.starts_with(module))
}

fn sync_crypto(frame: &Frame) -> bool {
    // Calls of `node:crypto` without `Sync` in their name that block all the same.
    let blocks = matches!(
        last(frame),
        "update"
            | "digest"
            | "final"
            | "hash"
            | "randomBytes"
            | "randomUUID"
            | "randomInt"
            | "sign"
            | "verify"
    );
    let package = matches!(
        package(frame),
        "bcrypt" | "bcryptjs" | "argon2" | "scrypt-js" | "sodium-native" | "node-forge"
    );
    package || (of_node(frame, "internal/crypto/") && (blocks || last(frame).ends_with("Sync")))
}

fn templates(frame: &Frame) -> bool {
    let engine = matches!(
        package(frame),
        "pug"
            | "ejs"
            | "handlebars"
            | "hbs"
            | "express-handlebars"
            | "nunjucks"
            | "eta"
            | "mustache"
            | "liquidjs"
            | "edge.js"
    );
    let compiles = matches!(
        last(frame),
        "compile"
            | "compileBody"
            | "compileFile"
            | "compileInput"
            | "compileSync"
            | "compileToString"
            | "handleTemplateCache"
            | "handleCache"
            | "parse"
            | "parseTemplateText"
            | "generateSource"
            | "precompile"
            | "tokenize"
    );
    // Packages that do nothing but compile templates.
    let compiler = matches!(
        package(frame),
        "pug-lexer"
            | "pug-parser"
            | "pug-linker"
            | "pug-load"
            | "pug-code-gen"
            | "pug-filters"
            | "pug-strip-comments"
            | "pug-walk"
            | "pug-attrs"
    );
    compiler || (engine && compiles) || view_lookup(frame)
}

/// Express looking for a view's file.
pub(crate) fn view_lookup(frame: &Frame) -> bool {
    let looks = matches!(last(frame), "View" | "lookup" | "resolve" | "tryStat");
    looks && package(frame) == "express" && frame.file.ends_with("view.js")
}

fn compression(frame: &Frame) -> bool {
    of_node(frame, "zlib")
        || matches!(
            package(frame),
            "compression"
                | "koa-compress"
                | "@fastify/compress"
                | "shrink-ray-current"
                | "pako"
                | "express-static-gzip"
        )
}

fn json(frame: &Frame) -> bool {
    let lower = last(frame).to_ascii_lowercase();
    match (frame.kind, package(frame)) {
        (Kind::Framework, _) => matches!(last(frame), "stringify" | "serialize" | "preserialize" | "respond"),
        (Kind::Application, _) => {
            ["stringif", "serializ", "serialis", "tojson"].iter().any(|part| lower.contains(part))
        }
        (
            _,
            "fast-json-stringify"
            | "safe-stable-stringify"
            | "json-stringify-safe"
            | "fast-safe-stringify"
            | "superjson",
        ) => true,
        (_, package) => package == "body-parser" && frame.file.ends_with("json.js"),
    }
}

fn logging(frame: &Frame) -> bool {
    let package = matches!(
        package(frame),
        "pino"
            | "pino-http"
            | "winston"
            | "winston-transport"
            | "logform"
            | "bunyan"
            | "morgan"
            | "log4js"
            | "debug"
            | "signale"
            | "loglevel"
            | "sonic-boom"
            | "thread-stream"
    );
    package || of_node(frame, "internal/console/") || frame.function.starts_with("consoleCall")
}

fn apm(frame: &Frame) -> bool {
    // From version 7 on PM2 has it in a folder of its own.
    let inside = package(frame) == "pm2" && frame.file.starts_with("modules/pm2-io");
    inside || package(frame) == "@pm2/io" || package(frame).starts_with("@opencensus/")
}

/// How much of a tree is a topic's, and where.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Time per request.
    pub us: f64,
    /// By the function with which the topic begins.
    pub begins: BTreeMap<Frame, f64>,
    /// By the service's function that calls it and the first one of the service above that, which handles the request.
    pub callers: BTreeMap<(Frame, Frame), f64>,
}

impl Found {
    /// The most expensive function with which the topic begins, of those that are wanted.
    pub fn begin(&self, wanted: impl Fn(&Frame) -> bool) -> Option<&Frame> {
        largest(self.begins.iter().filter(|(frame, _)| wanted(frame)))
    }

    /// The most expensive caller.
    pub fn caller(&self) -> Option<&(Frame, Frame)> {
        largest(self.callers.iter())
    }
}

fn largest<'a, K>(values: impl Iterator<Item = (&'a K, &'a f64)>) -> Option<&'a K> {
    values.max_by(|one, other| one.1.total_cmp(other.1)).map(|(key, _)| key)
}

/// Looks for a topic in a tree. Time of the thread pool is none of it: that is asked for by itself.
pub(crate) fn find(tree: &Tree, topic: &Topic) -> Found {
    let count = tree.nodes.len();
    let (mut begins, mut callers): (Vec<Option<usize>>, Vec<Option<usize>>) =
        (vec![None; count], vec![None; count]);
    let mut found = Found::default();
    for (index, node) in tree.nodes.iter().enumerate() {
        let Some(frame) = tree.frames.get(node.frame) else { continue };
        let parent = tree.caller(index);
        let above = parent.and_then(|parent| begins[parent]);
        callers[index] = parent.and_then(|parent| match is_application(tree, parent) {
            true => Some(parent),
            false => callers[parent],
        });
        begins[index] = if frame.kind == Kind::ThreadPool {
            None
        } else if (topic.own)(frame) {
            above.or(Some(index))
        } else {
            above.filter(|_| reaches(frame, topic))
        };
        let Some(begin) = begins[index].filter(|_| node.self_value > 0.0) else { continue };
        found.us += node.self_value;
        *found.begins.entry(tree.frames[tree.nodes[begin].frame].clone()).or_insert(0.0) += node.self_value;
        if let Some(caller) = callers[begin] {
            let handler = handler(tree, caller);
            let key = (
                tree.frames[tree.nodes[caller].frame].clone(),
                tree.frames[tree.nodes[handler].frame].clone(),
            );
            *found.callers.entry(key).or_insert(0.0) += node.self_value;
        }
    }
    found
}

fn reaches(frame: &Frame, topic: &Topic) -> bool {
    match frame.kind {
        Kind::Application | Kind::Framework => false,
        Kind::Middleware => topic.with_packages,
        _ => true,
    }
}

fn is_application(tree: &Tree, index: usize) -> bool {
    tree.frames.get(tree.nodes[index].frame).is_some_and(|frame| frame.kind == Kind::Application)
}

/// The first of the service's own functions in the unbroken row that ends with `caller`.
fn handler(tree: &Tree, caller: usize) -> usize {
    let mut first = caller;
    while let Some(parent) = tree.caller(first).filter(|parent| is_application(tree, *parent)) {
        first = parent;
    }
    first
}

/// Time of the thread pool per request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pool {
    /// All of it.
    pub all: f64,
    /// In functions of which `named` says yes, and in what they call.
    pub named: f64,
}

/// Sums up the thread pool's part of a tree.
pub(crate) fn pool(tree: &Tree, named: fn(&str) -> bool) -> Pool {
    let mut below = vec![false; tree.nodes.len()];
    let mut pool = Pool::default();
    for (index, node) in tree.nodes.iter().enumerate() {
        let Some(frame) = tree.frames.get(node.frame).filter(|frame| frame.kind == Kind::ThreadPool) else {
            continue;
        };
        below[index] = named(&frame.function) || tree.caller(index).is_some_and(|caller| below[caller]);
        pool.all += node.self_value;
        if below[index] {
            pool.named += node.self_value;
        }
    }
    pool
}
