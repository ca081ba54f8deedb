//! The steps of the GitHub actions in a simulated runner. A service that changes the runner's files changes
//! no verdict, an untrusted record is safe to judge, and the comment goes to the pull request of the event.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::place::{Draft, KEPT, Place, Run, SERVICE, Said, skip};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/ci");
/// The runner's files, by their variables.
const FILES: [&str; 5] = [
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
];
/// A fake GitHub: it logs requests, and has the pull request 7 of the branch `fix`, with a comment by another
/// user.
const GH: &str = r#"#!/bin/sh
printf '%s\n' "$*" >> "$ASKED"
case "$*" in
*/pulls*head=ann:fix*) echo "abc 7" ;;
*/issues/7/comments*--paginate*) cat "$KNOWN" ;;
*/issues/*) : ;;
*) exit 1 ;;
esac
"#;

/// Actions of a service before it serves, which would turn a failing gate green: it writes a file to be
/// executed by later shells, a folder to search for programs in, and an exit code to the runner's files.
const EVIL: &str = r#"env | cut -d= -f1 > seen
tell() { if [ -n "$1" ]; then echo "$2" >> "$1"; fi; }
tell "$GITHUB_ENV" "BASH_ENV=$PWD/evil.sh"
tell "$GITHUB_PATH" "$PWD"
tell "$GITHUB_OUTPUT" exit-code=0
tell "$GITHUB_STATE" a=b
tell "$GITHUB_STEP_SUMMARY" pass
"#;

/// A step's script as the runner starts it.
fn step(place: &Place, script: &str) -> Command {
    let bin = place.path("temp/proofload-bin");
    if !bin.exists() {
        fs::create_dir_all(&bin).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_proofload"), bin.join("proofload")).expect("a link");
    }
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-eo", "pipefail"])
        .arg(format!("{SCRIPTS}/{script}"));
    bash.env("RUNNER_TEMP", place.path("temp"))
        .env("GITHUB_ACTIONS", "true")
        .env_remove("GITHUB_WORKSPACE");
    for name in FILES {
        let file = place.path(name);
        if !file.exists() {
            place.write(name, "");
        }
        bash.env(name, file);
    }
    bash.env("GITHUB_WORKFLOW", "performance")
        .env("GITHUB_REPOSITORY", "ann/shop")
        .env("ARTIFACT", "record");
    bash.envs([
        ("AGAINST", ""),
        ("MAX_REGRESSION", ""),
        ("LIMITS", ""),
        ("BUDGET", ""),
        ("ALLOW_OPEN", "false"),
    ]);
    bash.env("PROOFLOAD_TEST_PLACE", place.mark())
        .current_dir(place.path(""));
    bash
}

/// The last value of an output, which is the one that counts.
fn output(place: &Place, name: &str) -> Option<String> {
    let text = place.read("GITHUB_OUTPUT");
    text.lines().rev().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix('=')
            .map(str::to_owned)
    })
}

fn judge(place: &Place, folder: &str) -> Said {
    step(place, "judge").env("FOLDER", folder).said()
}

#[test]
fn a_service_cannot_make_a_failing_gate_pass() {
    let place = Place::new();
    place.write("evil.sh", "exit 0\n");
    place.write("service.sh", format!("{EVIL}exec node {SERVICE}\n"));
    let env = "PORT = \"{port}\", HOST = \"{address}\", GIVEN = \"{env.GITHUB_TOKEN}\"";
    let service =
        format!("command = [\"sh\", \"service.sh\"]\ndirectory = \".\"\nenv = {{ {env} }}");
    place.experiment(&Draft {
        service: &service,
        more: "[factors.m]\na = { api.env.M = \"a\" }\nb = { api.env.M = \"b\" }\n[gate]\nthroughput = \"> +90%\"",
        ..Draft::default()
    });
    let mut gate = step(&place, "gate");
    let said = gate
        .env("EXPERIMENT", "experiment.toml")
        .env("GITHUB_TOKEN", "a-token-of-the-job")
        .said();
    if said.code != Some(1) {
        // The host took so much of the processor that the run is void.
        assert!(matches!(said.code, Some(4 | 5)), "{said}");
        return skip("the run came to no verdict");
    }
    said.prints(&["Gate: fail", "\n::error file=experiment.toml,"]);
    assert_eq!(output(&place, "exit-code").as_deref(), Some("1"));
    assert_eq!(place.read("GITHUB_OUTPUT").lines().count(), 2);
    assert!(
        ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"]
            .iter()
            .all(|file| place.read(file).is_empty())
    );
    assert!(place.read("GITHUB_STEP_SUMMARY").contains("### Gate: fail"));
    let seen = place.read("seen");
    assert!(
        seen.contains("GIVEN\n") && !seen.contains("GITHUB_TOKEN") && !seen.contains("GITHUB_ENV"),
        "{seen}"
    );

    // Another job judges the record of the artifact again.
    let record = output(&place, "record").expect("a record");
    judge(&place, &record).ends(1);
    assert_eq!(output(&place, "exit-code").as_deref(), Some("1"));
    let comment =
        fs::read_to_string(output(&place, "comment").expect("a file")).expect("it is there");
    assert!(
        comment.starts_with("<!-- proofload-gate performance record -->\n### Gate: fail"),
        "{comment}"
    );
    place.is_quiet();
}

/// An executable file.
fn program(place: &Place, name: &str, script: &str) {
    let path = place.write(name, script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it may be run");
}

#[test]
fn programs_of_an_experiment_get_no_runner_variables() {
    const VALUE: &str = "value-of-the-runner";
    let place = Place::new();
    place.write("shop/server.js", "");
    program(
        &place,
        "shop/node_modules/.bin/pm2",
        "#!/bin/sh\nenv\nexit 1\n",
    );
    program(
        &place,
        "engine/docker",
        "#!/bin/sh\ncase $1 in image) echo '{\"3000/tcp\":{}}';; version) echo 28;; run) env; exit 1;; esac\n",
    );
    for words in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message=first"],
    ] {
        let mut git = Command::new("git");
        git.arg("-C").arg(place.path("shop")).args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@localhost",
        ]);
        git.args(["-c", "commit.gpgsign=false"])
            .args(words)
            .said()
            .ends(0);
    }
    let plain = "directory = \"shop\"\ncommand = [\"sh\", \"-c\", \"env; exit 1\"]\nenv = { DATA = \"{prepare.data}\" }";
    let made =
        "[prepare.data]\ncommand = [\"sh\", \"-c\", \"env; echo x >$1/x\", \"sh\", \"{output}\"]";
    let pm2 = "directory = \"shop\"\ncommand = [\"node\", \"server.js\"]\nlauncher = \"pm2-fork\"";
    let against = ["--against", "HEAD", "--build", "env"];
    for (service, more, flags, kinds) in [
        (plain, made, &against[..], 3),
        (pm2, "", &[], 1),
        ("container = { image = \"shop:1\" }", "", &[], 1),
    ] {
        let text = format!(
            "name = \"kinds\"\n[services.api]\n{service}\n{more}\n[design]\nbudget = \"20s\"\n"
        );
        let mut run = place.command(&place.write("experiment.toml", text));
        let path = std::env::var("PATH").expect("a path");
        run.args(flags)
            .env("PATH", format!("{}:{path}", place.path("engine").display()));
        run.env("XDG_CACHE_HOME", place.path("cache"))
            .env_remove("GITHUB_ACTIONS");
        for name in machine::CI_VARIABLES.split_whitespace() {
            run.env(
                format!("{name}{}", if name.ends_with('_') { "TOKEN" } else { "" }),
                VALUE,
            );
        }
        let said = run.said();
        said.ends(3);
        let logs = place.logs();
        assert!(logs.len() >= kinds, "{:?}: {said}", logs.keys());
        for (name, text) in logs {
            assert!(
                text.contains("PROOFLOAD_TEST_PLACE="),
                "{name} has no environment: {text}\n{said}"
            );
            assert!(!text.contains(VALUE), "{name}: {text}");
        }
        fs::remove_dir_all(place.record()).expect("the record goes");
    }
}

#[test]
fn what_a_service_prints_is_no_command() {
    let place = Place::new();
    let says = "echo '::error::a'; echo '  ::add-mask::b'; echo 'x ##[error]c'; exit 1";
    let service = format!("command = [\"sh\", \"-c\", \"{says}\"]");
    let file = place.experiment(&Draft {
        service: &service,
        ..Draft::default()
    });
    for flags in [&[][..], &["--events"]] {
        let mut run = place.command(&file);
        let said = run
            .args(flags)
            .env("GITHUB_ACTIONS", "true")
            .env_remove("GITHUB_STEP_SUMMARY")
            .said();
        said.ends(3)
            .tells(&["| ::error::a", "| ::add-mask::b", "x ## [error]c"]);
        for line in said.all().lines() {
            assert!(
                !line.trim_start().starts_with("::") && !line.contains("##["),
                "{line}"
            );
        }
        fs::remove_dir_all(place.record()).expect("the record goes");
    }
}

#[test]
fn hostile_records_fail_the_verdict() {
    let place = Place::new();
    let header = fs::read_to_string(format!("{KEPT}/record.json")).expect("the header");
    for (name, header, events) in [
        ("none", None, String::new()),
        ("empty", Some(String::new()), String::new()),
        ("nested", Some("[".repeat(1 << 20)), String::new()),
        (
            "endless",
            Some(header.clone()),
            format!("{{\"a\":\"{}", "x".repeat(70 << 20)),
        ),
        ("void", Some(header), String::new()),
    ] {
        if let Some(header) = header {
            place.write(&format!("{name}/record.json"), header);
            place.write(&format!("{name}/events.jsonl"), events);
        }
        let said = judge(&place, &place.path(name).display().to_string());
        assert!(matches!(said.code, Some(2 | 4 | 5 | 6)), "{name}: {said}");
        let comment =
            fs::read_to_string(output(&place, "comment").expect("a file")).expect("it is there");
        assert!(
            comment.contains("\n### Gate: not judged\n"),
            "{name}: {comment}"
        );
    }
}

/// A binary from a cache that a pull request's code can write would run with the permission to comment.
#[test]
fn the_verdict_takes_no_cache_of_pull_requests() {
    let action =
        fs::read_to_string(format!("{SCRIPTS}/../../verdict/action.yml")).expect("the action");
    let caching: Vec<&str> = action
        .split("\n    - name: ")
        .filter(|step| step.contains("actions/cache"))
        .collect();
    let trusted = r#"if: contains(fromJSON('["push", "schedule", "workflow_dispatch", "workflow_run"]'), github.event_name)"#;
    let [restore, save] = caching[..] else {
        panic!("{caching:?}")
    };
    assert!(
        restore.contains("cache/restore@") && restore.contains(trusted),
        "{restore}"
    );
    assert!(
        save.contains("if: steps.cache.outcome == 'success'"),
        "{save}"
    );
}

#[test]
fn the_comment_goes_to_the_events_pull_request() {
    let place = Place::new();
    program(&place, "temp/proofload-bin/gh", GH);
    let path = format!(
        "{}:{}",
        place.path("temp/proofload-bin").display(),
        std::env::var("PATH").expect("a path")
    );
    let comment = place.write(
        "comment.md",
        "<!-- proofload-gate performance record -->\n### Gate: pass\n",
    );
    let asked = |known: &str, event: [&str; 4]| {
        let known = place.write("known", known);
        place.write("asked", "");
        let mut step = step(&place, "comment");
        step.env("PATH", &path)
            .env("ASKED", place.path("asked"))
            .env("KNOWN", known)
            .env("COMMENT", &comment);
        step.envs(
            ["PULL", "HEAD_OWNER", "HEAD_BRANCH", "HEAD_SHA"]
                .into_iter()
                .zip(event),
        );
        (step.said(), place.read("asked"))
    };
    let posted = "api --method POST repos/ann/shop/issues/7/comments ";
    let (said, text) = asked("3 <!-- other -->\n", ["7", "", "", ""]);
    said.ends(0);
    assert!(text.contains(posted), "{text}");
    let (said, text) = asked(
        "3 <!-- proofload-gate performance record -->\n",
        ["", "ann", "fix", "abc"],
    );
    said.ends(0);
    assert!(
        text.contains("api --method PATCH repos/ann/shop/issues/comments/3 "),
        "{text}"
    );
    // The pull request has newer commits, or there is none.
    for event in [
        ["", "ann", "fix", "abd"],
        ["", "bob", "fix", "abc"],
        ["", "", "", ""],
    ] {
        let (said, text) = asked("", event);
        said.ends(0)
            .prints(&["::warning title=proofload::the comment was not written"]);
        assert!(!text.contains("/comments"), "{text}");
    }
}
