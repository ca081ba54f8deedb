//! What is seen while a run goes on: the live view and its keys on a real terminal, plain lines elsewhere, events for other programs.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{Place, proofload, stderr, stdout};

/// `proofload run` on a terminal of its own, which `script` makes.
struct Terminal {
    place: Place,
    script: Child,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Starts a long run, and waits until a slice of it is in the record. `None` where there is no `script`.
    fn begin() -> Option<Terminal> {
        let place = Place::new();
        let experiment = place.experiment("", "api.env.X = 1", "");
        let text =
            fs::read_to_string(&experiment).expect("the file").replace("slices = 1\n", "slices = 20\n");
        fs::write(&experiment, text).expect("the file");
        let (run, at) =
            (env!("CARGO_BIN_EXE_proofload"), |name: &str| place.path(name).display().to_string());
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
        script.args(["-q", "-e", "-c", &command, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
        script
            .env("PROOFLOAD_TEST_PLACE", place.path("x").parent().expect("a folder"))
            .env_remove("NO_COLOR");
        let started = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut script) = started else {
            eprintln!("SKIPPED: there is no script, which makes a terminal");
            return None;
        };
        let screen = Arc::new(Mutex::new(String::new()));
        let (seen, mut out) = (Arc::clone(&screen), script.stdout.take().expect("its output"));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Some(count) = out.read(&mut bytes).ok().filter(|count| *count > 0) {
                seen.lock().expect("nobody panicked").push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        let terminal = Terminal { place, script, screen };
        terminal
            .wait_until("a slice is in the record", || terminal.events().contains(r#""kind":"measured""#));
        Some(terminal)
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.script.stdin.as_mut().expect("its input");
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).expect("it reads");
        // What comes at once is read at once, and taken for pasted.
        thread::sleep(Duration::from_millis(300));
    }

    fn screen(&self) -> String {
        self.screen.lock().expect("nobody panicked").clone()
    }

    fn events(&self) -> String {
        fs::read_to_string(self.place.record().join("events.jsonl")).unwrap_or_default()
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.place.path(name)).unwrap_or_default()
    }

    fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !done() {
            assert!(
                Instant::now() < deadline,
                "waited 20 s until {what}; on the screen: {:?}",
                self.screen()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether the modes are as they were found, the cursor is seen, and nothing runs any more.
    fn is_left_well(&self) {
        self.wait_until("the shell is back", || !self.file("after").is_empty());
        assert_eq!(self.file("before"), self.file("after"), "the terminal's modes");
        let screen = self.screen();
        assert!(screen.rfind("\x1b[?25h") > screen.rfind("\x1b[?25l"), "the cursor is hidden: {screen:?}");
        self.wait_until("nothing is left", || self.place.left_running().is_empty());
    }

    fn proofload(&self) -> String {
        let ours = format!("{} run ", env!("CARGO_BIN_EXE_proofload"));
        let running = self.place.left_running();
        let found =
            running.iter().find_map(|line| line.split_once(": ").filter(|(_, argv)| argv.starts_with(&ours)));
        found.map(|(pid, _)| pid.to_owned()).unwrap_or_else(|| panic!("{running:?}"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Its end hangs the terminal up, and so ends whatever a failed test has left.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn on_a_terminal_a_run_pauses_goes_on_and_stops_by_keys() {
    let Some(mut terminal) = Terminal::begin() else { return };
    terminal.wait_until("the view is there", || terminal.screen().contains("stop with what there is"));
    terminal.press("p");
    terminal.wait_until("it waits", || terminal.screen().contains("nothing is measured"));
    let before = terminal.events();
    thread::sleep(Duration::from_millis(600));
    assert_eq!(terminal.events(), before, "something happened in the pause");
    // Neither what is pasted nor a cursor key is taken for a key.
    terminal.press("make quick\n");
    terminal.press("\x1b[C");
    terminal.press("p");
    terminal.wait_until("it went on", || terminal.events().contains(r#"{"paused":{"block":1,"#));
    terminal.press("l");
    terminal.wait_until("logs are shown", || terminal.screen().contains("last words"));
    terminal.press("q");
    terminal.wait_until("it ended", || terminal.file("code").ends_with('\n'));
    assert_eq!(terminal.file("code"), "130\n", "{:?}", terminal.screen());
    terminal.is_left_well();
    let (report, screen) = (terminal.file("report"), terminal.screen());
    assert!(report.contains("interrupted after") && report.contains("pauses  once, "), "{report}");
    assert!(screen.contains("stopping: the services are ended"), "{screen:?}");
    let record = record::open(&terminal.place.record()).expect("the record opens");
    assert_eq!((record.pauses_s.len(), record.damage), (1, Vec::<String>::new()));
}

#[test]
fn who_does_not_wait_gets_the_terminal_back_as_it_was() {
    let Some(mut terminal) = Terminal::begin() else { return };
    terminal.wait_until("the view is there", || terminal.screen().contains("stop with what there is"));
    let pid = terminal.proofload();
    for _ in 0..2 {
        let status = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(status.expect("kill starts").success());
        thread::sleep(Duration::from_millis(5));
    }
    terminal.is_left_well();
    assert_eq!(terminal.file("code"), "130\n");
    record::open(&terminal.place.record()).expect("the record opens");
    terminal.press("");
}

#[test]
fn events_come_line_by_line_with_the_report_last_and_talk_in_plain_lines_beside() {
    let place = Place::new();
    let experiment = place.experiment("", "api.env.X = 1", "");
    let output = place.command(&experiment).arg("--json").output().expect("proofload starts");
    let (out, talk) = (stdout(&output), stderr(&output));
    assert!(matches!(output.status.code(), Some(0 | 4)), "{out}{talk}");
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!((&lines[0]["events_version"], &lines[0]["event"]), (&1.into(), &"started".into()));
    assert_eq!(lines[0]["variants"], serde_json::json!(["baseline", "candidate"]));
    let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    let record = record::open(&place.record()).expect("the record opens");
    let slices = record.blocks.iter().flat_map(|block| &block.trials).map(|trial| trial.slices.len()).sum();
    assert_eq!((count("slice"), count("block_started"), count("ended")), (slices, record.blocks.len(), 1));
    assert_eq!((count("block_ended"), count("estimate")), (6, 6));
    let again =
        proofload().arg("report").arg(place.record()).arg("--json").output().expect("proofload starts");
    let again: Value = serde_json::from_str(&stdout(&again)).expect("it is JSON");
    let last = lines.last().expect("there are lines");
    assert!(last["event"] == "report" && last["report"] == again, "{last}");
    for block in 1..=6 {
        assert_eq!(
            talk.lines()
                .filter(|line| line.starts_with(&format!("block {block} of at most"))
                    || line.starts_with(&format!("block {block} ·")))
                .count(),
            1,
            "{talk}"
        );
    }
    assert!(!talk.contains('\x1b'), "{talk}");
}

#[test]
fn a_reader_of_events_that_goes_away_stops_nothing() {
    let place = Place::new();
    let failing = "api.env.MODE = \"500\"";
    let experiment = place.experiment(failing, &format!("{failing}, api.env.X = 1"), "");
    let [head, talk]: [PathBuf; 2] = ["head", "talk"].map(|name| place.path(name));
    let script =
        r#""$0" run "$1" --seed 1 --out "$2" --json 2> "$4" | head -n 1 > "$3"; exit ${PIPESTATUS[0]}"#;
    let status = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_proofload")])
        .args([&experiment, &place.record(), &head, &talk])
        .status()
        .expect("bash starts");
    let talk = fs::read_to_string(talk).expect("what it said");
    // Void, as it is without such a reader.
    assert_eq!(status.code(), Some(4), "{talk}");
    assert!(
        fs::read_to_string(head).expect("a line").starts_with(r#"{"events_version":1,"event":"started""#)
    );
    assert!(place.record().join("report.json").exists() && !talk.contains("panicked"), "{talk}");
}
