//! Data that services need: whether the steps that make it are possible, and which of them anyone wants.
//!
//! Touches the world in one way only: it looks whether directories and inputs exist.

use std::collections::BTreeMap;
use std::path::Path;

use crate::check::clipped;
use crate::file;
use crate::model::{Preparation, Service, Variant};
use crate::placeholder::placeholders;
use crate::problem::Problem;
use crate::service::{directory, known_hint};
use crate::site::Site;
use crate::template::template_placeholders;
use crate::text_form::Period;
use crate::tree::{Node, Table};

const TIMEOUT_MIN: Period = Period::seconds(1);
const TIMEOUT_MAX: Period = Period::seconds(24 * 3600);

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
    all.into_iter().filter(|step| services().any(|service| mentions(service, &step.name))).collect()
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

fn mentions(service: &Service, name: &str) -> bool {
    let texts = service.command.iter().chain(service.env.values()).flat_map(|text| placeholders(text));
    let templates = service.templates.values().flat_map(|text| template_placeholders(text));
    texts.chain(templates).any(|found| found.name.strip_prefix(PREFIX) == Some(name))
}

fn preparation(site: &mut Site<'_>, name: &str, step: &file::Prepare) -> Preparation {
    judge_name(site, name);
    let at = |key| ["prepare", name, key];
    let timeout = site.within(&at("timeout"), step.timeout, TIMEOUT_MIN, TIMEOUT_MAX);
    let mut has_output = false;
    for (index, text) in step.command.iter().enumerate() {
        let span = site.tree.item_place(&at("command"), index);
        if index == 0 && text.is_empty() {
            let message = format!("`prepare.{name}.command` has no program");
            site.report(Problem::new(span.clone(), message, "expected the name of a program"));
        }
        has_output |= judge_text(site, text, span);
    }
    for (variable, value) in &step.env {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            let message = format!("`{}` is not a name for a variable", clipped(variable));
            let span = site.tree.key_place(&["prepare", name, "env", variable]);
            site.report(Problem::new(span, message, "expected no `=`"));
        }
        let span = site.tree.place(&["prepare", name, "env", variable]);
        has_output |= judge_text(site, &value.0, span);
    }
    if !has_output && !step.command.is_empty() && site.source.complete {
        let message = format!("nothing tells `prepare.{name}` where to put the data");
        let problem = Problem::new(site.tree.place(&at("command")), message, "expected {output} in it");
        site.report(problem.hint("{output} stands for the folder to fill, in `command` or in `env`"));
    }
    let directory = directory(site, "prepare", name, &step.directory);
    // In a directory that does not exist nothing does.
    if directory.is_dir() {
        judge_inputs(site, name, &step.inputs, &directory);
    }
    Preparation {
        name: name.to_owned(),
        command: step.command.clone(),
        directory,
        env: step.env.iter().map(|(variable, value)| (variable.clone(), value.0.clone())).collect(),
        inputs: step.inputs.clone(),
        space_bytes: step.space.map(|space| space.0),
        timeout,
        mark: None,
    }
}

fn judge_name(site: &mut Site<'_>, name: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 40 || !name.bytes().all(plain) {
        let message = format!("`{}` is not a name for what is prepared", clipped(name));
        let span = site.tree.key_place(&["prepare", name]);
        site.report(Problem::new(span, message, "expected 1 to 40 letters, digits, `-` and `_`"));
    }
}

/// Judges an argument or the value of a variable; whether it names the folder to fill.
fn judge_text(site: &mut Site<'_>, text: &str, span: std::ops::Range<usize>) -> bool {
    if text.contains('\0') {
        let message = "a NUL character cannot be handed to a process";
        site.report(Problem::new(span.clone(), message, "contains NUL"));
    }
    let known = [OUTPUT, "directory"].map(str::to_owned);
    let found = placeholders(text);
    for placeholder in found.iter().filter(|found| known.iter().all(|known| known != found.name)) {
        let written = &text[placeholder.range.clone()];
        let place = site.part_place(span.clone(), written);
        let message = format!("unknown placeholder `{}`", clipped(written));
        let hint = known_hint(placeholder.name, &known, ("{", "}"));
        site.report(Problem::new(place, message, "unknown placeholder").hint(hint));
    }
    found.iter().any(|placeholder| placeholder.name == OUTPUT)
}

/// What is not there cannot count, and would be missed only when the step fails.
fn judge_inputs(site: &mut Site<'_>, name: &str, inputs: &[String], directory: &Path) {
    for (index, input) in inputs.iter().enumerate() {
        let wanted = directory.join(input);
        let reason = match std::fs::metadata(&wanted) {
            Ok(found) if found.is_file() || found.is_dir() => continue,
            Ok(_) => "it is neither a file nor a folder".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("`prepare.{name}.inputs`: `{}` cannot be read: {reason}", clipped(input));
        let span = site.tree.item_place(&["prepare", name, "inputs"], index);
        let problem = Problem::new(span, message, "expected a file or a folder");
        site.report(problem.hint(format!("looked for {}", wanted.display())));
    }
}
