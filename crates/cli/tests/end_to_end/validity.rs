//! `proofload explain`: explains a finding by its number.

use crate::place::{Run, proofload};

#[test]
fn a_number_leads_to_what_it_means_and_without_one_all_checks_are_listed() {
    let said = proofload().args(["explain", "v8", "steal"]).said();
    said.ends(0).prints(&[
        "\nV8. Too many requests failed\n",
        "\nwhat to do  ",
        "\nV29. ",
    ]);
    assert!(
        said.out.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
    let list = proofload().arg("explain").said();
    let lines = list
        .ends(0)
        .out
        .lines()
        .filter(|line| line.trim_start().starts_with('V'))
        .count();
    let json = proofload().args(["explain", "--json"]).said().json();
    assert_eq!(
        json["checks"].as_array().map(Vec::len),
        Some(lines),
        "{list}"
    );
    let checks = json["checks"].as_array().expect("checks");
    let errors = checks
        .iter()
        .find(|check| check["number"] == "V8")
        .expect("V8");
    assert_eq!(errors["check"], "errors");
    assert!(
        errors["text"]
            .as_str()
            .is_some_and(|text| text.contains("**What to do.**")),
        "{errors}"
    );
}

#[test]
fn what_is_no_check_is_said_with_what_may_have_been_meant() {
    for (word, near) in [
        ("eror", "V8 errors"),
        ("stael", "V29 steal"),
        ("workers", "V17 workers_lost"),
        ("V999", "lists all"),
    ] {
        let said = proofload().args(["explain", word]).said();
        said.ends(2).tells(&[&format!("`{word}`"), near]);
        assert_eq!(said.out, "");
    }
}
