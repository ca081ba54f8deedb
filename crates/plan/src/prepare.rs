//! Data that services need, and how services are built at another commit: whether the steps are possible, and which of them anyone wants.
//!
//! Touches the world in one way only: it looks whether directories and inputs exist.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use crate::check::clipped;
use crate::command::{self, Known, known_hint, texts};
use crate::file;
use crate::model::{Building, Command, Preparation, Service, Variant};
use crate::placeholder::placeholders;
use crate::problem::Site;
use crate::text_form::Period;
use crate::tree::{Node, Table};

const TIMEOUT: (Period, Period) = (Period::seconds(1), Period::seconds(24 * 3600));

/// What a placeholder for such a folder begins with.
const PREFIX: &str = "prepare.";
/// The placeholder without which a step could not know where to put anything.
const OUTPUT: &str = "output";

/// All steps of the file, also those that nobody wants.
pub(crate) fn preparations(site: &mut Site<'_>, all: &BTreeMap<String, file::Prepare>) -> Vec<Preparation> {
    all.iter().map(|(name, step)| preparation(site, name, step)).collect()
}

/// Those of `all` that services of these variants mention.
pub(crate) fn mentioned(all: Vec<Preparation>, variants: &[Variant]) -> Vec<Preparation> {
    let services = || variants.iter().flat_map(|variant| &variant.services);
    all.into_iter()
        .filter(|step| services().filter_map(Service::command).any(|command| mentions(command, &step.name)))
        .collect()
}

/// The placeholders by which services may name folders of prepared data: `prepare.zips`.
pub(crate) fn placeholders_of(tree: &Node) -> impl Iterator<Item = String> {
    let table = tree.entry(&["prepare"]).and_then(|entry| entry.node.table());
    table.into_iter().flat_map(Table::keys).map(|name| format!("{PREFIX}{name}"))
}

/// Whether a placeholder of this name is meant to be such a folder.
pub(crate) fn is_named_by(placeholder: &str) -> bool {
    placeholder.starts_with(PREFIX)
}

fn mentions(service: &Command, name: &str) -> bool {
    service.placeholders().iter().any(|found| found.name.strip_prefix(PREFIX) == Some(name))
}

fn preparation(site: &mut Site<'_>, name: &str, step: &file::Prepare) -> Preparation {
    let at = |key| ["prepare", name, key];
    command::judge_name(site, &["prepare", name], name, "what is prepared");
    let timeout = site.within(&at("timeout"), step.timeout, TIMEOUT);
    let names = [OUTPUT, "directory"].map(str::to_owned);
    let known = Known { names: &names, hint: &|_, word| Some(known_hint(word, &names, ("{", "}"))) };
    command::judge_program(site, &at("command"), &step.command);
    command::judge_words(site, &at("command"), &step.command, Some(known));
    command::judge_env(site, &at("env"), &step.env, Some(known));
    let mut texts_of_it = step.command.iter().chain(step.env.values().map(|value| &value.0));
    let names_output =
        |text: &String| placeholders(text).iter().any(|placeholder| placeholder.name == OUTPUT);
    if !texts_of_it.any(names_output) && !step.command.is_empty() && site.source.complete {
        let message = format!("nothing tells `prepare.{name}` where to put the data");
        site.at(&at("command"), message, "expected {output} in it")
            .hint("{output} stands for the folder to fill, in `command` or in `env`");
    }
    let directory = command::directory(site, &at("directory"), &step.directory);
    // In a directory that does not exist nothing does.
    if directory.is_dir() {
        judge_inputs(site, name, &step.inputs, &directory);
    }
    Preparation {
        name: name.to_owned(),
        command: step.command.clone(),
        directory,
        env: texts(&step.env),
        inputs: step.inputs.clone(),
        space_bytes: step.space.as_ref().map(|space| space.0),
        timeout,
        mark: None,
    }
}

/// What is not there cannot count, and would be missed only when the step fails.
fn judge_inputs(site: &mut Site<'_>, name: &str, inputs: &[String], directory: &Path) {
    for (index, input) in inputs.iter().enumerate() {
        let wanted = directory.join(input);
        let reason = match std::fs::metadata(&wanted) {
            Ok(found) if found.is_file() || found.is_dir() => continue,
            Ok(_) => "it is neither a file nor a folder".to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => "it does not exist".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("`prepare.{name}.inputs`: `{}` cannot be read: {reason}", clipped(input));
        site.report(
            site.tree.item_place(&["prepare", name, "inputs"], index),
            message,
            "expected a file or a folder",
        )
        .hint(format!("looked for {}", wanted.display()));
    }
}

/// How services are built at another commit. What is built where, and whether that is needed, is found out by whoever does it.
pub(crate) fn building(site: &mut Site<'_>, written: &file::Against) -> Building {
    let path = ["against", "build"];
    command::judge_program(site, &path, &written.build);
    command::judge_words(site, &path, &written.build, None);
    let timeout = site.within(&["against", "timeout"], written.timeout, TIMEOUT);
    Building { command: written.build.clone(), timeout }
}
