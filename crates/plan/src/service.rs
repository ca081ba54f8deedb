//! The services of one variant: which are started, in which order, and whether what they say is possible.
//!
//! Touches the world in two ways only: it looks whether directories exist, and reads templates.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::check::clipped;
use crate::file::{self, Settings};
use crate::launch::Launcher;
use crate::model::{Ready, Service};
use crate::placeholder::placeholders;
use crate::prepare;
use crate::problem::{Problem, did_you_mean, listed, nearest};
use crate::site::Site;
use crate::text_form::Period;

pub(crate) mod deployed;
mod launch;
mod needs;
mod place;
mod templates;

const READY_MIN: Period = Period::milliseconds(100);
const READY_MAX: Period = Period::seconds(600);
const STOP_MIN: Period = Period::milliseconds(100);
const STOP_MAX: Period = Period::seconds(600);

/// Names that mean something else where a service may be named.
const RESERVED: [&str; 11] = [
    "name",
    "question",
    "entry",
    "services",
    "prepare",
    "against",
    "generators",
    "factors",
    "load",
    "expect",
    "design",
];

/// The entry and the services of a variant, those that are needed first and the entry last.
///
/// Every service of the file is judged, also those that this variant does not start.
pub(crate) fn services(site: &mut Site<'_>, settings: &Settings) -> (String, Vec<Service>) {
    let all = &settings.services;
    for (name, service) in all {
        judge_name(site, name);
        judge(site, name, service, all);
    }
    needs::report_circles(site, all);
    let Some(entry) = entry(site, settings) else { return (String::new(), Vec::new()) };
    let started: Vec<Service> = needs::started(all, &entry)
        .into_iter()
        .map(|name| {
            report_missing_command(site, name, &all[name]);
            resolved(site, name, &all[name])
        })
        .collect();
    report_shared_ports(site, &started);
    place::report_out_of_reach(site, settings, &entry, &started);
    (entry, started)
}

fn entry(site: &mut Site<'_>, settings: &Settings) -> Option<String> {
    let names = || settings.services.keys().map(String::as_str);
    match &settings.entry {
        Some(entry) if settings.services.contains_key(entry) => Some(entry.clone()),
        Some(entry) => {
            let message = format!("`entry`: there is no service `{}`", clipped(entry));
            let problem = Problem::new(site.tree.place(&["entry"]), message, "unknown service");
            site.report(problem.hint(did_you_mean(entry, "services", names())));
            None
        }
        None if settings.services.len() == 1 => names().next().map(str::to_owned),
        None if settings.services.is_empty() || !site.source.complete => None,
        None => {
            let message = format!("variant `{}` has several services and no `entry`", site.variant);
            let span = site.tree.key_place(&["services"]);
            let problem = Problem::new(span, message, "expected a key `entry` before the services");
            let hint = format!("name the service that gets the load: {}", listed(names()));
            site.report(problem.hint(hint));
            None
        }
    }
}

fn judge_name(site: &mut Site<'_>, name: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let span = site.tree.key_place(&["services", name]);
    if name.is_empty() || name.len() > 40 || !name.bytes().all(plain) {
        let message = format!("`{}` is not a name for a service", clipped(name));
        site.report(Problem::new(span, message, "expected 1 to 40 letters, digits, `-` and `_`"));
    } else if RESERVED.contains(&name) {
        let message = format!("a service cannot be called `{name}`");
        let problem = Problem::new(span, message, "means something else");
        site.report(problem.hint(format!("a level could not tell it from the file's own `{name}`")));
    }
}

fn judge(site: &mut Site<'_>, name: &str, service: &file::Service, all: &BTreeMap<String, file::Service>) {
    let at = |key| ["services", name, key];
    site.within(&at("ready_timeout"), service.ready_timeout, READY_MIN, READY_MAX);
    if let Some(running) = &service.kubernetes {
        return deployed::judge(site, name, running);
    }
    launch::judge(site, name, service);
    templates::judge_names(site, name, service);
    site.within(&at("stop_timeout"), service.stop_timeout, STOP_MIN, STOP_MAX);
    for (index, text) in service.command.iter().enumerate() {
        let span = site.tree.item_place(&at("command"), index);
        if index == 0 && text.is_empty() {
            let message = format!("`services.{name}.command` has no program");
            site.report(Problem::new(span.clone(), message, "expected the name of a program"));
        }
        judge_text(site, text, span, (name, service));
    }
    for (variable, value) in &service.env {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            let message = format!("`{}` is not a name for a variable", clipped(variable));
            let span = site.tree.key_place(&["services", name, "env", variable]);
            site.report(Problem::new(span, message, "expected no `=`"));
        }
        let span = site.tree.place(&["services", name, "env", variable]);
        judge_text(site, &value.0, span, (name, service));
    }
    for (index, need) in service.needs.iter().enumerate() {
        if all.get(need).is_some_and(|needed| needed.kubernetes.is_some()) {
            deployed::report_needed(site, name, (index, need));
        } else if !all.contains_key(need) {
            let message = format!("`services.{name}.needs`: there is no service `{}`", clipped(need));
            let span = site.tree.item_place(&at("needs"), index);
            let hint = did_you_mean(need, "services", all.keys().map(String::as_str));
            site.report(Problem::new(span, message, "unknown service").hint(hint));
        }
    }
}

/// An argument or a value of a variable: a C string to the process, with placeholders of ours.
fn judge_text(
    site: &mut Site<'_>,
    text: &str,
    span: std::ops::Range<usize>,
    (name, service): (&str, &file::Service),
) {
    if text.contains('\0') {
        let message = "a NUL character cannot be handed to a process";
        site.report(Problem::new(span.clone(), message, "contains NUL"));
    }
    let known = known_placeholders(site, name, service);
    for placeholder in placeholders(text) {
        if known.iter().any(|known| known == placeholder.name) || may_be_known(site, placeholder.name) {
            continue;
        }
        let written = &text[placeholder.range.clone()];
        let place = site.part_place(span.clone(), written);
        let message = format!("unknown placeholder `{}`", clipped(written));
        let hint = placeholder_hint(site, name, placeholder.name, &known, ("{", "}"));
        site.report(Problem::new(place, message, "unknown placeholder").hint(hint));
    }
}

/// What may stand in braces in what belongs to a service.
fn known_placeholders(site: &Site<'_>, name: &str, service: &file::Service) -> Vec<String> {
    let mut known = vec!["port".to_owned(), "directory".to_owned()];
    let asked = || std::iter::once(name).chain(service.needs.iter().map(String::as_str));
    known.extend(asked().map(|service| format!("{service}.port")));
    known.extend(["address", "scratch"].map(str::to_owned));
    known.extend(asked().map(|service| format!("{service}.address")));
    if service.host.is_none() {
        known.extend(prepare::placeholders_of(site.tree));
    }
    if service.launcher != Launcher::Exec || service.workers.is_some() {
        known.push("workers".to_owned());
    }
    known
}

/// A service of the file, if `word` is the placeholder of its port or its address.
fn asked_by<'a>(site: &Site<'_>, word: &'a str) -> Option<&'a str> {
    let other = word.strip_suffix(".port").or_else(|| word.strip_suffix(".address"));
    other.filter(|other| site.tree.entry(&["services", other]).is_some())
}

/// Where something was dropped from the file it may have been the list of needs, the number of workers, or what is prepared.
fn may_be_known(site: &Site<'_>, word: &str) -> bool {
    !site.source.complete
        && (word == "workers" || asked_by(site, word).is_some() || prepare::is_named_by(word))
}

/// What to write instead of `word`, in what belongs to the service `name`; a placeholder stands between `open` and `close`.
fn placeholder_hint(
    site: &Site<'_>,
    name: &str,
    word: &str,
    known: &[String],
    (open, close): (&str, &str),
) -> String {
    if let Some(other) = asked_by(site, word) {
        return format!("`services.{name}.needs` must name `{other}` first");
    }
    if prepare::is_named_by(word) && place::is_elsewhere(site, name) {
        return "what is prepared lies on this machine; put the data on that host yourself, and name its path".to_owned();
    }
    if word == "workers" {
        return format!("`services.{name}.workers` must say how many: a number, or \"cores\"");
    }
    known_hint(word, known, (open, close))
}

/// The nearest of the known placeholders, or all of them.
pub(crate) fn known_hint(word: &str, known: &[String], (open, close): (&str, &str)) -> String {
    let plain = match open {
        "{" => "a plain brace is written `{{`",
        _ => "two plain braces need a blank between them",
    };
    if word.contains(|c: char| !c.is_ascii_alphanumeric() && !"._-{".contains(c)) {
        return plain.to_owned();
    }
    match nearest(word, known.iter().map(String::as_str)) {
        Some(known) => format!("did you mean `{open}{known}{close}`? ({plain})"),
        None => {
            let known: Vec<String> = known.iter().map(|known| format!("`{open}{known}{close}`")).collect();
            format!("known here: {}; {plain}", known.join(", "))
        }
    }
}

fn report_missing_command(site: &mut Site<'_>, name: &str, service: &file::Service) {
    let is_there = site.tree.entry(&["services", name, "command"]).is_some();
    let is_started = service.kubernetes.is_none();
    if service.command.is_empty() && !is_there && is_started && site.source.complete {
        let message = format!("service `{name}` has no `command` in variant `{}`", site.variant);
        let problem =
            Problem::new(site.tree.key_place(&["services", name]), message, "expected a key `command`");
        site.report(problem.hint("program and arguments, for example command = [\"node\", \"server.js\"]"));
    }
}

fn resolved(site: &mut Site<'_>, name: &str, service: &file::Service) -> Service {
    if let Some(running) = &service.kubernetes {
        return deployed::resolved(site, name, service, running);
    }
    let directory = match &service.host {
        None => directory(site, "services", name, &service.directory),
        Some(host) => place::directory(site, name, service, host),
    };
    // Templates are read here, wherever the service runs.
    let folder = if service.host.is_none() { directory.clone() } else { site.source.directory.to_owned() };
    // Where the directory is not there, that has been said.
    let templates = if folder.is_dir() {
        templates::read(site, name, service, &folder, &known_placeholders(site, name, service))
    } else {
        BTreeMap::new()
    };
    Service {
        name: name.to_owned(),
        command: service.command.clone(),
        directory,
        host: service.host.as_ref().map(|host| host.0.clone()),
        address: service.address.map(|address| address.0),
        kubernetes: None,
        env: service.env.iter().map(|(variable, value)| (variable.clone(), value.0.clone())).collect(),
        port: service.port,
        ready: service.ready.as_ref().map_or(Ready::Tcp, |path| Ready::Http(path.0.clone())),
        ready_timeout: service.ready_timeout.0,
        stop_timeout: service.stop_timeout.0,
        needs: service.needs.clone(),
        launcher: service.launcher,
        workers: launch::workers(service),
        pmx: service.pmx.unwrap_or(true),
        templates,
    }
}

/// The working directory of what `section` holds under `name`; that there is one is checked.
pub(crate) fn directory(site: &mut Site<'_>, section: &str, name: &str, written: &str) -> PathBuf {
    let wanted = site.source.directory.join(written);
    let reason = match (wanted.canonicalize(), site.source.against) {
        (Ok(path), None) if path.is_dir() => return path,
        (Ok(path), Some(against)) if path.is_dir() => match against.moved(&path) {
            there if there.is_dir() => return there,
            _ => format!("it does not exist at {}", against.baseline()),
        },
        (Ok(_), _) => "it is a file".to_owned(),
        (Err(error), _) if error.kind() == std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        (Err(error), _) => error.to_string(),
    };
    let message =
        format!("`{section}.{name}.directory`: `{}` is not a directory: {reason}", clipped(written));
    let problem =
        Problem::new(site.tree.place(&[section, name, "directory"]), message, "expected a directory");
    site.report(problem.hint(format!("looked for {}", wanted.display())));
    wanted
}

fn report_shared_ports(site: &mut Site<'_>, started: &[Service]) {
    for (index, service) in started.iter().enumerate() {
        let same = |other: &&Service| other.port == service.port && other.host == service.host;
        let other = started[..index].iter().find(|other| service.port.is_some() && same(other));
        if let (Some(other), Some(port)) = (other, service.port) {
            let message =
                format!("services `{}` and `{}` both listen on port {port}", other.name, service.name);
            let span = site.tree.place(&["services", &service.name, "port"]);
            let label = format!("also the port of `{}`", other.name);
            let hint = "leave `port` out, and each gets a free one";
            site.report(Problem::new(span, message, label).hint(hint));
        }
    }
}
