//! What is taken for a secret and what is not, and that a plan is kept without any.

use std::fs;

use super::*;
use crate::file_secrets::veiled;
use crate::{CommandTexts, Plan, Problem};

#[test]
fn names_of_secrets_are_known_in_any_style_and_others_are_left_alone() {
    let secret = "Authorization proxy-authorization Cookie Set-Cookie X-Api-Key apiKey GITHUB_TOKEN x-amz-security-token \
                  DB_PASSWORD PGPASSWORD MYSQL_PWD AWS_SECRET_ACCESS_KEY PRIVATE_KEY GOOGLE_CREDENTIALS \
                  sessionId accessKeyId privateKey userPwd passWord DB_PASS smtpPass pass SESSIONID sessionid JSESSIONID PHPSESSID \
                  accesskey privatekey --pass-phrase pass_word api.key tokenId TOKEN_ISSUER_KEY";
    secret
        .split(' ')
        .for_each(|name| assert!(is_secret_name(name), "{name}"));
    let plain = "NODE_ENV accept PATH PWD OLDPWD SORT_KEY DB_PASSWORD_FILE TOKEN_PATH tokenFile PASSENGERS BYPASS PORT tokenizer tokenize \
         tokenisation SESSION_IDLE_TIMEOUT";
    plain
        .split(' ')
        .for_each(|name| assert!(!is_secret_name(name), "{name}"));
}

/// A text with `…` for each mark.
fn plain(text: &str) -> String {
    let (first, rest) = text
        .split_once(MARK)
        .map_or((text, None), |(first, rest)| (first, Some(rest)));
    match rest.and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => format!("{first}…{}", plain(rest)),
        None => first.to_owned(),
    }
}

#[test]
fn what_looks_like_a_secret_is_masked_and_what_stands_around_it_is_not() {
    for (text, kept) in [
        (
            "DATABASE_URL=postgres://u:p@h:5/shop?x=1",
            "DATABASE_URL=postgres://…@h:5/shop?x=1",
        ),
        (
            "postgres://u:p@{db.address}:{db.port}/shop",
            "postgres://…@{db.address}:{db.port}/shop",
        ),
        ("http://127.0.0.1:3000/a@b", "http://127.0.0.1:3000/a@b"),
        (
            "postgres://u:p%40w@h/shop?x=%20",
            "postgres://…@h/shop?x=%20",
        ),
        (
            "/a?b=1&q=%22password%22%3A%22abc%22&c=%20d",
            "/a?b=1&q=…&c=%20d",
        ),
        ("Authorization: Bearer abc def", "Authorization: Bearer …"),
        (
            "curl -H 'Authorization: Basic dTpw' x",
            "curl -H 'Authorization: Basic …' x",
        ),
        (
            "TOKEN=abc exec node server.js --api-key=def",
            "TOKEN=… exec node server.js --api-key=…",
        ),
        ("sh -c (TOKEN=abc)", "sh -c (TOKEN=…)"),
        ("node x --token abc -v", "node x --token … -v"),
        ("node x --token --verbose", "node x --token --verbose"),
        ("/a?token=abc&page=2", "/a?token=…&page=2"),
        (
            r#"{"user": "me", "password": "a b"}"#,
            r#"{"user": "me", "password": "…"}"#,
        ),
        ("password=abc&user=me", "password=…&user=me"),
        (
            r#"{"value": "abc", "name": "password", "page": 2}"#,
            r#"{"value": "…", "name": "password", "page": 2}"#,
        ),
        (
            "- value: a b\n  name: DB_PASSWORD\n- value: c\n  name: A\n",
            "- value: …\n  name: DB_PASSWORD\n- value: c\n  name: A\n",
        ),
        (
            r#"<add value="a b" key="password"/><add value=c key=password>"#,
            r#"<add value="…" key="password"/><add value=… key=password>"#,
        ),
        ("{ password: `a b`, page: 2 }", "{ password: `…`, page: 2 }"),
        (
            "Server=h;Uid=sa;Pwd=abc;Port=1",
            "Server=h;Uid=sa;Pwd=…;Port=1",
        ),
        (
            "load admin:hunter2Sx9@127.0.0.1:3000 -d 1s",
            "load …@127.0.0.1:3000 -d 1s",
        ),
        ("at u:hunter2Sx9@db.test/shop", "at …@db.test/shop"),
        ("u:p@localhost", "…@localhost"),
        (
            "DSN=shop:pw@tcp(127.0.0.1:3306)/shop",
            "DSN=…@tcp(127.0.0.1:3306)/shop",
        ),
        ("root:pw@unix(/tmp/s)/shop", "…@unix(/tmp/s)/shop"),
        ("shop:hunter2Sx9@db/shop", "…@db/shop"),
        ("//u:p@db/shop", "//…@db/shop"),
        (
            "h.set('X-Api-Key', 'zq7PLANT'); get(\"Authorization\", \"Bearer zq7PLANT\")",
            "h.set('X-Api-Key', '…'); get(\"Authorization\", \"Bearer …\")",
        ),
        (
            r#"{"required": ["password", "email"]}"#,
            r#"{"required": ["password", "email"]}"#,
        ),
        // What came from elsewhere, or is no value.
        ("npm:left-pad2@1.3.0", "npm:left-pad2@1.3.0"),
        (
            "shop:1.22.3-alpine@sha256:0123abcd",
            "shop:1.22.3-alpine@sha256:0123abcd",
        ),
        ("rsync git@h.test:a/b", "rsync git@h.test:a/b"),
        (
            "the keys `token:` or `password:` of it",
            "the keys `token:` or `password:` of it",
        ),
        ("TOKEN=`cat file`", "TOKEN=`cat file`"),
        (
            r#"[{"name": "a", "value": "b"}, {"name": "password"}]"#,
            r#"[{"name": "a", "value": "b"}, {"name": "password"}]"#,
        ),
        ("TOKEN=$TOKEN node x", "TOKEN=$TOKEN node x"),
        ("--token={env.TOKEN} -v", "--token={env.TOKEN} -v"),
        ("TOKEN={port}abc", "TOKEN={port}…"),
        ("postgres://shop:{env.PW}@h/", "postgres://shop:{env.PW}@h/"),
        ("a token is wanted", "a token is wanted"),
        // Numbers of tokens.
        (
            r#"{"max_tokens":100000,"tokenizer":"sentencepiece"}"#,
            r#"{"max_tokens":100000,"tokenizer":"sentencepiece"}"#,
        ),
        (
            "node x --max-tokens 100000 --tokens=5",
            "node x --max-tokens 100000 --tokens=5",
        ),
        ("auth_tokens=100000", "auth_tokens=…"),
    ] {
        let masked = masked(None, text);
        assert_eq!(plain(&masked), kept);
        assert_eq!(super::masked(None, &masked), masked, "once is enough");
    }
    for (words, kept) in [
        ("node --token abc --size 3", "node --token … --size 3"),
        (
            "node --token -pl4ntedValue --size 3",
            "node --token … --size 3",
        ),
        ("node --token --zq7PLANTtok", "node --token …"),
        (
            "node --token -v --password --http2 -p8080",
            "node --token -v --password --http2 -p8080",
        ),
    ] {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(plain(&masked_words(&words).join(" ")), kept);
        assert_eq!(plain(&masked(None, &words.join(" "))), kept, "as a line");
        assert_eq!(plain(&quotable(&words.join(" "))), kept, "as a message");
    }
    assert_eq!(plain(&masked(Some("X-Api-Key"), "abc {user}")), "…{user}");
}

#[test]
fn configurations_of_proxies_keep_no_keys() {
    for (text, kept) in [
        (
            "map $http_x_api_key $client {\n  default \"\";\n  \"zq7PLANT\" \"one\";\n}\nserver {}",
            "map $http_x_api_key …}\nserver {}",
        ),
        (
            "if ($http_x_partner_token != zq7PLANT) { return 403; }",
            "if ($http_x_partner_token != …) { return 403; }",
        ),
        (
            "if ($http_x_api_key !~ \"^zq7PLANT$\") {",
            "if ($http_x_api_key !~ \"…\") {",
        ),
        (
            "ngx.req.set_header(\"Authorization\", \"Bearer zq7PLANT\")",
            "ngx.req.set_header(\"Authorization\", \"Bearer …\")",
        ),
        (
            "user admin insecure-password zq7PLANT\nbind *:80",
            "user admin insecure-password …\nbind *:80",
        ),
        (
            "http-request set-header X-Api-Key zq7PLANT",
            "http-request set-header X-Api-Key …",
        ),
        (
            "RequestHeader set X-Api-Key zq7PLANT\n",
            "RequestHeader set X-Api-Key …\n",
        ),
        (
            "machine h login u password zq7PLANT",
            "machine h login u password …",
        ),
        (
            "# here are tokens of all users\n",
            "# here are tokens of all users\n",
        ),
    ] {
        let masked = mask_parts(Field::Template, text);
        assert_eq!(plain(&masked), kept);
    }
}

#[test]
fn equal_values_have_equal_marks_that_say_nothing_of_them() {
    let mark = |value: &str| masked(Some("TOKEN"), value);
    assert_eq!(mark("hunter2"), mark("hunter2"));
    assert_ne!(mark("hunter2"), mark("hunter3"));
    let unkeyed = ::model::Digest::of(b"hunter2").to_string();
    assert!(!mark("hunter2").contains(&unkeyed[..8]));
    // As its process has it.
    assert_eq!(masked(Some("TOKEN"), "{{a"), masked(Some("TOKEN"), "{a"));
}

const FILE_TEXT: &str = r#"# Made by: proofload compare 'TOKEN=s3cr3t-typed node x'
name = "x"
[services.postgres]
command = ["node", "--password", "s3cr3t-word"]
env = { PORT = "{port}", TOKEN = "s3cr3t-\u0074yped", DB_PASSWORD = "postgres", PIN_TOKEN = 1234, CA = "{file.ca.txt}" }
[load]
path = "/?key={file.ca.txt}"
headers = { Authorization = "Bearer s3cr3t-head" }
[factors.way]
a = { load.body = "1" }
b = { postgres.env.TOKEN = "s3cr3t-other" }
"#;

#[test]
fn a_plan_is_run_with_its_secrets_and_kept_without() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.txt"), "s3cr3t-\"file\"\n").unwrap();
    let plan = crate::parse(FILE_TEXT, folder.path()).unwrap();
    let kept = plan.masked();
    let json = serde_json::to_string(&kept).unwrap();
    assert!(!json.contains("s3cr3t") && !json.contains("1234"), "{json}");
    assert_ne!(
        kept.variants[0].services, kept.variants[1].services,
        "they differ by a secret alone"
    );
    assert_eq!(
        kept.variants[0].load.requests[0].path,
        "/?key={file.ca.txt}"
    );
    assert_eq!(
        plan.variants[0].load.requests[0].headers[0].1,
        "Bearer s3cr3t-head"
    );

    let text = plan.secrets.hide_in_file(FILE_TEXT);
    assert!(
        !text.contains("s3cr3t") && !text.contains("yped") && !text.contains("1234"),
        "{text}"
    );
    assert!(
        text.contains("[services.postgres]") && !text.contains("\"postgres\""),
        "a weak one, by its name: {text}"
    );
    let problems = crate::parse(&text, folder.path()).unwrap_err();
    assert!(
        problems
            .iter()
            .all(|problem| problem.label == "its value was not kept"),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 6);

    assert_eq!(
        plan.secrets.hide("so s3cr3t-head"),
        plan.secrets.hide("so s3cr3t-head")
    );
    assert_eq!(
        plan.secrets.hide("it said s3cr3t-\"file\"!"),
        "it said {file.ca.txt}!"
    );
    assert_eq!(
        plan.secrets.hide("a=s3cr3t-%22file%22; b"),
        "a={file.ca.txt}; b"
    );
    let told = vec!["postgres".to_owned(), "s3cr3t-\"file\"".to_owned()];
    assert_eq!(plan.secrets.hidden(told), ["postgres", "{file.ca.txt}"]);
    assert_eq!(
        plan.secrets
            .fill_request("{\"a\":{\"b\":\"{file.ca.txt}\"}}", false),
        "{\"a\":{\"b\":\"s3cr3t-\"file\"\"}}"
    );
    assert!(!format!("{:?}", plan.secrets).contains("s3cr3t"));
}

#[test]
fn filled_in_values_are_masked_as_typed_ones() {
    let folder = tempfile::tempdir().unwrap();
    // `Basic` of `bob:zq7PLANTpw99`.
    let coded = "Ym9iOnpxN1BMQU5UcHc5OQ==";
    for (value, field) in [
        (
            "Bearer zq7PLANTpw99".to_owned(),
            "headers = { Authorization = \"{file.value}\" }",
        ),
        (
            coded.to_owned(),
            "headers = { Authorization = \"Basic {file.value}\" }",
        ),
        (
            format!("Basic {coded}"),
            "headers = { authorization = \"{file.value}\" }",
        ),
        (
            "theme=dark; sid=zq7PLANTpw99".to_owned(),
            "headers = { Cookie = \"{file.value}\" }",
        ),
        (
            "bob:zq7PLANTpw99".to_owned(),
            "path = \"/?token={file.value}\"",
        ),
    ] {
        fs::write(folder.path().join("value"), &value).unwrap();
        let text = format!("name = \"x\"\n[services.api]\ncommand = [\"node\"]\n[load]\n{field}\n");
        let secrets = crate::parse(&text, folder.path()).unwrap().secrets;
        assert_eq!(
            secrets.hide("tok zq7PLANTpw99 end"),
            "tok {file.value} end",
            "{field} with {value}"
        );
        assert_eq!(secrets.hide("theme=dark"), "theme=dark");
    }
}

#[test]
fn words_of_other_variables_are_no_secrets_there() {
    let text = "name = \"x\"\n[services.api]\ncommand = [\"node\", \"--mode=staging\", \"sunshine\"]\n\
                env = { NODE_ENV = \"development\", SESSION_SECRET = \"development\", A_TOKEN = \"staging\", B_TOKEN = \"sunshine\" }\n\
                [load]\npath = \"/\"\n";
    let plan = crate::parse(text, Path::new("/")).unwrap();
    let kept = plan.masked();
    let CommandTexts { words, env, .. } = kept.variants[0].services[0].command().unwrap().texts();
    assert_eq!(
        (env["NODE_ENV"].as_str(), words[1].as_str()),
        ("development", "--mode=staging")
    );
    assert!(
        ["SESSION_SECRET", "A_TOKEN", "B_TOKEN"]
            .iter()
            .all(|name| env[*name].starts_with(MARK)),
        "{env:?}"
    );
    // Any other word is looked for.
    assert!(words[2].starts_with(MARK), "{words:?}");
    assert_eq!(
        plain(&plan.secrets.hide("no sunshine, staging")),
        "no …, staging"
    );
}

#[test]
fn a_file_is_found_from_any_folder_and_a_brace_that_is_written_twice_is_none() {
    let text = "{file.a}{file./b}{{file.c}{env.D}";
    assert_eq!(
        anchored(text, Path::new("/x")),
        "{file./x/a}{file./b}{{file.c}{env.D}"
    );
}

#[test]
fn what_cannot_be_had_is_a_problem_at_its_place() {
    let text = "name = \"x\"\n[services.api]\ncommand = [\"x\", \"{env.PROOFLOAD_NOT_SET}\"]\n[load]\nbody = \"{file.gone}\"\n";
    let problems = crate::parse(text, Path::new("/nowhere")).unwrap_err();
    let told = |problem: &Problem| {
        (
            &text[problem.span.clone()],
            problem.line_column(text).0,
            problem.message.clone(),
        )
    };
    let of = "no such directory";
    let found: Vec<_> = problems
        .iter()
        .map(told)
        .filter(|(_, _, message)| !message.contains(of))
        .collect();
    for expected in [
        (
            "{env.PROOFLOAD_NOT_SET}",
            3,
            ": the variable PROOFLOAD_NOT_SET is not set",
        ),
        ("{file.gone}", 5, "/nowhere/gone cannot be read"),
    ] {
        let is_told = |(part, line, message): &(&str, usize, String)| {
            (*part, *line) == (expected.0, expected.1) && message.contains(expected.2)
        };
        assert!(found.iter().any(is_told), "{found:?}");
    }
}

#[test]
fn a_secret_that_is_a_word_of_the_format_uncovers_no_other() {
    let hidden = |value: &str| Hidden {
        value: value.into(),
        instead: "…".into(),
        is_sought: true,
    };
    let sought = Sought::new(vec![hidden("candidate"), hidden("hunter2!")]);
    let secrets = Secrets {
        sought,
        ..Secrets::default()
    };
    let kept = crate::Comparison {
        baseline: 0,
        candidate: 1,
        label: "hunter2! vs x".into(),
    };
    assert_eq!(secrets.hidden(kept).label, "… vs x");
}

#[test]
fn a_file_is_shown_with_its_problems_and_without_its_secrets() {
    let text =
        "command = [\"ä\", \"--token\", \"abc\"]\nenv = { DB_PASSWORD = \"def\", SIZE = \"3\" }\n";
    let shown = text.replace("\"abc\"", "*****").replace("\"def\"", "*****");
    assert_eq!(veiled(text), shown);
    // What is no TOML has no leaves.
    assert_eq!(veiled("a = ["), "a = [");
    assert_eq!(
        veiled("a = [\"--token\", 5zq7PLANT, 1]"),
        "a = [\"--token\", *********, 1]"
    );
}

#[test]
fn problems_say_nothing_of_secrets() {
    let text = "name = \"x\"\n[services.api]\nurl = \"http://u:hunter2@h/\"\n[load]\npath = \"/a?token=hunter2 \"\n\
                headers = { Authorization = \"Bearer hunter2\\n\" }\n";
    let problems = crate::parse(text, Path::new("/")).unwrap_err();
    let told: Vec<String> = problems.iter().map(|one| format!("{one:?}")).collect();
    for expected in ["has a user", "contains ' '", "a line break"] {
        assert!(told.iter().any(|one| one.contains(expected)), "{told:?}");
    }
    assert!(told.iter().all(|one| !one.contains("hunter2")), "{told:?}");
}

#[test]
fn placeholders_in_secrets_are_not_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t"), "password: a{{hunter2}}\n").unwrap();
    let text = "name = \"x\"\n[services.api]\ncommand = [\"node\", \"--token\", \"a{hunter2\"]\n\
                env = { TOKEN = \"a{hunter2\", B = \"API_KEY=b{hunter2\" }\ntemplates = { \"c\" = \"t\" }\n[load]\npath = \"/\"\n";
    let problems = crate::parse(text, folder.path()).unwrap_err();
    let told: Vec<String> = problems.iter().map(|one| format!("{one:?}")).collect();
    assert!(
        told.len() == 4
            && told
                .iter()
                .all(|one| one.contains("placeholder in a secret")),
        "{told:?}"
    );
    assert!(told.iter().all(|one| !one.contains("hunter2")), "{told:?}");
    // All else is named.
    let problems = crate::parse(&text.replace("TOKEN", "A"), folder.path()).unwrap_err();
    assert!(
        problems
            .iter()
            .any(|one| one.message == "unknown placeholder `{hunter2`"),
        "{problems:?}"
    );
}

/// Pointers to all texts of a value.
fn texts(value: &serde_json::Value, at: &str) -> Vec<String> {
    use serde_json::Value;
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, of)| texts(of, &format!("{at}/{name}")))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, of)| texts(of, &format!("{at}/{index}")))
            .collect(),
        Value::String(_) => vec![at.to_owned()],
        _ => Vec::new(),
    }
}

/// The plan of `full.toml`, with a text in every place that has none there.
fn full() -> serde_json::Value {
    use serde_json::json;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(folder.join("tests/full.toml")).unwrap();
    let mut plan = serde_json::to_value(crate::parse(&text, folder).unwrap()).unwrap();
    plan["variants"].as_array_mut().unwrap().truncate(1);
    plan["prepare"][0]["mark"] = json!("/m");
    plan["against"] = json!({ "reference": "main", "commit": "1a", "repository": "/r", "worktree": "/w", "stat": "1 file", "untracked": 0,
        "uncommitted": false, "build": "make", "copy": ["a"], "copied": ["b"], "only_here": ["c"], "notes": ["d"] });
    plan["building"] =
        json!({ "command": ["make"], "timeout": { "secs": 1, "nanos": 0 }, "copy": ["/r/x"] });
    plan["generators"] = json!({ "local": 1, "ssh": ["h"], "program": "/p", "kubernetes": { "context": "c", "namespace": "n", "pods": 1,
        "image": "i", "node_selector": { "a": "b" }, "resources": { "cpu": "1" } } });
    plan["tune"] =
        json!({ "try": ["A=1"], "only": ["x"], "without": ["y"], "keep": ["memory < +20%"] });
    let variant = &mut plan["variants"][0];
    variant["load"]["tls"] = json!({ "ca": "/ca", "server_name": "h", "cert": "/c", "key": "/k" });
    variant["services"][0]["container"] = json!({ "image": "shop:1" });
    variant["services"][0]["needs"] = json!(["db"]);
    let request = &mut variant["load"]["requests"][0];
    (request["name"], request["body_file"], request["values"]) =
        (json!("x"), json!("/b"), json!("/v.csv"));
    request["expect"] =
        json!({ "status": [200], "headers": { "etag": ["x"] }, "body_bytes": null });
    request["capture"] = json!([["token", { "header": "x" }]]);
    plan
}

#[test]
fn each_text_of_a_plan_is_masked_or_a_name() {
    // Names by which things are found, paths, and sentences of ours; of `headers` the names alone.
    const NAMES: &str = "/name /factors/name /factors/levels /comparisons/label /aa/label /gate/of \
        /variants/name /variants/levels/node_env /variants/levels/way /variants/entry \
        /variants/services/name /variants/services/directory /variants/services/container/image /variants/services/needs \
        /variants/load/requests/name /variants/load/requests/method /variants/load/requests/headers \
        /variants/load/requests/body_file /variants/load/requests/values /variants/load/requests/capture \
        /variants/load/requests/capture/header \
        /variants/load/tls/ca /variants/load/tls/server_name /variants/load/tls/cert /variants/load/tls/key \
        /prepare/name /prepare/directory /prepare/inputs /prepare/mark /building/copy \
        /against/reference /against/commit /against/repository /against/worktree /against/stat /against/copy \
        /against/copied /against/only_here /against/notes \
        /generators/ssh /generators/program /generators/kubernetes/context /generators/kubernetes/namespace \
        /generators/kubernetes/image /generators/kubernetes/node_selector/a /generators/kubernetes/resources/cpu \
        /tune/only /tune/without /tune/keep";
    let whole = full();
    let mut kept = BTreeSet::new();
    for at in texts(&whole, "") {
        let mut planted = whole.clone();
        *planted.pointer_mut(&at).unwrap() = "TOKEN=pl4nted".into();
        // What can only be one of some words has no room for a secret.
        let Ok(plan) = serde_json::from_value::<Plan>(planted) else {
            continue;
        };
        if serde_json::to_string(&plan.masked())
            .unwrap()
            .contains("pl4nted")
        {
            let parts = at.split('/').filter(|part| part.parse::<usize>().is_err());
            kept.insert(parts.collect::<Vec<_>>().join("/"));
        }
    }
    let names: BTreeSet<String> = NAMES.split_whitespace().map(str::to_owned).collect();
    assert_eq!(kept, names);
}

mod planted;
mod spelled;
