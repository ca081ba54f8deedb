//! Mix files as people write them, right and wrong.

use super::*;

fn refused(text: &str) -> Vec<(String, String)> {
    let problems = parse(text, Path::new("/nowhere"), "h").unwrap_err();
    problems
        .into_iter()
        .map(|p| (p.message + "; " + &p.hint.unwrap_or_default(), text[p.span].to_owned()))
        .collect()
}

#[test]
fn a_mix_reads_as_it_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ids.csv"), "id\n1\n2\n").unwrap();
    std::fs::write(folder.path().join("new.json"), "{{\"id\": {id}}}").unwrap();
    let text = r#"
        [[request]]
        name = "item"
        weight = 3
        path = "/item/{id}"
        headers = { Accept = "text/html", Cookie = ["a=1", "b=2"] }
        values = "ids.csv"
        expect = { status = [200, 404], headers = { ETag = [], Vary = "Accept" }, bytes = 12 }
        [[request]]
        path = "/add"
        body_file = "new.json"
        values = "ids.csv"
        expect.status = 201
    "#;
    let requests = parse(text, folder.path(), "host:81").unwrap();
    let values = Values::csv(b"id\n1\n2\n").unwrap();
    let headers = [("Accept", "text/html"), ("Cookie", "a=1"), ("Cookie", "b=2")];
    let item = Request {
        name: "item".into(),
        weight: 3,
        headers: headers.map(|(name, value)| (name.into(), value.into())).to_vec(),
        values: Some(values.clone()),
        contract: Some(Contract {
            status: vec![200, 404],
            headers: vec![("ETag".into(), vec![]), ("Vary".into(), vec!["Accept".into()])],
            body_bytes: Some(12),
            content: None,
        }),
        ..Request::new("GET", "/item/{id}", "host:81")
    };
    let add = Request {
        body: b"{{\"id\": {id}}}".to_vec(),
        values: Some(values),
        contract: Some(Contract { status: vec![201], ..Contract::default() }),
        ..Request::new("POST", "/add", "host:81")
    };
    assert_eq!(requests, [item, add]);
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    for (text, message, place) in [
        ("", "there is no request", ""),
        ("[[requests]]\npath = \"/\"", "did you mean `request`?", "requests"),
        ("[[request]]\npath = \"/\"\nwieght = 2", "did you mean `weight`?", "wieght"),
        ("[[request]]\npath = \"/\"\nexpect = { state = 200 }", "did you mean `status`?", "state"),
        ("[[request]]\npath = \"/\"\nweight = 0", "a weight of 0", "0"),
        ("[[request]]\npath = \"/\"\nweight = \"x\"", "expected u32", "\"x\""),
        ("[[request]]\npath = \"http://h/\"", "does not begin with /", "\"http://h/\""),
        ("[[request]]\npath = \"/\"\nbody_file = \"b\"", "cannot read b", "\"b\""),
        ("[[request]]\npath = \"/\"\nvalues = \"v.csv\"", "relative to the mix file", "\"v.csv\""),
        ("[[request]]\npath = \"/\"\nvalues = \"v.txt\"", ".csv or .jsonl", "\"v.txt\""),
        ("[[request]]\npath = \"/\"\nexpect.status = [20]", "20 is no status", "[20]"),
        ("[[request]]\npath = \"/\"\nexpect.sha256 = \"ab\"", "64 hexadecimal", "\"ab\""),
    ] {
        let problems = refused(text);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].0.contains(message) && problems[0].1 == place, "{text}: {problems:?}");
    }
}

#[test]
fn several_problems_are_told_at_once() {
    let text = "[[request]]\npath = \"a\"\nweight = 0\nbody = \"\"\nbody_file = \"b\"";
    assert_eq!(refused(text).len(), 3);
}

#[test]
fn the_example_of_the_docs_is_a_mix() {
    let text = include_str!("../../../../../docs/mix-file.md");
    let block = |language: &str| {
        let rest = text.split_once(&format!("```{language}\n")).expect("there is one").1;
        rest.split_once("```").expect("it ends").0
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("items.csv"), block("csv")).unwrap();
    let requests = parse(block("toml"), folder.path(), "h").unwrap();
    let titles: Vec<_> =
        requests.iter().map(|request| (request.title().into_owned(), request.weight)).collect();
    assert_eq!(titles, [("GET /".into(), 1), ("item".into(), 8), ("order".into(), 1)]);
}
