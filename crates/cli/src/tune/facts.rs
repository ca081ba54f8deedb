//! What is known of a service and its machine before anything is tried: by its command, its variables and files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use analysis::tune::{Facts, LIBRARIES_SOUGHT, Runtime};
use plan::{Launcher, NodeCommand, Service};

/// Where libraries lie.
const LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/lib64",
];
/// How long `node --version` may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a program of Go has in it.
const GO_MARK: &[u8] = b"\xff Go buildinf:";
/// Beyond this no program is looked through.
const PROGRAM_BYTES_MAX: u64 = 200 << 20;

/// Looks at the service and at this machine. It starts nothing but `node --version`.
pub fn look(service: &Service) -> Facts {
    let Some(command) = service.command() else { return Facts::default() };
    let mut env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    env.extend(command.env.clone());
    let runtime = runtime(&command.command, &command.directory, command.launcher);
    let node = (runtime == Some(Runtime::Node)).then(|| command.command[0].as_str());
    let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    Facts {
        runtime,
        node: node.and_then(|node| version(Path::new(node)).map(|(version, _)| version)),
        words: command.command.clone(),
        env,
        files: fs::read_dir(&command.directory)
            .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
            .unwrap_or_default(),
        launcher: command.launcher,
        cores: thread::available_parallelism().map_or(1, usize::from),
        huge_pages: huge_pages.is_ok_and(|text| !text.contains("[never]")),
        libraries: libraries(),
        nginx: is_installed("nginx"),
        other_nodes: node.map(other_nodes).unwrap_or_default(),
        ..Facts::default()
    }
}

fn runtime(words: &[String], directory: &Path, launcher: Launcher) -> Option<Runtime> {
    let first = words.first()?;
    if launcher != Launcher::Exec || NodeCommand::parse(words).is_ok() {
        return Some(Runtime::Node);
    }
    let name = Path::new(first).file_name()?.to_str()?;
    match name {
        "java" => Some(Runtime::Java),
        "go" => Some(Runtime::Go),
        "gunicorn" | "uvicorn" => Some(Runtime::Python),
        name if name.starts_with("python") => Some(Runtime::Python),
        _ => is_go(&directory.join(first)).then_some(Runtime::Go),
    }
}

fn is_go(program: &Path) -> bool {
    let Ok(file) = plan::open_file(program) else { return false };
    let mut bytes = Vec::new();
    let read = file.take(PROGRAM_BYTES_MAX).read_to_end(&mut bytes);
    read.is_ok() && bytes.starts_with(b"\x7fELF") && bytes.windows(GO_MARK.len()).any(|at| at == GO_MARK)
}

/// Major and minor version of a node, and all of it.
fn version(node: &Path) -> Option<((u32, u32), String)> {
    let said = machine::run(Command::new(node).arg("--version"), PATIENCE).ok()??;
    let said = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    let mut numbers = said.trim_start_matches('v').split('.').map(str::parse::<u32>);
    Some(((numbers.next()?.ok()?, numbers.next()?.ok()?), said))
}

/// Servers are often where the path of a user does not lead.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.into_iter().any(|folder| folder.join(program).is_file())
}

fn libraries() -> Vec<PathBuf> {
    let names = LIBRARIES_SOUGHT.iter();
    let found = names.flat_map(|name| LIBRARIES.map(|folder| Path::new(folder).join(name)));
    found.filter(|path| path.exists()).collect()
}

/// Versions that version managers keep, unlike the one that runs.
fn other_nodes(node: &str) -> Vec<(PathBuf, String)> {
    let own = version(Path::new(node)).map(|(_, version)| version);
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let nvm = std::env::var_os("NVM_DIR").map_or_else(|| home.join(".nvm"), PathBuf::from);
    let folders = [
        nvm.join("versions/node"),
        home.join(".local/share/fnm/node-versions"),
        home.join(".volta/tools/image/node"),
        PathBuf::from("/usr/local/n/versions/node"),
        PathBuf::from("/opt"),
    ];
    let programs = |folder: &PathBuf| {
        let entries: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.into_iter().flat_map(|path| [path.join("bin/node"), path.join("installation/bin/node")])
    };
    let mut found: Vec<(PathBuf, String)> = folders
        .iter()
        .flat_map(programs)
        .filter(|program| program.is_file())
        .filter_map(|program| version(&program).map(|(_, version)| (program, version)))
        .filter(|(_, version)| own.as_ref() != Some(version))
        .collect();
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found.dedup_by(|one, other| one.1 == other.1);
    found
}
