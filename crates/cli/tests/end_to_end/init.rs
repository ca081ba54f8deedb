//! `proofload init`: creates an experiment for a folder that was tried once, and that other commands use by
//! default.

use std::fs;

use crate::place::{Place, Run, SERVICE, ended, signal, wait_until};

#[test]
fn a_node_folder_becomes_an_experiment_that_the_other_commands_take() {
    let place = Place::new();
    place.write("server.js", fs::read(SERVICE).expect("the service"));
    place.write(
        "package.json",
        r#"{ "scripts": { "start": "node server.js" } }"#,
    );
    place
        .said(&["init"])
        .ends(0)
        .tells(&["as PORT said, and GET / gets status 200"]);
    place
        .said(&["run", "--dry-run"])
        .ends(0)
        .prints(&["production vs development"]);
    place.said(&["init"]).ends(2);

    fs::remove_file(place.path("proofload.toml")).expect("it goes");
    place.write(
        "package.json",
        r#"{ "scripts": { "start": "MODE=exit node server.js" } }"#,
    );
    place.said(&["init"]).ends(3).tells(&["giving up"]);

    place.write("of it/server.js", "");
    place
        .said(&["init", "of it", "--no-start"])
        .ends(0)
        .tells(&["next:", "  proofload run 'of it/proofload.toml' --quick "]);
}

#[test]
fn ctrl_c_leaves_nothing() {
    let (place, temporary) = (Place::new(), Place::new());
    place.write("server.js", "setInterval(() => {}, 1000);");
    let child = place
        .proofload(&["init"])
        .env("TMPDIR", temporary.path(""))
        .begun();
    let made = || fs::read_dir(temporary.path("")).expect("a folder").count();
    wait_until("there is a folder for its output", || made() > 0);
    signal(child.id(), "-INT");
    ended(child).ends(130);
    assert_eq!((made(), place.path("proofload.toml").exists()), (0, false));
}

#[test]
fn an_empty_folder_gets_a_template_and_what_was_looked_for() {
    let place = Place::new();
    place
        .said(&["init"])
        .ends(0)
        .tells(&["package.json: not there"]);
    // The template is valid. Only its program is missing.
    place
        .said(&["run", "--dry-run"])
        .ends(3)
        .tells(&["command not found: ./server"]);
}

#[test]
fn a_compose_project_is_read_by_compose_and_becomes_an_experiment() {
    let place = Place::new();
    place.write("compose.yaml", "services: {}");
    let project = r#"{"services":{"db":{},"web":{"ports":[{"target":3000}]}}}"#;
    let engine = place.engine(&format!("compose) echo '{project}';; version) echo 28;;"));
    let said = |words: &[&str]| place.proofload(words).env("PATH", &engine).said();
    said(&["init", "--no-start"])
        .ends(0)
        .tells(&["found in compose.yaml, services.web"]);
    said(&["run", "--dry-run"]).ends(0);
    let file = place.read("proofload.toml");
    assert!(
        file.contains("[services.app.compose]") && file.contains("service = \"web\""),
        "{file}"
    );
}
