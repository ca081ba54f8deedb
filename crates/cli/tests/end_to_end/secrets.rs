//! Secrets, typed and by placeholders: the service gets them, and they are not stored or shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::place::{Draft, Place, Run, files, node};

/// Responds with 200 to requests that contain the values of its variables, and repeats them in a response
/// header.
const GUARD: &str = r#"
const http = require("node:http");
const { TOKEN, DATABASE_URL, KEY } = process.env;
const own = [process.argv[2] === "postgres://shop:typed-argv-zqz@db/shop", process.argv[4] === "typed-flag-zqz",
  DATABASE_URL === "redis://:given-by-env-zqz@cache/0", /^typed-(one|other)-zqz$/.test(TOKEN), KEY === "given-by-file-zqz"];
http.createServer((request, response) => {
  let body = "";
  request.on("data", (part) => { body += part; });
  request.on("end", () => {
    const sent = [request.headers.authorization === "Bearer given-by-env-zqz", request.headers["x-api-key"] === "typed-head-zqz",
      request.url === "/?token=typed-query-zqz", request.method === "GET" || body === '{"key":"given-by-file-zqz"}'];
    response.statusCode = [...own, ...sent].every(Boolean) ? 200 : 403;
    response.setHeader("x-told", request.headers.authorization ?? "");
    response.setHeader("set-cookie", "session=typed-cookie-zqz");
    response.end("x");
  });
}).listen(Number(process.env.PORT), "127.0.0.1");
process.on("SIGTERM", () => process.exit(0));
"#;

fn without_secrets(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let before = text
        .split_once("-zqz")
        .map(|(before, _)| before.chars().rev().take(80).collect::<Vec<_>>());
    assert_eq!(
        before.map(|it| it.into_iter().rev().collect::<String>()),
        None,
        "a secret in {what}"
    );
}

/// Asserts that no file of a place's record contains a secret, except logs, which are the service's own
/// output.
fn record_without_secrets(place: &Place, logs: bool) {
    let kept = files(&place.record()).into_iter();
    for (path, bytes) in
        kept.filter(|(path, _)| logs || !path.starts_with(place.path("record/logs")))
    {
        without_secrets(&path.display().to_string(), &bytes);
    }
}

fn secretive(place: &Place, mut command: Command) -> Command {
    command
        .env("XDG_STATE_HOME", place.path("state"))
        .env("PROOFLOAD_TEST_SECRET", "given-by-env-zqz");
    command
}

#[test]
fn a_service_gets_its_secrets_and_no_file_of_the_record_has_one() {
    let place = Place::new();
    place.write("guard.js", GUARD);
    place.write("key.txt", "given-by-file-zqz\n");
    let command = r#"["node", "guard.js", "postgres://shop:typed-argv-zqz@db/shop", "--password", "typed-flag-zqz"]"#;
    let env = r#"DATABASE_URL = "redis://:{env.PROOFLOAD_TEST_SECRET}@cache/0", KEY = "{file.key.txt}", TOKEN = "typed-one-zqz""#;
    let file = place.experiment(&Draft {
        service: &format!("command = {command}\nenv = {{ PORT = \"{{port}}\", {env} }}"),
        more: "[factors.key]\none = {}\nother = { api.env.TOKEN = \"typed-other-zqz\" } # typed-other-zqz",
        load: r#"headers = { Authorization = "Bearer {env.PROOFLOAD_TEST_SECRET}", X-Api-Key = "typed-head-zqz" }
requests = [
    { path = "/?token=typed-query-zqz" },
    { name = "post", method = "POST", path = "/?token=typed-query-zqz", body = '{"key":"{file.key.txt}"}' },
]"#,
        design: "warmup = \"100ms\"\nslice = \"100ms\"\nblocks = 4",
    });
    let text = fs::read_to_string(&file)
        .expect("it is there")
        .replace("ready = \"/healthz\"\n", "");
    fs::write(&file, text).expect("it is ours");
    let mut run = secretive(&place, place.command(&file));
    let said = run.arg("--events").said();
    without_secrets("what is said", said.err.as_bytes());
    without_secrets("the events", said.out.as_bytes());
    let record = place.opened();
    let slices: Vec<_> = record.trials().flat_map(|trial| &trial.slices).collect();
    assert!(!slices.is_empty(), "{said}");
    for slice in slices {
        assert!(
            slice.counts.successful > 0 && slice.counts.successful == slice.counts.responses,
            "{said}"
        );
    }
    for name in [
        "record.json",
        "events.jsonl",
        "experiment.toml",
        "report.html",
        "report.txt",
        "summary.json",
    ] {
        assert!(place.record().join(name).is_file(), "{name}");
    }
    record_without_secrets(&place, true);
    let told = place.read("record/events.jsonl");
    assert!(
        told.contains(r#"["x-told","Bearer {env.PROOFLOAD_TEST_SECRET}"]"#),
        "{said}"
    );
    assert!(
        told.contains(r#""KEY":"{file.key.txt}""#) && told.contains("[secret-"),
        "what was seen of processes"
    );
    // A variable that arrives is not reported as lost.
    let findings = said.out.lines().last().unwrap_or_default();
    assert!(!findings.contains("environment_lost"), "{findings}");
    let mode = |path: PathBuf| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    let modes = [
        place.record(),
        place.path("record/record.json"),
        place.path("state/proofload/key"),
    ]
    .map(mode);
    assert_eq!(modes, [0o700, 0o600, 0o600]);
    for (path, _) in files(&place.record()) {
        assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
    }

    let check = |words: &[&str]| {
        secretive(
            &place,
            place.proofload(&[&["run", "--dry-run"], words].concat()),
        )
        .said()
    };
    let checked = check(&["experiment.toml", "--format", "json"]);
    without_secrets("the plan", checked.out.as_bytes());
    let variants = serde_json::to_value(&record.header.plan.variants).expect("JSON");
    assert_eq!(checked.json()["variants"], variants, "equal marks");
    check(&["record/experiment.toml"])
        .ends(2)
        .tells(&["its value was not kept", "write {env.NAME} or {file.PATH}"]);
    place
        .said(&["run", "--dry-run", "experiment.toml"])
        .ends(2)
        .tells(&["experiment.toml:", "PROOFLOAD_TEST_SECRET is not set"]);
    place.is_quiet();
}

#[test]
fn commands_that_are_typed_are_kept_without_their_secrets_and_so_are_last_words_and_a_saved_file_is_warned_of()
 {
    let place = Place::new();
    place.write(
        "chatty.js",
        "console.error(`no access with ${process.argv[3]} at ${process.env.TOKEN}`); process.exit(7);",
    );
    let command = |token: &str| format!("TOKEN={token} node chatty.js --password typed-flag-zqz");
    let (one, other) = (command("typed-one-zqz"), command("typed-other-zqz"));
    let flags = [
        "--out",
        "record",
        "--save",
        "saved.toml",
        "-H",
        "Authorization: Bearer typed-head-zqz",
    ];
    let words = [&["compare"], &flags[..], &[one.as_str(), &other]].concat();
    let said = secretive(&place, place.proofload(&words)).said();
    said.ends(3).tells(&[
        "no access with [secret-",
        "saved.toml has secrets as they were typed",
        "{env.NAME}",
    ]);
    without_secrets("what is said", said.err.as_bytes());
    record_without_secrets(&place, false);
    let plan = &place.opened().header.plan;
    assert!(
        plan.variants[0].name.starts_with("TOKEN=[secret-")
            && plan.variants[0].name != plan.variants[1].name,
        "{plan:?}"
    );
    assert!(place.read("saved.toml").contains("typed-other-zqz"));
    place.is_quiet();
}

#[test]
fn a_load_from_flags_has_its_secrets_and_keeps_none() {
    let place = Place::new();
    place.write("guard.js", "const http = require('node:http');\nconst port = process.env.PORT;\nhttp.createServer((request, response) => { response.statusCode = request.headers.authorization === 'Bearer given-by-env-zqz' && request.url === '/?token=typed-query-zqz' ? 200 : 403; response.end(); }).listen(port, '127.0.0.1');");
    let (_server, address) = node(place.path("guard.js"), &[]);
    let url = format!("http://{address}/?token=typed-query-zqz");
    let words = [
        "load",
        &url,
        "-H",
        "Authorization: Bearer {env.PROOFLOAD_TEST_SECRET}",
    ];
    let rest = ["-n", "50", "-c", "1", "--out", "record"];
    let said = secretive(&place, place.proofload(&[&words[..], &rest].concat())).said();
    let unset = place.said(&words);
    said.ends(0);
    without_secrets("what is said", said.to_string().as_bytes());
    record_without_secrets(&place, true);
    unset
        .ends(2)
        .tells(&["the variable PROOFLOAD_TEST_SECRET is not set"]);
}

/// A value that shares no five bytes with a digest, a time or a word.
const STRANGE: &str = "QZXJV7KWQ9ZXVJ3QKXZW8JVKQXZ4JWQXV";

/// Asserts that a text has no five consecutive bytes of a strange secret.
fn without_parts(what: &str, text: &str) {
    let found = (0..=STRANGE.len() - 5)
        .map(|at| &STRANGE[at..at + 5])
        .find(|part| text.contains(part));
    assert_eq!(found, None, "in {what}: {text}");
}

fn record_without_parts(place: &Place) {
    let kept = files(&place.record())
        .into_iter()
        .filter(|(path, _)| !path.starts_with(place.path("record/logs")));
    for (path, bytes) in kept {
        without_parts(
            &path.display().to_string(),
            &String::from_utf8_lossy(&bytes),
        );
    }
}

#[test]
fn cut_last_words_have_no_half_secret() {
    let place = Place::new();
    // Lines are truncated after 300 characters, and the first one at the beginning of the last 64 KiB.
    place.write(
        "crash.js",
        "const { TOKEN, KEY } = process.env; console.error('y'.repeat(30) + TOKEN.repeat(2100) + '\\n' + KEY);\n\
         for (let at = 1; at < 17; at += 3) console.error('x'.repeat(300 - at) + TOKEN + ' end'); process.exit(3);",
    );
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n{}\n",
        &STRANGE[..20],
        &STRANGE[20..]
    );
    place.write("key.pem", format!("{key}-----END PRIVATE KEY-----\n"));
    let file = place.experiment(&Draft {
        service: "command = [\"node\", \"crash.js\"]\nenv = { TOKEN = \"{env.PROOFLOAD_TEST_SECRET}\", KEY = \"{file.key.pem}\" }",
        more: "",
        load: "",
        design: "",
    });
    let said = secretive(&place, place.command(&file))
        .env("PROOFLOAD_TEST_SECRET", STRANGE)
        .said();
    said.ends(3).tells(&["{file.key.pem}…"]);
    without_parts("what is said", &said.all());
    record_without_parts(&place);
}

#[test]
fn cut_examples_of_responses_have_no_half_secret() {
    let place = Place::new();
    place.write(
        "echo.js",
        "require('node:http').createServer((request, response) => { const at = Math.floor(Math.random() * 30);\n\
         response.setHeader('x-echo', 'y'.repeat(200 - at) + request.headers.authorization.slice(7)); response.end(); })\n\
         .listen(process.env.PORT, '127.0.0.1');",
    );
    let (_server, address) = node(place.path("echo.js"), &[]);
    let url = format!("http://{address}/");
    let expected = [
        "--expect-header",
        "x-echo: z",
        "-n",
        "400",
        "--out",
        "record",
        "-v",
    ];
    let words = [
        "load",
        &url,
        "-H",
        "Authorization: Bearer {env.PROOFLOAD_TEST_SECRET}",
    ];
    let mut load = secretive(&place, place.proofload(&[&words[..], &expected].concat()));
    let said = load.env("PROOFLOAD_TEST_SECRET", STRANGE).said();
    assert!(
        place.read("record/events.jsonl").contains("yyyy"),
        "there is an example: {said}"
    );
    without_parts("what is said", &said.all());
    record_without_parts(&place);
}

#[test]
fn messages_repeat_no_typed_secret() {
    let place = Place::new();
    place.write(
        "broken.toml",
        "name = \"x\"\n[services.api]\ncommand = [\"x\"]\nenv = { API_TOKEN = \"typed1-zqz }\n",
    );
    place.write("header.toml", "name = \"x\"\n[services.api]\ncommand = [\"x\"]\n[load]\nheaders = { Cookie = \"sid=typed1-zqz\\n\" }\n");
    place.write(
        "list.toml",
        "name = \"x\"\n[services.api]\ncommand = \"node x --token typed1-zqz\"\n",
    );
    let url = "http://127.0.0.1:1/";
    for words in [
        &["load", url, "-H", "Authorization Bearer typed-zqz"][..],
        &["load", url, "-H", "Bearer typed-zqz"],
        &["load", url, "-H", ": typed-zqz"],
        &["load", url, "--expect-header", ": typed-zqz"],
        &["load", url, "-b", "@{\"password\": \"typed-zqz\"}"],
        &["load", url, "TOKEN=typed-zqz"],
        &["load", url, "--token=typed-zqz"],
        &["load", "http://user:typed-zqz@127.0.0.1:1/"],
        &["load", "http://user:typed-zqz/"],
        &["load", "ftp://127.0.0.1:1/?token=typed-zqz"],
        &[
            "load",
            "--as",
            "wrk",
            "--",
            "-H",
            "Authorization Bearer typed-zqz",
            url,
        ],
        &[
            "load",
            "--as",
            "ab",
            "--",
            "-n",
            "1",
            "-P",
            "user:typed-zqz",
            url,
        ],
        &["TOKEN=typed-zqz node x"],
        &["compare", "TOKEN=typed-zqz", "node y"],
        &["compare", "TOKEN='typed-zqz node x", "node y"],
        &["compare", "TOKEN=typed-zqz node x && node y", "node y"],
        &["compare", "--name", "TOKEN: typed-zqz node x", "node y"],
        &[
            "compare",
            "-H",
            "Authorization: Bearer typed-zqz\u{1}",
            "node x",
            "node y",
        ],
        &[
            "compare",
            "-b",
            "password=typed-zqz&a={nothing}",
            "node x",
            "node y",
        ],
        &[
            "compare",
            "--path",
            "/?token=typed-zqz a",
            "node x",
            "node y",
        ],
        &["tune", "TOKEN=typed-zqz"],
        &["tune", "http://user:typed-zqz@127.0.0.1:1/"],
        &["load", url, "-H", "Authorization:", "Bearer", "typed-zqz"],
        &["load", url, "-H", "Cookie:", "typed-zqz/a+b=="],
        &["report", "/x?token=typed-zqz"],
        &["run", "x?token=typed-zqz"],
        &["gate", "x?token=typed-zqz"],
        &["load", url, "--cacert", "x?token=typed-zqz"],
        &["load", url, "--expect-body", "x?token=typed-zqz"],
        &["run", "broken.toml"],
        &["run", "header.toml"],
        &["run", "list.toml"],
    ] {
        let said = place.said(words);
        // Some of it is valid, and refers to a missing service.
        assert!(said.code.is_some_and(|code| code >= 2), "{said}");
        without_secrets(&words.join(" "), said.all().as_bytes());
    }
}
