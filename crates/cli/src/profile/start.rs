//! Profiles of services that are started for it: the variants of an experiment, or one command. Nothing is measured, so there is no
//! verdict; the record keeps what was captured.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use plan::Plan;
use record::{EndReason, Record};

use super::form::{self, FormArgs};
use super::taken;
use crate::exit::{self, Failed};
use crate::experiment::{self, Experiment};
use crate::run::{Course, How};
use crate::{explanation, print, run};

/// Flags for what is started.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Path that a command is asked for
    #[arg(long, default_value = "/", conflicts_with = "what")]
    path: String,
    /// Connections that a command gets, each with one request at a time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "what")]
    connections: u32,
    /// Path that a command answers with a 2xx as soon as it is ready [default: when it responds at all]
    #[arg(long, value_name = "PATH", conflicts_with = "what")]
    ready: Option<String>,
    /// Passes over all variants; of one there is no interval [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: Option<u32>,
    /// Seed of every random choice, instead of the file's or a new one
    #[arg(long)]
    seed: Option<u64>,
    /// Folder of the record of what is started, made new [default: records/NAME-profile-TIME]
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

impl StartArgs {
    /// Refuses flags that are for what is started, where nothing is.
    ///
    /// # Errors
    /// If one was given.
    pub fn refused_for(&self, what: &Path) -> Result<(), Failed> {
        let given = [
            ("--rounds", self.rounds.is_some()),
            ("--seed", self.seed.is_some()),
            ("--record", self.record.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                Err(Failed::usage(format!("{flag}: nothing is started for {}", what.display()))
                    .hint("it is for experiments (.toml) and commands"))
            }
            None => Ok(()),
        }
    }
}

/// Captures all variants of an experiment, without measuring them.
///
/// # Errors
/// If the file has problems, a service fails, or the record cannot be written.
pub fn experiment(file: &Path, start: &StartArgs, form: &FormArgs) -> anyhow::Result<ExitCode> {
    let file = Experiment::File(file.to_owned());
    capture(&file.name(), file.text()?, file.plan(None)?, start, form)
}

/// Starts one command as a service and captures it.
///
/// # Errors
/// As [`experiment`].
pub fn command(command: &[String], start: &StartArgs, form: &FormArgs) -> anyhow::Result<ExitCode> {
    let text = as_experiment(command, start);
    let name = command.join(" ");
    let plan = plan::parse(&text, Path::new("."))
        .map_err(|found| experiment::shown(Path::new("the experiment made of the command"), &text, &found))?;
    capture(&name, text, plan, start, form)
}

/// The command as an experiment of one variant, which the record keeps.
fn as_experiment(command: &[String], start: &StartArgs) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let ready = start.ready.as_ref().map(|path| format!("ready = {}\n", quoted(path))).unwrap_or_default();
    format!(
        "name = \"command\"\nquestion = {}\n\n[services.command]\ncommand = [{}]\n{ready}\
         env = {{ PORT = \"{{port}}\" }}\n\n[load]\npath = {}\nconnections = {}\n\n[design]\nexplain = true\n",
        quoted(&format!("Where does {} spend its time?", command.join(" "))),
        words.join(", "),
        quoted(&start.path),
        start.connections,
    )
}

fn capture(
    name: &str,
    text: String,
    mut plan: Plan,
    start: &StartArgs,
    form: &FormArgs,
) -> anyhow::Result<ExitCode> {
    plan.design.explain = true;
    plan.design.seed = start.seed.or(plan.design.seed);
    let directory =
        start.record.clone().unwrap_or_else(|| crate::records::claim(&format!("{}-profile", plan.name)));
    let rounds = start.rounds.unwrap_or(lab::ROUNDS);
    let title = plan.question.clone().unwrap_or_else(|| plan.name.clone());
    let course = Course::new(name, text, plan, &directory);
    let (record, result) = run::carry(Course { how: How::CapturesOnly { rounds }, ..course })?;
    // A run that was cut short has what was captured up to then.
    let Some(explanation) = explanation::kept(&record.directory) else {
        result.map_err(run::failed)?;
        return nothing(&record);
    };
    form::print(form, &explanation, &title)?;
    let directory = record.directory.display();
    print::talk(&format!("flame graphs: {directory}/{}", explanation::FLAME));
    print::talk(&format!("again, or in other forms: proofload profile {directory}"));
    run::end(
        result,
        if is_interrupted(&record) { ExitCode::from(exit::INTERRUPTED) } else { taken(&explanation) },
    )
}

fn is_interrupted(record: &Record) -> bool {
    record.ended.as_ref().is_some_and(|ended| ended.reason == EndReason::Interrupted)
}

/// The end of a run that captured nothing and yet did not fail.
fn nothing(record: &Record) -> anyhow::Result<ExitCode> {
    if is_interrupted(record) {
        return Ok(ExitCode::from(exit::INTERRUPTED));
    }
    let hint = format!("what the services said is in {}", record.directory.join("logs").display());
    Err(Failed::new(exit::VOID, "nothing was captured").hint(hint).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_becomes_an_experiment_whatever_it_is_called() {
        let start = StartArgs {
            path: "/a?b=\"c\"".to_owned(),
            connections: 7,
            ready: Some("/healthz".to_owned()),
            rounds: None,
            seed: None,
            record: None,
        };
        let command = ["node", "a \"b\" \\ c.js", "--port", "{port}"].map(str::to_owned);
        let plan =
            plan::parse(&as_experiment(&command, &start), Path::new(".")).expect("it is an experiment");
        let service = plan.variants[0].services[0].command().expect("it is started");
        assert_eq!(service.command, command);
        assert_eq!(service.env["PORT"], "{port}");
        let load = &plan.variants[0].load;
        assert_eq!((load.requests[0].path.as_str(), load.connections), ("/a?b=\"c\"", 7));
        assert!(plan.design.explain && plan.comparisons.is_empty());
    }
}
