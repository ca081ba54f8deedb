//! The tuned service: a command, or an experiment file without factors. Collects facts about it and its
//! machine before the tuning, from its command, variables and files, and results of its first runs, one of
//! which is a short profile.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use ::explain::CodeKind;
use analysis::tune::{self, Catalogue, Runtime, ServiceFacts, StepTimes};
use plan::{
    DraftSource, DraftVariant, ExperimentDraft, FlagSetting, Launcher, NodeCommand, Overrides,
    Plan, SERVICE, Service,
};
use record::Record;

use super::{TuneArgs, TuneRun};
use crate::exit::CliError;
use crate::experiment::{self, Experiment};
use crate::flags::{explain_setting, seed_setting};
use crate::{explanation, print, records};

pub struct Base {
    pub text: String,
    /// The experiment's name in a record.
    pub name: String,
    /// Base of relative directories.
    pub directory: PathBuf,
    pub plan: Plan,
}

impl Base {
    pub fn of(args: &TuneArgs) -> anyhow::Result<Base> {
        let base = match &args.what {
            Some(command) if !experiment::is_named(command) => Base::of_command(args, command)?,
            named => {
                let file = Experiment::file(named.as_ref().map(Path::new))?;
                args.asked.check_file(&file.file)?;
                let (plan, name) = (file.plan(&args.overrides(), None)?, file.name());
                Base {
                    text: file.text(),
                    directory: records::folder_of(Path::new(&name)).to_owned(),
                    name,
                    plan,
                }
            }
        };
        let refuse = |message: &str, hint: &str| {
            Err(CliError::usage(format!("{}: {message}", base.name))
                .hint(hint)
                .into())
        };
        if base.plan.variants.len() != 1 || base.plan.measure.is_some() {
            return refuse(
                "it compares variants itself, and tune varies one service",
                "leave out [factors] and [measure], or name the command: proofload tune 'node server.js'",
            );
        }
        if base.plan.loads_running() {
            return refuse(
                "it is not started by a command here, and tune starts a service in other ways",
                "name the command that starts it: proofload tune 'node server.js'",
            );
        }
        Ok(base)
    }

    fn of_command(args: &TuneArgs, command: &str) -> anyhow::Result<Base> {
        if command.starts_with("http://") || command.starts_with("https://") {
            let message = format!(
                "{} runs already, and tune starts a service in other ways",
                plan::quotable(command)
            );
            let hint = "name the command that starts it: proofload tune 'node server.js'";
            return Err(CliError::usage(message).hint(hint).into());
        }
        let source = DraftSource::command(command).map_err(|error| {
            CliError::usage(format!("`{}`: {error}", plan::quotable(command))).hint(error.hint)
        })?;
        let here = std::env::current_dir()
            .unwrap_or_default()
            .display()
            .to_string();
        let mut settings = args.asked.settings()?;
        settings.push(FlagSetting::new(
            &["services", SERVICE, "directory"],
            here.as_str(),
            "",
        ));
        let draft = ExperimentDraft {
            made_by: print::shown_command(),
            again: "proofload run".to_owned(),
            name: experiment::folder_slug(Path::new(".")).unwrap_or_else(|| "service".to_owned()),
            question: Some("What makes it faster?".to_owned()),
            variants: vec![DraftVariant {
                name: None,
                source,
                from: command.to_owned(),
            }],
            settings,
        };
        let (written, plan) = experiment::drafted(&draft, Path::new("."), &args.overrides())?;
        let words = plan::words(command).unwrap_or_default();
        let masked = plan::masked_words(&words);
        let name = if masked == words {
            command.to_owned()
        } else {
            plan::command_line(masked)
        };
        Ok(Base {
            text: written.text,
            name,
            directory: ".".into(),
            plan,
        })
    }

    /// Checks that the experiment is valid with each level of a user's setting.
    pub fn check(&self, text: &str) -> Result<(), CliError> {
        let refused =
            |why: String| CliError::usage(format!("--try '{}': {why}", plan::quotable(text)));
        let setting = tune::tried(text).map_err(refused)?;
        for level in 1..=setting.levels.len() {
            let one = std::slice::from_ref(&setting);
            let (experiment, _) =
                tune::experiment(&self.text, &self.plan.variants[0], one, &[vec![level]]);
            if let Err(problems) = plan::parse(&experiment, &self.directory) {
                let why = problems.into_iter().next().map(|problem| problem.message);
                return Err(refused(why.unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Facts that are known before it runs.
    pub fn facts(&self) -> ServiceFacts {
        let of = &self.plan.variants[0];
        ServiceFacts {
            tls: of.load.tls.is_some(),
            ..of.entry_service().map(look).unwrap_or_default()
        }
    }
}

const LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/lib64",
];
/// A mark in every Go program.
const GO_MARK: &[u8] = b"\xff Go buildinf:";
/// Larger programs are not searched.
const PROGRAM_BYTES_MAX: u64 = 200 << 20;

/// Examines the service and this machine. It starts nothing but `node --version`.
fn look(service: &Service) -> ServiceFacts {
    let Some(command) = service.command() else {
        return ServiceFacts::default();
    };
    let mut env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| services::is_inherited(name))
        .collect();
    env.extend(command.env.clone());
    let runtime = runtime(&command.command, &command.directory, command.launcher);
    let node = (runtime == Some(Runtime::Node)).then(|| command.command[0].as_str());
    let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    ServiceFacts {
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
        ..ServiceFacts::default()
    }
}

fn runtime(words: &[String], directory: &Path, launcher: Launcher) -> Option<Runtime> {
    let first = words.first()?;
    if launcher.makes_workers() || NodeCommand::parse(words).is_ok() {
        return Some(Runtime::Node);
    }
    match Path::new(first).file_name()?.to_str()? {
        "java" => Some(Runtime::Java),
        "go" => Some(Runtime::Go),
        name if name == "gunicorn" || name == "uvicorn" || name.starts_with("python") => {
            Some(Runtime::Python)
        }
        _ => is_go(&directory.join(first)).then_some(Runtime::Go),
    }
}

fn is_go(program: &Path) -> bool {
    let Ok(file) = plan::open_file(program) else {
        return false;
    };
    let mut bytes = Vec::new();
    let read = file.take(PROGRAM_BYTES_MAX).read_to_end(&mut bytes);
    read.is_ok()
        && bytes.starts_with(b"\x7fELF")
        && bytes.windows(GO_MARK.len()).any(|at| at == GO_MARK)
}

/// Major and minor version of a node, and the full version.
fn version(node: &Path) -> Option<((u32, u32), String)> {
    let said = machine::version_of(node.to_str()?)?;
    let mut numbers = said
        .trim_start_matches('v')
        .split('.')
        .map(str::parse::<u32>);
    Some(((numbers.next()?.ok()?, numbers.next()?.ok()?), said))
}

/// Servers are often installed outside of a user's PATH.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders
        .into_iter()
        .any(|folder| folder.join(program).is_file())
}

fn libraries() -> Vec<PathBuf> {
    let catalogue = Catalogue::built_in();
    let found = catalogue
        .libraries()
        .flat_map(|name| LIBRARIES.map(|folder| Path::new(folder).join(name)));
    found.filter(|path| path.exists()).collect()
}

/// Versions from version managers that differ from the running one.
fn other_nodes(node: &str) -> Vec<(PathBuf, String)> {
    let own = version(Path::new(node));
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let nvm = std::env::var_os("NVM_DIR").map_or_else(|| home.join(".nvm"), PathBuf::from);
    let folders = [
        nvm.join("versions/node"),
        home.join(".local/share/fnm/node-versions"),
        home.join(".volta/tools/image/node"),
        PathBuf::from("/usr/local/n/versions/node"),
        PathBuf::from("/opt"),
    ];
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let programs = entries
        .flat_map(|entry| ["bin/node", "installation/bin/node"].map(|it| entry.path().join(it)));
    let mut found: Vec<(PathBuf, _)> = programs
        .filter(|program| program.is_file())
        .filter_map(|program| version(&program).map(|version| (program, version)))
        .filter(|(_, version)| own.as_ref() != Some(version))
        .collect();
    // The newest one is tried first, and preferred.
    found.sort_by(|one, other| other.1.cmp(&one.1));
    found.dedup_by(|one, other| one.1 == other.1);
    found
        .into_iter()
        .map(|(program, (_, version))| (program, version))
        .collect()
}

/// From this number of log bytes per request, a service counts as one that logs.
const LOG_BYTES_MIN: f64 = 5.0;

/// Whether a service wrote a line of log for every few requests.
pub fn logs(record: &Record) -> bool {
    let files = fs::read_dir(record.directory.join("logs"))
        .into_iter()
        .flatten()
        .flatten();
    let bytes: u64 = files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum();
    let trials = record.trials();
    let dropped: u64 = trials
        .clone()
        .filter_map(|trial| Some(trial.ended.as_ref()?.output_dropped_bytes))
        .sum();
    let responses: u64 = trials
        .flat_map(|trial| &trial.slices)
        .map(|slice| slice.counts.responses)
        .sum();
    (bytes + dropped) as f64 >= LOG_BYTES_MIN * responses.max(1) as f64
}

/// Whether its responses have a content coding.
pub fn compresses(record: &Record) -> bool {
    let trials = record.trials();
    let headers = trials
        .flat_map(|trial| &trial.started.witnesses)
        .flat_map(|witness| &witness.headers);
    headers.into_iter().any(|(name, value)| {
        model::header::is_same(name, "content-encoding") && value != "identity"
    })
}

impl TuneRun<'_> {
    /// Profiles the unchanged service. Without a profile all applicable settings are tried.
    pub fn profile(&mut self, times: StepTimes, facts: &mut ServiceFacts) -> anyhow::Result<()> {
        print::tell!("a profile: what does it spend its time on?");
        let mut settings = vec![explain_setting(), seed_setting(self.seed)];
        if self.base.plan.design.warmup.is_none() {
            let warm_up = plan::duration_text(times.warm_up);
            settings.push(FlagSetting::new(&["design", "warmup"], warm_up, ""));
        }
        let overrides = Overrides {
            settings,
            ..Overrides::default()
        };
        let (text, directory) = (&self.base.text, &self.base.directory);
        let plan = plan::parse_with(text, directory, &overrides, None)
            .map_err(|problems| experiment::shown(Path::new(&self.base.name), text, &problems))?;
        let (writer, mut environment) = self.ready(self.base.text.clone(), plan, "profile")?;
        let (record, result) =
            lab::capture_only(writer, &mut environment, 1, &lab::TRIALS_BRIEF, &mut |_| {});
        let explanation = explanation::keep(&record).filter(|_| result.is_ok());
        match explanation
            .as_ref()
            .and_then(|found| found.subjects.iter().find(|of| of.requests > 0))
        {
            Some(subject) => {
                facts.gc_share = Some(subject.share_of(|kind| kind == CodeKind::Gc).1);
                facts.pool_share = Some(subject.share_of(|kind| kind == CodeKind::ThreadPool).1);
                self.proposals = explain::proposals(subject);
            }
            None => print::tell!(
                "there is no profile of it: see {}",
                record.directory.display()
            ),
        }
        Ok(())
    }
}
