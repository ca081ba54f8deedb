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

    /// The same until it ends with 0 and says this, three times at most. `None` where the host had the machine for so much of the time that
    /// a void or undecided run is the right answer; a fault of ours is there on a quiet one, too.
    pub fn run_well(&self, experiment: &Path, said: &str) -> Option<Output> {
        self.run_well_as(|| self.command(experiment), said)
    }

    /// The same with a command of one's own.
    pub fn run_well_as(&self, command: impl Fn() -> Command, said: &str) -> Option<Output> {
        for attempt in 1.. {
            let output = command().output().expect("proofload starts");
            if attempt == 3 || output.status.success() && stdout(&output).contains(said) {
                return Some(output);
            }
            let stolen = self.steal();
            if stolen > 0.1 {
                eprintln!("nothing was tested: the host took {:.0} % of the CPU time", stolen * 100.0);
                return None;
            }
            eprintln!("again, after\n{}{}", stdout(&output), stderr(&output));
            fs::remove_dir_all(self.record()).expect("the record goes");
        }
        None
    }

    /// Share of the CPU time that the host gave to others while the record's slices were measured, in the mean.
    fn steal(&self) -> f64 {
        let Ok(record) = record::open(&self.record()) else { return 0.0 };
        let trials = record.blocks.iter().flat_map(|block| &block.trials);
        let shares: Vec<f64> =
            trials.flat_map(|trial| &trial.slices).map(|slice| slice.machine.steal_share).collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
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
