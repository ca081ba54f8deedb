//! Data that services need, and how services are built at another commit: whether the steps are possible, and
//! which of them are used.
//!
//! It accesses the file system only to check whether directories and inputs exist.

use std::path::Path;

use crate::command::{self, KnownPlaceholders, known_hint};
use crate::file;
use crate::model::{Building, Preparation, Service, ServiceCommand, Variant};
use crate::outside::found;
use crate::placeholder::placeholders;
use crate::shown::clipped;
use crate::site::Site;
use crate::text_form::Period;
use crate::tree::TomlNode;

const TIMEOUT: (Period, Period) = (Period::seconds(1), Period::seconds(24 * 3600));

/// Prefix of placeholders for folders of prepared data.
const PREFIX: &str = "prepare.";
/// The required placeholder for the output folder of a step.
const OUTPUT: &str = "output";

/// Filters `all` for steps that services of these variants use.
pub(crate) fn mentioned(all: Vec<Preparation>, variants: &[Variant]) -> Vec<Preparation> {
    let commands = variants
        .iter()
        .flat_map(|variant| &variant.services)
        .filter_map(Service::command);
    let found: Vec<_> = commands.flat_map(ServiceCommand::placeholders).collect();
    let is_meant = |step: &Preparation| {
        found
            .iter()
            .any(|found| found.name.strip_prefix(PREFIX) == Some(&step.name))
    };
    all.into_iter().filter(is_meant).collect()
}

/// The placeholders by which services may name folders of prepared data: `prepare.zips`.
pub(crate) fn placeholders_of(tree: &TomlNode) -> impl Iterator<Item = String> {
    tree.entries(&["prepare"])
        .iter()
        .map(|entry| format!("{PREFIX}{}", entry.key))
}

/// Whether a placeholder with this name refers to such a folder.
pub(crate) fn is_named_by(placeholder: &str) -> bool {
    placeholder.starts_with(PREFIX)
}

/// Resolves a step of the file, also an unused one.
pub(crate) fn preparation(site: &mut Site<'_>, name: &str, step: &file::Prepare) -> Preparation {
    let file::Prepare {
        command,
        directory,
        env,
        inputs,
        space,
        timeout,
    } = step;
    let at = |key| ["prepare", name, key];
    command::judge_name(site, &["prepare", name], name, "what is prepared");
    let timeout = site.within(&at("timeout"), *timeout, TIMEOUT);
    let names = [OUTPUT, "directory"].map(str::to_owned);
    let known = KnownPlaceholders {
        names: &names,
        hint: &|_, word| Some(known_hint(word, &names, ("{", "}"))),
    };
    command::judge_command(site, &at("command"), command, Some(known));
    command::judge_env(site, &at("env"), env, Some(known));
    let mut words = command.iter().chain(env.values());
    let is_told = words.any(|text| placeholders(text).iter().any(|found| found.name == OUTPUT));
    if !is_told && !command.is_empty() && site.source.complete {
        let message = format!("nothing tells `prepare.{name}` where to put the data");
        site.at(&at("command"), message, "expected {output} in it")
            .hint("{output} stands for the folder to fill, in `command` or in `env`");
    }
    let directory = command::directory(site, &at("directory"), directory);
    // In a missing directory all inputs are missing.
    if directory.is_dir() {
        judge_inputs(site, name, inputs, &directory);
    }
    Preparation {
        name: name.to_owned(),
        command: command.clone(),
        directory,
        env: env.clone(),
        inputs: inputs.clone(),
        space_bytes: space.as_ref().map(|space| space.0),
        timeout,
        mark: None,
    }
}

/// Reports missing inputs, which would otherwise be noticed only when the step fails.
fn judge_inputs(site: &mut Site<'_>, name: &str, inputs: &[String], directory: &Path) {
    for (index, input) in inputs.iter().enumerate() {
        let wanted = directory.join(input);
        let is_wanted = |path: &Path| path.is_file() || path.is_dir();
        let Err(reason) = found(&wanted, is_wanted, "it is neither a file nor a folder") else {
            continue;
        };
        let message = format!(
            "`prepare.{name}.inputs`: `{}` cannot be read: {reason}",
            clipped(input)
        );
        let span = site.tree.item_place(&["prepare", name, "inputs"], index);
        let hint = format!("looked for {}", wanted.display());
        site.report(span, message, "expected a file or a folder")
            .hint(hint);
    }
}

/// How services are built at another commit. Whether and where a build is needed is determined later.
pub(crate) fn building(site: &mut Site<'_>, written: &file::AgainstTable) -> Building {
    let file::AgainstTable {
        build,
        timeout,
        copy,
    } = written;
    command::judge_command(site, &["against", "build"], build, None);
    let timeout = site.within(&["against", "timeout"], *timeout, TIMEOUT);
    let absolute = |path: &String| site.source.directory.join(path);
    let copy = copy
        .as_ref()
        .map(|paths| paths.iter().map(absolute).collect());
    Building {
        command: build.clone(),
        timeout,
        copy,
    }
}
