//! Every rule applies to its planted case and not to its counterpart.

use crate::explain::tests::{Made, Worker, calls, packaged, plain_service, together};
use crate::{CodeKind, Frame, Tree};

fn app(name: &str, line: u32) -> Frame {
    Frame::new(name, "server.js", line, CodeKind::Application)
}

fn core(name: &str, file: &str) -> Frame {
    Frame::new(name, file, 5, CodeKind::Core)
}

fn native(name: &str) -> Frame {
    Frame::new(name, "", 0, CodeKind::Native)
}

/// The story of a variant with this extra work, measured to the microsecond.
fn story(extra: Tree, pool_us: f64) -> Option<String> {
    let mut made = Made::new();
    made.rounds(0, &[Worker::with(plain_service())]);
    let measured = extra.total() / 1e5 + pool_us;
    let pool_ns = (pool_us * 1e5) as u64;
    made.rounds(
        1,
        &[Worker {
            pool_ns,
            ..Worker::with(together(&[plain_service(), extra]))
        }],
    );
    made.explained(measured).comparisons[0].story.clone()
}

fn has(story: Option<String>, parts: &[&str]) {
    let story = story.unwrap_or_else(|| panic!("no story that has {parts:?}"));
    parts
        .iter()
        .for_each(|part| assert!(story.contains(part), "{part} is not in: {story}"));
}

/// Asserts that the story of a chain of calls with these costs, and of the pool, has these parts.
fn told_of(stack: &[&Frame], us: f64, pool_us: f64, parts: &str) {
    has(
        story(calls(stack, us), pool_us),
        &parts.split(" | ").collect::<Vec<_>>(),
    );
}

fn told(stack: &[&Frame], parts: &str) {
    told_of(stack, 300.0, 0.0, parts);
}

#[test]
fn synchronous_crypto_is_named_with_its_caller() {
    let stack = [
        &packaged("express", "handle", "lib/router.js", CodeKind::Framework),
        &app("(anonymous server.js:49)", 49),
        &Frame::new("check", "users.js", 31, CodeKind::Application),
        &core("pbkdf2Sync", "node:internal/crypto/pbkdf2"),
        &native("pbkdf2Sync (native)"),
    ];
    let crypto = "main thread: pbkdf2Sync (node:internal/crypto/pbkdf2:5), called by check (users.js:31) for (anonymous server.js:49), takes \
                  0 µs/request in plain, 4.80 ms in changed: 100 % of the difference";
    told_of(&stack, 4800.0, 0.0, crypto);
    // The same function of the service's own, without crypto in it, is only named.
    told_of(
        &stack[..3],
        4800.0,
        0.0,
        "One function makes most of the difference: check (users.js:31)",
    );
}

#[test]
fn crypto_that_moves_to_the_pool_is_told_though_it_costs_the_same() {
    let stack = [
        &app("check", 31),
        &core("pbkdf2Sync", "node:internal/crypto/pbkdf2"),
        &native("pbkdf2Sync (native)"),
    ];
    let blocking = Worker::with(together(&[plain_service(), calls(&stack, 4800.0)]));
    let free = Worker {
        pool_ns: 475_000_000,
        ..Worker::with(plain_service())
    };
    let explained = |workers: [&Worker; 2], measured: f64| {
        let mut made = Made::new();
        (0..2).for_each(|variant| made.rounds(variant, std::slice::from_ref(workers[variant])));
        made.explained_by(crate::CostInterval {
            value: measured,
            low: measured - 100.0,
            high: measured + 100.0,
        })
    };
    for (workers, measured, where_it_is) in [
        ([&blocking, &free], -50.0, "plain"),
        ([&free, &blocking], 50.0, "changed"),
    ] {
        let found = explained(workers, measured);
        assert!(
            found.comparisons[0]
                .reconciliation
                .starts_with("no difference")
        );
        let other = if where_it_is == "plain" {
            "changed"
        } else {
            "plain"
        };
        let main = format!(
            "on the main thread in {where_it_is} and on the thread pool in {other}: pbkdf2Sync"
        );
        let pool = format!(
            "takes 4.80 ms/request of the main thread in {where_it_is} and 0 µs in {other}, while the pool's threads take 0 µs in {where_it_is} and 4.75 ms in {other}"
        );
        has(
            found.comparisons[0].story.clone(),
            &[&main, "called by check (server.js:31)", &pool],
        );
    }
    // If half of it is in no profile there is no story.
    let unseen = Worker {
        tree: None,
        pid: 300,
        main_ns: Some(400_000_000),
        ..blocking.clone()
    };
    let mut made = Made::new();
    made.rounds(0, &[blocking.clone(), unseen]);
    made.rounds(1, std::slice::from_ref(&free));
    let zero = crate::CostInterval {
        value: 1.0,
        low: -9.0,
        high: 9.0,
    };
    assert_eq!(made.explained_by(zero).comparisons[0].story, None);
    // Nor if the pool gains nothing.
    let idle = Worker::with(plain_service());
    has(
        explained([&blocking, &idle], -4800.0).comparisons[0]
            .story
            .clone(),
        &["Synchronous crypto"],
    );
}

#[test]
fn templates_that_are_compiled_are_named_with_their_engine() {
    let render = packaged("express", "render", "lib/response.js", CodeKind::Framework);
    let pug = |name: &str| packaged("pug", name, "lib/index.js", CodeKind::Middleware);
    let lexer = packaged(
        "pug-lexer",
        "Lexer.callLexerFunction",
        "index.js",
        CodeKind::Middleware,
    );
    let begin = [&app("page", 17), &render, &pug("exports.renderFile")];
    let compiled = [
        begin[0],
        begin[1],
        begin[2],
        &pug("exports.compile"),
        &lexer,
        &native("RegExp: x"),
    ];
    told(
        &compiled,
        "Templates are compiled | pug@1.2.3 | called by page (server.js:17) | NODE_ENV",
    );
    // Rendering a template is not compiling.
    let filled = [
        begin[0],
        begin[1],
        begin[2],
        &packaged(
            "pug",
            "template",
            "lib/index.js (eval)",
            CodeKind::Middleware,
        ),
    ];
    told(&filled, "One function | template | pug@1.2.3");
    let lookup = packaged("express", "View.lookup", "lib/view.js", CodeKind::Framework);
    let looked_up = [begin[0], begin[1], &lookup, &core("statSync", "node:fs")];
    told(&looked_up, "Views are looked up in the file system");
}

#[test]
fn compression_counts_on_the_main_thread_and_on_the_pool() {
    let stream = [
        &core("BrotliCompress", "node:zlib"),
        &core("processChunk", "node:zlib"),
        &native("write (native)"),
    ];
    told_of(
        &stream,
        100.0,
        900.0,
        "with Brotli | 90 % of it on the thread pool | 100 % of the difference",
    );
    let zopfli = native("BrotliCreateZopfliBackwardReferences");
    told_of(
        &[stream[0], stream[1], &zopfli],
        100.0,
        900.0,
        "levels 10 and 11",
    );
    // The same pool without a request for compression.
    let reads = [&core("readFile", "node:fs")];
    assert_eq!(story(calls(&reads, 100.0), 900.0), None);
    // A compressor's callbacks are not its cost.
    let middleware = packaged(
        "compression",
        "compression",
        "index.js",
        CodeKind::Middleware,
    );
    let next = [
        &middleware,
        &packaged("router", "next", "index.js", CodeKind::Framework),
        &app("handler", 10),
    ];
    told(&next, "One function | handler (server.js:10)");
}

#[test]
fn json_logging_and_monitoring_are_known_by_their_functions() {
    let stringify = packaged(
        "express",
        "stringify",
        "lib/response.js",
        CodeKind::Framework,
    );
    told(
        &[&app("list", 8), &stringify],
        "JSON: stringify | express@1.2.3 | called by list (server.js:8)",
    );
    let send = packaged("express", "send", "lib/response.js", CodeKind::Framework);
    told(&[&app("list", 8), &send], "One function | send");

    let log = [
        &app("log", 3),
        &native("consoleCall (native)"),
        &core("log", "node:internal/console/constructor"),
        &native("writeUtf8String (native)"),
    ];
    told(
        &log,
        "Writing log lines: console.log | called by log (server.js:3)",
    );
    let write = [
        &app("log", 3),
        &core("write", "node:net"),
        &native("writeUtf8String (native)"),
    ];
    assert_eq!(
        story(calls(&write, 300.0), 0.0).filter(|story| story.contains("log lines")),
        None
    );
    let pino = packaged("pino", "LOG", "lib/tools.js", CodeKind::Middleware);
    told(&[&app("log", 3), &pino], "Writing log lines: pino@1.2.3");

    let apm = packaged(
        "@pm2/io",
        "wrapped",
        "build/main/metrics.js",
        CodeKind::Middleware,
    );
    told(
        &[&apm, &core("emit", "node:events")],
        "PM2's monitoring | --no-pmx",
    );
    told(&[&apm, &app("handler", 10)], "One function | handler");
    let inside = packaged(
        "pm2",
        "update",
        "modules/pm2-io-bpm/utils/EDS.js",
        CodeKind::Middleware,
    );
    told(&[&inside], "PM2's monitoring | pm2@1.2.3");
    let runs_it = packaged(
        "pm2",
        "run",
        "lib/ProcessContainerFork.js",
        CodeKind::Middleware,
    );
    told(&[&runs_it], "One function | run");
}

#[test]
fn garbage_collection_is_told_and_nothing_where_nothing_is_clear() {
    told(
        &[&Frame::new("(garbage collector)", "", 0, CodeKind::Gc)],
        "Garbage collection makes most",
    );
    let many: Vec<Tree> = (0..5).map(|line| calls(&[&app("f", line)], 60.0)).collect();
    assert_eq!(story(together(&many), 0.0), None);
    assert_eq!(
        story(calls(&[&native("(program)")], 300.0), 0.0),
        None,
        "that is no function"
    );
}

#[test]
fn half_of_the_difference_is_enough_and_less_is_not() {
    let log = [&core("log", "node:internal/console/constructor")];
    let rest = |us: f64| {
        (0..10)
            .map(|line| calls(&[&app("f", line)], us / 10.0))
            .collect::<Vec<Tree>>()
    };
    let both = |us: f64| together(&[&[calls(&log, us)][..], &rest(1000.0 - us)[..]].concat());
    has(story(both(501.0), 0.0), &["50 % of the difference"]);
    assert_eq!(story(both(490.0), 0.0), None);
}
