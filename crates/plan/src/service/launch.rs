//! Whether a service can be started in the way that it asks for: what launcher, workers and command say together.
//!
//! Pure: whether PM2 is there is found out when it is started.

use crate::file::Service;
use crate::launch::{Launcher, Workers};
use crate::node_command::NodeCommand;
use crate::problem::Problem;
use crate::site::Site;

/// Reports what does not go together.
pub(super) fn judge(site: &mut Site<'_>, name: &str, service: &Service) {
    let launcher = service.launcher;
    if service.pmx.is_some() && !launcher.is_pm2() {
        let message = format!("`services.{name}.pmx` is PM2's, and the launcher is `{}`", launcher.name());
        let problem = Problem::new(site.tree.place(&["services", name, "pmx"]), message, "has no effect");
        site.report(
            problem.hint("set it where `launcher` is `pm2-fork` or `pm2-cluster`, in a level for example"),
        );
    }
    let several = service.workers.is_some_and(|workers| workers != Workers::Number(1));
    if launcher == Launcher::Pm2Fork && several {
        let message = format!("`services.{name}.workers` asks for several, and `pm2-fork` runs one process");
        let problem = Problem::new(site.tree.place(&["services", name, "workers"]), message, "expected 1");
        site.report(problem.hint("leave it out, or let several share the port: launcher = \"pm2-cluster\""));
    }
    if launcher != Launcher::Exec && !service.command.is_empty() {
        report_not_node(site, name, service);
    }
}

/// What these launchers start is a script on Node.js. The documented `pm2 start npm -i 4` starts four times npm, whose
/// children then fight for the port.
fn report_not_node(site: &mut Site<'_>, name: &str, service: &Service) {
    let Err(error) = NodeCommand::parse(&service.command) else { return };
    let launcher = service.launcher.name();
    let message = format!("`services.{name}.command` cannot be started by `{launcher}`: {error}");
    let span = site.tree.item_place(&["services", name, "command"], error.word);
    let problem = Problem::new(span, message, "expected node, its flags, a script, its arguments");
    site.report(problem.hint(
        "name the script itself, for example [\"node\", \"server.js\"], also where npm would run it: a launcher makes \
         workers of what it starts, and of npm that is npm",
    ));
}

/// As how many processes it serves.
pub(super) fn workers(service: &Service) -> Option<Workers> {
    match service.launcher {
        Launcher::Exec => service.workers,
        Launcher::Pm2Fork => Some(Workers::Number(1)),
        Launcher::Cluster | Launcher::Pm2Cluster => Some(service.workers.unwrap_or(Workers::Cores)),
    }
}
