//! Plans against another commit: every variant twice, each side with its own directories, data and templates.

use std::fs;
use std::path::Path;

use proofload_plan::{
    Against, GateEntry, LimitSubject, Overrides, Plan, Refused, parse, parse_with,
};

use crate::{here, kept, names, plan};

/// This crate's folder as a repository, and a worktree that need not exist.
fn against() -> Against {
    Against {
        reference: "main".to_owned(),
        commit: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned(),
        repository: here().canonicalize().unwrap(),
        worktree: "/cache/1a2b".into(),
        stat: String::new(),
        untracked: 0,
        uncommitted: false,
        build: None,
        copy: Vec::new(),
        copied: Vec::new(),
        only_here: Vec::new(),
        notes: Vec::new(),
    }
}

fn doubled(plan: &Plan) -> Result<Plan, Refused> {
    plan.against(&plan.moved(&against()), against(), Vec::new())
}

const FACTORS: &str = r#"
name = "factors"
entry = "api"
[services.api]
command = ["node", "server.js"]
directory = "src"
[services.db]
command = ["db"]
directory = "/"
[prepare.dist]
command = ["make", "{output}"]
[prepare.rows]
command = ["make", "{output}"]
directory = "/"
[factors.source]
compiled = { api.needs = ["db"], api.env.DATA = "{prepare.rows}:{{:{prepare.dist}/all" }
plain = { api.needs = ["db"] }
[design]
compare = "source"
metric = ["throughput", "cpu_per_request"]
"#;

#[test]
fn every_variant_is_compared_with_itself_at_the_commit_and_with_nothing_else() {
    let plan = plan(FACTORS);
    let doubled = doubled(&plan).unwrap();
    let both = [
        "compiled · main (1a2b3c4)",
        "compiled · here",
        "plain · main (1a2b3c4)",
        "plain · here",
    ];
    assert_eq!(names(&doubled), both);
    let compared: Vec<_> = doubled
        .comparisons
        .iter()
        .map(|of| (of.baseline, of.candidate))
        .collect();
    assert_eq!(compared, [(0, 1), (2, 3)]);
    assert_eq!(
        doubled.comparisons[1].label,
        "here vs main (1a2b3c4) (plain)"
    );
    // The file has a factor with our name.
    let factors: Vec<&str> = doubled
        .factors
        .iter()
        .map(|factor| factor.name.as_str())
        .collect();
    assert_eq!(factors, ["source", "git source"]);
    assert_eq!(doubled.variants[2].levels["git source"], "main (1a2b3c4)");
    assert_eq!(doubled.design, plan.design);
    kept(&doubled);
}

#[test]
fn an_amount_for_a_level_is_about_the_working_tree_unless_the_commit_is_named() {
    let plan = plan(&format!(
        "{FACTORS}[gate.of.plain]\ncpu_per_request = \"< 2ms\"\n"
    ));
    let doubled = doubled(&plan).unwrap();
    let about = |of: &str| {
        let entry = GateEntry {
            of: Some(of.to_owned()),
            ..doubled.gate[0].clone()
        };
        doubled.gated(&entry, &[])
    };
    assert_eq!(about("plain"), [LimitSubject::Variant(3)]);
    assert_eq!(about("plain · main (1a2b3c4)"), [LimitSubject::Variant(2)]);
    assert_eq!(
        about("main (1a2b3c4)"),
        [LimitSubject::Variant(0), LimitSubject::Variant(2)]
    );
}

#[test]
fn each_side_has_its_own_directories_and_data_and_shares_what_lies_elsewhere() {
    let doubled = doubled(&plan(FACTORS)).unwrap();
    let [base, here, ..] = doubled.variants.as_slice() else {
        panic!("four variants")
    };
    let directory = |variant: &proofload_plan::Variant, index: usize| {
        variant.services[index].command().unwrap().directory.clone()
    };
    assert_eq!(directory(base, 1), Path::new("/cache/1a2b/src"));
    assert_eq!(directory(here, 1), against().repository.join("src"));
    assert_eq!(
        (directory(base, 0), directory(here, 0)),
        ("/".into(), "/".into())
    );
    let data = |variant: &proofload_plan::Variant| {
        variant.services[1].command().unwrap().env["DATA"].clone()
    };
    assert_eq!(
        data(base),
        "{prepare.rows}:{{:{prepare.dist at 1a2b3c4}/all"
    );
    assert_eq!(data(here), "{prepare.rows}:{{:{prepare.dist}/all");
    let steps: Vec<_> = doubled
        .prepare
        .iter()
        .map(|step| (step.name.as_str(), &*step.directory))
        .collect();
    let repository = against().repository;
    let expected = [
        ("dist at 1a2b3c4", Path::new("/cache/1a2b")),
        ("dist", &repository),
        ("rows", Path::new("/")),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn a_file_without_factors_compares_here_with_there_and_a_copy_is_of_the_commit() {
    let only = plan("name = \"x\"\n[services.api]\ncommand = [\"x\"]\n");
    for (service, said) in [
        ("command = [\"x\"]\n[measure]", "one variant"),
        ("container.image = \"x\"", "a container"),
    ] {
        let refused = plan(&format!("name = \"x\"\n[services.api]\n{service}\n"))
            .check_here()
            .unwrap_err();
        assert!(refused.to_string().contains(said), "{refused}");
    }
    let changed = Against {
        uncommitted: true,
        ..against()
    };
    let doubled_only = only
        .against(&only.moved(&changed), changed, Vec::new())
        .unwrap();
    assert_eq!(
        names(&doubled_only),
        ["main (1a2b3c4)", "here + uncommitted changes"]
    );
    assert_eq!(
        doubled_only.comparisons[0].label,
        "here + uncommitted changes vs main (1a2b3c4)"
    );
    let copied = doubled(&plan(&format!("{FACTORS}aa = true\n"))).unwrap();
    assert_eq!(copied.variants.len(), 5);
    assert_eq!(
        copied.aa.map(|copy| (copy.baseline, copy.candidate)),
        Some((0, 4))
    );
}

#[test]
fn no_more_variants_and_verdicts_are_made_than_there_may_be() {
    let levels = |count: usize| -> String {
        (0..count)
            .map(|level| format!("l{level} = {{ api.env.X = {level} }}\n"))
            .collect()
    };
    let text = |count, design| {
        format!(
            "name = \"x\"\n[services.api]\ncommand = [\"x\"]\n[factors.f]\n{}[design]\nbudget = \"24h\"\n{design}",
            levels(count)
        )
    };
    assert_eq!(doubled(&plan(&text(32, ""))).unwrap().variants.len(), 64);
    for (count, design, said) in [
        (
            33,
            "",
            "33 variants, here and at main (1a2b3c4), are 66, at most 64",
        ),
        (
            32,
            "aa = true",
            "32 variants, here and at main (1a2b3c4), are 65 with the copy of `aa`, at most 64",
        ),
        (
            22,
            "metric = [\"cpu_per_request\", \"p50\", \"p90\"]",
            "22 comparisons with main (1a2b3c4) in 3 metrics are 66 verdicts, at most 64",
        ),
    ] {
        assert_eq!(
            doubled(&plan(&text(count, design)))
                .unwrap_err()
                .to_string(),
            said
        );
    }
}

#[test]
fn the_file_is_read_as_it_is_here_and_what_it_names_as_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (file, text) in [
        (
            "here/bench/x.toml",
            "name = \"x\"\n[services.api]\ncommand = [\"x\"]\ndirectory = \"../api\"\ntemplates = { c = \"c.tmpl\" }\n",
        ),
        ("here/api/c.tmpl", "new {{port}}"),
        ("there/api/c.tmpl", "old {{ port }}"),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
    }
    let against = Against {
        repository: root.join("here"),
        worktree: root.join("there"),
        ..against()
    };
    let file = root.join("here/bench/x.toml");
    let text = fs::read_to_string(&file).unwrap();
    let none = Overrides::default();
    let planned = |against| parse_with(&text, file.parent().unwrap(), &none, against);
    let (plan, base) = (planned(None).unwrap(), planned(Some(&against)).unwrap());
    let doubled = plan.against(&base, against.clone(), Vec::new()).unwrap();
    let templates: Vec<&str> = doubled
        .variants
        .iter()
        .map(|variant| variant.services[0].command().unwrap().templates["c"].as_str())
        .collect();
    assert_eq!(templates, ["old {{ port }}", "new {{port}}"]);
    fs::remove_dir_all(root.join("there/api")).unwrap();
    let message = &planned(Some(&against)).unwrap_err()[0].message;
    assert!(
        message.ends_with("is not a directory: it does not exist at main (1a2b3c4)"),
        "{message}"
    );
}

#[test]
fn how_services_are_built_there_is_read_and_judged() {
    let text = |lines: &str| {
        format!("name = \"x\"\n[services.api]\ncommand = [\"x\"]\n[against]\n{lines}\n")
    };
    let building = plan(&text(
        "build = [\"sh\", \"-c\", \"x={1}\"]\ntimeout = \"1m\"",
    ))
    .building;
    assert_eq!(
        (building.command.len(), building.timeout.as_secs()),
        (3, 60)
    );
    for (lines, said) in [
        ("build = []", "`against.build` is empty"),
        ("build = [\"\"]", "`against.build` has no program"),
        ("build = \"npm ci\"", "`against.build` is a string"),
        ("timeout = \"0s\"", "`against.timeout` is 0s, at least 1s"),
    ] {
        let problems = parse(&text(lines), here()).unwrap_err();
        assert!(
            problems[0].message.starts_with(said),
            "{lines}: {}",
            problems[0].message
        );
    }
}

fn named(reference: &str) -> Against {
    let stat = "1 file changed, 2 insertions(+)".to_owned();
    let (repository, worktree) = ("/home/me/shop".into(), "/cache/1a2b".into());
    Against {
        reference: reference.to_owned(),
        stat,
        repository,
        worktree,
        ..against()
    }
}

#[test]
fn a_ref_is_shown_as_given_with_its_commit_and_made_fit_for_a_name() {
    for (given, shown) in [
        ("main", "main (1a2b3c4)"),
        ("1a2b3c4d5e", "1a2b3c4"),
        ("HEAD~3", "HEAD~3 (1a2b3c4)"),
        (":/a · b\u{1b}[31m", ":/a   b [31m (1a2b3c4)"),
        (
            "refs/remotes/origin/feature/of-a-long-name",
            "refs/remotes/origin/feature/of-a… (1a2b3c4)",
        ),
    ] {
        assert_eq!(named(given).baseline(), shown);
    }
}

#[test]
fn what_differs_is_told_in_words() {
    let main = named("main");
    let told = "main (1a2b3c4d5e6f…): working tree with 1 file changed, 2 insertions(+)";
    assert_eq!(main.describe(), told);
    let more = Against {
        untracked: 1,
        uncommitted: true,
        ..main.clone()
    };
    assert_eq!(
        more.describe(),
        format!("{told}, 1 file unknown to git; not all of it is committed")
    );
    let same = Against {
        stat: String::new(),
        ..named("1a2b3c4")
    };
    assert_eq!(
        same.describe(),
        "1a2b3c4d5e6f…: the working tree is the same"
    );
    for (here, there) in [
        ("/home/me/shop", "/cache/1a2b"),
        ("/home/me/shop/api/src", "/cache/1a2b/api/src"),
        ("/home/me/shopping", "/home/me/shopping"),
        ("/srv", "/srv"),
    ] {
        assert_eq!(main.moved(Path::new(here)), Path::new(there));
    }
}
