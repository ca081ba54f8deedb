//! Runs every proofload command in README and docs, in a folder with the files that they use: commands in
//! shell blocks, and complete ones within sentences. Commands that would load for minutes are shortened, and
//! `CALLS` contains why some are not run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{KEPT, Place, Run, SERVICE, proofload, service};
use crate::rewritten;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const OUTPUT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../foreign/tests/corpus/tools/wrk-4.1.0-plain.txt"
);
const PROFILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../explain/tests/data/auth.cpuprofile"
);

/// How a call is tested.
enum Way {
    /// It is run, with these words added unless it has them.
    With(&'static [&'static str]),
    /// It is not run, for this reason. Its flags are checked.
    Not(&'static str),
}
use Way::{Not, With};

const SHORT: Way = With(&["-d", "100ms"]);
/// All steps before services start, for calls that run for minutes.
const DRY: Way = With(&["--dry-run"]);
const RECIPE: Way = Not("its program may be missing: recipes.rs");
const NAME: Way = Not("the name of a command, which wants arguments");

/// Calls by their beginnings, `$` being the end. The first match counts. Other calls are run unchanged.
const CALLS: [(&str, Way); 20] = [
    ("compare$", NAME),
    ("history compare$", NAME),
    ("load$", NAME),
    ("profile$", NAME),
    ("profile diff", With(&[])),
    (
        "profile",
        Not("captures profiles for minutes, or wants a record that has some: explain.rs"),
    ),
    ("doctor calibrate", Not("loads for minutes: calibrate.rs")),
    ("tune node server.js --list", With(&[])),
    ("tune", Not("loads for minutes: tune.rs")),
    (
        "remote-agent",
        Not("speaks a protocol on stdin: crates/remote"),
    ),
    ("init", With(&["--no-start", "empty"])),
    ("compare gunicorn", RECIPE),
    ("compare uvicorn", RECIPE),
    ("compare java", RECIPE),
    ("compare --container", RECIPE),
    ("load", SHORT),
    (
        "run keep-alive.toml --events",
        Not("goes on for minutes: live.rs"),
    ),
    ("run", DRY),
    ("compare", DRY),
    ("capacity", DRY),
];

fn way(call: &str) -> &'static Way {
    let call = format!("{call}$");
    CALLS
        .iter()
        .find(|(begin, _)| call.starts_with(begin))
        .map_or(&With(&[]), |(_, way)| way)
}

/// The proofload calls in a line of shell, as words without the program and anything before it.
fn calls(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(line).unwrap_or_default();
    let commands = words.split(|word| ["|", "||", "&&", ";", "&"].contains(&word.as_str()));
    let is_redirection = |word: &&String| [">", ">>", "<"].contains(&word.as_str());
    let is_before =
        |word: &&String| word.contains('=') || ["sudo", "npx", "time"].contains(&word.as_str());
    let call = |command: &[String]| {
        let words = command
            .iter()
            .skip_while(is_before)
            .take_while(|word| !is_redirection(word));
        let mut words: Vec<String> = words.cloned().collect();
        let is_call = words.first()?.rsplit('/').next() == Some("proofload");
        is_call.then(|| words.split_off(1))
    };
    commands.filter_map(call).collect()
}

/// Whether a word is a placeholder for the reader.
fn is_blank(word: &str) -> bool {
    let is_blank = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_uppercase());
    word.contains('…') || word.split('/').any(is_blank)
}

fn pages() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(ROOT).join("docs")];
    let mut paths: Vec<PathBuf> = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "npm/README.md",
    ]
    .map(|name| Path::new(ROOT).join(name))
    .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of pages").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|it| it == "md") => paths.push(path),
                _ => {}
            }
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a page");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The lines of a page's shell blocks, and the texts in backticks outside of all blocks.
fn shell_and_codes(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut shell, mut codes) = (Vec::new(), Vec::new());
    for (place, part) in page.split("```").enumerate() {
        if place % 2 == 0 {
            codes.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
        } else if let Some(script) = part.strip_prefix("sh\n") {
            shell.extend(script.replace("\\\n", " ").lines().map(str::to_owned));
        }
    }
    (shell, codes)
}

fn documented() -> BTreeSet<Vec<String>> {
    let mut all = BTreeSet::new();
    for (_, page) in pages() {
        let (shell, codes) = shell_and_codes(&page);
        all.extend(shell.iter().flat_map(|line| calls(line)));
        all.extend(
            codes
                .iter()
                .flat_map(|code| calls(code))
                .filter(|call| !call.iter().any(|word| is_blank(word))),
        );
    }
    all.retain(|call| !call.is_empty());
    all
}

/// A folder with the files that the pages use.
fn folder() -> Place {
    let place = Place::new();
    let read = |path: &str| fs::read_to_string(path).expect("it is kept");
    for name in [
        "server.js",
        "server.mjs",
        "server.py",
        "old.js",
        "new.js",
        "old",
        "new",
        "server",
    ] {
        let path = place.write(name, read(SERVICE));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it may be run");
    }
    let experiment = "name = \"shop\"\n[services.api]\ncommand = [\"node\", \"server.js\"]\n";
    for name in [
        "proofload.toml",
        "experiment.toml",
        "shop.toml",
        "keep-alive.toml",
        "etag.toml",
    ] {
        place.write(name, experiment);
    }
    place.write("mix.toml", "[[request]]\npath = \"/\"\n");
    for name in ["access.log", "session.har"] {
        let corpus = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../foreign/tests/corpus/traffic"
        );
        let kept = if name == "session.har" {
            "chromium-156.har"
        } else {
            "nginx-1.22-combined.log"
        };
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
        let header = header
            .replace("simulated", "keep-alive")
            .replace("level-1", "keep");
        let header = serde_json::from_str(&header).expect("a header");
        rewritten::write(
            &place.path("records").join(name),
            header,
            rewritten::events(Path::new(KEPT)),
        );
    }
    fs::create_dir(place.path("empty")).expect("a folder");
    let git = "git init -q -b main && git add . && git -c user.name=a -c user.email=a@b commit -qm a \
               && git tag v2.3.0 && git update-ref refs/remotes/origin/main main";
    let made = Command::new("sh")
        .args(["-c", git])
        .current_dir(place.mark())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    place
}

/// Runs a call. Returns the problem, if there is one.
fn carry(place: &Place, address: &str, call: &[String]) -> Option<String> {
    let line = call.join(" ");
    let mut words: Vec<String> = Vec::new();
    for word in call {
        match word.as_str() {
            "*.txt" => words.extend(["before.txt".to_owned(), "after.txt".to_owned()]),
            word => words.push(
                word.replace("127.0.0.1:3000", address)
                    .replace("127.0.0.1:4000", address),
            ),
        }
    }
    let end = words
        .iter()
        .position(|word| word == "--")
        .unwrap_or(words.len());
    let added: &[&str] = match way(&line) {
        With(added) => added,
        Not(why) => {
            eprintln!("not run: proofload {line}: {why}");
            &["--help"]
        }
    };
    if !added
        .first()
        .is_some_and(|flag| words.iter().any(|word| word == flag))
    {
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
    // The audit of other tools' output may be invalid, and a single measurement permits no conclusion.
    let well = said.code == Some(0) || said.code == Some(4) && words[0] == "report";
    (!well).then(|| format!("proofload {}\n{said}", words.join(" ")))
}

#[test]
fn every_call_in_the_pages_is_run_or_says_why_not() {
    let place = folder();
    let (_service, address) = service(&[]);
    let calls = documented();
    assert!(
        calls.len() > 60,
        "{} calls are few: how are they found?",
        calls.len()
    );
    let wrong: Vec<String> = calls
        .iter()
        .filter_map(|call| carry(&place, &address.to_string(), call))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        calls.len(),
        wrong.join("\n")
    );
    let rows = CALLS.iter().filter(|(begin, _)| {
        !calls
            .iter()
            .any(|call| format!("{}$", call.join(" ")).starts_with(begin))
    });
    let needless: Vec<&str> = rows.map(|(begin, _)| *begin).collect();
    assert!(needless.is_empty(), "no page has such calls: {needless:?}");
}

/// Flags of a call within a sentence that do not exist in its command's help. Words in capitals are
/// placeholders.
fn unknown(call: &[String]) -> Option<String> {
    let help = |words: &[&str]| proofload().args(words).arg("--help").said();
    let words: Vec<&str> = call
        .iter()
        .map(String::as_str)
        .take_while(|word| *word != "--")
        .collect();
    // A second word may be a subcommand, but not in capitals.
    let deep = words.len() > 1 && words[1].bytes().all(|it| it.is_ascii_lowercase());
    let of_two = deep
        .then(|| help(&words[..2]))
        .filter(|said| said.code == Some(0));
    let first = words
        .iter()
        .take(1)
        .filter(|word| !word.starts_with('-'))
        .copied();
    let said = of_two.unwrap_or_else(|| help(&first.collect::<Vec<_>>()));
    let flags = words
        .iter()
        .filter(|word| word.starts_with("--"))
        .map(|word| word.split('=').next().unwrap_or(word));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let known: BTreeSet<&str> = said.out.split(|c| !is_part(c)).collect();
    let unknown: Vec<&str> = flags.filter(|flag| !known.contains(flag)).collect();
    (said.code != Some(0) || !unknown.is_empty())
        .then(|| format!("proofload {}: {unknown:?}", call.join(" ")))
}

#[test]
fn each_call_in_a_sentence_has_names_of_commands_and_flags_that_there_are() {
    let codes = pages()
        .into_iter()
        .flat_map(|(_, page)| shell_and_codes(&page).1);
    let calls: BTreeSet<Vec<String>> = codes
        .flat_map(|code| calls(&code))
        .filter(|call| call.first().is_some_and(|it| !is_blank(it)))
        .collect();
    assert!(
        calls.len() > 40,
        "{} calls are few: how are they found?",
        calls.len()
    );
    let wrong: Vec<String> = calls.iter().filter_map(|call| unknown(call)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_target_of_make_and_each_script_in_the_pages_is_there() {
    let root = Path::new(ROOT);
    let makefile = fs::read_to_string(root.join("Makefile")).expect("it is there");
    let is_target = |word: &str| {
        let of_pattern = word
            .split_once('-')
            .map(|(begin, _)| format!("\n{begin}-%:"));
        makefile.contains(&format!("\n{word}:"))
            || of_pattern.is_some_and(|line| makefile.contains(&line))
    };
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, page) in pages() {
        let (shell, codes) = shell_and_codes(&page);
        for line in shell.iter().chain(&codes) {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line
                .split_whitespace()
                .skip_while(|word| word.contains('=') || *word == "sudo");
            let known = match words.next() {
                Some("make") => words.all(is_target),
                Some("python3") => {
                    words.all(|word| !word.starts_with("bench/") || root.join(word).exists())
                }
                Some(script)
                    if ["scripts/", "bench/"]
                        .iter()
                        .any(|it| script.starts_with(it)) =>
                {
                    root.join(script).exists()
                }
                _ => continue,
            };
            seen += 1;
            wrong.extend((!known).then(|| format!("{}: `{line}`", path.display())));
        }
    }
    assert!(seen > 30, "{seen} are few: how are they found?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
