//! The service that is tuned, as it is: a command, or an experiment file without factors.

use std::path::{Path, PathBuf};

use analysis::tune::Facts;
use plan::{Draft, DraftSource, DraftVariant, Plan, SERVICE, Setting};

use super::{TuneArgs, facts};
use crate::exit::Failed;
use crate::experiment::{self, Experiment};
use crate::{print, run};

/// The service as it is.
pub struct Base {
    /// The text of its experiment.
    pub text: String,
    /// What a record says was asked.
    pub name: String,
    /// Where directories are relative to.
    pub directory: PathBuf,
    pub plan: Plan,
}

impl Base {
    /// Reads it.
    ///
    /// # Errors
    /// If it cannot be read, or is none that can be started in other ways.
    pub fn of(args: &TuneArgs) -> anyhow::Result<Base> {
        let is_file = |what: &String| what.ends_with(".toml") && Path::new(what).is_file();
        let base = match &args.what {
            Some(command) if !is_file(command) => Base::of_command(args, command)?,
            named => {
                let file = Experiment::file(named.as_ref().map(Path::new))?;
                let directory =
                    named.as_ref().and_then(|path| Path::new(path).parent()).unwrap_or(Path::new("."));
                let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
                let plan = file.plan(None)?;
                Base { text: file.text()?, name: file.name(), directory: directory.to_owned(), plan }
            }
        };
        let refuse = |message: &str, hint: &str| {
            Err(Failed::usage(format!("{}: {message}", base.name)).hint(hint).into())
        };
        if base.plan.variants.len() != 1 || base.plan.measure.is_some() {
            return refuse(
                "it compares variants itself, and tune varies one service",
                "leave out [factors] and [measure], or name the command: proofload tune 'node server.js'",
            );
        }
        if !base.plan.variants[0].entry_service().is_some_and(plan::Service::is_here)
            || base.plan.loads_running()
        {
            return refuse(
                "it is not started by a command here, and tune starts a service in other ways",
                "name the command that starts it: proofload tune 'node server.js'",
            );
        }
        Ok(base)
    }

    fn of_command(args: &TuneArgs, command: &str) -> anyhow::Result<Base> {
        if command.starts_with("http://") || command.starts_with("https://") {
            return Err(Failed::usage(format!(
                "{command} runs already, and tune starts a service in other ways"
            ))
            .hint("name the command that starts it: proofload tune 'node server.js'")
            .into());
        }
        let source = DraftSource::command(command)
            .map_err(|error| Failed::usage(format!("`{command}`: {error}")).hint(error.hint))?;
        let here = std::env::current_dir().unwrap_or_default().display().to_string();
        let mut settings = args.asked.settings()?;
        settings.push(Setting::new(&["services", SERVICE, "directory"], here.as_str(), ""));
        let draft = Draft {
            made_by: print::shown_command(),
            again: "proofload run".to_owned(),
            name: run::slug(Path::new(".")).unwrap_or_else(|| "service".to_owned()),
            question: Some("What makes it faster?".to_owned()),
            variants: vec![DraftVariant { name: None, source, from: command.to_owned() }],
            settings,
        };
        let written = draft.write();
        let plan =
            written.plan(Path::new("."), None).map_err(|found| experiment::shown_made(&written, &found))?;
        Ok(Base { text: written.text, name: command.to_owned(), directory: ".".into(), plan })
    }

    /// What is known of it before it runs.
    pub fn facts(&self) -> Facts {
        let of = &self.plan.variants[0];
        Facts { tls: of.load.tls.is_some(), ..of.entry_service().map(facts::look).unwrap_or_default() }
    }
}
