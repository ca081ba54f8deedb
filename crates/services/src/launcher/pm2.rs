//! The launchers `pm2-fork` and `pm2-cluster`: a Node.js program started by the PM2 that is installed beside it.
//!
//! PM2 is used as its users do, with a home of its own: nothing of a PM2 that runs on this machine is seen or touched.
//! Its daemon is started with the service's whole environment. In cluster mode PM2 hands an app's variables to workers
//! when Node.js already runs in them, too late for `NODE_OPTIONS` and `UV_THREADPOOL_SIZE`, which they inherit so.
//!
//! It only finds PM2 and writes down what it is to start.

use std::env;
use std::path::{Path, PathBuf};

use plan::{Launcher, NodeCommand};
use serde_json::json;

use super::{Launch, Wanted};
use crate::command::executable;
use crate::error::TargetError;
use crate::message::Head;

/// PM2's home in the scratch folder, and files in it. The names of the daemon's are PM2's own.
const HOME: &str = ".pm2";
const ECOSYSTEM: &str = ".pm2/ecosystem.json";
const DAEMON_PID: &str = "pm2.pid";
const DAEMON_LOG: &str = "pm2.log";
const APP_LOG: &str = "app.log";

/// Beginnings of variables by which PM2 is told things, and one by which it believes to be run by itself: those of the
/// caller's shell are not meant for this PM2.
const WITHHELD: [&str; 5] = ["PM2_", "KEYMETRICS_", "OVER_HOME", "NODE_APP_INSTANCE", "pm_id"];

pub(super) fn launch(wanted: &Wanted<'_>) -> Result<Launch, TargetError> {
    let service = wanted.service;
    let program = find(&service.directory, wanted.path).ok_or_else(|| TargetError::Pm2Missing {
        service: service.name.clone(),
        directory: service.directory.clone(),
        searched: wanted.path.to_owned(),
    })?;
    let node = NodeCommand::parse(wanted.command)
        .map_err(|error| TargetError::WrongCommand { service: service.name.clone(), reason: error.reason })?;
    let (home, file) = (wanted.scratch.join(HOME), wanted.scratch.join(ECOSYSTEM));
    let ecosystem = ecosystem(wanted, &node, &home.join(APP_LOG));
    let variable = |name: &str, value: String| (name.to_owned(), value);
    let mut env = vec![
        variable("PM2_HOME", home.display().to_string()),
        // No banner in the output.
        variable("PM2_DISCRETE_MODE", "true".to_owned()),
        // Nobody else is told of it.
        variable("PM2_DISABLE_VERSION_CHECK", "true".to_owned()),
    ];
    if let Some(folder) = wanted.program.parent().filter(|_| node.node.contains('/')) {
        // PM2 runs the node that comes first in PATH.
        env.push(variable("PATH", format!("{}:{}", folder.display(), wanted.path)));
    }
    Ok(Launch {
        program,
        command: vec!["pm2".to_owned(), "start".to_owned(), file.display().to_string()],
        env,
        withheld: withheld(),
        files: vec![(ECOSYSTEM.to_owned(), ecosystem)],
        // It starts again whatever ends before it has been asked itself.
        head: Some(Head::Named(home.join(DAEMON_PID))),
        logs: vec![home.join(DAEMON_LOG), home.join(APP_LOG)],
    })
}

/// What PM2 starts. Its defaults, but for what does not belong to how an app runs: `vizion` looks for a git repository.
/// One log for all processes keeps their lines in order.
fn ecosystem(wanted: &Wanted<'_>, node: &NodeCommand<'_>, log: &Path) -> String {
    let service = wanted.service;
    let mut app = json!({
        "name": service.name,
        // As it is written: PM2 takes a path with a blank, which the directory may have, for a line of a shell.
        "script": node.script,
        "args": node.arguments,
        "node_args": node.flags,
        "interpreter": "node",
        "cwd": service.directory,
        "out_file": log,
        "error_file": log,
        "merge_logs": true,
        "vizion": false,
    });
    if service.launcher == Launcher::Pm2Cluster {
        app["exec_mode"] = json!("cluster");
        app["instances"] = json!(wanted.workers.unwrap_or(1));
    } else {
        app["exec_mode"] = json!("fork");
    }
    if !service.pmx {
        app["pmx"] = json!(false);
    }
    json!({ "apps": [app] }).to_string()
}

/// As Node.js finds things: beside the program, in any folder above, then wherever programs are.
fn find(directory: &Path, path: &str) -> Option<PathBuf> {
    let near = directory.ancestors().map(|folder| folder.join("node_modules/.bin"));
    let far = env::split_paths(path).map(|folder| directory.join(folder));
    near.chain(far).map(|folder| folder.join("pm2")).find(|file| executable(file))
}

fn withheld() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| WITHHELD.iter().any(|start| name.starts_with(start))).collect()
}
