//! Every call of proofload in README and docs is run, in a folder that has what it names: those of blocks of shell, and those within sentences
//! that are whole. What would load for minutes is shortened, and `CALLS` says why some are not run at all.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::place::{KEPT, Place, Run, Running, SERVICE, free};

#[path = "../../src/documented/pages.rs"]
mod pages;

const OUTPUT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../foreign/tests/corpus/tools/wrk-4.1.0-plain.txt");
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../explain/tests/data/auth.cpuprofile");

/// What becomes of a call.
enum Way {
    /// It is run, with these words added unless it has them.
    With(&'static [&'static str]),
    /// It is not run, and this is why. Its flags are read.
    Not(&'static str),
}
use Way::{Not, With};

const SHORT: Way = With(&["-d", "100ms"]);
/// All that comes before services start: they run for minutes.
const DRY: Way = With(&["--dry-run"]);
const RECIPE: Way = Not("its program may be missing: recipes.rs");
const NAME: Way = Not("the name of a command, which wants arguments");

/// By how they begin, `$` being the end; the first that fits. What fits nothing is run as it is.
const CALLS: [(&str, Way); 20] = [
    ("compare$", NAME),
    ("history compare$", NAME),
    ("load$", NAME),
    ("profile$", NAME),
    ("profile diff", With(&[])),
    ("profile", Not("captures profiles for minutes, or wants a record that has some: explain.rs")),
    ("doctor hosts", Not("other machines, by SSH: tests/cluster")),
    ("doctor calibrate", Not("loads for minutes: calibrate.rs")),
    ("tune node server.js --list", With(&[])),
    ("tune", Not("loads for minutes: tune.rs")),
    ("remote-agent", Not("speaks a protocol on stdin: crates/remote")),
    ("init", With(&["--no-start", "empty"])),
    ("compare gunicorn", RECIPE),
    ("compare uvicorn", RECIPE),
    ("compare java", RECIPE),
    ("compare --container", RECIPE),
    ("load", SHORT),
    ("run", DRY),
    ("compare", DRY),
    ("capacity", DRY),
];

fn way(call: &str) -> &'static Way {
    let call = format!("{call}$");
    CALLS.iter().find(|(begin, _)| call.starts_with(begin)).map_or(&With(&[]), |(_, way)| way)
}

/// The calls in a line of shell, as words without the first.
fn calls(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(line).unwrap_or_default();
    let commands = words.split(|word| ["|", "||", "&&", ";", "&", ">", ">>", "<"].contains(&word.as_str()));
    let call = |command: &[String]| {
        let is_before =
            |word: &&String| word.contains('=') || ["sudo", "npx", "time"].contains(&word.as_str());
        let mut call = command.iter().skip_while(is_before).cloned();
        (call.next()?.rsplit('/').next() == Some("proofload")).then(|| call.collect())
    };
    commands.filter_map(call).collect()
}

/// Whether a word stands for what a reader puts there.
fn is_blank(word: &str) -> bool {
    let is_blank = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_uppercase());
    word.contains('…') || word.split('/').any(is_blank)
}

fn documented() -> BTreeSet<Vec<String>> {
    let mut all = BTreeSet::new();
    for (_, page) in pages::pages() {
        let (shell, codes) = pages::shell_and_codes(&page);
        all.extend(shell.iter().flat_map(|line| calls(line)));
        all.extend(
            codes.iter().flat_map(|code| calls(code)).filter(|call| !call.iter().any(|word| is_blank(word))),
        );
    }
    all.retain(|call| !call.is_empty());
    all
}

/// A folder with what the pages name.
fn folder() -> Place {
    let place = Place::new();
    let read = |path: &str| fs::read_to_string(path).expect("it is kept");
    for name in ["server.js", "server.mjs", "server.py", "old.js", "new.js", "old", "new", "server"] {
        let path = place.write(name, read(SERVICE));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it may be run");
    }
    let experiment = "name = \"shop\"\n[services.api]\ncommand = [\"node\", \"server.js\"]\n";
    for name in ["proofload.toml", "experiment.toml", "shop.toml", "keep-alive.toml", "etag.toml"] {
        place.write(name, experiment);
    }
    place.write("mix.toml", "[[request]]\npath = \"/\"\n");
    for name in ["access.log", "session.har"] {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../foreign/tests/corpus/traffic");
        let kept = if name == "session.har" { "chromium-156.har" } else { "nginx-1.22-combined.log" };
        place.write(name, read(&format!("{corpus}/{kept}")));
    }
    for name in ["notes.md", "before.txt", "after.txt"] {
        place.write(name, read(OUTPUT));
    }
    for name in ["before.cpuprofile", "after.cpuprofile"] {
        place.write(name, read(PROFILE));
    }
    for name in ["one", "two"] {
        let header = read(&format!("{KEPT}/record.json"));
        let header = header.replace("simulated", "keep-alive").replace("level-1", "keep");
        place.write(&format!("records/{name}/record.json"), header);
        place.write(&format!("records/{name}/events.jsonl"), read(&format!("{KEPT}/events.jsonl")));
    }
    fs::create_dir(place.path("empty")).expect("a folder");
    let git = "git init -q -b main && git add . && git -c user.name=a -c user.email=a@b commit -qm a \
               && git tag v2.3.0 && git update-ref refs/remotes/origin/main main";
    let made = Command::new("sh").args(["-c", git]).current_dir(place.mark()).status();
    assert!(made.is_ok_and(|status| status.success()));
    place
}

/// Runs a call; what went wrong, if something did.
fn carry(place: &Place, address: &str, call: &[String]) -> Option<String> {
    let line = call.join(" ");
    let mut words: Vec<String> = Vec::new();
    for word in call {
        match word.as_str() {
            "*.txt" => words.extend(["before.txt".to_owned(), "after.txt".to_owned()]),
            word => words.push(word.replace("127.0.0.1:3000", address).replace("127.0.0.1:4000", address)),
        }
    }
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let added: &[&str] = match way(&line) {
        With(added) => added,
        Not(why) => {
            eprintln!("not run: proofload {line}: {why}");
            &["--help"]
        }
    };
    if !added.first().is_some_and(|flag| words.iter().any(|word| word == flag)) {
        words.splice(end..end, added.iter().map(|&word| word.to_owned()));
    }
    if let Some(at) = words.iter().position(|word| word == "--save") {
        let _ = fs::remove_file(place.path(&words[at + 1]));
    }
    if words[0] == "mix" && !words.iter().any(|word| word == "--out") {
        words.extend(["--out".to_owned(), "made.toml".to_owned()]);
    }
    let stdin = fs::File::open(OUTPUT).expect("it is kept");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = place.proofload(&words);
    for desktop in ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"] {
        command.env_remove(desktop);
    }
    let said = command.stdin(stdin).said();
    // Of other tools' output the conclusion may be invalid, and of one measurement nothing follows.
    let well = said.code == Some(0) || said.code == Some(4) && words[0] == "report";
    (!well).then(|| format!("proofload {}\n{said}", words.join(" ")))
}

#[test]
fn every_call_in_the_pages_is_run_or_says_why_not() {
    let place = folder();
    let address = free();
    let mut service = Command::new("node");
    service.arg(SERVICE).env("PORT", address.port().to_string()).stdout(Stdio::null());
    let _service = Running::start(&mut service, address);
    let calls = documented();
    assert!(calls.len() > 60, "{} calls are few: how are they found?", calls.len());
    let wrong: Vec<String> =
        calls.iter().filter_map(|call| carry(&place, &address.to_string(), call)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), calls.len(), wrong.join("\n"));
    let rows = CALLS
        .iter()
        .filter(|(begin, _)| !calls.iter().any(|call| format!("{}$", call.join(" ")).starts_with(begin)));
    let needless: Vec<&str> = rows.map(|(begin, _)| *begin).collect();
    assert!(needless.is_empty(), "no page has such calls: {needless:?}");
}
