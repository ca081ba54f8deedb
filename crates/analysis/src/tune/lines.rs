//! Settings as the user writes them in production: variables, words of the command, lines of code, directives of
//! nginx. Copied from the changes that were measured.

use plan::NodeCommand;
use serde::{Deserialize, Serialize};

use super::setting::{SettingChange, SettingLevel};
use super::{COMPRESSION, SERVER_FILE};

/// A line to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineToWrite {
    /// Where it belongs: `environment`, `command`, `code`, `nginx`, or `pm2`.
    pub place: String,
    /// The line.
    pub text: String,
}

/// Start of the script that redirects the output of a service.
const REDIRECTS: &str = "exec \"$0\" \"$@\" ";

impl LineToWrite {
    fn new(place: &str, text: impl Into<String>) -> LineToWrite {
        LineToWrite {
            place: place.to_owned(),
            text: plan::masked(None, &text.into()),
        }
    }

    /// The lines that apply a level to a service with this command.
    pub fn all(level: &SettingLevel, command: &[String]) -> Vec<LineToWrite> {
        let changes = level.changes.iter();
        changes.filter_map(|change| line(change, command)).collect()
    }
}

/// `None` if the change only passes another one to the service.
fn line(change: &SettingChange, command: &[String]) -> Option<LineToWrite> {
    let words = |words: Vec<String>| LineToWrite::new("command", plan::command_line(words));
    Some(match change {
        SettingChange::Env(name, value) => match of_code(name, value) {
            Some(text) => LineToWrite::new("code", text),
            None => LineToWrite::new("environment", assigned(name, value)),
        },
        SettingChange::Append { value, .. } if value.contains(SERVER_FILE) => return None,
        SettingChange::Append {
            variable,
            by,
            value,
            inherited,
        } => {
            let whole = if inherited.is_empty() {
                value.clone()
            } else {
                format!("{inherited}{by}{value}")
            };
            LineToWrite::new("environment", assigned(variable, &whole))
        }
        SettingChange::Arguments(more) => words([command, more].concat()),
        SettingChange::Flags(flags) => {
            let (program, rest) = command.split_at(1.min(command.len()));
            words([program, flags, rest].concat())
        }
        SettingChange::Before(before) => match redirected(before) {
            Some(redirect) => {
                let command = plan::command_line(command.to_vec());
                LineToWrite::new("command", format!("{command} {redirect}"))
            }
            None => words([before, command].concat()),
        },
        SettingChange::Program(program) => {
            let rest = command.get(1..).unwrap_or_default();
            words([std::slice::from_ref(program), rest].concat())
        }
        SettingChange::Cluster(count) => LineToWrite::new("code", cluster(*count, command)),
        SettingChange::Pm2Metrics(metrics) => {
            LineToWrite::new("pm2", format!("pmx: {metrics},  // ecosystem.config.js"))
        }
        SettingChange::Nginx(template) => {
            let is_gzip = template.to_string_lossy().contains("gzip");
            let lines: Vec<&str> = COMPRESSION.lines().map(str::trim).collect();
            let pool = "keepalive 256; keepalive_timeout 4s;";
            let text = if is_gzip {
                lines.join(" ")
            } else {
                pool.to_owned()
            };
            LineToWrite::new(
                "nginx",
                format!("{text}  # all of it: {}", template.display()),
            )
        }
        SettingChange::Overlay(_) => LineToWrite::new(
            "code",
            "// remove the compression, such as app.use(compression())",
        ),
    })
}

fn assigned(name: &str, value: &str) -> String {
    format!("{name}={}", plan::command_line([value.to_owned()]))
}

/// The code for what the script of a tuning sets by a variable.
fn of_code(variable: &str, value: &str) -> Option<String> {
    Some(match variable {
        "PROOFLOAD_KEEP_ALIVE_MS" => format!("server.keepAliveTimeout = {value};"),
        "PROOFLOAD_HEADERS_MS" => {
            format!("server.headersTimeout = server.requestTimeout = {value};")
        }
        "PROOFLOAD_BACKLOG" => format!("server.listen({{ port, backlog: {value} }});"),
        _ => return None,
    })
}

/// The redirection of words in front of a command, as `> output.log 2>&1`.
fn redirected(before: &[String]) -> Option<String> {
    let [_, _, script] = before else { return None };
    Some(script.strip_prefix(REDIRECTS)?.replace("{scratch}/", ""))
}

/// Code that starts several processes of the script. A file with the script itself must not fork in its workers.
fn cluster(count: u32, command: &[String]) -> String {
    let fork = format!("for (let n = 0; n < {count}; n++) cluster.fork();");
    let code = match NodeCommand::parse(command) {
        Ok(NodeCommand { script, .. }) => {
            format!("cluster.setupPrimary({{ exec: '{script}' }}); {fork}  // in a file of its own")
        }
        Err(_) => format!("if (cluster.isPrimary) {fork} else {{ /* the service */ }}"),
    };
    format!("const cluster = require('node:cluster'); {code}")
}

#[cfg(test)]
mod tests {
    use super::super::tried;
    use super::*;

    fn lines(changes: Vec<SettingChange>) -> Vec<String> {
        let command = ["node", "server.js"].map(str::to_owned);
        let level = SettingLevel {
            name: String::new(),
            changes,
        };
        let lines = LineToWrite::all(&level, &command).into_iter();
        lines
            .map(|line| format!("{}: {}", line.place, line.text))
            .collect()
    }

    #[test]
    fn lines_are_those_that_were_measured() {
        let of_user = |text: &str| lines(tried(text).expect("a setting").levels[0].changes.clone());
        assert_eq!(of_user("POOL=a b"), ["environment: POOL='a b'"]);
        assert_eq!(of_user("flag: -w 4"), ["command: node server.js -w 4"]);
        assert_eq!(
            of_user("before: nice -n 5"),
            ["command: nice -n 5 node server.js"]
        );
        let append = SettingChange::Append {
            variable: "NODE_OPTIONS".into(),
            by: " ".into(),
            value: "--a".into(),
            inherited: "--b".into(),
        };
        assert_eq!(lines(vec![append]), ["environment: NODE_OPTIONS='--b --a'"]);
        let code = vec![
            SettingChange::Env("PROOFLOAD_BACKLOG".into(), "4096".into()),
            SettingChange::Append {
                variable: "NODE_OPTIONS".into(),
                by: " ".into(),
                value: format!("--require=/x/{SERVER_FILE}"),
                inherited: String::new(),
            },
        ];
        assert_eq!(
            lines(code),
            ["code: server.listen({ port, backlog: 4096 });"]
        );
        let log = [
            "sh",
            "-c",
            "exec \"$0\" \"$@\" > \"{scratch}/output.log\" 2>&1",
        ];
        let log = SettingChange::Before(log.map(str::to_owned).into());
        assert_eq!(
            lines(vec![log]),
            ["command: node server.js > \"output.log\" 2>&1"]
        );
        let cluster = lines(vec![SettingChange::Cluster(2)]).concat();
        assert!(
            cluster.contains("exec: 'server.js'") && cluster.contains("n < 2;"),
            "{cluster}"
        );
        let unknown = super::cluster(2, &["./start".to_owned()]);
        assert!(unknown.contains("if (cluster.isPrimary) for"), "{unknown}");
    }
}
