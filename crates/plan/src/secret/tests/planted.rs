//! Secrets with every kind of character, planted in every kind of text: no five bytes of one stay in what is kept.

use std::path::Path;

use ::model::text::{self, cut_end, cut_start, percent_encoded, quoted};
use proptest::prelude::*;
use serde_json::json;

use super::super::*;
use super::spelled::spelled;

/// Characters that some text needs to write in another way.
const SPECIAL: [&str; 20] = [
    "\"", "\\", "'", " ", ",", ";", "=", "&", "%", "$", "/", ":", "@", "#", "é", "+", "<", "\\\"",
    "')", "?",
];

/// A secret: letters and digits around a special character.
fn secret() -> impl Strategy<Value = (String, [String; 2])> {
    let word = || proptest::string::string_regex("[G-Z][G-Z0-9]{7}").expect("a pattern");
    (word(), proptest::sample::select(&SPECIAL[..]), word())
        .prop_map(|(head, special, tail)| (format!("{head}{special}{tail}"), [head, tail]))
}

fn in_toml(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// An experiment file with a line in the service's table, one in the load's, and one before all.
fn file(comment: &str, service: &str, load: &str) -> String {
    let command = if service.starts_with("command") {
        ""
    } else {
        "command = [\"node\"]\n"
    };
    format!("# {comment}\nname = \"x\"\n[services.api]\n{command}{service}\n[load]\n{load}\n")
}

/// The same secret in texts of every kind, each an experiment file.
fn files(secret: &str) -> Vec<String> {
    let body = |body: &str| {
        file(
            "",
            "",
            &format!("method = \"POST\"\nbody = {}", in_toml(body)),
        )
    };
    let object = json!({ "user": "bob", "password": secret, "page": 2 }).to_string();
    let form = percent_encoded(secret).replace("%20", "+");
    let words = |words: &[&str]| {
        let words: Vec<_> = words
            .iter()
            .map(|word| in_toml(&word.replace('{', "{{")))
            .collect();
        file("", &format!("command = [{}]", words.join(", ")), "")
    };
    let shell = crate::command_line([secret.to_owned()]);
    let xml = secret
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;");
    let yaml = secret.replace('\'', "''");
    let lines = serde_json::to_string_pretty(&json!({ "password": secret })).expect("JSON");
    let typed = [
        "load".to_owned(),
        "-H".to_owned(),
        format!("X-Api-Key: my key {secret}"),
    ];
    vec![
        body(&object),
        body(&json!({ "payload": object }).to_string()),
        body(&json!({ "tokens": [secret, "x"], "page": 2 }).to_string()),
        body(&json!({ "credentials": { "user": secret } }).to_string()),
        body(&format!("user=bob&password={form}&page=2")),
        body(&format!("user%5Bpassword%5D={form}&page=2")),
        body(&format!("api%5Fkey={form}&page=2")),
        body(&format!("page=2&data={}", percent_encoded(&object))),
        file(
            "",
            "",
            &format!(
                "path = {}",
                in_toml(&format!("/?q={}&page=2", percent_encoded(&object)))
            ),
        ),
        file(
            "",
            "",
            &format!(
                "path = {}",
                in_toml(&format!(
                    "/?next={}",
                    percent_encoded(&format!("/?token={form}"))
                ))
            ),
        ),
        body(&lines.replace("\": ", "\"\t:\n    ")),
        body(&json!({ "headers": [{ "name": "X-Api-Key", "value": secret }] }).to_string()),
        body(&format!(
            "<a><password>{xml}</password><api-key value=\"{xml}\"/></a>"
        )),
        body(&format!("tokens:\n  - '{yaml}'\npage: 2\n")),
        body(&format!(
            "--x\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n{secret}\r\n--x--\r\n"
        )),
        file(
            "",
            "",
            &format!(
                "headers = {{ X-Api-Key = {} }}",
                in_toml(&format!("my key {secret}"))
            ),
        ),
        file(
            "",
            "",
            &format!(
                "path = {}",
                in_toml(&format!("/?token={}&page=2", percent_encoded(secret)))
            ),
        ),
        file(
            "",
            &format!("env = {{ DB_PASSWORD = {} }}", in_toml(secret)),
            "",
        ),
        file(
            "",
            &format!(
                "env = {{ DB_PASSWORD = {} }}",
                in_toml(&format!("{secret}{{env.CARGO_MANIFEST_DIR}}"))
            ),
            "",
        ),
        file(
            "",
            &format!(
                "env = {{ URL = \"postgres://bob:{}@db/shop\" }}",
                percent_encoded(secret)
            ),
            "",
        ),
        words(&["node", "--token", secret, "--size", "3"]),
        words(&["node", &format!("--api-key={secret}")]),
        words(&["curl", "-H", &format!("X-Api-Key: my key {secret}")]),
        words(&["sh", "-c", &format!("TOKEN={shell} exec node x")]),
        file(
            &format!("proofload {}", crate::command_line(masked_words(&typed))),
            "",
            "",
        ),
    ]
}

/// The same secret in configuration files of every kind.
fn templates(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).expect("JSON");
    let words = secret.replace('\\', "\\\\").replace('"', "\\\"");
    vec![
        format!("proxy_set_header Authorization \"Bearer {words}\";\n"),
        format!("set $api_key \"{words}\";\n"),
        format!("requirepass \"{words}\"\n"),
        format!("db:\n  password: {json}\n  user: u\n"),
        format!("password: |\n  {secret}\nuser: u\n"),
        format!("tokens:\n- {json}\n"),
        format!("secret = \"\"{json}\"\"\nuser = \"u\"\n"),
        format!("{{ \"password\":\n  {json}, \"tokens\": [{json}] }}"),
        format!(
            "export TOKEN={}\n",
            crate::command_line([secret.to_owned()])
        ),
    ]
}

/// A text that is cut within a value, at each of its characters, by every function that cuts texts.
fn cut_within(value: &str) -> Vec<String> {
    let text = format!("no access with {value}, says the service");
    let (all, before) = (text.chars().count(), "no access with ".len());
    let cuts = (0..=value.chars().count()).flat_map(|at| {
        let end = before + at;
        let start = cut_start(&text, all - end);
        [
            cut_end(&text, end),
            text::cut(&text, end),
            quoted(&text, end),
            cut_end(&start, 9),
            start,
        ]
    });
    cuts.collect()
}

/// The same as other machines' messages are shown.
fn debugged(value: &str) -> Vec<String> {
    let before = |end: usize| value.chars().take(end).collect::<String>();
    (0..value.chars().count())
        .map(|end| format!("invalid message: {:?}…", before(end)))
        .collect()
}

/// Five bytes of a secret that are in a text.
fn left<'a>(parts: &'a [String; 2], text: &str) -> Option<&'a str> {
    let windows = |part: &'a String| (0..part.len() - 4).map(move |at| &part[at..at + 5]);
    parts
        .iter()
        .flat_map(windows)
        .find(|window| text.contains(window))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_five_bytes_of_planted_secrets_stay((secret, parts) in secret()) {
        for text in files(&secret) {
            let plan = crate::parse(&text, Path::new("/")).map_err(|problems| TestCaseError::fail(format!("{text}: {problems:?}")))?;
            let kept = serde_json::to_string(&plan.masked()).expect("JSON");
            prop_assert_eq!(left(&parts, &kept), None, "the plan of {}: {}", text, kept);
            let kept = plan.secrets.hide_in_file(&text);
            prop_assert_eq!(left(&parts, &kept), None, "the file {}: {}", text, kept);
            if text.contains("proofload") {
                continue;
            }
            // What a service or a library says again, in whichever encoding.
            let value = if text.contains("my key") { format!("my key {secret}") } else { secret.clone() };
            for form in spelled(&value) {
                let said = format!("no access with {form}!");
                prop_assert_eq!(left(&parts, &plan.secrets.hide(&said)), None, "{} of {}", said, text);
                let kept = plan.secrets.hidden(vec![said.clone()]);
                prop_assert_eq!(left(&parts, &kept.concat()), None, "{} of {}", said, text);
            }
        }
    }

    #[test]
    fn configuration_files_keep_no_five_bytes((secret, parts) in secret()) {
        for text in templates(&secret) {
            let kept = mask_parts(Field::Template, &text);
            prop_assert_eq!(left(&parts, &kept), None, "{}: {}", text, kept);
            prop_assert_eq!(&mask_parts(Field::Template, &kept), &kept, "once is enough");
        }
    }

    #[test]
    fn no_cut_leaves_five_bytes((secret, parts) in secret()) {
        let text = file("", &format!("env = {{ DB_PASSWORD = {} }}", in_toml(&secret)), "");
        let plan = crate::parse(&text, Path::new("/")).expect("a plan");
        let cut = spelled(&secret).step_by(4).flat_map(|form| cut_within(&form)).collect::<Vec<_>>();
        let json = serde_json::to_string(&secret).expect("JSON");
        for said in cut.into_iter().chain(debugged(&secret)).chain(debugged(&json)) {
            let kept = plan.secrets.hide(&said);
            prop_assert_eq!(left(&parts, &kept), None, "{}: {}", said, kept);
            let kept = plan.secrets.hidden(vec![said.clone()]);
            prop_assert_eq!(left(&parts, &kept.concat()), None, "{}: {:?}", said, kept);
        }
    }

    #[test]
    fn command_lines_keep_no_five_bytes((secret, parts) in secret()) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let object = json!({ "user": "bob", "password": secret }).to_string();
        for typed in [
            words(&["load", "-b", &object]),
            words(&["load", "-H", &format!("X-Api-Key: my key {secret}")]),
            words(&["load", &format!("-HX-Api-Key: my key {secret}")]),
            words(&["load", "-H", &format!("Proxy-Authorization: Digest username=\"bob\", response=\"{secret}\"")]),
            words(&["load", &format!("--header=Cookie: a=1; session={secret}")]),
            words(&["load", &format!("http://h/?token={}", percent_encoded(&secret))]),
            words(&["compare", &format!("TOKEN={} node x", crate::command_line([secret.clone()])), "node y"]),
        ] {
            let kept = masked_words(&typed);
            prop_assert_eq!(left(&parts, &kept.join(" ")), None, "{:?}: {:?}", typed, kept);
            prop_assert_eq!(&masked_words(&kept), &kept, "once is enough");
        }
    }
}
