//! Experiment files made from flags: their text, their plans, and the origins of their problems.

use proofload_plan::{DraftSource, DraftVariant, ExperimentDraft, FlagSetting, parse};

use crate::{here, names, plan, read_file};

fn draft(commands: &[(Option<&str>, &str)], settings: Vec<FlagSetting>) -> ExperimentDraft {
    let variant = |(name, command): &(Option<&str>, &str)| DraftVariant {
        name: name.map(str::to_owned),
        source: DraftSource::command(command).unwrap(),
        from: (*command).to_owned(),
    };
    ExperimentDraft {
        made_by: "proofload compare …".to_owned(),
        again: "proofload run experiment.toml".to_owned(),
        name: "compare".to_owned(),
        question: None,
        variants: commands.iter().map(variant).collect(),
        settings,
    }
}

#[test]
fn the_file_has_comments_and_gives_the_plan_of_the_flags() {
    let settings = vec![
        FlagSetting::new(&["design", "budget"], "2m", "--budget 2m"),
        FlagSetting::new(
            &["load", "headers", "accept"],
            "application/json",
            "-H 'accept: application/json'",
        ),
        FlagSetting::new(&["load", "connections"], 32, "-c 32"),
        FlagSetting::new(&["load", "path"], "/orders?a=\"b'", "--path"),
    ];
    let draft = draft(
        &[
            (None, "NODE_ENV=development node server.js"),
            (None, "NODE_ENV=production node server.js"),
        ],
        settings,
    );
    let written = draft.write();
    insta::assert_snapshot!(written.text);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment.toml");
    std::fs::write(&path, &written.text).unwrap();
    let plan = read_file(&path).unwrap();
    assert_eq!(plan, parse(&written.text, folder.path()).unwrap());
    assert_eq!(
        names(&plan),
        ["NODE_ENV=development", "NODE_ENV=production"]
    );
    assert_eq!(plan.comparisons.len(), 1);
    assert_eq!(
        plan.variants[1].services[0].command().unwrap().env["NODE_ENV"],
        "production"
    );
    let header = ("accept".to_owned(), "application/json".to_owned());
    assert_eq!(plan.variants[0].load.requests[0].headers, [header]);
}

#[test]
fn variants_are_called_by_what_tells_them_apart_and_the_same_one_twice_is_an_a_a_test() {
    let named = |commands: &[(Option<&str>, &str)]| {
        let draft = draft(commands, Vec::new());
        let plan = plan(&draft.write().text);
        (names(&plan).join(" | "), draft.alike(), plan)
    };
    assert_eq!(
        named(&[(None, "node a.js --x"), (None, "node b.js --x")]).0,
        "a.js | b.js"
    );
    assert_eq!(
        named(&[(None, "node a.js"), (None, "node a.js --x")]).0,
        "node a.js | node a.js --x"
    );
    assert_eq!(
        named(&[(Some("old"), "./a"), (Some("new"), "./b")]).0,
        "old | new"
    );
    assert_eq!(named(&[(None, "node a.js")]).0, "only");
    let (names, alike, plan) = named(&[
        (None, "node a.js"),
        (None, "node a.js"),
        (None, "node a.js"),
    ]);
    assert_eq!(
        (names.as_str(), alike),
        (
            "node a.js | node a.js (2) | node a.js (3)",
            vec![(0, 1), (0, 2)]
        )
    );
    assert_eq!(plan.comparisons.len(), 2);
}

#[test]
fn any_name_of_a_variant_is_a_key_of_the_file() {
    for odd in [
        "it's \"x\"",
        "'''\"\"\"",
        "a\\'\"b",
        "\"",
        "'",
        "é ",
        "A='1' \"b\"",
    ] {
        let names = [format!("{odd}1"), format!("{odd}2")];
        let draft = draft(
            &[
                (Some(&names[0]), "node a.js"),
                (Some(&names[1]), "node b.js"),
            ],
            Vec::new(),
        );
        let text = draft.write().text;
        let table: toml::Table =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let levels = table["factors"]["variant"].as_table().unwrap();
        assert!(names.iter().all(|name| levels.contains_key(name)), "{text}");
    }
}

#[test]
fn problems_are_told_by_the_flag_that_they_come_from() {
    let settings = vec![
        FlagSetting::new(&["design", "budget"], "1s", "--budget 1s"),
        FlagSetting::new(&["load", "headers", "a b"], "x", "-H 'a b: x'"),
        FlagSetting::new(&["load", "timeout"], "never", "--timeout never"),
    ];
    let draft = draft(&[(None, "node a.js {prot}"), (None, "node b.js")], settings);
    let written = draft.write();
    let told = parse(&written.text, here()).unwrap_err();
    let told: Vec<String> = told
        .iter()
        .map(|problem| {
            let (from, part) = written.origin(problem).expect("each comes from a flag");
            format!("{from} [{}] {}", &from[part], problem.message)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn images_and_equal_urls_are_plans_as_commands_are() {
    let of = |sources: [DraftSource; 2], settings: Vec<FlagSetting>| {
        let mut draft = draft(&[(None, "a"), (None, "b")], settings);
        for (variant, source) in draft.variants.iter_mut().zip(sources) {
            variant.source = source;
        }
        let plan = plan(&draft.write().text);
        (names(&plan).join(" | "), plan)
    };
    let images =
        ["shop:1.4", "CACHE=off shop:1.5 --fast"].map(|text| DraftSource::image(text).unwrap());
    let port = FlagSetting::new(
        &["services", "app", "container", "port"],
        3000,
        "--port 3000",
    );
    let (names, plan) = of(images, vec![port.clone()]);
    assert_eq!(names, "shop:1.4 | CACHE=off shop:1.5 --fast");
    let second = plan.variants[1].services[0].command().unwrap();
    let container = second.container.as_ref().unwrap();
    assert_eq!(
        (container.to_string().as_str(), container.port),
        ("container shop:1.5", Some(3000))
    );
    assert_eq!(
        (second.env["CACHE"].as_str(), &second.command),
        ("off", &vec!["--fast".to_owned()])
    );
    let same = || DraftSource::image("shop:1.4").unwrap();
    assert_eq!(
        of([same(), same()], vec![port]).0,
        "shop:1.4 | shop:1.4 (2)"
    );
    let same = || DraftSource::Url("http://127.0.0.1:3000".to_owned());
    assert_eq!(
        of([same(), same()], Vec::new()).0,
        "127.0.0.1:3000 | 127.0.0.1:3000 (2)"
    );
}
