//! Tests each rule on a small tree with one planted violation, and all rules on a tree with near misses. A
//! test must fail if its rule is removed from the table.

use std::fs;

use super::{SourceTree, violations};

const ROOT: &str = r#"[workspace.dependencies]
plan = { package = "x-plan", path = "crates/plan" }
lab = { package = "x-lab", path = "crates/lab" }
stats = { package = "x-stats", path = "crates/stats" }
serde = "1"
"#;

/// Writes the files to a new folder and returns the output lines of tidy.
fn tidy(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    violations(&SourceTree::read(folder.path()).unwrap())
}

/// Asserts that there is exactly one violation for each of the prefixes, in order.
#[track_caller]
fn assert_found(files: &[(&str, &str)], beginnings: &[&str]) {
    let found = tidy(files);
    let as_expected = found.len() == beginnings.len()
        && found
            .iter()
            .zip(beginnings)
            .all(|(line, beginning)| line.starts_with(beginning));
    assert!(
        as_expected,
        "expected\n  {}\nfound\n  {}",
        beginnings.join("\n  "),
        found.join("\n  ")
    );
}

/// A function with this number of tokens, and a file header.
fn function_of(tokens: usize) -> String {
    // `fn long() {}` has six tokens, and each `;` is one.
    format!(
        "//! Long.\nfn long() {{\n{}}}\n",
        "    ;\n".repeat(tokens - 6)
    )
}

#[test]
fn a_tree_that_keeps_the_rules_is_clean() {
    let talks_about_it = "//! Header.\n\n// Not .unwrap(), println!() or process::exit.\nfn f() -> &'static str {\n    \
                          \"x.unwrap(); dbg!(1)\"\n}\nfn unwrap() {}\n";
    let tests_inside = "//! Header.\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { f().unwrap(); println!(); }\n}\n\
                        #[cfg(all(test, unix))]\nfn g() { f().unwrap(); }\n";
    let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
    let package_lock = "\"version\": \"1.0.0\",\n\"url\": \"https://b.org/fund\"\n";
    let page = "[a](docs/page.md#part) [b](https://x.org/y) [c](#here) ![d](/docs)\n```\n[e](nowhere.md)\n```\n`[f](no)`\n";
    let long_test = function_of(1101);
    let files = [
        ("Cargo.toml", ROOT),
        ("Cargo.lock", lock),
        ("README.md", page),
        ("docs/page.md", "[up](../README.md) and METHODOLOGY"),
        ("targets/app/package-lock.json", package_lock),
        (
            "crates/lab/Cargo.toml",
            "[dependencies]\nplan.workspace = true\nserde.workspace = true\n",
        ),
        ("crates/lab/src/lib.rs", talks_about_it),
        (
            "crates/plan/Cargo.toml",
            "[dev-dependencies]\nstats.workspace = true\n",
        ),
        ("crates/plan/src/lib.rs", tests_inside),
        ("crates/plan/src/model.rs", &function_of(1100)),
        ("crates/plan/src/model/tests.rs", &long_test),
        ("crates/services/Cargo.toml", ""),
        (
            "crates/plan/tests/whole.rs",
            "//! Header.\nfn f() { g().unwrap(); }\n",
        ),
        (
            "crates/cli/src/main.rs",
            "//! Header.\nfn main() { println!(\"x\"); std::process::exit(1) }\n",
        ),
        (
            "crates/load/examples/a.rs",
            "//! Header.\nfn main() { println!(\"x\"); }\n",
        ),
        ("web/table.js", &"x();\n".repeat(600)),
        ("node_modules/common/a.js", "// TO\u{44}O\n"),
    ];
    assert_found(&files, &[]);
}

#[test]
fn crates_are_in_the_picture_use_what_it_allows_and_their_tests_make_no_ring() {
    let files = [
        ("Cargo.toml", ROOT),
        (
            "crates/plan/Cargo.toml",
            "[package]\n\n[dependencies]\nserde.workspace = true\nlab.workspace = true\n",
        ),
        (
            "crates/stats/Cargo.toml",
            "[target.'cfg(unix)'.dependencies]\nx-plan = { path = \"../plan\" }\n",
        ),
        (
            "crates/lab/Cargo.toml",
            "[dependencies.plan]\nworkspace = true\n",
        ),
    ];
    let expected = [
        "crates/plan/Cargo.toml:5: direction: plan may",
        "crates/stats/Cargo.toml:2: direction: stats may",
    ];
    assert_found(&files, &expected);
    let what = "crates/extra/Cargo.toml:1: direction: a crate that the picture does not have: add it to the picture";
    assert_found(&[("crates/extra/Cargo.toml", "")], &[what]);
    let ring = [
        ("Cargo.toml", ROOT),
        (
            "crates/plan/Cargo.toml",
            "[dev-dependencies]\nlab.workspace = true\n",
        ),
        (
            "crates/lab/Cargo.toml",
            "[dependencies]\nplan.workspace = true\n",
        ),
    ];
    assert_found(
        &ring,
        &["crates/plan/Cargo.toml:2: direction: tests of plan use lab"],
    );
}

#[test]
fn a_rust_file_parses_and_has_a_header() {
    let files = [
        ("a.rs", "fn f() {}\n"),
        ("b.rs", "//! Header.\nfn f( {}\n"),
        ("c.rs", "// Not a header.\n"),
    ];
    assert_found(
        &files,
        &["a.rs:1: header", "b.rs:2: parses", "c.rs:1: header"],
    );
}

#[test]
fn calls_are_banned_in_code_and_in_macro_arguments() {
    let code = "//! Header.
use std::process::{Command, exit};
fn f() {
    x.unwrap();
    assert_eq!(y.unwrap(), 1);
    z.map(Option::unwrap);
    println!();
    std::process::exit(1);
    dbg!(x);
    Command::new(x);
    tempfile::tempdir();
    todo!()
}
#[cfg(not(test))]
fn g() { x.unwrap() }
#[cfg(any(test, unix))]
fn h() { x.unwrap() }
";
    let lines = [2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 17].iter();
    let found: Vec<String> = lines
        .map(|line| format!("crates/lab/src/a.rs:{line}: banned-call"))
        .collect();
    assert_found(
        &[("crates/lab/src/a.rs", code)],
        &found.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn tests_may_unwrap_and_print_but_leave_nothing_unwritten() {
    let test = "//! Header.\n#[test]\nfn t() { x().unwrap(); println!(); }\n#[test]\nfn u() { todo!() }\n#[test]\nfn v() { dbg!(1); }\n";
    let expected = [
        "crates/lab/src/a.rs:5: banned-call",
        "crates/lab/src/a.rs:7: banned-call",
    ];
    assert_found(&[("crates/lab/src/a.rs", test)], &expected);
}

#[test]
fn a_module_declared_for_tests_is_a_test_in_its_own_file() {
    let body = "//! Header.\nfn f() { x().unwrap(); }\n";
    let files = [
        (
            "crates/lab/src/lib.rs",
            "//! Header.\n#[cfg(test)]\nmod simulation;\nmod schedule;\n",
        ),
        ("crates/lab/src/simulation.rs", body),
        ("crates/lab/src/simulation/clock.rs", body),
        ("crates/lab/src/schedule.rs", body),
    ];
    assert_found(&files, &["crates/lab/src/schedule.rs:2: banned-call"]);
}

#[test]
fn figures_and_plurals_are_written_by_their_owner() {
    let code = "//! Header.
/// In pages it is `{:.2}`.
fn f() {
    let a = format!(\"{:.2} ms\", x);
    let b = format!(\"{x:+}, {x:.0$}\");
    let s = if n == 1 { \"\" } else { \"s\" };
    let d = format!(\"{{:.2}} {x:06} {x:.4e} {n:>5}\");
}
#[test]
fn t() { format!(\"{:.2}\", x); }
";
    let found = [4, 5, 6].map(|line| format!("crates/lab/src/a.rs:{line}: figure"));
    assert_found(
        &[
            ("crates/lab/src/a.rs", code),
            ("crates/model/src/quantity.rs", code),
            ("bench/a.rs", code),
        ],
        &found.each_ref().map(String::as_str),
    );
}

#[test]
fn files_and_functions_have_a_size() {
    // Each constant has seven tokens.
    let constants = "/// Said of it.\nconst X: u8 = 1;\n".repeat(1001);
    let long_file = format!("//! Header.\n{constants}");
    let generated = format!("//! @generated by x\n{constants}");
    let method = format!(
        "//! M.\nimpl X {{\n/// Doc.\n{}}}\n",
        function_of(1101).replace("//! Long.\n", "")
    );
    let files = [
        ("a.rs", &*long_file),
        ("b.rs", &*function_of(1101)),
        ("c.rs", &method),
        ("d.rs", &generated),
        ("e.md", &long_file),
    ];
    let expected = [
        "a.rs:1: size: 7008 tokens",
        "b.rs:2: size: `long` has 1101 tokens",
        "c.rs:4: size: `long` has 1101 tokens",
    ];
    assert_found(&files, &expected);
}

#[test]
fn names_that_say_nothing_are_told_once() {
    let files = [
        ("web/Helpers/a.js", ""),
        ("web/Helpers/b.js", ""),
        ("web/utils.js", ""),
        ("web/uncommon/imprint.js", ""),
        ("crates/lab/tests/common/mod.rs", "//! Header.\n"),
    ];
    let expected = [
        "crates/lab/tests/common/mod.rs:1: name",
        "web/Helpers/a.js:1: name",
        "web/utils.js:1: name",
    ];
    assert_found(&files, &expected);
}

#[test]
fn lock_files_name_no_host_of_their_maker() {
    let cargo = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"git+https://git.lan/x\"\n";
    let npm = "\"version\": \"1.0.0\",\n\"resolved\": \"http://mirror.lan/a.tgz\",\n";
    let files = [("Cargo.lock", cargo), ("targets/a/package-lock.json", npm)];
    assert_found(
        &files,
        &[
            "Cargo.lock:2: lock-host",
            "targets/a/package-lock.json:2: lock-host",
        ],
    );
}

#[test]
fn links_of_a_page_lead_somewhere() {
    let page = "# A\n[x](gone.md)\n[up](../../out.md)\n[ref]\n\n<img alt=\"\" src=\"gone.png\">\n\n[ref]: ./gone/\n";
    let expected = [
        "docs/a.md:2: link",
        "docs/a.md:3: link",
        "docs/a.md:4: link",
        "docs/a.md:6: link",
    ];
    assert_found(&[("docs/a.md", page)], &expected);
}

#[test]
fn marks_of_unfinished_work_are_found_as_words() {
    let [mend, do_it] = [concat!("FIX", "ME"), concat!("TO", "DO")];
    let page = format!("fine\n# {mend}: later\n{do_it}S and AUTO{do_it}\n");
    assert_found(&[("Makefile", &page)], &["Makefile:2: mark"]);
}
