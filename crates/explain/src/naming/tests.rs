//! By what names functions are known: a table of what Node.js, package managers and bundlers write.

use super::*;
use crate::Package;

/// `function e(n){…}` and `const t=n=>…` in one line, written as `function handle(request)` in line 3 and
/// `const total = (rows) =>` in line 7 of src/a.ts; then a line of which all was written in line 10.
pub(super) fn minified() -> Vec<u8> {
    let map = serde_json::json!({
        "version": 3,
        "sourceRoot": "",
        "sources": ["../src/a.ts"],
        "names": ["handle", "request", "total"],
        // Columns 0, 9, 11, 20 and 26 of the first line; 0 and 5 of the second.
        "mappings": "AAEA,SAAAA,EAAAC,SAIA,MAAAC;AAGA,KAAA",
    });
    map.to_string().into_bytes()
}

/// Packages and maps of a disk that is not there.
struct Disk;

impl Source for Disk {
    fn version(&self, folder: &str) -> Option<String> {
        let known = [
            ("/srv/app/node_modules/express", "5.1.0"),
            ("/srv/app/node_modules/pm2", "6.0.8"),
            ("/srv/app/node_modules/a/node_modules/b", "2.0.0"),
        ];
        known.iter().find(|(path, _)| *path == folder).map(|(_, version)| (*version).to_owned())
    }

    fn source_map(&self, script: &str) -> Option<Vec<u8>> {
        match script {
            "/srv/app/dist/a.min.js" => Some(minified()),
            "/srv/app/dist/broken.js" => Some(b"{\"version\":3,\"mappings\":\"".to_vec()),
            _ => None,
        }
    }
}

const NAMING: Naming<'static> = Naming { directory: "/srv/app/", source: &Disk };

fn key(call: &CallFrame, caller: Option<&Frame>) -> Frame {
    Namer::of(&NAMING, [call]).name(call, caller)
}

fn shown(frame: &Frame) -> String {
    let package = frame.package.as_ref().map_or(String::new(), |Package { name, version }| {
        format!(" {name}@{}", version.as_deref().unwrap_or("?"))
    });
    format!("{} | {}:{} | {}{package}", frame.function, frame.file, frame.line, frame.kind.name())
}

#[test]
fn functions_of_scripts() {
    for (function, url, line, expected) in [
        ("handle", "file:///srv/app/src/my%20server.js", 12, "handle | src/my server.js:12 | application"),
        ("", "/srv/app/server.js", 3, "(anonymous server.js:3) | server.js:3 | application"),
        ("(anonymous)", "/srv/app/a.js", 3, "(anonymous a.js:3) | a.js:3 | application"),
        ("x", "file:///srv/lib/a.mjs?v=2", 3, "x | ../lib/a.mjs:3 | application"),
        ("x", "[eval]", 1, "x | [eval]:1 | application"),
        (
            "next",
            "/srv/app/node_modules/express/lib/router.js",
            9,
            "next | lib/router.js:9 | framework express@5.1.0",
        ),
        (
            "f",
            "/elsewhere/node_modules/.pnpm/find-my-way@9.3.0/node_modules/find-my-way/index.js",
            1,
            "f | index.js:1 | framework find-my-way@9.3.0",
        ),
        ("x", "/srv/lib/a.js?v=2", 3, "x | ../lib/a.js?v=2:3 | application"),
        ("f", "/srv/app/node_modules/@koa/router/i.js", 1, "f | i.js:1 | framework @koa/router@?"),
        ("f", "webpack-internal:///./src/a.ts", 4, "f | src/a.ts:4 | application"),
        ("f", "webpack-internal:///./node_modules/koa/lib/a.js", 4, "f | lib/a.js:4 | framework koa@?"),
        ("emit", "node:events", 466, "emit | node:events:466 | Node core"),
        ("emit", "internal/timers.js", 4, "emit | node:internal/timers:4 | Node core"),
        ("f", "/tmp/proofload-1-2-3/agent.cjs", 4, "f | agent.cjs:4 | middleware proofload-agent@?"),
    ] {
        assert_eq!(shown(&key(&CallFrame::at(function, url, line, 0), None)), expected, "{url}");
    }
}

#[test]
fn a_service_in_a_package_is_still_the_service() {
    let naming = Naming { directory: "/opt/node_modules/service", source: &Disk };
    let call = CallFrame::at("f", "/opt/node_modules/service/server.js", 1, 0);
    assert_eq!(shown(&Namer::of(&naming, &[]).name(&call, None)), "f | server.js:1 | application");
}

#[test]
fn without_a_script_who_called_says_what_it_is() {
    let core = key(&CallFrame::at("pbkdf2Sync", "node:internal/crypto/pbkdf2", 62, 19), None);
    let own = key(&CallFrame::at("login", "/srv/app/users.js", 30, 0), None);
    let package = key(&CallFrame::at("hash", "/srv/app/node_modules/bcrypt/bcrypt.js", 3, 0), None);
    for (function, caller, expected) in [
        ("run", Some(&core), "pbkdf2Sync (native) | node:internal/crypto/pbkdf2:0 | native"),
        ("now", Some(&own), "now (native) | :0 | native"),
        ("encrypt", Some(&package), "encrypt (native) | :0 | native bcrypt@?"),
        ("encrypt (native)", None, "encrypt (native) | :0 | native"),
        ("", None, "(native) | :0 | native"),
        ("RegExp: a|b", Some(&core), "RegExp: a|b | :0 | native"),
        ("(idle)", None, "(idle) | :0 | waiting"),
        ("(program)", Some(&own), "(program) | :0 | native"),
        ("(garbage collector)", Some(&core), "(garbage collector) | :0 | GC"),
    ] {
        assert_eq!(shown(&key(&CallFrame::named(function), caller)), expected);
    }
    // Code that was made from text has a script and no address.
    let template = CallFrame { scripted: true, line: 7, ..CallFrame::named("template") };
    let inner = CallFrame { scripted: true, line: 9, ..CallFrame::named("") };
    let of_package = key(&template, Some(&package));
    assert_eq!(shown(&of_package), "template | bcrypt.js (eval):7 | middleware bcrypt@?");
    assert_eq!(
        shown(&key(&inner, Some(&of_package))),
        "(anonymous bcrypt.js (eval):9) | bcrypt.js (eval):9 | middleware bcrypt@?"
    );
    assert_eq!(shown(&key(&template, Some(&core))), "template | (eval):7 | application");
    let wasm = CallFrame::at("wasm-function[3]", "wasm://wasm/0a1b", 1, 5);
    assert_eq!(shown(&key(&wasm, Some(&package))), "wasm-function[3] | wasm://wasm/0a1b:1 | native bcrypt@?");
}

#[test]
fn minified_code_is_named_as_it_was_written_where_there_is_a_map() {
    let url = "/srv/app/dist/a.min.js";
    let call = CallFrame::at("e", url, 1, 10);
    let mut namer = Namer::of(&NAMING, &[]);
    let frame = namer.name(&call, None);
    assert_eq!(shown(&frame), "handle | src/a.ts:3 | application");
    assert_eq!(namer.line(&call, &frame, 1), None, "all of the file is in this line");
    assert_eq!(namer.line(&call, &frame, 2), Some(10));
    assert!(namer.notes().is_empty());

    // Without one, it is told once, however many functions there are.
    let bundle = |column| CallFrame::at("e", "/srv/app/dist/b.min.js", 1, column);
    assert_eq!(shown(&namer.name(&bundle(900), None)), "e | dist/b.min.js:1 | application");
    namer.name(&bundle(901), None);
    assert_eq!(namer.line(&bundle(900), &frame, 1), None);
    assert_eq!(namer.notes().len(), 1);
    assert!(namer.notes()[0].text.starts_with("dist/b.min.js: minified"), "{:?}", namer.notes());
    namer.name(&CallFrame::at("e", "/srv/app/dist/broken.js", 1, 0), None);
    assert!(namer.notes()[1].text.contains("dist/broken.js ("), "{:?}", namer.notes());
}
