//! Creates a warden's spec from a service of the plan: fills in placeholders, finds the program, builds the
//! environment.
//!
//! It reads files and starts nothing.
//!
//! A service inherits Proofload's environment without [`WITHHELD`] and [`machine::CI_VARIABLES`]. The
//! service's own variables are added to it.

use std::env;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use plan::{Launcher, NodeCommand, Service, ServiceCommand, UnknownPlaceholder, Workers};
use serde_json::json;

use crate::container::Pack;
use crate::cpus::cpus_allowed;
use crate::marker::{Marker, scratch_directory};
use crate::message::{HeadProcess, Scratch, WardenSpec};
use crate::program::{executable, not_found, search_path};
use crate::{Error, Placement, Ports};

/// Variables of the caller's shell that a service does not get unless the experiment sets them. Each changes
/// the behaviour of a Node service, and would do so unnoticed in every variant. The last three indicate a
/// Node parent process, which is at most true for Proofload's caller.
pub(crate) const WITHHELD: &str = "NODE_ENV NODE_OPTIONS NODE_V8_COVERAGE COVERAGE_PROCESS_START CPUPROFILE \
    HEAPPROFILE PORT NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE NODE_UNIQUE_ID";

/// Whether a service inherits the variable of this name from the caller's shell.
pub fn is_inherited(name: &str) -> bool {
    !machine::is_ci_variable(name) && WITHHELD.split(' ').all(|withheld| withheld != name)
}

/// Limit for the first line of a script. Kernels read far less.
const LINE_BYTES_MAX: u64 = 4096;
/// The variable whose length shifts the stack of a trial's processes.
const PADDING: &str = "PROOFLOAD_PADDING";
/// Folders in which servers such as nginx are installed.
const SERVER_FOLDERS: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// A fully resolved service.
#[derive(Debug)]
pub(crate) struct PreparedService {
    /// Orders for the warden.
    pub spec: WardenSpec,
    /// The resolved command of the experiment, for messages.
    pub command: String,
    /// Number of processes that serve, if known.
    pub workers: Option<u32>,
    /// Its container, if it is one.
    pub container: Option<Pack>,
}

/// Creates the warden's spec.
///
/// # Errors
/// An unknown placeholder, a missing directory, a missing program, or one that cannot be run.
pub(crate) fn prepare(
    service: &Service,
    ports: &Ports,
    placement: &Placement,
    marker: &Marker,
) -> Result<PreparedService, Error> {
    let started = service
        .command()
        .ok_or_else(|| wrong_command(&service.name, "it runs already"))?;
    let scratch = scratch_directory(marker);
    let workers = workers(started, placement);
    let port = ports.of(&service.name).unwrap_or_default();
    let find = |of| Pack::find(&service.name, of, marker, port);
    let container = started.container.as_ref().map(find).transpose()?;
    container.iter().for_each(Pack::remove_abandoned);
    let inside = container.as_ref().and_then(|pack| pack.inside);
    let known = PlaceholderValues {
        service,
        started,
        ports,
        placement,
        scratch: &scratch,
        workers,
        inside,
    };
    let command = started
        .command
        .iter()
        .map(|part| known.fill("command", part));
    let command = command.collect::<Result<Vec<_>, Error>>()?;
    let env = known.variables(container.is_some())?;
    let path = search_path(
        env.iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, path)| path),
    );
    let program = match container {
        Some(_) => PathBuf::new(),
        None => resolve(
            &service.name,
            started,
            command.first().map_or("", String::as_str),
            &path,
        )?,
    };
    let names_scratch = |text: &String| {
        plan::placeholders(text)
            .iter()
            .any(|one| one.name == "scratch")
    };
    let asked_for = started
        .command
        .iter()
        .chain(started.env.values())
        .any(names_scratch);
    let mut spec = WardenSpec {
        program,
        command: command.clone(),
        directory: started.directory.clone(),
        env_withheld: WITHHELD.split(' ').map(str::to_owned).collect(),
        env,
        cpus: placement.cpus.clone(),
        log: placement.log.clone(),
        stop_timeout: started.stop_timeout,
        marker: marker.text.clone(),
        group: placement.group,
        ..WardenSpec::default()
    };
    let mut files = match started.launcher {
        Launcher::Exec => Vec::new(),
        Launcher::Cluster => vec![cluster(&known, &mut spec)],
        Launcher::Pm2Fork | Launcher::Pm2Cluster => vec![pm2(&known, &path, &mut spec)?],
    };
    for (name, text) in &started.templates {
        let text = plan::render(text, |name| known.lookup(name));
        files.push((
            name.clone(),
            known.known(&format!("templates.{name}"), text)?,
        ));
    }
    // The host's folder is not visible in a container.
    if let Some(agent) = placement.agent.as_ref().filter(|_| container.is_none()) {
        agent.enter(&mut spec);
    }
    if placement.padding_bytes > 0 {
        spec.set(PADDING, "x".repeat(placement.padding_bytes));
    }
    if asked_for || !files.is_empty() {
        spec.scratch = Some(Scratch {
            directory: scratch.clone(),
            files,
        });
    }
    let mut words = command;
    if let (Some(pack), Some(container)) = (&container, &started.container) {
        pack.fill(&mut spec);
        words.insert(0, container.to_string());
    }
    Ok(PreparedService {
        spec,
        command: words.join(" "),
        workers,
        container,
    })
}

/// Values of the placeholders of a service.
struct PlaceholderValues<'a> {
    service: &'a Service,
    started: &'a ServiceCommand,
    ports: &'a Ports,
    placement: &'a Placement,
    scratch: &'a Path,
    workers: Option<u32>,
    /// The port inside of a container.
    inside: Option<u16>,
}

impl PlaceholderValues<'_> {
    /// The variables of the service, and `PORT` unless the service sets it, because most services listen on
    /// PORT by default.
    fn variables(&self, contained: bool) -> Result<Vec<(String, String)>, Error> {
        let mut env = Vec::new();
        for (name, text) in &self.started.env {
            env.push((name.clone(), self.fill(&format!("env.{name}"), text)?));
        }
        let is_told = contained || self.started.env.contains_key("PORT");
        if let Some(port) = self.ports.of(&self.service.name).filter(|_| !is_told) {
            env.push(("PORT".to_owned(), port.to_string()));
        }
        Ok(env)
    }

    fn fill(&self, place: &str, text: &str) -> Result<String, Error> {
        self.known(place, plan::fill(text, |name| self.lookup(name)))
    }

    fn known(
        &self,
        place: &str,
        filled: Result<String, UnknownPlaceholder>,
    ) -> Result<String, Error> {
        filled.map_err(|unknown| Error::of(&self.service.name, format!("{place}: {unknown}")))
    }

    fn lookup(&self, name: &str) -> Option<String> {
        let known = match name {
            "port" => {
                let own = self.inside.or_else(|| self.ports.of(&self.service.name));
                own.map(|port| port.to_string())
            }
            // In its network namespace a container listens on all addresses.
            "address" if self.started.container.is_some() => {
                Some(Ipv4Addr::UNSPECIFIED.to_string())
            }
            "address" => Some(text(self.placement.address)),
            "directory" => Some(self.started.directory.display().to_string()),
            "scratch" => Some(self.scratch.display().to_string()),
            "workers" => self.workers.map(|workers| workers.to_string()),
            other => self.asked_for(other),
        };
        known.or_else(|| self.placement.values.get(name).cloned())
    }

    /// Address or port of a service that this one needs: `api.port`, `api.address`.
    fn asked_for(&self, name: &str) -> Option<String> {
        let (service, what) = name.rsplit_once('.')?;
        match what {
            "port" => self.ports.of(service).map(|port| port.to_string()),
            "address" if service == self.service.name => Some(text(self.placement.address)),
            "address" => self.placement.addresses.get(service).copied().map(text),
            _ => None,
        }
    }
}

/// Formats an address for a URL.
fn text(address: IpAddr) -> String {
    if address.is_ipv6() {
        format!("[{address}]")
    } else {
        address.to_string()
    }
}

/// Checks whether a service can be started, as far as this is known in advance. Checks the directory, the
/// program and the script, or the engine and the image of a container. Anything that depends on unfilled
/// placeholders counts as present.
///
/// # Errors
/// If something is missing. The error names it.
pub fn check_command(service: &Service) -> Result<(), Error> {
    let Some(started) = service.command() else {
        return Ok(());
    };
    if let Some(container) = &started.container {
        // Only looked up, not started, so any port will do.
        return Pack::find(&service.name, container, &Marker::new(), 0).map(drop);
    }
    let is_open = |text: &String| !plan::placeholders(text).is_empty();
    let own_path = started.env.get("PATH");
    let Some(program) = started.command.first().filter(|program| !is_open(program)) else {
        return Ok(());
    };
    if own_path.is_some_and(is_open) {
        return Ok(());
    }
    let program = plan::fill(program, |_| None).unwrap_or_default();
    resolve(&service.name, started, &program, &search_path(own_path))?;
    let script =
        plan::script(&started.command).filter(|script| plan::placeholders(script).is_empty());
    match script
        .map(|script| started.directory.join(script))
        .filter(|path| !path.exists())
    {
        Some(path) => Err(not_executable(
            &service.name,
            &path,
            "there is no such file",
        )),
        None => Ok(()),
    }
}

/// Finds the program's file like a shell in the service's directory. The folders of servers are searched
/// last, because only root has them in `PATH`.
fn resolve(
    service: &str,
    started: &ServiceCommand,
    program: &str,
    path: &str,
) -> Result<PathBuf, Error> {
    let directory = &started.directory;
    check_directory(service, started)?;
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![directory.join(program)]
    } else {
        let folders = env::split_paths(path).chain(SERVER_FOLDERS.map(PathBuf::from));
        folders
            .map(|folder| directory.join(folder).join(program))
            .collect()
    };
    let mut named = candidates.iter().filter(|_| !program.is_empty());
    if let Some(file) = named.clone().find(|file| executable(file)) {
        return Ok(file.clone());
    }
    if let Some(file) = named.find(|file| file.is_file()) {
        return Err(not_executable(
            service,
            file,
            "it is not executable (chmod +x)",
        ));
    }
    let searched = match candidates.as_slice() {
        [file] if program.contains('/') => file.display().to_string(),
        _ => format!("PATH: {path}"),
    };
    Err(not_found(service, program, &searched))
}

fn check_directory(service: &str, started: &ServiceCommand) -> Result<(), Error> {
    let directory = &started.directory;
    if directory.is_dir() {
        return Ok(());
    }
    let error = Error::of(
        service,
        format!("no such directory: {}", directory.display()),
    );
    Err(error.help("`directory` is relative to the folder of the experiment file"))
}

fn not_executable(service: &str, path: &Path, reason: &str) -> Error {
    Error::of(service, format!("cannot run {}: {reason}", path.display()))
}

/// Error for a launcher that cannot start a service's command.
fn wrong_command(service: &str, reason: &str) -> Error {
    Error::of(
        service,
        format!("its launcher starts scripts on Node.js: {reason}"),
    )
    .help("write the command as [\"node\", \"server.js\"]")
}

/// Error for an existing executable file that the kernel refused to run.
pub(crate) fn refused(service: &str, path: &Path, error_number: i32) -> Error {
    let error = std::io::Error::from_raw_os_error(error_number);
    let interpreter = || {
        let mut start = Vec::new();
        let _ = plan::open_file(path)
            .ok()?
            .take(LINE_BYTES_MAX)
            .read_to_end(&mut start);
        Some(
            String::from_utf8_lossy(start.strip_prefix(b"#!")?)
                .lines()
                .next()?
                .trim()
                .to_owned(),
        )
    };
    let reason = match (error_number, interpreter()) {
        (libc::ENOENT, Some(interpreter)) => {
            format!("its first line asks for {interpreter:?}, which is not there")
        }
        (libc::ENOENT, None) => {
            "the loader that it asks for is not there (another libc?)".to_owned()
        }
        (libc::ENOEXEC, _) => "it is no program for this machine and has no #! line".to_owned(),
        _ => error.to_string(),
    };
    not_executable(service, path, &reason)
}

// Derives the executed command from a service's own command: unchanged, as a Node.js cluster, or through PM2.
//
// It only handles arguments and files. Other modules start, count and end processes.

/// Number of processes of a service on the CPUs that it gets.
pub(crate) fn workers(command: &ServiceCommand, placement: &Placement) -> Option<u32> {
    command.workers.map(|workers| match workers {
        Workers::Number(number) => number,
        Workers::Cores => {
            let cpus = if placement.cpus.is_empty() {
                cpus_allowed().len()
            } else {
                placement.cpus.len()
            };
            u32::try_from(cpus).unwrap_or(u32::MAX).max(1)
        }
    })
}

/// Loaded into the primary process before the program.
const PRELOAD: &str = include_str!("cluster.cjs");
/// Its name in the scratch folder.
const PRELOAD_NAME: &str = ".cluster.cjs";

/// Runs a Node.js program as several workers, by a preloaded file. That file documents the details.
fn cluster(known: &PlaceholderValues<'_>, spec: &mut WardenSpec) -> (String, String) {
    let preload = known.scratch.join(PRELOAD_NAME).display().to_string();
    // Before all other flags, so that it runs before any other preloaded file.
    spec.command.splice(1..1, ["--require".to_owned(), preload]);
    spec.set("PROOFLOAD_WORKERS", known.workers.unwrap_or(1).to_string());
    // The primary process sends its workers SIGTERM. Many programs take a second one as "at once".
    spec.head = Some(HeadProcess::First);
    (PRELOAD_NAME.to_owned(), PRELOAD.to_owned())
}

// The launchers `pm2-fork` and `pm2-cluster`: a Node.js program started by the PM2 that is installed beside
// it.
//
// PM2 is used in the normal way, with a separate home: a PM2 that already runs on this machine is neither
// read nor changed. Its daemon is started with the service's whole environment. In cluster mode PM2 passes an
// app's variables to workers after Node.js has started in them, too late for `NODE_OPTIONS` and
// `UV_THREADPOOL_SIZE`, so these are inherited from the daemon.
//
// This module finds PM2 and writes its configuration.

/// PM2's home in the scratch folder, and files in it. PM2 defines the names of the daemon's files.
const HOME: &str = ".pm2";
const ECOSYSTEM: &str = ".pm2/ecosystem.json";
const DAEMON_PID: &str = "pm2.pid";
const DAEMON_LOG: &str = "pm2.log";
const APP_LOG: &str = "app.log";

/// Prefixes of variables that configure PM2, and one by which PM2 concludes that PM2 started it. The values
/// of the caller's shell are not meant for this PM2.
const WITHHELD_FROM_PM2: [&str; 5] = [
    "PM2_",
    "KEYMETRICS_",
    "OVER_HOME",
    "NODE_APP_INSTANCE",
    "pm_id",
];

fn pm2(
    known: &PlaceholderValues<'_>,
    path: &str,
    spec: &mut WardenSpec,
) -> Result<(String, String), Error> {
    let (service, directory) = (known.service, &known.started.directory);
    let pm2 = find(directory, path).ok_or_else(|| {
        Error::of(&service.name, "pm2 not found, by which it is to be started").help(format!(
            "install it with `npm install pm2` in {}; looked for node_modules/.bin/pm2 there and in all folders above, then in PATH: {}",
            directory.display(),
            path
        ))
    })?;
    let node = NodeCommand::parse(&spec.command)
        .map_err(|error| wrong_command(&service.name, &error.reason))?;
    let (home, file) = (known.scratch.join(HOME), known.scratch.join(ECOSYSTEM));
    let (ecosystem, names_node) = (
        ecosystem(known, &node, &home.join(APP_LOG)),
        node.node.contains('/'),
    );
    let program = std::mem::replace(&mut spec.program, pm2);
    spec.command = vec![
        "pm2".to_owned(),
        "start".to_owned(),
        file.display().to_string(),
    ];
    spec.set("PM2_HOME", home.display().to_string());
    // No banner in the output, and no check for updates.
    spec.set("PM2_DISCRETE_MODE", "true".to_owned());
    spec.set("PM2_DISABLE_VERSION_CHECK", "true".to_owned());
    if let Some(folder) = program.parent().filter(|_| names_node) {
        // PM2 runs the first node in PATH.
        spec.set("PATH", format!("{}:{path}", folder.display()));
    }
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    spec.env_withheld.extend(names.filter(|name| {
        WITHHELD_FROM_PM2
            .iter()
            .any(|start| name.starts_with(start))
    }));
    // The daemon restarts every process that ends before the daemon was asked to stop.
    spec.head = Some(HeadProcess::Named(home.join(DAEMON_PID)));
    spec.logs = vec![home.join(DAEMON_LOG), home.join(APP_LOG)];
    Ok((ECOSYSTEM.to_owned(), ecosystem))
}

/// PM2's configuration file: defaults except for features unrelated to running an app, such as `vizion`,
/// which looks for a git repository. One log for all processes keeps their lines in order.
fn ecosystem(known: &PlaceholderValues<'_>, node: &NodeCommand<'_>, log: &Path) -> String {
    let started = known.started;
    let is_cluster = match started.launcher {
        Launcher::Pm2Cluster => true,
        Launcher::Pm2Fork | Launcher::Exec | Launcher::Cluster => false,
    };
    let mut app = json!({
        "name": known.service.name,
        // Unchanged, because PM2 reads a path with a space, which the directory may contain, as a shell
        // command.
        "script": node.script,
        "args": node.arguments,
        "node_args": node.flags,
        "interpreter": "node",
        "cwd": started.directory,
        "out_file": log,
        "error_file": log,
        "merge_logs": true,
        "vizion": false,
        "exec_mode": if is_cluster { "cluster" } else { "fork" },
    });
    if is_cluster {
        app["instances"] = json!(known.workers.unwrap_or(1));
    }
    if !started.pmx {
        app["pmx"] = json!(false);
    }
    json!({ "apps": [app] }).to_string()
}

/// Searches like Node.js: beside the program, in all parent folders, then in the search path.
fn find(directory: &Path, path: &str) -> Option<PathBuf> {
    let near = directory
        .ancestors()
        .map(|folder| folder.join("node_modules/.bin"));
    let far = env::split_paths(path).map(|folder| directory.join(folder));
    near.chain(far)
        .map(|folder| folder.join("pm2"))
        .find(|file| executable(file))
}
