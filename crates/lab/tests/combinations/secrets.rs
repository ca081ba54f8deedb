//! No five bytes of a planted secret are in any file of a record, or in anything that is printed of it, wherever the secret was typed.

use std::fs;
use std::path::Path;

use record::{EndReason, Record};
use toml::{Table, Value};

use crate::choices::{BASE, merge, parsed};
use crate::environment::{Fault, Simulated};
use crate::{all_hold, environment, folder, rules};

/// Bytes of a secret that nothing may have in a row.
const SEEN_MAX: usize = 5;

/// Secrets of every shape: plain, with what JSON, shells, URLs and forms escape, of several words and lines, and like a reference.
const SECRETS: [&str; 9] = [
    "QZXJV7KWQ9ZXVJ3QKXZW8J",
    "QZXJV\"7KWQ9\\ZXVJ3QK'XZW8J",
    "QZXJV 7KWQ9ZX VJ3QKXZW8J",
    "QZXJV7KWQ9\nZXVJ3QKXZW8J\nVKQXZ4JWQX",
    "$qZXJV7KWQ9ZXVJ3QKXZW8J",
    "[QZXJV7KWQ9ZXVJ3QKXZW8J",
    "QZXJV%7KWQ9+ZXVJ3Q&KXZ=W8J",
    "QZXJV7KWQ9ÄZXVJ3Q€KXZW8J",
    "QZXJV7KWQ9/ZXVJ3QKXZ+W8J==",
];

/// Where a secret is typed: a name, the experiment with marks for the secret, and marks that it does not fit: a field of a header has one line.
/// `@S@` is the secret as it is, `@J@` within a JSON string, `@U@` in a URL, `@F@` in a form, `@Q@` as a word of a shell, `@X@` in XML.
const CONTEXTS: &[(&str, &str)] = &[
    ("variable", r#"services.api.env.DB_PASSWORD = "@S@""#),
    ("variable of a level", r#"factors.setting.on.api.env.API_KEY = "@S@""#),
    ("URL in a variable", r#"services.api.env.DATABASE = "postgres://user:@U@@127.0.0.1:5432/db?ssl=on""#),
    ("query in a variable", r#"services.api.env.ENDPOINT = "http://127.0.0.1/?a=1&access_token=@U@&b=2""#),
    ("JSON in a variable", r#"services.api.env.CONFIG = '{{"db": {{"password": "@J@", "port": 1}}'"#),
    ("list in a variable", r#"services.api.env.TOKENS = '["a", "@J@"]'"#),
    ("flag", r#"services.api.command = ["node", "server.js", "--token=@S@"]"#),
    ("flag and word", r#"services.api.command = ["node", "server.js", "--api-key", "@S@", "--verbose"]"#),
    (
        "URL in a command",
        r#"services.api.command = ["node", "server.js", "--db=http://user:@U@@127.0.0.1/"]"#,
    ),
    (
        "header in a command",
        r#"services.api.command = ["node", "server.js", "--header", "Authorization: Bearer @H@"]"#,
    ),
    ("JSON in a command", r#"services.api.command = ["node", "server.js", '--config={{"secret": "@J@"}']"#),
    ("shell", r#"services.api.command = ["sh", "-c", "API_TOKEN=@Q@ exec node server.js"]"#),
    (
        "flag in a shell",
        r#"services.api.command = ["sh", "-c", "exec node server.js --password @Q@ --port 1"]"#,
    ),
    ("header", r#"load.headers = { authorization = "Bearer @S@", accept = "x" }"#),
    ("header of a key", r#"load.headers = { X-Api-Key = "@S@" }"#),
    ("cookie", r#"load.headers = { cookie = "theme=dark; sid=@S@" }"#),
    ("header of parts", r#"load.headers = { Authorization = 'Digest username="u", response="@S@"' }"#),
    ("header list", r#"load.headers = { x-token = ["@S@", "b"] }"#),
    ("path", r#"load.path = "/items?a=1&api_key=@U@&b=2""#),
    ("JSON body", "load.method = \"POST\"\nload.body = '{\"user\": \"u\", \"password\": \"@J@\"}'"),
    (
        "nested JSON body",
        "load.method = \"POST\"\nload.body = '{\"a\": [{\"credentials\": {\"user\": \"u\", \"key\": \"@J@\"}}]}'",
    ),
    ("form body", "load.method = \"POST\"\nload.body = \"user=u&password=@F@&b=2\""),
    ("XML body", "load.method = \"POST\"\nload.body = \"<a><password>@X@</password></a>\""),
    ("YAML body", "load.method = \"POST\"\nload.body = \"user: u\\npassword: '@Y@'\\n\""),
    (
        "request of a mix",
        r#"
        load.requests = [
            { path = "/a" },
            { name = "b", path = "/b?token=@U@", headers = { x-secret = "@H@" }, method = "POST", body = '{"password": "@J@"}' },
        ]"#,
    ),
    (
        "prepared data",
        "services.api.env.DATA = \"{prepare.rows}\"\nprepare.rows = { command = [\"make\", \"{output}\", \"--token=@S@\"], env = { SECRET = \"@S@\" } }",
    ),
];

/// A context with a secret; `None` where the secret cannot stand there.
fn placed(context: &str, secret: &str) -> Option<Table> {
    let mut table = parsed(BASE);
    merge(&mut table, parsed(context));
    let is_field = context.contains("load.headers") || context.contains("@H@");
    if is_field && secret.contains('\n') {
        return None;
    }
    fill(&mut table, secret);
    Some(table)
}

fn fill(table: &mut Table, secret: &str) {
    table.iter_mut().for_each(|(_, value)| fill_value(value, secret));
}

fn fill_value(value: &mut Value, secret: &str) {
    match value {
        Value::String(text) => *text = filled(text, secret),
        Value::Table(table) => fill(table, secret),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, secret)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

fn filled(text: &str, secret: &str) -> String {
    let json = serde_json::to_string(secret).expect("a string");
    let percent = |plain: &str| -> String {
        let byte = |byte: u8| match byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        secret.bytes().map(byte).collect()
    };
    let shell = format!("'{}'", secret.replace('\'', r"'\''"));
    let xml = secret.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let yaml = secret.replace('\'', "''");
    [
        ("@S@", secret),
        ("@H@", secret),
        ("@J@", &json[1..json.len() - 1]),
        ("@U@", &percent("-._~")),
        ("@F@", &percent("-._~").replace("%20", "+")),
        ("@Q@", &shell),
        ("@X@", &xml),
        ("@Y@", &yaml),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (mark, value)| text.replace(mark, value))
}

/// The first five bytes of the secret that are in this text.
fn leak<'a>(secret: &'a str, text: &[u8]) -> Option<&'a str> {
    let windows = (0..=secret.len().saturating_sub(SEEN_MAX)).filter_map(|at| secret.get(at..at + SEEN_MAX));
    windows
        .filter(|window| window.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .find(|window| text.windows(SEEN_MAX).any(|seen| seen == window.as_bytes()))
}

#[test]
fn no_secret_is_in_a_record() {
    environment::write_to_memory();
    let folder = folder();
    let mut cases = Vec::new();
    for (name, context) in CONTEXTS {
        for secret in SECRETS {
            cases.extend(placed(context, secret).map(|table| (*name, secret, table)));
        }
    }
    assert!(cases.len() > 200, "{}", cases.len());
    all_hold(
        &cases,
        |(name, secret, _)| format!("{name}: {secret:?}"),
        |(_, secret, table)| keeps(secret, &toml::to_string(table).expect("TOML"), folder.path()),
    );
}

/// Runs the experiment, in which a service dies with the secret among its last words, and looks for the secret. Panics if there is any.
fn keeps(secret: &str, text: &str, folder: &Path) {
    let plan =
        plan::parse(text, folder).unwrap_or_else(|problems| panic!("refused: {}", problems[0].message));
    let kept = tempfile::tempdir().expect("a folder");
    let directory = kept.path().join("record");
    let command =
        ["proofload", "compare", "--env", &format!("API_TOKEN={secret}"), &format!("node s.js {secret}")];
    let header = environment::header(plan.clone(), 1, &command);
    let writer = record::Writer::create(&directory, header, text).expect("a record");
    let mut world = Simulated::new(1, &vec![0.0; plan.variants.len()]).failing(Fault::DiesInBlock(2));
    world.last_words = format!("cannot log in with {secret}");
    let (record, _): (Record, _) = proofload_lab::run(writer, &mut world, &mut |_| {});
    assert!(matches!(record.end(), Some(EndReason::ServiceFailed(_))), "{:?}", record.ended);
    for entry in fs::read_dir(&directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let found = leak(secret, &fs::read(&path).expect("a file"));
            assert!(found.is_none(), "{found:?} in {}", shown(&path, secret));
        }
    }
    for (form, text) in rules::printed(&record, false).forms {
        assert_eq!(leak(secret, text.as_bytes()), None, "in {form}:\n{text}");
    }
}

/// The lines of a file that have a part of the secret.
fn shown(path: &Path, secret: &str) -> String {
    let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
    let lines = text.lines().filter(|line| leak(secret, line.as_bytes()).is_some());
    let around = |line: &str| {
        let window = leak(secret, line.as_bytes()).expect("there is one");
        let at = line.find(window).expect("it is there");
        let from = line.char_indices().map(|(index, _)| index).find(|index| *index + 60 >= at).unwrap_or(0);
        line[from..].chars().take(140).collect::<String>()
    };
    format!(
        "{}: {}",
        path.file_name().unwrap_or_default().display(),
        lines.map(around).collect::<Vec<_>>().join(" | ")
    )
}
