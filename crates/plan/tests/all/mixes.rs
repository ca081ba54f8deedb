//! Valid and invalid mix files as users write them.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use model::{Contract, ResponseField, Think};
use proofload_plan::{Request, mix};

#[test]
fn a_mix_reads_as_it_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ids.csv"), "id\n1\n2\n").unwrap();
    std::fs::write(folder.path().join("new.json"), "{{\"id\": {id}}}").unwrap();
    let text = r#"
        [[request]]
        name = "item"
        weight = 3
        method = "PURGE"
        path = "/item/{id}"
        headers = { Accept = "text/html", Cookie = ["a=1", "b=2"] }
        values = "ids.csv"
        expect = { status = [200, 404], headers = { ETag = [], Vary = "Accept" }, bytes = 12 }
        [[request]]
        path = "/add"
        body_file = "new.json"
        expect.sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    "#;
    let [item, add] = mix(text, folder.path())
        .unwrap()
        .requests
        .try_into()
        .unwrap();
    let at = |name: &str| Some(folder.path().canonicalize().unwrap().join(name));
    let headers = [
        ("Accept", "text/html"),
        ("Cookie", "a=1"),
        ("Cookie", "b=2"),
    ];
    let accepted = [("etag", vec![]), ("vary", vec!["Accept".to_owned()])];
    let expected = Request {
        name: "item".into(),
        weight: 3,
        method: "PURGE".into(),
        path: "/item/{id}".into(),
        headers: headers
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
        values: at("ids.csv"),
        expect: Some(Contract {
            status: vec![200, 404],
            headers: accepted.map(|(name, values)| (name.into(), values)).into(),
            body_bytes: Some(12),
            content: None,
        }),
        ..Request::default()
    };
    assert_eq!(item, expected);
    assert_eq!(
        (&*add.name, add.weight, add.body_file),
        ("POST /add", 1, at("new.json"))
    );
    assert_eq!(add.method, "POST");
    let expect = add.expect.unwrap();
    assert!(
        expect.content.is_some() && expect.status.is_empty(),
        "without a status any 2xx will do"
    );
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    let mut told = String::new();
    for text in [
        "",
        "[[requests]]\npath = \"/\"",
        "[[request]]\nname = \"x\"",
        "[[request]]\npath = \"/\"\nwieght = 2\nexpect = { state = 200, status = [20] }",
        "[[request]]\npath = \"http://h/\"\nweight = 0\nbody = \"a\"\nbody_file = \"b\"",
        "[[request]]\npath = \"/\"\nweight = \"x\"\nvalues = \"v.csv\"\nexpect.sha256 = \"ab\"",
        "[[request]]\npath = \"/\"\nheaders = { Connection = \"close\" }",
        "think = \"fast\"\ncookies = 1\n[[request]]\npath = \"/\"\ncapture = { t = \"header:t\" }",
        "think = \"0s\"\n[[request]]\npath = \"/\"\nonce = true\nweight = 2\ncapture = { \"t t\" = \"json:t\", u = \"body\" }",
        "[[request]]\npath = \"/\"\nonce = true\ncapture = { t = \"json:/t\" }\n[[request]]\nonce = true\npath = \"/{t}\"\n\
         capture = { \"t\" = \"header:t\" }\n[[request]]\npath = \"/{tt}\"\nheaders = { A = \"{t} {x\" }\nbody = '{\"a\": {t}}'",
    ] {
        for problem in mix(text, Path::new("/nowhere")).unwrap_err() {
            let hint = problem.hint.unwrap_or_default();
            let place = &text[problem.span];
            writeln!(
                told,
                "{place} | {} | {} | {hint}",
                problem.message, problem.label
            )
            .unwrap();
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn the_example_of_the_docs_is_a_mix() {
    let text = include_str!("../../../../docs/mix-file.md");
    let block = |language: &str| {
        let rest = text
            .split_once(&format!("```{language}\n"))
            .expect("there is one")
            .1;
        rest.split_once("```").expect("it ends").0
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("items.csv"), block("csv")).unwrap();
    let requests = mix(block("toml"), folder.path()).unwrap().requests;
    let titles: Vec<_> = requests
        .iter()
        .map(|request| (request.name.as_str(), request.weight))
        .collect();
    assert_eq!(titles, [("GET /", 1), ("item", 8), ("order", 1)]);

    let log_in = text
        .split_once("## Log-ins")
        .expect("a section")
        .1
        .split("```toml\n")
        .nth(1)
        .expect("an example");
    let load = mix(log_in.split("```").next().unwrap(), folder.path()).unwrap();
    assert!(
        load.settings.cookies && load.think == Some(Think::Exponential(Duration::from_millis(500)))
    );
    let [form, log_in, cart] = &load.requests[..] else {
        panic!("three requests: {load:?}")
    };
    assert!(form.once && log_in.once && !cart.once);
    assert_eq!(
        log_in.capture,
        [("token".to_owned(), ResponseField::Json("/token".to_owned()))]
    );
    assert_eq!(
        (load.captured_before(1), load.captured_before(2)),
        (vec!["csrf"], vec!["csrf", "token"])
    );
    assert_eq!(
        (load.share_of("log in"), load.share_of("cart")),
        (None, Some(1.0))
    );
}
