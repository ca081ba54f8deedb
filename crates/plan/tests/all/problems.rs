//! Messages for invalid experiment files. The lines of snapshots are `line:column message | label | hint`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::DirEntry;
use std::path::Path;

use proofload_plan::{Problem, ReadError};

use crate::read_file;

/// A problem's place must be within the text, and not in the middle of a character.
fn rendered(text: &str, problems: &[Problem]) -> String {
    let mut out = String::new();
    for problem in problems {
        assert!(
            text.get(problem.span.clone()).is_some(),
            "{problem:?} lies outside the text"
        );
        let (line, column) = problem.line_column(text);
        let hint = problem.hint.as_deref().unwrap_or("-");
        writeln!(
            out,
            "{line}:{column} {} | {} | {hint}",
            problem.message, problem.label
        )
        .unwrap();
    }
    out
}

/// Reads `text` as a file in a temporary folder, whose name is removed from the result.
fn read(text: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment.toml");
    std::fs::write(&path, text).unwrap();
    let rendered = match read_file(&path) {
        Err(ReadError::Problems { text, problems }) => rendered(&text, &problems),
        other => panic!("expected problems, found {other:?}"),
    };
    rendered.replace(folder.path().to_str().unwrap(), "FOLDER")
}

#[test]
fn each_bad_file_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap());
    let told = |entry: &DirEntry| read(&std::fs::read(entry.path()).unwrap());
    let told: BTreeMap<_, _> = entries
        .map(|entry| (entry.file_name(), told(&entry)))
        .collect();
    let told: String = told
        .iter()
        .map(|(name, told)| format!("{}\n{told}", name.display()))
        .collect();
    insta::assert_snapshot!(told);
}

/// Messages for a service with two levels and these lines after its command.
fn said_of(lines: &str) -> String {
    let factors = "[factors.setting]\noff = {}\non = { api.env.X = 1 }\n";
    let factors = if lines.contains("[factors.") {
        ""
    } else {
        factors
    };
    let service = "[services.api]\ncommand = [\"node\"]";
    read(format!("name = \"x\"\n{factors}{service}\n{lines}\n").as_bytes())
}

#[test]
fn each_bad_line_is_explained() {
    let told = [
        "[design]\nmetric = \"cpu_per_request\"\narrivals = \"poisson\"",
        "[design]\nbudget = \"4m\"\nwarmup = \"5s\"\nslice = \"10s\"\nslices = 3",
        "[design]\nbudget = \"18446744073709551615h\"\nwarmup = \"18446744073709551616ms\"\nslice = \"-1s\"\nmargin = \"1e999%\"",
        "ready_timeout = \"soon\"\nstop_timeout = \"1.5s\"\n[design]\nbudget = \"30m1h\"\nwarmup = \"10 \"\nslice = \"\"",
        "[load]\npath = \"/ping\"\n[design]\nmetric = \"p99\"\nendpoint = \"ping\"",
        "[load]\nrequests = [{ name = \"ping\", path = \"/ping\", weight = 99 }, { name = \"auth\", path = \"/auth\" }]\n[design]\nmetric = \"p99\"\nendpoint = \"auth\"\nrate = 1000\nslice = \"10s\"\nslices = 2",
        "[design]\nmetric = \"p99\"\n[gate]\np99.9 = \"< 80ms\"\nthroughput = \"> 1000/s\"",
        "[generators.kubernetes]\ncontext = \"bench\"",
        "[generators]\nlocal = 0",
        "[design]\nmetric = 99\nrate = 100",
        "[design]\nmetric = [\"throughput\", \"p99\", \"p50\"]\nrate = 100",
        "[design]\nmetric = []",
        "[design]\nmetric = [\"p99\", \"p50\", \"p99\"]",
        "[design]\nmetric = [\"p99\", \"p97\"]\nlooks = \"often\"\naa = \"yes\"\nmargin = \"0%\"\nbudget = \"0s\"\nblocks = 18446744073709551615\nslices = 9223372036854775807",
        "[load.network]\nrate = \"20Mbit\"\ndelay = \"2s\"\nloss = \"1%\"",
        "[load]\nnetwork = {}",
        "[load.network]\nrate = 20\ndelay = 5\n[factors.link]\na = { load.network.rate = \"7kbit\" }\nb = { load.network.rate = \"11gbit\" }",
        "[design]\nmetric = \"p99.9\"\nrate = 10",
        "[design]\nmetric = \"throughput\"\nrate = 1000\narrivals = \"constant\"",
        "[design]\nmetric = \"p99\"\nrate = \"1000\"",
        "[design]\nmetric = \"p50\"\nrate = nan",
        "[design]\nmetric = \"p99\"\nrate = [1000]",
        "[design]\nmetric = \"p99\"\nrate = \"96%\"",
        "[design]\nmetric = \"p50\"\nrate = 2e7",
        "[design]\nmetric = \"p97\"\nrate = 0\narrivals = \"uniform\"",
        "[design]\nmetric = \"p99\"\nrate = 1000\nslice = \"200ms\"\nslices = 2",
        "[factors.node_env]\ndevelopment = {}\nproduction = { load.path = \"/p\" }\n[design]\nbaseline = { node_env = \"prod\", nod_env = \"development\" }\ncompare = [\"node_env\", \"node_env\", \"compression\"]",
        "[factors.node_env]\ndevelopment = { api.env.NODE_ENV = \"development\" }\nproduction = { api.env.NODE_ENV = \"production\", services.api.env.NODE_ENV = \"production\" }\n[factors.mode]\nfast = { api.env.NODE_ENV = \"production\", api.env.FAST = true }\nslow = { api.env.FAST = false }",
        "[generators]\nlocal = 0\nssh = [\"bench-1\", \"bench-2\"]\n[factors.connections]\nfew = { load.connections = 1 }\nlinked = { load.network = { rate = \"20mbit\" } }",
        "[factors.\"\"]\n\"a · b\" = { load.path = \"/a\" }\n\" blank\" = { load.path = \"/b\" }",
        "[factors.node_env]\nproduction = { api.env.NODE_ENV = \"production\" }\n[factors.empty]",
        "env.A = \"{workers}\"\ntemplates = { \"missing.conf\" = \"missing.tmpl\", \"folder.conf\" = \".\" }",
        "env.A = \"{prepare.silnt}\"\n[prepare.silent]\ncommand = [\"make\"]\ntimeout = \"500ms\"\ninputs = [\"no-such-file\"]",
        "env.A = \"{prepare.zips}\"\n[prepare.zips]\ncommand = [\"make\", \"{output}\"]\n[factors.data]\na = { prepare.zips.timeout = \"1m\" }\nb = { api.env.X = 1 }",
        "host = \"ssh://bench-1\"",
        "[load]\nrequests = [{ name = \"ping\", path = \"/ping\" }, { name = \"auth\", path = \"/auth\" }]\n[factors.routes]\nboth = {}\ncrypto = { load.requests = [{ name = \"auth\", path = \"/auth\" }, { name = \"auth2\", path = \"/auth2\" }] }\n[design]\nmetric = [\"p99\", \"p50\"]\nendpoint = \"ping\"",
    ];
    insta::assert_snapshot!(
        told.map(|lines| format!("{lines}\n{}\n", said_of(lines)))
            .concat()
    );
}

#[test]
fn more_than_there_may_be_is_explained() {
    let levels = |factor: &str| -> String {
        let level = |n| format!("{factor}{n} = {{ api.env.{factor} = {n} }}\n");
        format!(
            "[factors.{factor}]\n{}",
            (0..8).map(level).collect::<String>()
        )
    };
    let factors = format!("{}{}[design]\nbudget = \"2h\"\n", levels("a"), levels("b"));
    let requests: String = (1..34)
        .map(|n| format!("{{ path = \"/{n}\" }}, "))
        .collect();
    let told = [
        format!("{}{factors}", levels("c")),
        format!("{factors}aa = true"),
        format!("{factors}compare = [\"a\", \"b\"]"),
        format!("{factors}metric = [\"throughput\", \"cpu_per_request\"]"),
        format!("[load]\nrequests = [{requests}]\n[design]\nendpoint = \"GET /3\""),
    ];
    insta::assert_snapshot!(told.map(|lines| said_of(&lines)).concat());
}

#[test]
fn a_file_that_is_no_text_is_explained() {
    let large = vec![b'#'; 2 << 20];
    let told = [
        &b"name = \"caf\xe9\"\n[services.api]\n"[..],
        b"name = \"a\"\0\n",
        &large,
    ];
    insta::assert_snapshot!(told.map(read).concat());
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_no_place() {
    let unix = include_str!("../bad/several_at_once.toml");
    let windows = unix.replace('\n', "\r\n");
    assert_eq!(read(windows.as_bytes()), read(unix.as_bytes()));
    assert_eq!(
        read(format!("\u{feff}{windows}").as_bytes()),
        read(unix.as_bytes())
    );
}

#[test]
fn deep_nesting_is_a_problem_and_not_a_crash() {
    let brackets = format!("name = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let tables = format!("name = {}1{}", "{ a = ".repeat(60), " }".repeat(60));
    // Each level of an inline table may have a dotted key: the deepest tree that the parser accepts.
    let dotted = format!(
        "x = {}1{}",
        format!("{{ {}a = ", "a.".repeat(75)).repeat(75),
        " }".repeat(75)
    );
    insta::assert_snapshot!(
        [brackets, tables, dotted]
            .map(|text| read(text.as_bytes()))
            .concat()
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("missing.toml"), folder.path().to_owned()] {
        let error = read_file(&path).unwrap_err();
        assert!(matches!(error, ReadError::Io { .. }), "{error:?}");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn a_large_file_of_another_kind_gives_a_page_of_problems_and_not_a_book() {
    let log = "2026-01-01 12:00:00 GET /index.html 200\n".repeat(20_000);
    assert_eq!(read(log.as_bytes()).lines().count(), 20);
}
