//! Topics: which calls belong to synchronous crypto, templates, compression and so on, and their share of a
//! tree.
//!
//! A call belongs to a topic from the first function of the topic down to where other code begins: callbacks
//! of a logger or a compressor are not its cost. Names and packages are from real versions. For a package
//! that is not listed there is only no story. This module makes no judgements.

use std::collections::BTreeMap;

use crate::label::{has_part, is_among};
use crate::{CodeKind, Frame, Tree};

/// Blocking calls of `node:crypto` without `Sync` in their name.
const BLOCKING_CALLS: &str =
    "update digest final hash randomBytes randomUUID randomInt sign verify";
const CRYPTO: &str = "bcrypt bcryptjs argon2 scrypt-js sodium-native node-forge";
const ENGINES: &str =
    "pug ejs handlebars hbs express-handlebars nunjucks eta mustache liquidjs edge.js";
const COMPILING_CALLS: &str = "compile compileBody compileFile compileInput compileSync compileToString handleTemplateCache handleCache \
                               parse parseTemplateText generateSource precompile tokenize";
/// Packages that only compile templates.
const COMPILERS: &str = "pug-lexer pug-parser pug-linker pug-load pug-code-gen pug-filters pug-strip-comments pug-walk pug-attrs";
const COMPRESSORS: &str =
    "compression koa-compress @fastify/compress shrink-ray-current pako express-static-gzip";
const SERIALIZING_CALLS: &str = "stringify serialize preserialize respond";
const SERIALIZERS: &str =
    "fast-json-stringify safe-stable-stringify json-stringify-safe fast-safe-stringify superjson";
const LOGGERS: &str = "pino pino-http winston winston-transport logform bunyan morgan log4js debug signale loglevel sonic-boom \
                       thread-stream";

fn package(frame: &Frame) -> &str {
    frame
        .package
        .as_ref()
        .map_or("", |package| package.name.as_str())
}

/// The last part of a name such as `exports.compile` or `Template.compile`.
fn last(frame: &Frame) -> &str {
    frame.function.rsplit('.').next().unwrap_or_default()
}

fn of_node(frame: &Frame, module: &str) -> bool {
    frame.kind == CodeKind::Core
        && frame
            .file
            .strip_prefix("node:")
            .is_some_and(|file| file.starts_with(module))
}

/// Crypto on the main thread by a blocking call.
pub(crate) fn sync_crypto(frame: &Frame) -> bool {
    let blocks = is_among(BLOCKING_CALLS, last(frame)) || last(frame).ends_with("Sync");
    is_among(CRYPTO, package(frame)) || (of_node(frame, "internal/crypto/") && blocks)
}

/// Files, processes and compression by calls that block the main thread, except for files that Node.js reads
/// to load a module.
pub(crate) fn sync_calls(frame: &Frame) -> bool {
    let blocks = last(frame).ends_with("Sync");
    blocks
        && ["fs", "zlib", "child_process"]
            .iter()
            .any(|module| of_node(frame, module))
}

/// Looking up, reading and compiling templates, but not rendering them.
pub(crate) fn templates(frame: &Frame) -> bool {
    let compiles = is_among(ENGINES, package(frame)) && is_among(COMPILING_CALLS, last(frame));
    is_among(COMPILERS, package(frame)) || compiles || view_lookup(frame)
}

/// Express looking for a view's file.
pub(crate) fn view_lookup(frame: &Frame) -> bool {
    is_among("View lookup resolve tryStat", last(frame))
        && package(frame) == "express"
        && frame.file.ends_with("view.js")
}

/// zlib, Brotli and zstd, on the JavaScript side.
pub(crate) fn compression(frame: &Frame) -> bool {
    of_node(frame, "zlib") || is_among(COMPRESSORS, package(frame))
}

pub(crate) fn json(frame: &Frame) -> bool {
    match frame.kind {
        CodeKind::Framework => is_among(SERIALIZING_CALLS, last(frame)),
        CodeKind::Application => has_part(
            "stringif serializ serialis tojson",
            &last(frame).to_ascii_lowercase(),
        ),
        _ => {
            is_among(SERIALIZERS, package(frame))
                || package(frame) == "body-parser" && frame.file.ends_with("json.js")
        }
    }
}

pub(crate) fn logging(frame: &Frame) -> bool {
    is_among(LOGGERS, package(frame))
        || of_node(frame, "internal/console/")
        || frame.function.starts_with("consoleCall")
}

/// PM2's monitoring inside of the process.
pub(crate) fn apm(frame: &Frame) -> bool {
    // From version 7 on PM2 has it in its own folder.
    let inside = package(frame) == "pm2" && frame.file.starts_with("modules/pm2-io");
    inside || package(frame) == "@pm2/io" || package(frame).starts_with("@opencensus/")
}

/// The share of a topic in a tree, and its places.
#[derive(Debug, Default)]
pub(crate) struct TopicCost {
    /// Time per request.
    pub us: f64,
    /// By the entry function of the topic.
    pub begins: BTreeMap<Frame, f64>,
    /// By the service's function that calls it and the service's first function above that, which handles the
    /// request.
    pub callers: BTreeMap<(Frame, Frame), f64>,
}

impl TopicCost {
    /// The most expensive of the wanted entry functions of the topic.
    pub fn begin(&self, wanted: impl Fn(&Frame) -> bool) -> Option<&Frame> {
        largest(self.begins.iter().filter(|(frame, _)| wanted(frame)))
    }

    pub fn caller(&self) -> Option<&(Frame, Frame)> {
        largest(self.callers.iter())
    }
}

fn largest<'a, K>(values: impl Iterator<Item = (&'a K, &'a f64)>) -> Option<&'a K> {
    values
        .max_by(|one, other| one.1.total_cmp(other.1))
        .map(|(key, _)| key)
}

/// Finds a topic in a tree by its own functions. `with_packages` says whether packages they call are part of
/// it. Time of the thread pool is excluded, because it is determined separately.
pub(crate) fn find(tree: &Tree, own: fn(&Frame) -> bool, with_packages: bool) -> TopicCost {
    let frame_of = |index: usize| tree.frames.get(tree.nodes[index].frame);
    let is_application =
        |index: &usize| frame_of(*index).is_some_and(|frame| frame.kind == CodeKind::Application);
    let reaches = |kind: CodeKind| match kind {
        CodeKind::Application | CodeKind::Framework => false,
        CodeKind::Middleware => with_packages,
        _ => true,
    };
    // For each node: the node with which the topic begins, and the nearest of the service's own above it.
    let mut begins: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    let mut callers = begins.clone();
    let mut found = TopicCost::default();
    for (index, node) in tree.nodes.iter().enumerate() {
        let (Some(frame), parent) = (frame_of(index), tree.caller(index)) else {
            continue;
        };
        let above = parent.and_then(|parent| begins[parent]);
        callers[index] = parent.filter(is_application).or_else(|| callers[parent?]);
        begins[index] = match frame.kind {
            CodeKind::ThreadPool => None,
            _ if own(frame) => above.or(Some(index)),
            kind => above.filter(|_| reaches(kind)),
        };
        let Some(begin) = begins[index].filter(|_| node.self_value > 0.0) else {
            continue;
        };
        found.us += node.self_value;
        *found
            .begins
            .entry(frame_of(begin).unwrap_or(frame).clone())
            .or_insert(0.0) += node.self_value;
        // The request's handler is the first of the consecutive service functions that end with the caller.
        let row = |of: &usize| tree.caller(*of).filter(is_application);
        let handler =
            callers[begin].and_then(|caller| std::iter::successors(Some(caller), row).last());
        if let Some(key) = callers[begin]
            .and_then(frame_of)
            .zip(handler.and_then(frame_of))
        {
            *found
                .callers
                .entry((key.0.clone(), key.1.clone()))
                .or_insert(0.0) += node.self_value;
        }
    }
    found
}

/// Time of the thread pool per request: the total, and the part in functions selected by `named` and their
/// callees.
pub(crate) fn pool(tree: &Tree, named: impl Fn(&str) -> bool) -> (f64, f64) {
    let mut below = vec![false; tree.nodes.len()];
    let mut pool = (0.0, 0.0);
    for (index, node) in tree.nodes.iter().enumerate() {
        let frame = tree
            .frames
            .get(node.frame)
            .filter(|frame| frame.kind == CodeKind::ThreadPool);
        let Some(frame) = frame else { continue };
        below[index] =
            named(&frame.function) || tree.caller(index).is_some_and(|caller| below[caller]);
        pool.0 += node.self_value;
        pool.1 += if below[index] { node.self_value } else { 0.0 };
    }
    pool
}
