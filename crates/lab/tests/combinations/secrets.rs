//! No five bytes of a planted secret are in any file of a record, or in any output about it, wherever the
//! secret was typed.

use std::fs;
use std::path::Path;

use model::{ContractFailure, FailureKind, text};
use record::{EndReason, Record};
use toml::{Table, Value};

use crate::choices::{BASE, merge, parsed};
use crate::environment::{Fault, Simulated};
use crate::{all_hold, environment, rules};

/// Number of consecutive bytes of a secret that nothing may contain.
const SEEN_MAX: usize = 5;

/// Secrets of every kind: plain, with characters that JSON, shells, URLs and forms escape, of several words
/// and lines, and like a reference or a list.
const SECRETS: [&str; 10] = [
    "QZXJV7KWQ9ZXVJ3QKXZW8J",
    "QZXJV\"7KWQ9\\ZXVJ3QK'XZW8J",
    "QZXJV 7KWQ9ZX VJ3QKXZW8J",
    "QZXJV7KWQ9\nZXVJ3QKXZW8J\nVKQXZ4JWQX",
    "$qZXJV7KWQ9ZXVJ3QKXZW8J",
    "[QZXJV7KWQ9ZXVJ3QKXZW8J",
    "(QZXJV7KWQ9ZXVJ3QKXZW8J",
    "QZXJV%7KWQ9+ZXVJ3Q&KXZ=W8J",
    "QZXJV7KWQ9ÄZXVJ3Q€KXZW8J",
    "QZXJV7KWQ9/ZXVJ3QKXZ+W8J==",
];

/// Where a secret is typed: a name and the experiment, with marks for the secret. `@S@` is the secret as it is, `@H@` in one line, `@J@`
/// within a JSON string, `@U@` in a URL, `@D@` in a URL of a URL, `@P@` within a JSON
/// string in a URL, `@F@` in a form, `@Q@` as a word of a shell, `@X@` in XML, `@Y@` between apostrophes of YAML, `@B@`
/// in the lines of a block of it, `@N@` between quotes in one line.
const CONTEXTS: &[(&str, &str)] = &[
    ("variable", r#"services.api.env.DB_PASSWORD = "@S@""#),
    (
        "variable of a level",
        r#"factors.setting.on.api.env.API_KEY = "@S@""#,
    ),
    (
        "URL in a variable",
        r#"services.api.env.DATABASE = "postgres://user:@U@@127.0.0.1:5432/db?ssl=on""#,
    ),
    (
        "query in a variable",
        r#"services.api.env.ENDPOINT = "http://127.0.0.1/?a=1&access_token=@U@&b=2""#,
    ),
    (
        "JSON in a variable",
        r#"services.api.env.CONFIG = '{{"db": {{"password": "@J@", "port": 1}}'"#,
    ),
    (
        "list in a variable",
        r#"services.api.env.TOKENS = '["a", "@J@"]'"#,
    ),
    (
        "beside a placeholder",
        r#"services.api.env.MIX_TOKEN = "@S@-{file.tail.txt}""#,
    ),
    (
        "behind a placeholder",
        r#"services.api.env.MIX_TOKEN = "{file.tail.txt}.@S@""#,
    ),
    (
        "URL beside a placeholder",
        r#"services.api.env.DATABASE = "postgres://user:@U@{file.tail.txt}@127.0.0.1/db""#,
    ),
    (
        "key in a variable",
        "services.api.env.TLS = \"-----BEGIN PRIVATE KEY-----\\n@S@\\n-----END PRIVATE KEY-----\"",
    ),
    (
        "flag",
        r#"services.api.command = ["node", "server.js", "--token=@S@"]"#,
    ),
    (
        "flag and word",
        r#"services.api.command = ["node", "server.js", "--api-key", "@S@", "--verbose"]"#,
    ),
    (
        "URL in a command",
        r#"services.api.command = ["node", "server.js", "--db=http://user:@U@@127.0.0.1/"]"#,
    ),
    (
        "header in a command",
        r#"services.api.command = ["node", "server.js", "--header", "Authorization: Bearer @H@"]"#,
    ),
    (
        "JSON in a command",
        r#"services.api.command = ["node", "server.js", '--config={{"secret": "@J@"}']"#,
    ),
    (
        "list of words in a command",
        r#"services.api.command = ["node", "server.js", '--args=["--token", "@J@", "-v"]']"#,
    ),
    (
        "shell",
        r#"services.api.command = ["sh", "-c", "API_TOKEN=@Q@ exec node server.js"]"#,
    ),
    (
        "flag in a shell",
        r#"services.api.command = ["sh", "-c", "exec node server.js --password @Q@ --port 1"]"#,
    ),
    (
        "directive in a command",
        r#"services.api.command = ["nginx", "-g", 'daemon off; proxy_set_header Authorization "Bearer @N@";']"#,
    ),
    (
        "header",
        r#"load.headers = { authorization = "Bearer @H@", accept = "x" }"#,
    ),
    ("header of a key", r#"load.headers = { X-Api-Key = "@H@" }"#),
    (
        "cookie",
        r#"load.headers = { cookie = "theme=dark; sid=@H@" }"#,
    ),
    (
        "cookie beside a placeholder",
        r#"load.headers = { cookie = "sid=@H@; csrf={file.tail.txt}" }"#,
    ),
    (
        "header of parts",
        r#"load.headers = { Authorization = 'Digest username="u", response="@H@"' }"#,
    ),
    (
        "header list",
        r#"load.headers = { x-token = ["@H@", "b"] }"#,
    ),
    ("path", r#"load.path = "/items?a=1&api_key=@U@&b=2""#),
    (
        "field of a path",
        r#"load.path = "/items?user%5Bpassword%5D=@U@&tokens[]=@U@&b=2""#,
    ),
    (
        "JSON in a query",
        r#"load.path = "/graphql?variables=%7B%22password%22%3A%22@P@%22%7D&b=2""#,
    ),
    (
        "pair in a query",
        r#"load.path = "/items?q=%22password%22%3A%22@P@%22""#,
    ),
    (
        "encoded query",
        r#"load.path = "/items?next=%2Flogin%3Faccess_token%3D@D@""#,
    ),
    (
        "encoded name",
        r#"load.path = "/items?a=1&api%5Fkey=@U@&b=2""#,
    ),
    (
        "JSON body with an escaped key",
        "load.method = \"POST\"\nload.body = '{\"pass\\u0077ord\": \"@J@\"}'",
    ),
    (
        "JSON body",
        "load.method = \"POST\"\nload.body = '{\"user\": \"u\", \"password\": \"@J@\"}'",
    ),
    (
        "nested JSON body",
        "load.method = \"POST\"\nload.body = '{\"a\": [{\"credentials\": {\"user\": \"u\", \"key\": \"@J@\"}}]}'",
    ),
    (
        "JSON body in lines",
        "load.method = \"POST\"\nload.body = \"{\\n  \\\"password\\\"\\t:\\n    \\\"@J@\\\",\\n  \\\"a\\\": 1\\n}\"",
    ),
    (
        "pairs in a JSON body",
        "load.method = \"POST\"\nload.body = '{\"headers\": [{\"name\": \"Authorization\", \"value\": \"Bearer @J@\"}]}'",
    ),
    (
        "form body",
        "load.method = \"POST\"\nload.body = \"user=u&password=@F@&b=2\"",
    ),
    (
        "form body with one field",
        "load.method = \"POST\"\nload.body = \"user[password]=@F@\"",
    ),
    (
        "form body in parts",
        "load.method = \"POST\"\nload.body = \"--x\\r\\nContent-Disposition: form-data; name=\\\"password\\\"\\r\\n\\r\\n@S@\\r\\n--x--\\r\\n\"",
    ),
    (
        "form body in parts without quotes",
        "load.method = \"POST\"\nload.body = \"--x\\r\\nContent-Disposition: form-data; name=password\\r\\n\\r\\n@S@\\r\\n--x--\\r\\n\"",
    ),
    (
        "XML body",
        "load.method = \"POST\"\nload.body = \"<a><password>@X@</password></a>\"",
    ),
    (
        "XML body with an attribute",
        "load.method = \"POST\"\nload.body = '<a><login token=\"@X@\"/></a>'",
    ),
    (
        "YAML body",
        "load.method = \"POST\"\nload.body = \"user: u\\npassword: '@Y@'\\n\"",
    ),
    (
        "YAML block in a body",
        "load.method = \"POST\"\nload.body = \"user: u\\npassword: |\\n  @B@\\nb: 1\\n\"",
    ),
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
    (
        "placeholder in a variable",
        r#"services.api.env.KEY = "{file.secret.txt}""#,
    ),
    (
        "placeholder in a command",
        r#"services.api.command = ["node", "server.js", "--key={file.secret.txt}"]"#,
    ),
    (
        "placeholder in a body",
        "load.method = \"POST\"\nload.body = \"{file.secret.txt}\"",
    ),
    (
        "placeholder in a header",
        "# @H@\nload.headers = { X-Api-Key = \"{file.secret.txt}\" }",
    ),
    (
        "placeholder with its scheme",
        r#"load.headers = { Authorization = "{file.bearer.txt}" }"#,
    ),
    (
        "placeholder of cookies",
        r#"load.headers = { Cookie = "{file.cookies.txt}" }"#,
    ),
    (
        "placeholder of cookies in a command",
        r#"services.api.command = ["node", "s.js", "-H", "Cookie: {file.cookies.txt}"]"#,
    ),
    (
        "placeholder of a configuration",
        r#"services.api.env.CONFIG = "{file.config.json}""#,
    ),
];

/// The same in a template of a service.
const TEMPLATES: &[(&str, &str)] = &[
    (
        "nginx",
        "location / {\n  proxy_set_header Authorization \"Bearer @N@\";\n  proxy_pass http://127.0.0.1:1;\n}\n",
    ),
    (
        "variable of nginx",
        "server {\n  set $api_key \"@N@\";\n}\n",
    ),
    (
        "condition of nginx",
        "server {\n  if ($http_x_token != \"@N@\") {\n    return 403;\n  }\n}\n",
    ),
    ("directive", "port 6379\nrequirepass @H@\nappendonly no\n"),
    ("directive with a tab", "password\t@H@\nuser u\n"),
    ("comment", "# requirepass @H@\nport 1\n"),
    ("YAML", "db:\n  password: '@Y@'\n  user: u\n"),
    (
        "YAML in double quotes",
        "db:\n  \"password\": \"@J@\"\n  user: u\n",
    ),
    ("YAML block", "password: |-\n  @B@\nuser: u\n"),
    (
        "YAML block with a comment",
        "password: |  # of the shop\n  @B@\nuser: u\n",
    ),
    (
        "YAML below its key",
        "db:\n    password:\n      \"@J@\"\n    user: u\n",
    ),
    ("YAML list", "tokens:\n- a\n- \"@J@\"\nuser: u\n"),
    (
        "YAML table",
        "credentials:\n  user: u\n  key: \"@J@\"\nport: 1\n",
    ),
    (
        "pair in YAML",
        "env:\n- name: DB_PASSWORD\n  value: '@Y@'\n- name: A\n  value: b\n",
    ),
    ("TOML", "[db]\nsecret = \"@J@\"\nuser = \"u\"\n"),
    (
        "TOML in three quotes",
        "secret = \"\"\"@J@\"\"\"\nuser = \"u\"\n",
    ),
    (
        "TOML list",
        "tokens = [\n  \"a\",\n  \"@J@\",\n]\nuser = \"u\"\n",
    ),
    (
        "TOML table",
        "credentials = { user = \"u\", key = \"@J@\" }\n",
    ),
    ("INI", "[db]\napi_key\t=\t@H@\nuser = u\n"),
    (
        "properties",
        "spring.datasource.password=@H@\nspring.port=1\n",
    ),
    ("file of variables", "API_TOKEN=@H@\nPORT=1\n"),
    (
        "script",
        "#!/bin/sh\nexport API_TOKEN=@Q@\nDB_PASSWORD=@Q@ exec node server.js\n",
    ),
    (
        "program",
        "const config = { user: 'u', password: \"@J@\" };\nconfig[\"token\"] = \"@J@\";\n",
    ),
    (
        "JSON",
        "{ \"password\":\n  \"@J@\", \"tokens\": [\"@J@\"], \"port\": {{port}} }",
    ),
    ("XML", "<db>\n  <password>\n    @X@\n  </password>\n</db>"),
    ("attribute of XML", "<Api-Key value=\"@X@\"/>"),
    (
        "pair in XML",
        "<add key=\"password\" value=\"@X@\"/><param name=\"token\">@X@</param>",
    ),
    (
        "key",
        "-----BEGIN RSA PRIVATE KEY-----\n@S@\n-----END RSA PRIVATE KEY-----\n",
    ),
    ("SQL", "ALTER USER shop PASSWORD '@Y@';\n"),
    ("beside a placeholder", "password: @H@{{file.tail.txt}}\n"),
];

/// An experiment with a secret, and the files beside it.
struct Case {
    name: String,
    secret: &'static str,
    toml: String,
    files: Vec<(&'static str, String)>,
}

/// All contexts with all secrets that are possible in them.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for secret in SECRETS {
        let config = filled("{\"db\": {\"host\": \"h\", \"password\": \"@J@\"}}", secret);
        let files = [
            ("secret.txt", secret.to_owned()),
            ("bearer.txt", format!("Bearer {secret}")),
            ("cookies.txt", format!("sid={secret}; theme=dark")),
            ("tail.txt", "tailtail99".into()),
            ("config.json", config),
        ];
        for (name, context) in CONTEXTS {
            let toml = placed(context, secret).map(|table| toml::to_string(&table).expect("TOML"));
            cases.extend(toml.map(|toml| Case {
                name: (*name).into(),
                secret,
                toml,
                files: files.to_vec(),
            }));
        }
        for (name, template) in TEMPLATES
            .iter()
            .filter(|(_, template)| fits(template, secret))
        {
            let mut table = parsed(BASE);
            merge(
                &mut table,
                parsed("services.api.templates = { \"app.conf\" = \"app.conf.tmpl\" }"),
            );
            let mut files = files.to_vec();
            files.push(("app.conf.tmpl", filled(template, secret)));
            let (name, toml) = (
                format!("{name} in a template"),
                toml::to_string(&table).expect("TOML"),
            );
            cases.push(Case {
                name,
                secret,
                toml,
                files,
            });
        }
    }
    cases
}

/// Whether a secret has as many lines as its place.
fn fits(context: &str, secret: &str) -> bool {
    !(secret.contains('\n') && (context.contains("@H@") || context.contains("@N@")))
}

/// A context with a secret. `None` if the secret is not possible there.
fn placed(context: &str, secret: &str) -> Option<Table> {
    let mut table = parsed(BASE);
    merge(&mut table, parsed(context));
    fill(&mut table, secret);
    fits(context, secret).then_some(table)
}

fn fill(table: &mut Table, secret: &str) {
    table
        .iter_mut()
        .for_each(|(_, value)| fill_value(value, secret));
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
    let percent = |text: &str| -> String {
        let byte = |byte: u8| match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let shell = format!("'{}'", secret.replace('\'', r"'\''"));
    let xml = secret
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;");
    let yaml = secret.replace('\'', "''");
    [
        ("@S@", secret),
        ("@H@", secret),
        ("@N@", &secret.replace('\\', "\\\\").replace('"', "\\\"")),
        ("@B@", &secret.replace('\n', "\n  ")),
        ("@J@", &json[1..json.len() - 1]),
        ("@U@", &percent(secret)),
        ("@D@", &percent(&percent(secret))),
        ("@P@", &percent(&json[1..json.len() - 1])),
        ("@F@", &percent(secret).replace("%20", "+")),
        ("@Q@", &shell),
        ("@X@", &xml),
        ("@Y@", &yaml),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (mark, value)| {
        text.replace(mark, value)
    })
}

/// The first five bytes of the secret that are in this text.
fn leak<'a>(secret: &'a str, text: &[u8]) -> Option<&'a str> {
    let windows =
        (0..=secret.len().saturating_sub(SEEN_MAX)).filter_map(|at| secret.get(at..at + SEEN_MAX));
    windows
        .filter(|window| window.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .find(|window| text.windows(SEEN_MAX).any(|seen| seen == window.as_bytes()))
}

#[test]
fn no_secret_is_in_a_record() {
    environment::write_to_memory();
    let cases = cases();
    assert!(cases.len() > 600, "{}", cases.len());
    all_hold(
        &cases,
        |case| format!("{}: {:?}", case.name, case.secret),
        keeps,
    );
}

/// The secret as programs write it by default: PHP, Python, Go, servers and template engines, and JSON in JSON.
fn spelled(secret: &str) -> Vec<String> {
    let json = |text: &str| serde_json::to_string(text).expect("a string");
    let each = |text: &str, is_plain: fn(char) -> bool, one: fn(char) -> String| -> String {
        let spell = |c: char| if is_plain(c) { c.to_string() } else { one(c) };
        text.chars().map(spell).collect()
    };
    let units = |c: char| -> String {
        let mut units = [0; 2];
        let coded = c.encode_utf16(&mut units).iter();
        coded.map(|unit| format!("\\u{unit:04x}")).collect()
    };
    let bytes = |c: char| -> String {
        let mut bytes = [0; 4];
        let coded = c.encode_utf8(&mut bytes).bytes();
        coded.map(|byte| format!("\\x{byte:02x}")).collect()
    };
    let ascii = each(&json(secret), |c| c.is_ascii(), units);
    vec![
        ascii.replace('/', "\\/"),
        json(&ascii.replace('/', "\\/")),
        each(&json(secret), |c| !"&<>".contains(c), units),
        each(secret, |c| c.is_ascii_alphanumeric(), bytes),
        each(
            secret,
            |c| c.is_ascii_alphanumeric(),
            |c| format!("&#{};", u32::from(c)),
        ),
        each(
            secret,
            |c| c.is_ascii_alphanumeric(),
            |c| format!("&#x{:X};", u32::from(c)),
        ),
        filled("@U@", secret).replace("%2F", "/"),
        ascii,
    ]
}

/// The secret in texts that were truncated within it, at every position, by each function that truncates.
fn cut(secret: &str) -> Vec<String> {
    let before = "x".repeat(20);
    let text = format!("{before}{secret} end");
    let cuts = (1..secret.chars().count()).flat_map(|at| {
        let end = before.len() + at;
        let start = text.chars().count() - end;
        [
            text::cut(&text, end),
            text::cut_end(&text, end),
            text::quoted(&text, end),
            format!("{:?}…", text.chars().take(end).collect::<String>()),
            text::cut_start(&text, start),
            text::cut_end(&text::cut_start(&text, start), start.min(10)),
        ]
    });
    cuts.collect()
}

/// Runs the experiment, in which a service dies with the secret in its last output, and searches for the
/// secret. Panics if it is found.
fn keeps(case: &Case) {
    let (secret, kept) = (case.secret, tempfile::tempdir().expect("a folder"));
    for (name, text) in &case.files {
        fs::write(kept.path().join(name), text).expect("a file");
    }
    let plan = plan::parse(&case.toml, kept.path())
        .unwrap_or_else(|problems| panic!("refused: {}", problems[0].message));
    let directory = kept.path().join("record");
    // As typed, if it comes from a placeholder.
    let typed = if case.toml.contains("{file.secret.txt}") {
        "{file.secret.txt}"
    } else {
        secret
    };
    let command = [
        "proofload",
        "compare",
        "--env",
        &format!("API_TOKEN={typed}"),
        &format!("node s.js {typed}"),
    ];
    let header = environment::header(plan.clone(), 1, &command);
    let writer = record::Writer::create(&directory, header, &case.toml).expect("a record");
    let mut world =
        Simulated::new(1, &vec![0.0; plan.variants.len()]).failing(Fault::DiesInBlock(2));
    let cuts = cut(secret);
    let said = [spelled(secret), cuts.clone()].concat();
    world.last_words = format!("cannot log in with {secret}\n    {}", said.join("\n    "));
    let examples = cuts.iter().step_by(7).chain(&said[..2]);
    world.examples = examples.map(|cut| example(cut)).collect();
    let (record, _): (Record, _) = proofload_lab::run(writer, &mut world, &mut |_| {});
    assert!(
        matches!(record.end(), Some(EndReason::ServiceFailed(_))),
        "{:?}",
        record.ended
    );
    for entry in fs::read_dir(&directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let found = leak(secret, &fs::read(&path).expect("a file"));
            assert!(found.is_none(), "{found:?} in {}", shown(&path, secret));
        }
    }
    for (form, text) in rules::printed(&record, true).forms {
        assert_eq!(leak(secret, text.as_bytes()), None, "in {form}:\n{text}");
    }
}

/// A response that violated the contract.
fn example(value: &str) -> ContractFailure {
    ContractFailure {
        kind: FailureKind::Header("x-echo".into()),
        count: 1,
        example: value.to_owned(),
    }
}

/// The lines of a file that contain a part of the secret.
fn shown(path: &Path, secret: &str) -> String {
    let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
    let lines = text
        .lines()
        .filter(|line| leak(secret, line.as_bytes()).is_some());
    let around = |line: &str| {
        let window = leak(secret, line.as_bytes()).expect("there is one");
        let at = line.find(window).expect("it is there");
        let from = line
            .char_indices()
            .map(|(index, _)| index)
            .find(|index| *index + 60 >= at)
            .unwrap_or(0);
        line[from..].chars().take(140).collect::<String>()
    };
    format!(
        "{}: {}",
        path.file_name().unwrap_or_default().display(),
        lines.map(around).collect::<Vec<_>>().join(" | ")
    )
}
