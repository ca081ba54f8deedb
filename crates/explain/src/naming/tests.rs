//! Naming of functions: a table of the output of Node.js, package managers and bundlers.

use super::*;
use crate::Package;

/// `function e(n){…}` and `const t=n=>…` in one line, written as `function handle(request)` in line 3 and
/// `const total = (rows) =>` in line 7 of src/a.ts. Then a line that was written entirely in line 10.
pub(super) fn minified() -> Vec<u8> {
    let map = serde_json::json!({
        "version": 3,
        "sourceRoot": "",
        "sources": ["../src/a.ts"],
        "names": ["handle", "request", "total"],
        // Columns 0, 9, 11, 20 and 26 of the first line, 0 and 5 of the second.
        "mappings": "AAEA,SAAAA,EAAAC,SAIA,MAAAC;AAGA,KAAA",
    });
    map.to_string().into_bytes()
}

/// Packages and maps of an invented disk.
struct Disk;

impl CaptureFiles for Disk {
    fn version(&self, folder: &str) -> Option<String> {
        let known = [
            ("/srv/app/node_modules/express", "5.1.0"),
            ("/srv/app/node_modules/pm2", "6.0.8"),
            ("/srv/app/node_modules/a/node_modules/b", "2.0.0"),
        ];
        known
            .iter()
            .find(|(path, _)| *path == folder)
            .map(|(_, version)| (*version).to_owned())
    }

    fn source_map(&self, script: &str) -> Option<(Vec<u8>, String)> {
        let (map, folder) = match script {
            "/srv/app/dist/a.min.js" => (minified(), "/srv/app/dist"),
            "/srv/app/dist/apart.js" => (minified(), "/srv/app/maps/dist"),
            "/srv/app/dist/broken.js" => {
                (b"{\"version\":3,\"mappings\":\"".to_vec(), "/srv/app/dist")
            }
            _ => return None,
        };
        Some((map, format!("{folder}/a.js.map")))
    }
}

const NAMING: Naming<'static> = Naming {
    directory: "/srv/app/",
    source: &Disk,
};

fn key(call: &CallFrame, caller: Option<&Frame>) -> Frame {
    Namer::of(&NAMING, [call]).name(call, caller)
}

fn shown(frame: &Frame) -> String {
    let package = frame
        .package
        .as_ref()
        .map_or(String::new(), |Package { name, version }| {
            format!(" {name}@{}", version.as_deref().unwrap_or("?"))
        });
    format!(
        "{} | {}:{} | {}{package}",
        frame.function,
        frame.file,
        frame.line,
        frame.kind.name()
    )
}

#[test]
fn functions_of_scripts() {
    let yarn =
        "/x/.yarn/cache/ms-npm-2.1.0-beta.1-bb15ff679a-3c4b9b0767.zip/node_modules/ms/index.js";
    let pnpm = "/x/node_modules/.pnpm/find-my-way@9.3.0/node_modules/find-my-way/index.js";
    let scoped = "/x/node_modules/.pnpm/@babel+core@7.20.0_x@1/node_modules/@babel/core/i.js";
    for (url, expected) in [
        (
            "file:///srv/app/src/my%20server.js?v=1#x",
            "src/my server.js:3 | application",
        ),
        ("file:///srv/app/100%/%e9.js", "100%/%e9.js:3 | application"),
        ("file:///C:/app/a.js", "C:/app/a.js:3 | application"),
        ("C:\\app\\a.js", "C:/app/a.js:3 | application"),
        ("file:///srv/lib/a.mjs?v=2", "../lib/a.mjs:3 | application"),
        ("/srv/lib/a.js?v=2", "../lib/a.js?v=2:3 | application"),
        ("[eval]", "[eval]:3 | application"),
        (
            "evalmachine.<anonymous>",
            "evalmachine.<anonymous>:3 | application",
        ),
        ("https://localhost/a.js", "localhost/a.js:3 | application"),
        (
            "/srv/app/node_modules/express/lib/router.js",
            "lib/router.js:3 | framework express@5.1.0",
        ),
        (
            "/srv/app/node_modules/a/node_modules/b/i.js",
            "i.js:3 | middleware b@2.0.0",
        ),
        (
            "/srv/app/node_modules/@koa/router/i.js",
            "i.js:3 | framework @koa/router@?",
        ),
        (
            "/srv/app/node_modules/pm2/lib/x.js",
            "lib/x.js:3 | middleware pm2@6.0.8",
        ),
        (
            "/srv/app/node_modules/pm2/node_modules/@pm2/io/b.js",
            "@pm2/io/b.js:3 | middleware pm2@6.0.8",
        ),
        (
            "/srv/app/node_modules/@pm2/io/b.js",
            "b.js:3 | middleware pm2@?",
        ),
        (pnpm, "index.js:3 | framework find-my-way@9.3.0"),
        (scoped, "i.js:3 | middleware @babel/core@7.20.0"),
        (yarn, "index.js:3 | middleware ms@2.1.0-beta.1"),
        (
            "/usr/share/nodejs/qs/lib/parse.js",
            "lib/parse.js:3 | middleware qs@?",
        ),
        ("/node_modules/x.js", "/node_modules/x.js:3 | application"),
        ("/node_modules//x.js", "/node_modules//x.js:3 | application"),
        ("/node_modules/@a/b", "/node_modules/@a/b:3 | application"),
        ("webpack-internal:///./src/a.ts", "src/a.ts:3 | application"),
        (
            "webpack-internal:///./node_modules/koa/lib/a.js",
            "lib/a.js:3 | framework koa@?",
        ),
        ("node:events", "node:events:3 | Node core"),
        ("internal/timers.js", "node:internal/timers:3 | Node core"),
        (
            "/tmp/proofload-1-2-3/agent.cjs",
            "agent.cjs:3 | middleware proofload-agent@?",
        ),
    ] {
        let found = Namer::of(&NAMING, &[]).name(&CallFrame::at("f", url, 3, 0), None);
        assert_eq!(shown(&found), format!("f | {expected}"), "{url}");
    }
    for name in ["", "(anonymous)"] {
        let found = shown(&key(&CallFrame::at(name, "/srv/app/a.js", 3, 0), None));
        assert_eq!(found, "(anonymous a.js:3) | a.js:3 | application");
    }
}

#[test]
fn a_service_in_a_package_is_still_the_service() {
    let naming = Naming {
        directory: "/opt/node_modules/service",
        source: &Disk,
    };
    let call = CallFrame::at("f", "/opt/node_modules/service/server.js", 1, 0);
    assert_eq!(
        shown(&Namer::of(&naming, &[]).name(&call, None)),
        "f | server.js:1 | application"
    );
}

#[test]
fn without_a_script_who_called_says_what_it_is() {
    let core = key(
        &CallFrame::at("pbkdf2Sync", "node:internal/crypto/pbkdf2", 62, 19),
        None,
    );
    let own = key(&CallFrame::at("login", "/srv/app/users.js", 30, 0), None);
    let package = key(
        &CallFrame::at("hash", "/srv/app/node_modules/bcrypt/bcrypt.js", 3, 0),
        None,
    );
    for (function, caller, expected) in [
        (
            "run",
            Some(&core),
            "pbkdf2Sync (native) | node:internal/crypto/pbkdf2:0 | native",
        ),
        ("now", Some(&own), "now (native) | :0 | native"),
        (
            "encrypt",
            Some(&package),
            "encrypt (native) | :0 | native bcrypt@?",
        ),
        ("encrypt (native)", None, "encrypt (native) | :0 | native"),
        ("", None, "(native) | :0 | native"),
        ("RegExp: a|b", Some(&core), "RegExp: a|b | :0 | native"),
        ("(idle)", None, "(idle) | :0 | waiting"),
        ("(program)", Some(&own), "(program) | :0 | native"),
        (
            "(garbage collector)",
            Some(&core),
            "(garbage collector) | :0 | GC",
        ),
    ] {
        assert_eq!(shown(&key(&CallFrame::named(function), caller)), expected);
    }
    // Code generated from text has a script and no address.
    let template = CallFrame {
        scripted: true,
        line: 7,
        ..CallFrame::named("template")
    };
    let inner = CallFrame {
        scripted: true,
        line: 9,
        ..CallFrame::named("")
    };
    let of_package = key(&template, Some(&package));
    assert_eq!(
        shown(&of_package),
        "template | bcrypt.js (eval):7 | middleware bcrypt@?"
    );
    assert_eq!(
        shown(&key(&inner, Some(&of_package))),
        "(anonymous bcrypt.js (eval):9) | bcrypt.js (eval):9 | middleware bcrypt@?"
    );
    assert_eq!(
        shown(&key(&template, Some(&core))),
        "template | (eval):7 | application"
    );
    let wasm = CallFrame::at("wasm-function[3]", "wasm://wasm/0a1b", 1, 5);
    assert_eq!(
        shown(&key(&wasm, Some(&package))),
        "wasm-function[3] | wasm://wasm/0a1b:1 | native bcrypt@?"
    );
}

#[test]
fn minified_code_is_named_as_it_was_written_where_there_is_a_map() {
    let url = "/srv/app/dist/a.min.js";
    let call = CallFrame::at("e", url, 1, 10);
    let mut namer = Namer::of(&NAMING, &[]);
    let frame = namer.name(&call, None);
    assert_eq!(shown(&frame), "handle | src/a.ts:3 | application");
    assert_eq!(
        namer.line(&call, &frame, 1),
        None,
        "all of the file is in this line"
    );
    assert_eq!(namer.line(&call, &frame, 2), Some(10));
    // A map's sources are relative to the map.
    let apart = namer.name(&CallFrame::at("e", "/srv/app/dist/apart.js", 1, 10), None);
    assert_eq!(shown(&apart), "handle | maps/src/a.ts:3 | application");
    assert!(namer.notes().is_empty());

    // Without a map there is one note, regardless of the number of functions.
    let bundle = |column| CallFrame::at("e", "/srv/app/dist/b.min.js", 1, column);
    assert_eq!(
        shown(&namer.name(&bundle(900), None)),
        "e | dist/b.min.js:1 | application"
    );
    namer.name(&bundle(901), None);
    assert_eq!(namer.line(&bundle(900), &frame, 1), None);
    assert_eq!(namer.notes().len(), 1);
    assert!(
        namer.notes()[0].text.starts_with("dist/b.min.js: minified"),
        "{:?}",
        namer.notes()
    );
    namer.name(&CallFrame::at("e", "/srv/app/dist/broken.js", 1, 0), None);
    assert!(
        namer.notes()[1].text.contains("dist/broken.js ("),
        "{:?}",
        namer.notes()
    );
}
