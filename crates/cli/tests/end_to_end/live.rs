//! Output of a run in progress: the live view and its keys on a real terminal, plain lines elsewhere, events
//! for other programs.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::place::{Place, Run, signal, skip, wait_until};

/// `proofload run` on a separate terminal, which `script` creates.
struct Terminal {
    place: Place,
    script: Child,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Starts a long run, and waits until the record has a slice. `None` without `script`.
    fn begin() -> Option<Terminal> {
        let place = Place::new();
        let experiment = place.two("", "api.env.X = 1", "slices = 20");
        let (run, at) = (env!("CARGO_BIN_EXE_proofload"), |name: &str| {
            place.path(name).display().to_string()
        });
        let command = format!(
            "stty rows 30 cols 90; stty -g > {before}; {run} run {file} --seed 1 --out {record} > {report}; echo $? > {code}; stty -g > {after}",
            before = at("before"),
            file = experiment.display(),
            record = place.record().display(),
            report = at("report"),
            code = at("code"),
            after = at("after"),
        );
        let mut script = Command::new("script");
        script
            .args(["-q", "-e", "-c", &command, "/dev/null"])
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh");
        script
            .env("PROOFLOAD_TEST_PLACE", place.mark())
            .env_remove("NO_COLOR");
        let started = script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut script) = started else {
            skip("there is no script, which makes a terminal");
            return None;
        };
        let screen = Arc::new(Mutex::new(String::new()));
        let (seen, mut out) = (
            Arc::clone(&screen),
            script.stdout.take().expect("its output"),
        );
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Some(count) = out.read(&mut bytes).ok().filter(|count| *count > 0) {
                seen.lock()
                    .expect("nobody panicked")
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        let terminal = Terminal {
            place,
            script,
            screen,
        };
        wait_until("a slice is in the record", || {
            terminal.place.has_event(r#""kind":"measured""#)
        });
        Some(terminal)
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.script.stdin.as_mut().expect("its input");
        stdin
            .write_all(keys.as_bytes())
            .and_then(|()| stdin.flush())
            .expect("it reads");
        // Keys sent at once would be read at once, and taken for pasted text.
        thread::sleep(Duration::from_millis(300));
    }

    fn screen(&self) -> String {
        self.screen.lock().expect("nobody panicked").clone()
    }

    /// Waits until this text was on the screen.
    fn shows(&self, part: &str) {
        wait_until(part, || self.screen().contains(part));
    }

    /// Whether the modes are restored, the cursor is visible, and nothing is left running.
    fn is_left_well(&self) {
        wait_until("the shell is back", || !self.place.read("after").is_empty());
        assert_eq!(
            self.place.read("before"),
            self.place.read("after"),
            "the terminal's modes"
        );
        let screen = self.screen();
        assert!(
            screen.rfind("\x1b[?25h") > screen.rfind("\x1b[?25l"),
            "the cursor is hidden: {screen:?}"
        );
        wait_until("nothing is left", || self.place.left_running().is_empty());
    }

    fn proofload(&self) -> u32 {
        let ours = format!("{} run ", env!("CARGO_BIN_EXE_proofload"));
        let running = self.place.left_running();
        let found = running.iter().find_map(|line| {
            line.split_once(": ")
                .filter(|(_, argv)| argv.starts_with(&ours))
        });
        found
            .and_then(|(pid, _)| pid.parse().ok())
            .unwrap_or_else(|| panic!("{running:?}"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Its end closes the terminal, and so ends everything that a failed test has left.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn a_block_in_which_the_run_was_stopped_counts_for_nothing() {
    let place = Place::new();
    let experiment = place.two(
        r#"api.env.UNREAD = "1""#,
        r#"api.env.UNREAD = "2""#,
        r#"slice = "2s""#,
    );
    let run = place.command(&experiment).begun();
    let warmed = || {
        place
            .read("record/events.jsonl")
            .matches(r#""kind":"warm_up""#)
            .count()
            == 2
    };
    wait_until("both are warm", warmed);
    // Within the slices of the first block, which take four seconds. One of them may be between two turns.
    for wait_ms in [700, 230, 370] {
        thread::sleep(Duration::from_millis(wait_ms));
        signal(run.id(), "-STOP");
        thread::sleep(Duration::from_secs(2));
        signal(run.id(), "-CONT");
    }
    wait_until("it is dropped", || place.has_event("block_dropped"));
    signal(run.id(), "-INT");
    crate::place::ended(run);
    let record = place.opened();
    let first = record
        .blocks
        .iter()
        .find(|block| block.number == 1)
        .expect("there is a first block");
    let why = first.dropped.clone().expect("it was dropped");
    let seconds: f64 = why
        .trim_start_matches("the load stood still for ")
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!((2.0..9.0).contains(&seconds), "{why}");
}

#[test]
fn on_a_terminal_a_run_stops_by_keys() {
    let Some(mut terminal) = Terminal::begin() else {
        return;
    };
    terminal.shows("stop with what there is");
    // Neither pasted text nor a cursor key is a key.
    terminal.press("make quick\n");
    terminal.press("\x1b[C");
    terminal.press("l");
    terminal.shows("last words");
    terminal.press("q");
    wait_until("it ended", || terminal.place.read("code").ends_with('\n'));
    assert_eq!(
        terminal.place.read("code"),
        "130\n",
        "{:?}",
        terminal.screen()
    );
    terminal.is_left_well();
    let (report, screen) = (terminal.place.read("report"), terminal.screen());
    assert!(
        report.contains("0 blocks in ") && report.contains(", interrupted · "),
        "{report}"
    );
    assert!(
        screen.contains("stopping: the services are ended"),
        "{screen:?}"
    );
    assert_eq!(terminal.place.opened().damage, Vec::<String>::new());
}

#[test]
fn who_does_not_wait_gets_the_terminal_back_as_it_was() {
    let Some(mut terminal) = Terminal::begin() else {
        return;
    };
    terminal.shows("stop with what there is");
    let pid = terminal.proofload();
    for impatient in ["-INT", "-TERM"] {
        signal(pid, impatient);
        thread::sleep(Duration::from_millis(5));
    }
    terminal.is_left_well();
    assert_eq!(terminal.place.read("code"), "130\n");
    terminal.place.opened();
    terminal.press("");
}

#[test]
fn events_come_line_by_line_with_the_report_last_and_talk_in_plain_lines_beside() {
    let place = Place::new();
    let said = place
        .command(&place.two("", "api.env.X = 1", ""))
        .arg("--events")
        .said();
    assert!(matches!(said.code, Some(0 | 4)), "{said}");
    let lines: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    assert_eq!(
        lines[0]["started"]["variants"],
        serde_json::json!(["baseline", "candidate"])
    );
    let count = |event: &str| {
        lines
            .iter()
            .filter(|line| line.get(event).is_some())
            .count()
    };
    let record = place.opened();
    let slices = record.trials().map(|trial| trial.slices.len()).sum();
    assert_eq!(
        (count("slice"), count("block_started"), count("ended")),
        (slices, record.blocks.len(), 1)
    );
    // The budget may end within a block, and a disturbed block is dropped.
    let ended = record
        .blocks
        .iter()
        .filter(|block| block.seconds.is_some())
        .count();
    let counted = record.complete_blocks().count();
    assert_eq!((count("block_ended"), count("concluded")), (ended, counted));
    let again = place.report("json").json();
    let last = lines.last().expect("there are lines");
    assert!(last["report"] == again, "{last}");
    for block in record.complete_blocks().map(|block| block.number) {
        let of_it = [format!("block {block} of "), format!("block {block} ·")];
        let lines = said
            .err
            .lines()
            .filter(|line| of_it.iter().any(|begin| line.starts_with(begin)));
        assert_eq!(lines.count(), 1, "{said}");
    }
    assert!(!said.err.contains('\x1b'), "{said}");
}

#[test]
fn a_reader_of_events_that_goes_away_stops_nothing() {
    let place = Place::new();
    let failing = "api.env.MODE = \"500\"";
    let experiment = place.two(failing, &format!("{failing}, api.env.X = 1"), "");
    let script = r#""$0" run "$1" --seed 1 --out "$2" --events | head -n 1; exit ${PIPESTATUS[0]}"#;
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_proofload")])
        .args([&experiment, &place.record()]);
    // Void, as it is without such a reader.
    let said = bash.said();
    said.ends(4).prints(&[r#""started":{"format":1"#]);
    assert!(
        place.record().join("report.json").exists() && !said.err.contains("panicked"),
        "{said}"
    );
}
