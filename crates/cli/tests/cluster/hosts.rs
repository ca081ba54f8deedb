//! Hosts created by scripts/test-hosts for one test. They end with it, also when it is killed, because their
//! holder ends with a pipe.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use record::Record;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::place::{Run, Said, ended, skip};
use crate::{measured, within};

/// Address of the controller for hosts.
pub const CONTROLLER: &str = "10.77.0.1";
/// Time limit for everything that a run does here before it loads, on a busy machine.
pub const BEGIN: Duration = Duration::from_secs(60);
/// Time limit for the end of processes after a connection is lost.
const SOON: Duration = Duration::from_secs(15);
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/test-hosts");

/// Hosts `h1`, `h2` and so on, on one bridge with a controller.
pub struct Hosts {
    holder: Child,
    /// Closed first, which ends the hosts.
    stdin: Option<ChildStdin>,
    folder: tempfile::TempDir,
}

impl Hosts {
    /// Creates this number of hosts. `None`, with a message, if the user or kernel does not permit it.
    pub fn up(number: u32) -> Option<Hosts> {
        Hosts::with_clocks(number, "")
    }

    /// The same with clocks that are ahead: with `2=3600` h2 is ahead by an hour.
    pub fn with_clocks(number: u32, clocks: &str) -> Option<Hosts> {
        if !rustix::process::geteuid().is_root() {
            skip("hosts of their own take root: sudo make test-cluster");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder for the hosts");
        // Other users than root log in there, too.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let mut holder = Command::new(SCRIPT);
        holder
            .args(["hold", &number.to_string()])
            .arg(folder.path())
            .env("CLOCKS", clocks);
        holder
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut holder = holder.spawn().expect("scripts/test-hosts starts");
        let stdin = holder.stdin.take();
        let (mut line, stdout) = (
            String::new(),
            holder.stdout.take().expect("it has a stdout"),
        );
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says something");
        if line != "ready\n" {
            let output = holder.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                said.contains("no network of its own"),
                "scripts/test-hosts: {said}"
            );
            skip(&said);
            return None;
        }
        Some(Hosts {
            holder,
            stdin,
            folder,
        })
    }

    /// A file or folder of the hosts: `h1/root` is the home there.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds to the configuration of ssh.
    pub fn configure(&self, text: &str) {
        let file = self.path("ssh_config");
        let config = fs::read_to_string(&file).expect("there is a configuration");
        // The first occurrence counts.
        fs::write(file, format!("{text}\n{config}")).expect("it is ours");
    }

    /// Runs `job` as the controller: in its network, also in threads and processes that it starts, and with
    /// an `ssh` that knows the hosts.
    pub fn within<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.path("bin").display().to_string();
        if !path.starts_with(&bin) {
            // SAFETY: tests of this binary run one after the other, and no other thread is left that reads
            // the environment.
            unsafe { std::env::set_var("PATH", format!("{bin}:{path}")) };
        }
        let network = format!("/proc/{}/ns/net", self.pid("controller"));
        let network = File::open(network).expect("it lives");
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(network.as_fd(), kind).expect("root may");
                job()
            });
            there
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a run of an experiment, with its record in the folder `record`.
    pub fn run(&self, text: &str) -> Child {
        let file = self.path("experiment.toml");
        fs::write(&file, text).expect("the experiment is written");
        self.within(|| {
            let mut run = Command::new(program());
            run.arg("run")
                .arg(&file)
                .args(["--yes", "--seed", "1", "--out"])
                .arg(self.path("record"));
            run.begun()
        })
    }

    /// Runs an experiment to its end.
    pub fn ran(&self, text: &str) -> Said {
        ended(self.run(text))
    }

    /// A run in which slices are being measured.
    pub fn loading(&self, text: &str) -> Child {
        let run = self.run(text);
        assert!(
            within(BEGIN, || measured(&self.path("record")) >= 1),
            "nothing is measured"
        );
        run
    }

    pub fn record(&self) -> Record {
        record::open(&self.path("record")).expect("the record opens")
    }

    /// Asserts that these hosts soon have no process except sshd.
    pub fn all_quiet(&self, number: u32) {
        (1..=number).for_each(|host| self.is_quiet(host));
    }

    /// Asserts that a host has none.
    pub fn is_quiet(&self, host: u32) {
        assert!(
            self.is_quiet_within(host, SOON),
            "on h{host}: {:?}",
            self.processes(host)
        );
    }

    /// Runs a command in the mount and process namespaces of a host.
    pub fn on(&self, host: u32, command: &str) {
        let pid = self.pid(&format!("h{host}"));
        let [mounts, network] = ["mnt", "net"].map(|kind| format!("/proc/{pid}/ns/{kind}"));
        let mut nsenter = Command::new("nsenter");
        nsenter
            .args([format!("--mount={mounts}"), format!("--net={network}")])
            .args(["sh", "-c", command]);
        assert!(
            nsenter.status().expect("nsenter starts").success(),
            "on h{host}: {command}"
        );
    }

    /// Disconnects or connects the network of a host.
    pub fn cable(&self, host: u32, plugged: bool) {
        let state = if plugged { "up" } else { "down" };
        let cable = format!("p{host}");
        let set = || {
            Command::new("ip")
                .args(["link", "set", &cable, state])
                .status()
                .expect("ip starts")
        };
        assert!(self.within(set).success(), "the cable of h{host}");
    }

    /// Kills all processes of a host at once.
    pub fn crash(&self, host: u32) {
        let status = Command::new(SCRIPT)
            .args(["crash", &host.to_string()])
            .arg(self.folder.path())
            .status();
        assert!(
            status.expect("scripts/test-hosts starts").success(),
            "h{host} is there"
        );
    }

    /// Command lines of the processes of a host, except its root process, which is its sshd.
    pub fn processes(&self, host: u32) -> Vec<String> {
        let own = format!(
            "/proc/{}/ns/pid_for_children",
            self.pid(&format!("h{host}"))
        );
        let theirs = fs::read_link(own).expect("h is there");
        let all = fs::read_dir("/proc").expect("/proc is there").flatten();
        let of_it = all.filter(|entry| {
            let first = fs::read_to_string(entry.path().join("status")).is_ok_and(|status| {
                status
                    .lines()
                    .any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"))
            });
            !first
                && fs::read_link(entry.path().join("ns/pid"))
                    .is_ok_and(|namespace| namespace == theirs)
        });
        let argv = of_it.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
        argv.map(|argv| String::from_utf8_lossy(&argv).replace('\0', " "))
            .collect()
    }

    /// Whether a host has no process except sshd within some seconds.
    pub fn is_quiet_within(&self, host: u32, patience: Duration) -> bool {
        within(patience, || self.processes(host).is_empty())
    }

    /// Number of the root process of a host or of the controller.
    fn pid(&self, name: &str) -> u32 {
        let text = fs::read_to_string(self.path(name).join("pid")).expect("it was started");
        text.trim().parse().expect("a process id")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.stdin.take();
        let _ = self.holder.wait();
    }
}

/// This program without debug information, to save disk space on hosts.
pub fn program() -> PathBuf {
    static STRIPPED: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = STRIPPED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder for the program");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let path = folder.path().join("proofload");
        let whole = env!("CARGO_BIN_EXE_proofload");
        let strip = Command::new("strip")
            .arg("-o")
            .arg(&path)
            .arg(whole)
            .status();
        if !strip.is_ok_and(|status| status.success()) {
            fs::copy(whole, &path).expect("the program is copied");
        }
        (folder, path)
    });
    path.clone()
}
