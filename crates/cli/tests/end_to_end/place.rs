//! A folder for a test, with experiments on `service.js`, the output of a program in it, and a check for
//! remaining processes.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::{RealEnvironment, Stop};
use plan::Plan;
use record::Record;
use serde_json::Value;
use services::Warden;

/// The service whose behaviour `MODE` selects.
pub const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/service.js");
/// A record that is stored in the repository.
pub const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");

/// Exit code and output of a program.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl fmt::Display for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}\n{}{}", self.code, self.out, self.err)
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        Said {
            code: output.status.code(),
            out,
            err,
        }
    }
}

impl Said {
    pub fn ends(&self, code: i32) -> &Said {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Asserts that each of these texts is on stdout, ignoring line breaks.
    pub fn prints(&self, parts: &[&str]) -> &Said {
        has(&self.out, parts, self);
        self
    }

    /// Asserts the same of stderr.
    pub fn tells(&self, parts: &[&str]) -> &Said {
        has(&self.err, parts, self);
        self
    }

    /// Asserts the same of either. For the cluster's tests.
    #[allow(dead_code)]
    pub fn says(&self, parts: &[&str]) -> &Said {
        has(&self.all(), parts, self);
        self
    }

    /// Stdout and stderr.
    #[allow(dead_code)]
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

fn has(text: &str, parts: &[&str], said: &Said) {
    let words = words(text);
    parts.iter().for_each(|part| {
        assert!(
            text.contains(part) || words.contains(part),
            "{part}: {said}"
        )
    });
}

/// Joins the text in one line.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub trait Run {
    /// Runs it to its end.
    fn said(&mut self) -> Said;
    /// Starts it with captured output.
    fn begun(&mut self) -> Child;
}

impl Run for Command {
    fn said(&mut self) -> Said {
        self.output().expect("it starts").into()
    }

    fn begun(&mut self) -> Child {
        self.stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    }
}

pub fn ended(child: Child) -> Said {
    child.wait_with_output().expect("it ends").into()
}

/// Additions to the default experiment on `service.js`: lines of its sections. A given key replaces the
/// default.
#[derive(Default)]
pub struct Draft<'a> {
    /// Lines of `[services.api]`.
    pub service: &'a str,
    /// Additional sections, before the load.
    pub more: &'a str,
    /// Lines of `[load]`.
    pub load: &'a str,
    /// Lines of `[design]`.
    pub design: &'a str,
}

/// These lines, and the defaults of other keys.
fn with_defaults(lines: &str, defaults: &str) -> String {
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let given: Vec<String> = lines.lines().map(key).collect();
    let rest = defaults.lines().filter(|line| !given.contains(&key(line)));
    rest.chain(lines.lines()).collect::<Vec<_>>().join("\n")
}

impl Draft<'_> {
    pub fn text(&self) -> String {
        let service = format!(
            "command = [\"node\", \"{SERVICE}\"]\nready = \"/healthz\"\nready_timeout = \"20s\"\n\
             stop_timeout = \"1s\"\nenv = {{ PORT = \"{{port}}\", HOST = \"{{address}}\" }}"
        );
        // A running service has no keys about its start.
        let is_started = !self.service.starts_with("url = ");
        // Tests run concurrently, so the machine is always disturbed, and disturbed blocks are not dropped.
        let design = "drop_disturbed = false\nbudget = \"60s\"\nwarmup = \"200ms\"\nslice = \"200ms\"\nslices = 1\nblocks = 6";
        format!(
            "name = \"test\"\n[services.api]\n{}\n{}\n[load]\n{}\n[design]\n{}\n",
            with_defaults(self.service, if is_started { &service } else { "" }),
            self.more,
            with_defaults(self.load, "connections = 4\ntimeout = \"1s\""),
            with_defaults(self.design, design)
        )
    }
}

pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place {
            folder: tempfile::tempdir().expect("a folder for the test"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        fs::write(&path, text).expect("it is written");
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A short and cheap experiment by default.
    pub fn experiment(&self, draft: &Draft<'_>) -> PathBuf {
        self.write("experiment.toml", draft.text())
    }

    /// Two variants whose levels set these variables, with additions to the design.
    pub fn two(&self, baseline: &str, candidate: &str, design: &str) -> PathBuf {
        let more = format!(
            "[factors.setting]\nbaseline = {{ {baseline} }}\ncandidate = {{ {candidate} }}"
        );
        self.experiment(&Draft {
            more: &more,
            design,
            ..Draft::default()
        })
    }

    /// A folder with a `docker` that only has these `case` arms for its first argument.
    pub fn engine(&self, arms: &str) -> String {
        let docker = self.write(
            "engine/docker",
            format!("#!/bin/sh\ncase \"$1\" in {arms} esac\n"),
        );
        fs::set_permissions(&docker, fs::Permissions::from_mode(0o755)).expect("it may be run");
        self.path("engine").display().to_string()
    }

    pub fn record(&self) -> PathBuf {
        self.path("record")
    }

    /// The environment for a plan, without a run.
    pub fn environment(&self, plan: Plan) -> RealEnvironment {
        fs::create_dir_all(self.record().join("logs")).expect("a folder for logs");
        let warden = Warden::new(vec![
            env!("CARGO_BIN_EXE_proofload").into(),
            "__warden".into(),
        ]);
        RealEnvironment::new(
            plan,
            warden,
            &["remote-agent"],
            self.record(),
            Stop::default(),
        )
    }

    pub fn opened(&self) -> Record {
        record::open(&self.record()).expect("the record opens")
    }

    /// Value of `PROOFLOAD_TEST_PLACE` in every process of this place, to identify leftovers.
    pub fn mark(&self) -> &Path {
        self.folder.path()
    }

    /// `proofload` with these words, in this folder.
    pub fn proofload(&self, words: &[&str]) -> Command {
        let mut command = proofload();
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("PROOFLOAD_TEST_PLACE", self.mark());
        command
    }

    /// Its output.
    pub fn said(&self, words: &[&str]) -> Said {
        self.proofload(words).said()
    }

    /// `proofload run` of an experiment in this place.
    pub fn command(&self, experiment: &Path) -> Command {
        let mut command = proofload();
        command
            .arg("run")
            .arg(experiment)
            .args(["-v", "--seed", "1", "--out"])
            .arg(self.record());
        command.env("PROOFLOAD_TEST_PLACE", self.mark());
        command
    }

    pub fn run(&self, experiment: &Path) -> Said {
        self.command(experiment).said()
    }

    /// Repeats the run until it ends with 0 and prints this, at most three times. `None` if the host took so
    /// much of the time that a void or undecided run is the right result. A bug also shows on a quiet
    /// machine.
    pub fn run_well(&self, experiment: &Path, part: &str) -> Option<Said> {
        self.run_well_as(|| self.command(experiment), 0, part)
    }

    /// The same with another command and exit code.
    pub fn run_well_as(
        &self,
        command: impl Fn() -> Command,
        code: i32,
        part: &str,
    ) -> Option<Said> {
        for attempt in 1.. {
            let said = command().said();
            if attempt == 3 || said.code == Some(code) && said.out.contains(part) {
                said.ends(code).prints(&[part]);
                self.is_quiet();
                return Some(said);
            }
            let stolen = self.steal();
            if stolen > 0.1 {
                skip(&format!(
                    "the host took {:.0} % of the CPU time",
                    stolen * 100.0
                ));
                return None;
            }
            eprintln!("again, after\n{said}");
            fs::remove_dir_all(self.record()).expect("the record goes");
        }
        None
    }

    /// Mean share of CPU steal while the record's slices were measured.
    fn steal(&self) -> f64 {
        let Ok(record) = record::open(&self.record()) else {
            return 0.0;
        };
        let shares: Vec<f64> = record
            .trials()
            .flat_map(|trial| &trial.slices)
            .map(|slice| slice.machine.steal_share)
            .collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }

    /// `proofload report` of the record by its absolute path.
    pub fn report(&self, form: &str) -> Said {
        proofload()
            .arg("report")
            .arg(self.record())
            .args(["--format", form])
            .said()
    }

    /// Whether the run's events contain this text by now.
    pub fn has_event(&self, part: &str) -> bool {
        self.read("record/events.jsonl").contains(part)
    }

    /// Processes with this place's mark: process ID and argv.
    pub fn left_running(&self) -> Vec<String> {
        let mark = format!("PROOFLOAD_TEST_PLACE={}\0", self.folder.path().display());
        let processes = fs::read_dir("/proc").expect("/proc is there").flatten();
        let marked = processes.filter(|process| {
            fs::read(process.path().join("environ")).is_ok_and(|environ| {
                environ
                    .windows(mark.len())
                    .any(|window| window == mark.as_bytes())
            })
        });
        let described = marked.map(|process| {
            let argv = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let argv = String::from_utf8_lossy(&argv).replace('\0', " ");
            format!("{}: {argv}", process.file_name().display())
        });
        described.collect()
    }

    /// Asserts that none of them is left.
    pub fn is_quiet(&self) {
        assert_eq!(self.left_running(), Vec::<String>::new());
    }

    /// Output of all services of the run, one text for each log.
    pub fn logs(&self) -> std::collections::BTreeMap<String, String> {
        let logs = fs::read_dir(self.record().join("logs"))
            .expect("the record has logs")
            .flatten();
        let name = |log: &fs::DirEntry| log.file_name().to_string_lossy().into_owned();
        let read = |log: fs::DirEntry| {
            let text = fs::read(log.path()).expect("a log is readable");
            (name(&log), String::from_utf8_lossy(&text).into_owned())
        };
        logs.map(read).collect()
    }
}

/// Compares our count of requests with the service's own, trial by trial. Returns the number of trials.
pub fn accounted_for(record: &Record) -> usize {
    let mut trials = 0;
    for block in record.complete_blocks() {
        for trial in &block.trials {
            let name = &record.header.plan.variants[trial.variant()].name;
            let log = format!("logs/block-{:02}-{name}-api.log", block.number);
            let log = fs::read_to_string(record.directory.join(log)).expect("its log");
            let sent: u64 = trial.slices.iter().map(|slice| slice.counts.sent).sum();
            let counted = log
                .lines()
                .find_map(|line| line.strip_prefix("requests ")?.parse::<u64>().ok());
            // Before the load there are at most two readiness probes, and one request that accepts gzip.
            let looks = counted.and_then(|counted| counted.checked_sub(sent));
            assert!(
                sent > 0 && looks.is_some_and(|looks| looks <= 3),
                "we sent {sent}, it said: {log}"
            );
            if trial
                .started
                .witnesses
                .iter()
                .any(|witness| witness.repeats)
            {
                assert!(looks >= Some(2), "{log}");
            }
            trials += 1;
        }
    }
    trials
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "waited 20 s until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub fn proofload() -> Command {
    Command::new(env!("CARGO_BIN_EXE_proofload"))
}

/// Reports that a test has tested nothing. Not by a macro: the test runner would capture the output of a
/// passing test.
pub fn skip(why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED: {why}");
}

/// Whether a link can be created for a trial. Prints a message if not.
pub fn has_links() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("a link is made for each trial: networks take root");
    }
    is_root
}

/// Names and contents of all files below a folder.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![(path.clone(), fs::read(path).expect("a file"))],
    };
    entries.flat_map(below).collect()
}

/// An address without a listener.
pub fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|port| port.local_addr())
        .expect("a free port")
}

/// A service started by the test: it listens at its address, and ends with the test.
pub struct Running {
    pub child: Child,
}

impl Running {
    pub fn start(command: &mut Command, address: SocketAddr) -> Running {
        let running = Running {
            child: command.stdout(Stdio::null()).spawn().expect("it starts"),
        };
        wait_until("it listens", || TcpStream::connect(address).is_ok());
        running
    }
}

/// `service.js` with these variables, at its own address.
pub fn service(env: &[(&str, &str)]) -> (Running, SocketAddr) {
    node(SERVICE, env)
}

/// The same with another script of Node.js.
pub fn node(script: impl AsRef<OsStr>, env: &[(&str, &str)]) -> (Running, SocketAddr) {
    let address = free();
    let mut node = Command::new("node");
    node.arg(script)
        .env("PORT", address.port().to_string())
        .envs(env.iter().copied());
    (Running::start(&mut node, address), address)
}

/// The body of the response to a GET.
pub fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it responds");
    text.split_once("\r\n\r\n")
        .expect("it has a head")
        .1
        .to_owned()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.expect("kill starts").success());
}
