//! The services of one variant: which are started, in which order, and whether their settings are valid.
//!
//! It accesses the file system only to check directories and to read templates. Whether PM2 is installed is
//! checked at the start.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::command::{self, KnownPlaceholders, known_hint};
use crate::factor::{FIXED_KEYS, LEVEL_KEYS};
use crate::file::{self, VariantTable};
use crate::model::{Launcher, Ready, Service, ServiceCommand, ServiceSource, Workers};
use crate::node_command::NodeCommand;
use crate::outside::read_file;
use crate::placeholder::{Placeholder, placeholders, template_placeholders};
use crate::problem::{TextSpan, did_you_mean, line_column, listed};
use crate::secret::Field;
use crate::shown::{clipped, shown_key};
use crate::site::Site;
use crate::text_form::Period;
use crate::{prepare, secret};

pub(crate) mod elsewhere;

type Services = BTreeMap<String, file::ServiceTable>;

/// Limits of the timeouts for becoming ready and for stopping.
const TIMEOUT: (Period, Period) = (Period::milliseconds(100), Period::seconds(600));

/// The entry and the services of a variant, in the order of their dependencies, the entry last.
///
/// Every service of the file is checked, also those that this variant does not start.
pub(crate) fn services(site: &mut Site<'_>, settings: &VariantTable) -> (String, Vec<Service>) {
    let all = &settings.services;
    for (name, service) in all {
        let path = ["services", name];
        // Names with another meaning where a service may be named.
        if command::judge_name(site, &path, name, "a service")
            && LEVEL_KEYS.iter().chain(&FIXED_KEYS).any(|key| *key == name)
        {
            let message = format!("a service cannot be called `{name}`");
            site.at_key(&path, message, "means something else")
                .hint(format!(
                    "a level could not tell it from the file's own `{name}`"
                ));
        }
        judge(site, name, service, all);
    }
    report_circles(site, all);
    let Some(entry) = entry(site, settings) else {
        return (String::new(), Vec::new());
    };
    // The readiness check uses plain HTTP/1.1.
    let is_plain = match settings.load.protocol {
        file::FormatVersion::Http1 => settings.load.tls.is_none(),
        file::FormatVersion::Http2 => false,
    };
    let mut started = Vec::new();
    let (names, _) = walked(all, [entry.as_str()]);
    for name in names {
        let running = elsewhere::resolved(site, name, &all[name]);
        started.push(running.unwrap_or_else(|| {
            resolved(site, name, &all[name], is_plain && name == entry.as_str())
        }));
    }
    report_shared_ports(site, &started);
    elsewhere::report_link(site, settings, &started);
    (entry, started)
}

fn entry(site: &mut Site<'_>, settings: &VariantTable) -> Option<String> {
    let names = || settings.services.keys().map(String::as_str);
    match &settings.entry {
        Some(entry) if settings.services.contains_key(entry) => Some(entry.clone()),
        Some(entry) => {
            let message = format!("`entry`: there is no service `{}`", clipped(entry));
            site.at(&["entry"], message, "unknown service")
                .hint(did_you_mean(entry, "services", names()));
            None
        }
        None if settings.services.len() == 1 => names().next().map(str::to_owned),
        None if settings.services.is_empty() || !site.source.complete => None,
        None => {
            let message = format!(
                "variant `{}` has several services and no `entry`",
                site.variant
            );
            site.at_key(
                &["services"],
                message,
                "expected a key `entry` before the services",
            )
            .hint(format!(
                "name the service that gets the load: {}",
                listed(names())
            ));
            None
        }
    }
}

fn judge(site: &mut Site<'_>, name: &str, service: &file::ServiceTable, all: &Services) {
    let at = |key| ["services", name, key];
    site.within(&at("ready_timeout"), service.ready_timeout, TIMEOUT);
    if let Some(path) = &service.ready {
        judge_plain(
            site,
            &format!("services.{name}.ready"),
            &path.0,
            site.tree.place(&at("ready")),
        );
    }
    if elsewhere::judge(site, name, service) {
        return;
    }
    judge_launcher(site, name, service);
    judge_templates(site, name, service);
    site.within(&at("stop_timeout"), service.stop_timeout, TIMEOUT);
    let names = known_placeholders(site, name, service);
    let known = KnownPlaceholders {
        names: &names,
        hint: &|site, word| placeholder_hint(site, name, word, &names, ("{", "}")),
    };
    command::judge_command(site, &at("command"), &service.command, Some(known));
    command::judge_env(site, &at("env"), &service.env, Some(known));
    if let Some(of) = &service.container {
        let inside = |key| ["services", name, "container", key];
        command::judge_words(site, &inside("args"), &of.args, Some(known));
        command::judge_env(site, &inside("env"), &of.env, Some(known));
    }
    for (index, need) in service.needs.iter().enumerate() {
        let span = site.tree.item_place(&at("needs"), index);
        if all
            .get(need)
            .is_some_and(|needed| needed.kubernetes.is_some() || needed.url.is_some())
        {
            let message =
                format!("`services.{name}.needs`: `{need}` runs already, and can only be loaded");
            site.report(span, message, "expected a service that is started").hint(
                "what stands behind it may change under a service that needs it, and nobody would look; write its address into `env` yourself",
            );
        } else if !all.contains_key(need) {
            let message = format!(
                "`services.{name}.needs`: there is no service `{}`",
                clipped(need)
            );
            let hint = did_you_mean(need, "services", all.keys().map(String::as_str));
            site.report(span, message, "unknown service").hint(hint);
        }
    }
}

/// Reports placeholders in a text that is compared or requested literally, where they would not be replaced.
pub(crate) fn judge_plain(site: &mut Site<'_>, key: &str, text: &str, span: TextSpan) {
    for Placeholder { name, range } in placeholders(text) {
        let of_a_service = ["port", "address", "directory", "scratch", "workers"].contains(&name);
        let is_meant = of_a_service || asked_by(site, name).is_some() || prepare::is_named_by(name);
        if !is_meant && !secret::is_placeholder(name) {
            continue;
        }
        let written = &text[range];
        let message = format!("`{key}`: `{}` is not filled in", clipped(written));
        let place = site.part_place(span.clone(), written);
        site.report(place, message, "would be taken as it stands").hint(
            "placeholders are for `command`, `env` and templates of services, `{env.X}` and `{file.X}` also for what is sent; write the value",
        );
    }
}

/// Placeholders that are permitted in a service's settings.
fn known_placeholders(site: &Site<'_>, name: &str, service: &file::ServiceTable) -> Vec<String> {
    if service.container.is_some() {
        return ["port", "address"].map(str::to_owned).into();
    }
    let mut known = vec!["port".to_owned(), "directory".to_owned()];
    let asked = || std::iter::once(name).chain(service.needs.iter().map(String::as_str));
    known.extend(asked().map(|service| format!("{service}.port")));
    known.extend(["address", "scratch"].map(str::to_owned));
    known.extend(asked().map(|service| format!("{service}.address")));
    known.extend(prepare::placeholders_of(site.tree));
    if service.launcher.makes_workers() || service.workers.is_some() {
        known.push("workers".to_owned());
    }
    known
}

/// A service of the file, if `word` is the placeholder of its port or its address.
fn asked_by<'a>(site: &Site<'_>, word: &'a str) -> Option<&'a str> {
    let other = word
        .strip_suffix(".port")
        .or_else(|| word.strip_suffix(".address"));
    other.filter(|other| site.tree.entry(&["services", other]).is_some())
}

/// Suggests a replacement for `word` in the settings of the service `name`. `open` and `close` are the
/// delimiters of a placeholder.
///
/// `None` if something was dropped from the file, which may have been the list of needs, the number of
/// workers, or the prepared data.
fn placeholder_hint(
    site: &Site<'_>,
    name: &str,
    word: &str,
    known: &[String],
    braces: (&str, &str),
) -> Option<String> {
    let asked = asked_by(site, word);
    let is_prepared = prepare::is_named_by(word);
    if !site.source.complete && (word == "workers" || asked.is_some() || is_prepared) {
        return None;
    }
    let is_contained = site.tree.entry(&["services", name, "container"]).is_some();
    Some(match asked {
        _ if is_contained && (is_prepared || ["directory", "scratch"].contains(&word)) => {
            "a container does not see this machine's folders: have the files in its image, or mount them in a Compose file (`compose`)"
                .to_owned()
        }
        Some(other) if !is_contained => format!("`services.{name}.needs` must name `{other}` first"),
        None if word == "workers" && !is_contained => {
            format!("`services.{name}.workers` must say how many: a number, or \"cores\"")
        }
        _ => known_hint(word, known, braces),
    })
}

fn resolved(
    site: &mut Site<'_>,
    name: &str,
    service: &file::ServiceTable,
    is_entry: bool,
) -> Service {
    let file::ServiceTable {
        command: written,
        // Handled by `folders`.
        directory: _,
        // Keys of running services.
        url: _,
        kubernetes: _,
        container: of_image,
        compose,
        ready,
        ready_timeout,
        stop_timeout,
        env: own_env,
        port,
        needs,
        launcher,
        // Handled by `workers`, which considers launchers.
        workers: _,
        pmx,
        // Handled by `folders`.
        templates: _,
    } = service;
    let container = elsewhere::container(site, name, service);
    let is_there = site.tree.entry(&["services", name, "command"]).is_some();
    if written.is_empty() && !is_there && container.is_none() && site.source.complete {
        let message = format!(
            "service `{name}` has no `command` in variant `{}`",
            site.variant
        );
        site.at_key(&["services", name], message, "expected a key `command`")
            .hint("program and arguments, for example command = [\"node\", \"server.js\"]");
    }
    let (directory, templates) = folders(site, name, service, container.is_some());
    let mut env = own_env.clone();
    env.extend(of_image.iter().flat_map(|of| of.env.clone()));
    let command = match (of_image, compose) {
        (Some(of), _) => of.args.clone(),
        (None, Some(_)) => Vec::new(),
        (None, None) => written.clone(),
    };
    let source = ServiceSource::Command(ServiceCommand {
        command,
        directory,
        address: None,
        container,
        env,
        port: *port,
        listens_on: None,
        other_ports: Vec::new(),
        stop_timeout: stop_timeout.0,
        launcher: *launcher,
        workers: workers(service),
        pmx: pmx.unwrap_or(ServiceCommand::default().pmx),
        templates,
    });
    let ready = match ready {
        Some(path) => Ready::Http(path.0.clone()),
        None if is_entry => Ready::Response,
        // A database uses another protocol.
        None => Ready::Tcp,
    };
    Service {
        name: name.to_owned(),
        source,
        ready,
        ready_timeout: ready_timeout.0,
        needs: needs.clone(),
    }
}

/// The working directory of a started service, and the texts of its templates.
fn folders(
    site: &mut Site<'_>,
    name: &str,
    service: &file::ServiceTable,
    is_contained: bool,
) -> (PathBuf, BTreeMap<String, String>) {
    let directory = match is_contained {
        true => site.source.directory.to_owned(),
        false => command::directory(site, &["services", name, "directory"], &service.directory),
    };
    // A missing directory has been reported.
    let templates = if directory.is_dir() {
        read_templates(
            site,
            name,
            service,
            &directory,
            &known_placeholders(site, name, service),
        )
    } else {
        BTreeMap::new()
    };
    (directory, templates)
}

fn report_shared_ports(site: &mut Site<'_>, started: &[Service]) {
    let port = |service: &Service| service.command()?.port;
    for (index, service) in started.iter().enumerate() {
        let other = started[..index]
            .iter()
            .find(|other| port(other).is_some() && port(other) == port(service));
        if let (Some(Service { name: other, .. }), Some(port)) = (other, port(service)) {
            let message = format!(
                "services `{other}` and `{}` both listen on port {port}",
                service.name
            );
            let label = format!("also the port of `{other}`");
            site.at(&["services", &service.name, "port"], message, &label)
                .hint("leave `port` out, and each gets a free one");
        }
    }
}

fn judge_launcher(site: &mut Site<'_>, name: &str, service: &file::ServiceTable) {
    let launcher = service.launcher;
    if service.pmx.is_some() && !launcher.is_pm2() {
        let message = format!(
            "`services.{name}.pmx` is PM2's, and the launcher is `{}`",
            launcher.name()
        );
        site.at(&["services", name, "pmx"], message, "has no effect")
            .hint("set it where `launcher` is `pm2-fork` or `pm2-cluster`, in a level for example");
    }
    let several = service
        .workers
        .is_some_and(|workers| workers != Workers::Number(1));
    if launcher == Launcher::Pm2Fork && several {
        let message =
            format!("`services.{name}.workers` asks for several, and `pm2-fork` runs one process");
        site.at(&["services", name, "workers"], message, "expected 1")
            .hint("leave it out, or let several share the port: launcher = \"pm2-cluster\"");
    }
    // These launchers start a script on Node.js. The documented `pm2 start npm -i 4` starts npm four times,
    // whose children then compete for the port.
    if launcher.makes_workers()
        && !service.command.is_empty()
        && let Err(error) = NodeCommand::parse(&service.command)
    {
        let message = format!(
            "`services.{name}.command` cannot be started by `{}`: {error}",
            launcher.name()
        );
        let span = site
            .tree
            .item_place(&["services", name, "command"], error.word);
        site.report(span, message, "expected node, its flags, a script, its arguments").hint(
            "name the script itself, for example [\"node\", \"server.js\"], also where npm would run it: a launcher makes \
             workers of what it starts, and of npm that is npm",
        );
    }
}

fn workers(service: &file::ServiceTable) -> Option<Workers> {
    match service.launcher {
        Launcher::Exec => service.workers,
        Launcher::Pm2Fork => Some(Workers::Number(1)),
        Launcher::Cluster | Launcher::Pm2Cluster => Some(service.workers.unwrap_or(Workers::Cores)),
    }
}

/// Reports each cycle once, at the dependency that closes it.
fn report_circles(site: &mut Site<'_>, all: &Services) {
    let (_, circles) = walked(all, all.keys().map(String::as_str));
    for circle in circles {
        let last = circle[circle.len() - 2];
        let index = all[last]
            .needs
            .iter()
            .position(|need| need == circle[circle.len() - 1]);
        let message = format!(
            "services need each other in a circle: {}",
            circle.join(" → ")
        );
        let span = site
            .tree
            .item_place(&["services", last, "needs"], index.unwrap_or_default());
        site.report(span, message, "closes the circle");
    }
}

/// Returns these existing services with all their dependencies, in starting order, and the cycles, each from
/// a service back to itself. It does not recurse, because the file determines the length of a chain.
fn walked<'a>(
    all: &'a Services,
    names: impl IntoIterator<Item = &'a str>,
) -> (Vec<&'a str>, Vec<Vec<&'a str>>) {
    let (mut seen, mut done, mut circles) = (BTreeSet::new(), Vec::new(), Vec::new());
    for name in names {
        if !seen.insert(name) {
            continue;
        }
        // The path from the start of the walk to the current service.
        let mut way = vec![name];
        while let Some(name) = way.last() {
            let needs = all[*name]
                .needs
                .iter()
                .map(String::as_str)
                .filter(|need| all.contains_key(*need));
            if let Some(next) = needs.clone().find(|need| seen.insert(*need)) {
                way.push(next);
                continue;
            }
            for need in needs {
                let start = way.iter().position(|other| *other == need);
                circles.extend(start.map(|start| [&way[start..], &[need]].concat()));
            }
            done.extend(way.pop());
        }
    }
    (done, circles)
}

/// Larger than any configuration. Keeps a mistaken path from filling plan and record.
const TEMPLATE_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 100;

/// Reports invalid file names, and names that launchers use themselves.
fn judge_templates(site: &mut Site<'_>, service_name: &str, service: &file::ServiceTable) {
    for name in service.templates.keys() {
        let plain = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(['/', '\0']);
        if !plain || name.starts_with('.') {
            let message = format!(
                "`{}` is not a name for a file made from a template",
                clipped(name)
            );
            let label = format!(
                "expected at most {NAME_BYTES_MAX} bytes, no `/`, and no `.` at the beginning"
            );
            site.at_key(
                &["services", service_name, "templates", name],
                message,
                &label,
            );
        }
    }
}

/// Reads the texts of all templates by their target names. `known` are the names of placeholders.
///
/// A problem in a template is reported at the key that names it, with its place in the template.
fn read_templates(
    site: &mut Site<'_>,
    service_name: &str,
    service: &file::ServiceTable,
    directory: &Path,
    known: &[String],
) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (name, written) in &service.templates {
        let span = site
            .tree
            .place(&["services", service_name, "templates", name]);
        let shown = match service.directory.as_str() {
            "." => written.clone(),
            folder => Path::new(folder).join(written).display().to_string(),
        };
        let path = directory.join(written);
        let text = match template(&path) {
            Ok(text) => text,
            Err((place, reason)) => {
                let key = shown_key(name);
                let message =
                    format!("`services.{service_name}.templates.{key}`: {shown}{place}: {reason}");
                let hint = format!("looked for {}", path.display());
                site.report(span, message, "expected a template").hint(hint);
                continue;
            }
        };
        for found in template_placeholders(&text) {
            let Placeholder { name, range } = &found;
            let name = *name;
            if known.iter().any(|known| known == name) || site.is_secret(name, span.clone()) {
                continue;
            }
            let (line, column) = line_column(&text[..range.start]);
            let (message, hint) = if name.starts_with("{{") {
                ("`{{` is not closed".to_owned(), Some(NOT_CLOSED.to_owned()))
            } else {
                let hint = placeholder_hint(site, service_name, name, known, ("{{", "}}"));
                (command::unknown(Field::Template, &text, &found), hint)
            };
            let Some(hint) = hint else { continue };
            // The label distinguishes problems of one template, which are all reported at one place.
            let label = format!("at {line}:{column} of this template");
            site.report(
                span.clone(),
                format!("{shown}:{line}:{column}: {message}"),
                &label,
            )
            .hint(hint);
        }
        texts.insert(name.clone(), text);
    }
    texts
}

const NOT_CLOSED: &str =
    "a placeholder ends in its line with `}}`; two plain braces need a blank between them";

/// Reads a template. On failure returns the place in it, if known, and the reason.
fn template(path: &Path) -> Result<String, (String, String)> {
    let nowhere = |reason: String| (String::new(), reason);
    let bytes = read_file(path, TEMPLATE_BYTES_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => nowhere("it does not exist".to_owned()),
        io::ErrorKind::FileTooLarge => {
            nowhere(format!("it is larger than {TEMPLATE_BYTES_MAX} bytes"))
        }
        _ => nowhere(error.to_string()),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let (before, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let (line, column) = line_column(&String::from_utf8_lossy(before));
        (
            format!(":{line}:{column}"),
            format!("the byte 0x{:02x} is not UTF-8", rest[0]),
        )
    })
}
