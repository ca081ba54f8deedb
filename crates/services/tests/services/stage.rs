//! Where a test plays: a folder, services with a mark of the test's own, and a look behind the curtain at the end.
//!
//! The look uses nothing of the crate: what it is to prove cannot be the proof.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use plan::{Ready, Service, ServiceCommand, ServiceSource};
use proofload_services::{Error, Placement, Ports, Running, Warden, start};

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// No wait takes this long on any machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Stage {
    pub folder: tempfile::TempDir,
    /// In the environment of everything that the test starts.
    pub mark: String,
}

impl Stage {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("STAGE={}", folder.path().display());
        Self { folder, mark }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A service `api`, ready as soon as its port is open.
    pub fn service(&self, command: &[&str]) -> Service {
        let stage = self.folder.path().display().to_string();
        let env = [("STAGE", stage.as_str()), ("PORT", "{port}")];
        Service {
            name: "api".to_owned(),
            source: ServiceSource::Command(ServiceCommand {
                command: command.iter().map(|part| (*part).to_owned()).collect(),
                directory: fixtures(),
                env: env
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                stop_timeout: Duration::from_secs(10),
                ..ServiceCommand::default()
            }),
            ready: Ready::Tcp,
            ready_timeout: PATIENCE,
            needs: Vec::new(),
        }
    }

    pub fn shell(&self, script: &str) -> Service {
        self.service(&["/bin/sh", "-c", script])
    }

    pub fn placement(&self) -> Placement {
        Placement::new(self.path("log"))
    }

    pub fn start(&self, service: &Service) -> Result<Running, Error> {
        self.start_unless(service, &|| false)
    }

    pub fn start_unless(
        &self,
        service: &Service,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Running, Error> {
        start(
            &warden(),
            service,
            &ports(service),
            &self.placement(),
            cancelled,
        )
    }

    /// Starts it with another placement than the default.
    pub fn start_placed(
        &self,
        service: &Service,
        place: impl FnOnce(&mut Placement),
    ) -> Result<Running, Error> {
        let mut placement = self.placement();
        place(&mut placement);
        start(&warden(), service, &ports(service), &placement, &|| false)
    }

    /// Living processes that this test started.
    pub fn alive(&self) -> Vec<u32> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ours = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ
                .split(|byte| *byte == 0)
                .any(|variable| variable == self.mark.as_bytes())
        };
        // An ended process that was not reaped has no environment.
        numbers.filter(ours).collect()
    }

    pub fn wait_until_empty(&self, patience: Duration) -> bool {
        wait_until(patience, || self.alive().is_empty())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let left = self.alive();
        for pid in &left {
            signal(*pid, libc::SIGKILL);
        }
        if !std::thread::panicking() {
            assert!(left.is_empty(), "left behind: {left:?}");
        }
    }
}

/// The command of a service, to be changed.
pub fn of(service: &mut Service) -> &mut ServiceCommand {
    service.command_mut().unwrap()
}

pub fn fixtures() -> PathBuf {
    crate::FIXTURES.into()
}

pub fn warden() -> Warden {
    Warden::new(vec![crate::WARDEN.into()])
}

pub fn ports(service: &Service) -> Ports {
    let folder = service
        .command()
        .and_then(|command| command.env.get("STAGE").cloned())
        .unwrap_or_default();
    let random = folder
        .bytes()
        .fold(7, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte));
    Ports::choose(std::slice::from_ref(service), LOOPBACK, random).unwrap()
}

pub fn signal(pid: u32, signal: i32) {
    // SAFETY: sends a signal to one process that the test started.
    unsafe { libc::kill(i32::try_from(pid).unwrap(), signal) };
}

pub fn wait_until(patience: Duration, mut happened: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !happened() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// The body of the response to a GET.
pub fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Adds variables to a service.
pub fn with_env(mut service: Service, env: &[(&str, &str)]) -> Service {
    let more: BTreeMap<String, String> = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    of(&mut service).env.extend(more);
    service
}

/// Name of the control group that Proofload created for a process, if any.
pub fn group_of(pid: u32) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let names = groups.lines().filter_map(|line| line.rsplit('/').next());
    names
        .into_iter()
        .find(|name| name.starts_with("proofload-"))
        .map(str::to_owned)
}

/// Folders of control groups.
pub fn folders(name: &str) -> Vec<String> {
    let list = std::process::Command::new("find")
        .args(["/sys/fs/cgroup", "-name", name])
        .output()
        .unwrap();
    String::from_utf8_lossy(&list.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Names of the folders that wardens created for services of a Proofload with this number.
pub fn scratch_folders(proofload: u32) -> Vec<String> {
    let beginning = format!("proofload-{proofload}-");
    let places = [std::env::temp_dir(), PathBuf::from("/tmp")];
    let entries = places
        .iter()
        .filter_map(|place| fs::read_dir(place).ok())
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<String> = names.filter(|name| name.starts_with(&beginning)).collect();
    found.sort();
    found.dedup();
    found
}
