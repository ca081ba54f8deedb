//! A folder of its own for a test, with experiments on `service.js`, and a look at what is left running.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// The service whose behaviour `MODE` chooses.
pub const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/service.js");

pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An experiment of two variants whose levels set these variables; short and cheap.
    pub fn experiment(&self, baseline: &str, candidate: &str, more: &str) -> PathBuf {
        let text = format!(
            r#"name = "test"
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
ready_timeout = "20s"
stop_timeout = "1s"
env = {{ PORT = "{{port}}" }}
[factors.setting]
baseline = {{ {baseline} }}
candidate = {{ {candidate} }}
[load]
connections = 4
timeout = "1s"
[design]
# Tests run beside one another, so that the machine is never one's own.
drop_disturbed = false
budget = "60s"
warmup = "200ms"
slice = "200ms"
slices = 1
blocks = 6
{more}
"#
        );
        let path = self.path("experiment.toml");
        fs::write(&path, text).expect("the experiment is written");
        path
    }

    pub fn record(&self) -> PathBuf {
        self.path("record")
    }

    /// `proofload run` of an experiment in this place.
    pub fn run(&self, experiment: &Path) -> Output {
        self.command(experiment).output().expect("proofload starts")
    }

    /// The same until it ends with 0, three times at most. On a machine whose host is busy elsewhere half of the time a run may rightly be void,
    /// or a service not be ready; a fault of ours is there each time.
    pub fn run_well(&self, experiment: &Path) -> Output {
        for _ in 0..2 {
            let output = self.run(experiment);
            if output.status.success() {
                return output;
            }
            eprintln!("again, after\n{}{}", stdout(&output), stderr(&output));
            let _ = fs::remove_dir_all(self.record());
        }
        self.run(experiment)
    }

    pub fn command(&self, experiment: &Path) -> Command {
        let mut command = proofload();
        command.arg("run").arg(experiment).arg("--seed").arg("1").arg("--out").arg(self.record());
        // A mark that every process of this run inherits, so that leftovers can be told from others.
        command.env("PROOFLOAD_TEST_PLACE", self.folder.path());
        command
    }

    /// Processes that carry this place's mark: argv and process id.
    pub fn left_running(&self) -> Vec<String> {
        let mark = format!("PROOFLOAD_TEST_PLACE={}\0", self.folder.path().display());
        let processes = fs::read_dir("/proc").expect("/proc is there").flatten();
        let marked = processes.filter(|process| {
            fs::read(process.path().join("environ"))
                .is_ok_and(|environ| environ.windows(mark.len()).any(|window| window == mark.as_bytes()))
        });
        let described = marked.map(|process| {
            let argv = fs::read(process.path().join("cmdline")).unwrap_or_default();
            format!(
                "{}: {}",
                process.file_name().display(),
                String::from_utf8_lossy(&argv).replace('\0', " ")
            )
        });
        described.collect()
    }

    /// What all services of the run said, one text a log.
    pub fn logs(&self) -> Vec<(String, String)> {
        let logs = fs::read_dir(self.record().join("logs")).expect("the record has logs").flatten();
        let read = |log: fs::DirEntry| {
            let text =
                String::from_utf8_lossy(&fs::read(log.path()).expect("a log is readable")).into_owned();
            (log.file_name().to_string_lossy().into_owned(), text)
        };
        logs.map(read).collect()
    }
}

pub fn proofload() -> Command {
    Command::new(env!("CARGO_BIN_EXE_proofload"))
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sends a signal, by the process id.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(name).arg(child.id().to_string()).status();
    assert!(status.expect("kill starts").success());
}
