//! Services that are containers: the engine's command line, and the state that the engine reports.
//!
//! The root process of such a service is the engine's command, attached: it prints the container's output,
//! and forwards a SIGTERM to the container. The container itself is a child of the engine, so it is
//! identified by its name and its control group. The warden removes it at the end in any case. If the warden
//! was killed too, the next container start removes it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use machine::groups::{self, ControlGroup};
use machine::process::ProcessId;
use plan::{Container, ContainerOf, Engine};
use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::marker::{Marker, parent};
use crate::message::{Cleanup, HeadProcess, Leftover, Scratch, WardenSpec};
use crate::program::{executable, not_found, search_path};

/// Label of each container that Proofload starts, with its marker.
const LABEL: &str = "proofload.trial";
/// Label of each container, network and volume of a Compose project, with the project's name.
const PROJECT: &str = "com.docker.compose.project";
const PROJECT_SERVICE: &str = "com.docker.compose.service";
/// Timeouts of the engine for a query and for removing something.
const PATIENCE: Duration = Duration::from_secs(20);
const REMOVAL_PATIENCE: Duration = Duration::from_secs(60);
/// Timeout for a container on this machine to accept or refuse a connection. After that it is unreachable.
const REACH: Duration = Duration::from_millis(300);
/// Format of a query about a container: a line of JSON.
const FORMAT: &str = r#"{"pid":{{.State.Pid}},"image":{{json .Image}},"networks":{{json .NetworkSettings.Networks}},"ports":{{json .NetworkSettings.Ports}},"health":{{if .State.Health}}{{json .State.Health.Status}}{{else}}null{{end}},"labels":{{json .Config.Labels}}}"#;

/// State of a container as the engine reports it.
#[derive(Debug, Clone, Deserialize)]
struct ContainerState {
    /// 0 before it runs.
    pid: u32,
    image: String,
    networks: Option<BTreeMap<String, Value>>,
    /// Maps `3000/tcp` to its published addresses.
    ports: Option<BTreeMap<String, Value>>,
    health: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

/// A container service that will be or was started.
#[derive(Debug)]
pub(crate) struct Pack {
    engine: PathBuf,
    /// Leading words of a command about a project.
    compose: Vec<String>,
    service: String,
    container: Container,
    name: String,
    /// Port on which the service listens inside. `None` for a project's exposed port.
    pub inside: Option<u16>,
    published: SocketAddr,
}

/// A running container.
#[derive(Debug)]
pub(crate) struct Up {
    /// Address at which it is reached.
    pub address: SocketAddr,
    /// The root process of each container of the service, and its control group.
    pub containers: Vec<(ProcessId, ControlGroup)>,
    /// Digest of the image of the container that gets requests.
    pub image: String,
}

/// Variables that an engine's command reads itself. A trailing `_` matches a prefix. Set to a container's
/// values, they would change the command.
const OF_ENGINE: &str = "ALL_PROXY BUILDAH_ CONTAINER_ CONTAINERS_ DBUS_ DOCKER_ GODEBUG HOME HTTP_PROXY \
    HTTPS_PROXY LD_ NO_PROXY PATH PODMAN_ REGISTRY_ SSH_ STORAGE_ TMPDIR USER XDG_";

/// Name of the file with such variables in the scratch folder.
const ENV_FILE: &str = "engine.env";

fn is_of_engine(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    OF_ENGINE
        .split(' ')
        .any(|own| name == own || own.ends_with('_') && name.starts_with(own))
}

impl Pack {
    /// Finds engine and image, and changes nothing. `port` is a port of this machine.
    ///
    /// # Errors
    /// No engine, no daemon, no image, or an unknown port.
    pub fn find(
        service: &str,
        container: &Container,
        marker: &Marker,
        port: u16,
    ) -> Result<Pack, Error> {
        let mut pack = Pack {
            engine: engine(service, container.engine)?,
            compose: Vec::new(),
            service: service.to_owned(),
            container: container.clone(),
            name: marker.name(),
            inside: container.port,
            published: (Ipv4Addr::LOCALHOST, port).into(),
        };
        pack.ask(&["version", "--format", "{{.Server.Version}}"])
            .map_err(|reason| pack.failed("does not answer", &reason))?;
        if let ContainerOf::Image(image) = &pack.container.of {
            let ports = "{{json .Config.ExposedPorts}}";
            let exposed = pack.ask(&["image", "inspect", "--format", ports, image]);
            let exposed = exposed.map_err(|reason| {
                Error::of(&pack.service, format!("there is no image {image} here: {reason}")).help(format!(
                    "`docker pull {image}` gets it, or `docker build -t {image} .` makes it; nothing is pulled during a run"
                ))
            })?;
            let exposed: Option<BTreeMap<String, Value>> =
                serde_json::from_str(exposed.trim()).unwrap_or_default();
            let inside = pack
                .inside
                .or_else(|| only_port(exposed.unwrap_or_default().keys()));
            pack.inside = Some(inside.ok_or_else(|| pack.no_port())?);
        } else {
            pack.compose = pack.find_compose()?;
        }
        Ok(pack)
    }

    /// Completes the warden's spec with the command, and the removal of the container. `spec` has the words
    /// after the image and the variables.
    pub fn fill(&self, spec: &mut WardenSpec) {
        let mut command = self.words(&["run", "--pull=never"]);
        let name = &self.name;
        let (removal, label) = match &self.container.of {
            ContainerOf::Image(image) => {
                let flag = |name: &str, value: String| [name.to_owned(), value];
                command.extend(flag("--name", name.clone()));
                command.extend(flag("--label", format!("{LABEL}={}", spec.marker)));
                if !spec.cpus.is_empty() {
                    command.extend(flag("--cpuset-cpus", list(&spec.cpus)));
                }
                if let Some(inside) = self.inside {
                    command.extend(flag("--publish", format!("{}:{inside}", self.published)));
                }
                if has_init(&self.engine) {
                    // As the root process of a container, a program without a handler would ignore SIGTERM.
                    command.push("--init".to_owned());
                }
                command.extend(flag(
                    "--env",
                    format!("{}={}", crate::marker::VARIABLE, spec.marker),
                ));
                // All users may read arguments. Variables that the engine does not read itself are passed
                // through its environment, and the others in a private file, whose values have one line.
                let mut lines = String::new();
                spec.env.retain(|(name, value)| {
                    let passed = !is_of_engine(name) || value.contains('\n');
                    if passed {
                        command.extend(flag("--env", name.clone()));
                    } else {
                        let _ = writeln!(lines, "{name}={value}");
                    }
                    passed
                });
                if !lines.is_empty() {
                    let scratch = spec.scratch.get_or_insert_with(|| Scratch {
                        directory: parent().join(name),
                        files: Vec::new(),
                    });
                    let file = scratch.directory.join(ENV_FILE);
                    command.extend(flag("--env-file", file.display().to_string()));
                    scratch.files.push((ENV_FILE.to_owned(), lines));
                }
                command.push(image.clone());
                command.append(&mut spec.command);
                (
                    self.words(&["rm", "--force", "--volumes", name]),
                    format!("label={LABEL}={}", spec.marker),
                )
            }
            ContainerOf::Compose { service, .. } => {
                command = self.of_project(&["up", "--no-color", service]);
                let down =
                    self.of_project(&["down", "--volumes", "--remove-orphans", "--timeout", "1"]);
                (down, format!("label={PROJECT}={name}"))
            }
        };
        let (directory, env) = (spec.directory.clone(), spec.env.clone());
        let left = self.words(&["ps", "--all", "--quiet", "--filter", &label]);
        spec.cleanup = Some(Cleanup {
            command: removal,
            left,
            directory,
            env,
        });
        spec.program = PathBuf::from(&command[0]);
        spec.command = command;
        // The engine's command forwards signals to all.
        spec.head = Some(HeadProcess::First);
        // The container has its engine's group. The group of the command itself is of no use.
        spec.group = false;
    }

    /// Returns the running containers once all are running, and healthy if a project defines a health check.
    /// `None` if not yet.
    ///
    /// # Errors
    /// An unknown port, or no control group.
    pub fn look(&self, cpus: &[usize]) -> Result<Option<Up>, Error> {
        let ids = self.ids();
        let Some(all) = self.seen(&ids) else {
            return Ok(None);
        };
        let (entry, is_compose) = match &self.container.of {
            ContainerOf::Image(_) => (all.first(), false),
            ContainerOf::Compose { service, .. } => (
                all.iter()
                    .find(|seen| seen.label(PROJECT_SERVICE) == Some(service)),
                true,
            ),
        };
        let Some(entry) =
            entry.filter(|entry| entry.pid > 0 && (!is_compose || entry.is_healthy()))
        else {
            return Ok(None);
        };
        if is_compose && !cpus.is_empty() {
            // Limits in a Compose file belong to the file. The plan's CPUs are set now, before any load.
            self.set_cpus(cpus, &ids)?;
        }
        let ports = entry.ports.clone().unwrap_or_default();
        let inside = self
            .inside
            .or_else(|| only_port(ports.keys()))
            .ok_or_else(|| self.no_port())?;
        let address = |network: &Value| network["IPAddress"].as_str()?.parse().ok();
        let own = entry
            .networks
            .iter()
            .flat_map(BTreeMap::values)
            .find_map(address);
        let address = own
            .map(|own: IpAddr| SocketAddr::new(own, inside))
            .filter(is_within_reach);
        let numbers = self.inspect("{{.Id}}", &ids);
        let numbers = numbers.map_err(|reason| self.failed("does not tell of it", &reason))?;
        // A container that has just ended is in no group any more.
        let here = |(number, seen): (&str, &ContainerState)| seen.here(number);
        let containers: Vec<(ProcessId, ControlGroup)> =
            numbers.lines().zip(&all).filter_map(here).collect();
        if !containers.iter().any(|(first, _)| first.pid == entry.pid) {
            return Err(self.out_of_sight());
        }
        let address = address.unwrap_or(self.published);
        Ok(Some(Up {
            address,
            containers,
            image: entry.image.clone(),
        }))
    }

    /// Restricts all its containers to these processors.
    pub fn confine(&self, cpus: &[usize]) -> Result<(), Error> {
        self.set_cpus(cpus, &self.ids())
    }

    fn set_cpus(&self, cpus: &[usize], ids: &[String]) -> Result<(), Error> {
        let cpus = list(cpus);
        let mut words = vec!["update", "--cpuset-cpus", &cpus];
        words.extend(ids.iter().map(String::as_str));
        self.ask(&words)
            .map(|_| ())
            .map_err(|reason| self.failed("cannot give it its processors", &reason))
    }

    fn seen(&self, ids: &[String]) -> Option<Vec<ContainerState>> {
        let told = if ids.is_empty() {
            return None;
        } else {
            self.inspect(FORMAT, ids).ok()?
        };
        told.lines()
            .map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Prints one line for each container.
    fn inspect(&self, format: &str, ids: &[String]) -> Result<String, String> {
        let mut words = vec!["inspect", "--format", format];
        words.extend(ids.iter().map(String::as_str));
        self.ask(&words)
    }

    /// IDs of the service's containers.
    fn ids(&self) -> Vec<String> {
        match &self.container.of {
            ContainerOf::Image(_) => vec![self.name.clone()],
            ContainerOf::Compose { .. } => {
                let own = format!("label={PROJECT}={}", self.name);
                self.listed(&["ps", "--all", "--quiet", "--filter", &own])
            }
        }
    }

    fn listed(&self, words: &[&str]) -> Vec<String> {
        self.ask(words)
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Removes the remains of Proofloads of this PID namespace that were killed together with their wardens.
    /// The engine may serve other namespaces, too.
    pub fn remove_abandoned(&self) {
        for (label, is_project) in [(LABEL, false), (PROJECT, true)] {
            let format = format!("{{{{.ID}}}} {{{{.Label \"{label}\"}}}}");
            let filter = format!("label={label}");
            for line in self.listed(&["ps", "--all", "--filter", &filter, "--format", &format]) {
                let Some((id, value)) = line.split_once(' ') else {
                    continue;
                };
                let marker = if is_project {
                    Marker::named(value)
                } else {
                    Marker::parse(value)
                };
                if marker.is_none_or(|marker| !marker.is_abandoned()) {
                    continue;
                }
                let _ = self.ask(&["rm", "--force", "--volumes", id]);
                if is_project {
                    let filter = format!("label={PROJECT}={value}");
                    for kind in ["network", "volume"] {
                        for left in self.listed(&[kind, "ls", "--quiet", "--filter", &filter]) {
                            let _ = self.ask(&[kind, "rm", &left]);
                        }
                    }
                }
            }
        }
    }

    /// Finds `docker compose`, or the older separate program.
    fn find_compose(&self) -> Result<Vec<String>, Error> {
        let plugin = self.words(&["compose"]);
        let alone = vec![format!(
            "{}-compose",
            self.engine.file_name().unwrap_or_default().display()
        )];
        let answers = |words: &&Vec<String>| {
            output(&[words.as_slice(), &["version".to_owned()]].concat()).is_ok()
        };
        let searched = format!("its plugins, and {} in PATH", alone[0]);
        let missing = || not_found(&self.service, &plugin.join(" "), &searched);
        [&plugin, &alone]
            .into_iter()
            .find(answers)
            .cloned()
            .ok_or_else(missing)
    }

    /// A command about the project.
    fn of_project(&self, words: &[&str]) -> Vec<String> {
        let ContainerOf::Compose { file, .. } = &self.container.of else {
            return Vec::new();
        };
        let file = file.display().to_string();
        let own = ["--project-name", &self.name, "--file", &file];
        let words = own.iter().chain(words).map(|word| (*word).to_owned());
        self.compose.iter().cloned().chain(words).collect()
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        let engine = self.engine.display().to_string();
        std::iter::once(engine)
            .chain(words.iter().map(|word| (*word).to_owned()))
            .collect()
    }

    /// Returns the engine's output, or the reason of a failure.
    fn ask(&self, words: &[&str]) -> Result<String, String> {
        output(&self.words(words))
    }

    fn failed(&self, doing: &str, reason: &str) -> Error {
        let engine = self.engine.file_name().unwrap_or_default().display();
        Error::of(&self.service, format!("{engine} {doing}: {reason}")).help(
            "is its daemon running, and may this user ask it? `docker info` tells; DOCKER_HOST and contexts are followed",
        )
    }

    fn out_of_sight(&self) -> Error {
        let engine = self.engine.file_name().unwrap_or_default().display();
        let message = format!(
            "{engine} has it in no control group of this machine, so that its CPU time is not known"
        );
        Error::of(&self.service, message).help(
            "an engine in a virtual machine, as Docker Desktop's, or on another host is out of sight: `docker context use default` \
             chooses that of this machine",
        )
    }

    fn no_port(&self) -> Error {
        Error::of(
            &self.service,
            format!("{} exposes no port, or several", self.container),
        )
        .help("`port` in the container's table names the one inside")
    }
}

impl ContainerState {
    /// Root process and control group of a container, identified by its ID `number`. If the engine runs
    /// elsewhere, also in a virtual machine, the process number belongs to another process.
    fn here(&self, number: &str) -> Option<(ProcessId, ControlGroup)> {
        let ControlGroup { folder, unified } = groups::of(self.pid)?;
        let folder = own_group(&folder, number)?.to_owned();
        Some((ProcessId::of(self.pid)?, ControlGroup { folder, unified }))
    }

    fn label(&self, name: &str) -> Option<&String> {
        self.labels.as_ref()?.get(name)
    }

    /// Also true without a health check. Podman then reports an empty string.
    fn is_healthy(&self) -> bool {
        self.health
            .as_deref()
            .is_none_or(|health| health.is_empty() || health == "healthy")
    }
}

/// The control group of the container. Its root process may be in a subgroup: systemd creates one for itself.
fn own_group<'a>(folder: &'a Path, number: &str) -> Option<&'a Path> {
    let is_own = |name: &OsStr| name.to_string_lossy().contains(number);
    folder
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(is_own))
}

/// Runs the command that removes containers. It also runs if no container was created. Returns the containers
/// that are still there.
pub(crate) fn clean_up(cleanup: &Cleanup) -> Vec<Leftover> {
    let Some((program, arguments)) = cleanup.command.split_first() else {
        return Vec::new();
    };
    let env = cleanup
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let mut command = machine::command(program);
    command
        .args(arguments)
        .envs(env)
        .current_dir(&cleanup.directory);
    if machine::answer_of(&mut command, REMOVAL_PATIENCE).is_ok() {
        return Vec::new();
    }
    let left = output(&cleanup.left).unwrap_or_default();
    left.lines()
        .map(|id| Leftover {
            pid: 0,
            description: format!("container {id}"),
        })
        .collect()
}

fn output(words: &[String]) -> Result<String, String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("no command".to_owned());
    };
    machine::answer_of(machine::command(program).args(arguments), PATIENCE)
}

fn engine(service: &str, wanted: Option<Engine>) -> Result<PathBuf, Error> {
    let engines = wanted.map_or(vec![Engine::Docker, Engine::Podman], |wanted| vec![wanted]);
    let path = search_path(None);
    let file = |engine: &Engine| {
        let mut files = std::env::split_paths(&path).map(|folder| folder.join(engine.name()));
        files.find(|file| executable(file))
    };
    let missing = || not_found(service, engines[0].name(), &format!("PATH: {path}"));
    engines.iter().find_map(file).ok_or_else(missing)
}

/// Whether an engine has a program that forwards signals to a container's root process. A program named
/// docker may be podman.
fn has_init(engine: &Path) -> bool {
    let docker = [
        "/usr/bin",
        "/usr/local/bin",
        "/usr/libexec/docker",
        "/usr/lib/docker",
    ]
    .map(|folder| format!("{folder}/docker-init"));
    let podman = ["/usr/libexec/podman", "/usr/bin"].map(|folder| format!("{folder}/catatonit"));
    let is_podman = engine
        .file_name()
        .is_some_and(|name| name == Engine::Podman.name());
    let docker = docker.iter().filter(|_| !is_podman);
    docker
        .chain(&podman)
        .any(|file| executable(Path::new(file)))
}

/// The only TCP port among names such as `3000/tcp`.
fn only_port<'a>(names: impl Iterator<Item = &'a String>) -> Option<u16> {
    let mut ports = names.filter_map(|name| name.strip_suffix("/tcp")?.parse().ok());
    ports.next().filter(|_| ports.next().is_none())
}

/// Whether an address is reachable: packets arrive, and a response comes back. A refusal is a response.
fn is_within_reach(address: &SocketAddr) -> bool {
    let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    TcpStream::connect_timeout(address, REACH)
        .err()
        .is_none_or(refused)
}

/// `0,2,3`
fn list(cpus: &[usize]) -> String {
    cpus.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_has_is_that_of_its_whole_group() {
        let own =
            |folder: &'static str| own_group(Path::new(folder), "4f2a").and_then(Path::to_str);
        let docker = "/sys/fs/cgroup/system.slice/docker-4f2a.scope";
        assert_eq!(
            own("/sys/fs/cgroup/system.slice/docker-4f2a.scope/init.scope"),
            Some(docker)
        );
        assert_eq!(own(docker), Some(docker));
        // With an engine in a virtual machine, one of our processes has the number.
        assert_eq!(own("/sys/fs/cgroup/user.slice/session-2.scope"), None);
    }

    #[test]
    fn what_removes_a_project_has_the_variables_and_the_folder_that_its_file_was_read_with() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo ${TAG:?} >down";
        let command = ["/bin/sh", "-c", script].map(str::to_owned).into();
        let env = vec![("TAG".to_owned(), "1.5".to_owned())];
        clean_up(&Cleanup {
            command,
            left: Vec::new(),
            directory: folder.path().to_owned(),
            env,
        });
        assert_eq!(
            std::fs::read_to_string(folder.path().join("down")).unwrap(),
            "1.5\n"
        );
    }
}
