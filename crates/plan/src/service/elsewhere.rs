//! Services that are not processes of this machine: containers and running services. Checks which settings they
//! permit, and what can be measured.
//!
//! It does not contact engines or clusters.

use std::collections::BTreeSet;

use crate::file::{self, VariantTable};
use crate::model::{
    Container, ContainerOf, Deployed, Design, GateEntry, Metric, Ready, Service, ServiceCommand,
    ServicePort, ServiceSource, Variant,
};
use crate::shown::{clipped, shown_key};
use crate::site::Site;
use crate::text_form::RequestPath;

/// Label for keys that a running service does not permit.
const TOGETHER: &str = "not together with a service that runs already";
const CONTEXT_BYTES_MAX: usize = 300;
/// Maximum length of the name of a Service, a namespace or a port: a DNS label.
const LABEL_BYTES_MAX: usize = 63;
/// Why there are no figures of its processes.
const UNKNOWN: &str = "CPU time and memory of a service are read where Proofload starts it, or where it runs on this machine; of others there \
                       are responses alone: throughput, response times, failures";

/// Reports conflicts with a running service or a container. Returns whether the service is already running.
pub(super) fn judge(site: &mut Site<'_>, name: &str, service: &file::ServiceTable) -> bool {
    let own = match (&service.url, &service.kubernetes) {
        (Some(_), _) => "url",
        (None, Some(_)) => "kubernetes",
        (None, None) => {
            judge_container(site, name, service);
            return false;
        }
    };
    let why = format!("is for a service that is started, and `{name}` runs already");
    let started = format!("leave this out, or leave `{own}` out and have the service started");
    report_others(
        site,
        (name, own),
        &["ready", "ready_timeout"],
        &why,
        &|key| match (key, own) {
            ("port", "kubernetes") => {
                "the Service's port stands beside its name: kubernetes = { service = \"shop\", port = 80 }"
            }
            ("port", "url") => "the URL says where it is found; leave this out",
            ("needs", _) => "what it needs runs already, too; leave this out",
            _ => &started,
        },
    );
    if let Some(deployed) = &service.kubernetes {
        judge_deployed(site, name, deployed);
    }
    true
}

/// Reports all keys of a service except `own`, which defines its kind, and the given ones.
fn report_others<'h>(
    site: &mut Site<'_>,
    (name, own): (&str, &str),
    keys: &[&str],
    why: &str,
    hint: &dyn Fn(&str) -> &'h str,
) {
    for entry in site.tree.entries(&["services", name]) {
        if entry.key != own && !keys.contains(&entry.key.as_str()) {
            let message = format!("`services.{name}.{}` {why}", shown_key(&entry.key));
            site.report(
                entry.key_span.clone(),
                message,
                &format!("not together with `{own}`"),
            )
            .hint(hint(&entry.key));
        }
    }
}

fn judge_container(site: &mut Site<'_>, name: &str, service: &file::ServiceTable) {
    let (own, wanted, is_named, is_what) = match (&service.container, &service.compose) {
        (Some(of), _) => (
            "container",
            "image",
            of.image.is_some(),
            "the name of an image that is here: docker image ls",
        ),
        (None, Some(of)) => (
            "compose",
            "service",
            of.service.is_some(),
            "the service of the Compose file that gets the requests",
        ),
        (None, None) => return,
    };
    let why = format!("is for a program, and `{name}` is a container");
    let keys = [
        "ready",
        "ready_timeout",
        "stop_timeout",
        "env",
        "port",
        "needs",
    ];
    report_others(site, (name, own), &keys, &why, &|key| match key {
        "command" if own == "container" => "what stands behind the image is `container.args`",
        "compose" => "a service is one container or one project",
        _ => "leave this out: what runs in a container is said by its image",
    });
    if !is_named && site.source.complete {
        report_missing(site, (name, own), wanted, is_what);
    }
    if let Some(need) = service.needs.first() {
        let message = format!("`services.{name}.needs`: a container does not get to `{need}`");
        site.report(site.tree.item_place(&["services", name, "needs"], 0), message, "expected none").hint(
            "services listen on this machine's loopback, which is not the container's; put both into a Compose file: `compose`",
        );
    }
}

/// Reports a table without its main key.
fn report_missing(site: &mut Site<'_>, (name, own): (&str, &str), wanted: &str, is_what: &str) {
    let message = format!(
        "service `{name}` has no `{own}.{wanted}` in variant `{}`",
        site.variant
    );
    let label = format!("expected a key `{wanted}` in it");
    site.at_key(&["services", name, own], message, &label)
        .hint(is_what);
}

pub(super) fn container(
    site: &mut Site<'_>,
    name: &str,
    service: &file::ServiceTable,
) -> Option<Container> {
    // Variables and arguments are part of the service.
    if let Some(file::ContainerTable {
        image,
        port,
        env: _,
        args: _,
        engine,
    }) = &service.container
    {
        let image = image.clone().unwrap_or_default();
        return Some(Container {
            of: ContainerOf::Image(image),
            port: *port,
            engine: *engine,
        });
    }
    let file::Compose {
        file: written,
        service,
        port,
        engine,
    } = service.compose.as_ref()?;
    let written = written
        .as_deref()
        .or(Some("compose.yaml").filter(|_| site.source.complete));
    let file = written.and_then(|file| site.file(&["services", name, "compose", "file"], file));
    let service = service.clone().unwrap_or_default();
    let of = ContainerOf::Compose {
        file: file.unwrap_or_default(),
        service,
    };
    Some(Container {
        of,
        port: *port,
        engine: *engine,
    })
}

fn judge_deployed(site: &mut Site<'_>, name: &str, deployed: &Deployed) {
    judge_label(site, name, "namespace", deployed.namespace.as_deref());
    judge_label(
        site,
        name,
        "service",
        Some(deployed.service.as_str()).filter(|service| !service.is_empty()),
    );
    if let Some(ServicePort::Name(port)) = &deployed.port {
        judge_label(site, name, "port", Some(port));
    }
    let odd = |context: &&String| {
        context.is_empty()
            || context.len() > CONTEXT_BYTES_MAX
            || context.chars().any(char::is_control)
    };
    if let Some(context) = deployed.context.as_ref().filter(odd) {
        let message = format!(
            "`services.{name}.kubernetes.context` cannot be `{}`",
            clipped(context)
        );
        site.at(
            &["services", name, "kubernetes", "context"],
            message,
            "expected the name of a context",
        );
    }
}

fn judge_label(site: &mut Site<'_>, name: &str, key: &str, word: Option<&str>) {
    let is_label = |word: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let ends_well = !word.is_empty() && !word.starts_with('-') && !word.ends_with('-');
        ends_well && word.len() <= LABEL_BYTES_MAX && word.chars().all(plain)
    };
    let Some(word) = word.filter(|word| !is_label(word)) else {
        return;
    };
    let message = format!(
        "`services.{name}.kubernetes.{key}` cannot be `{}`",
        clipped(word)
    );
    let at = ["services", name, "kubernetes", key];
    let problem = site.at(&at, message, "expected small letters, digits and `-`");
    if key == "port" {
        problem.hint("a number stands without quotes");
    }
}

/// Reports conflicts with a link within this machine.
pub(super) fn report_link(site: &mut Site<'_>, settings: &VariantTable, started: &[Service]) {
    if settings.load.network.is_none() {
        return;
    }
    for service in started {
        let (is, what, hint) = match &service.source {
            ServiceSource::Command(ServiceCommand {
                container: Some(_), ..
            }) => {
                let hint = "leave it out: a container has a network of its engine's";
                ("is a container", "a container", hint)
            }
            ServiceSource::Command(_) => continue,
            ServiceSource::Deployed { .. } => {
                let hint = "leave it out: there is a real network between the two";
                ("runs in a cluster", "`kubernetes`", hint)
            }
            ServiceSource::Url { .. } => {
                let hint = "leave it out; tc(8) can limit the way to a service that runs already";
                ("runs already", "`url`", hint)
            }
        };
        let name = &service.name;
        let message = format!(
            "`load.network` makes a link to what is started on this machine, and service `{name}` {is}"
        );
        site.at(
            &["load", "network"],
            message,
            &format!("not together with {what}"),
        )
        .hint(hint);
    }
}

/// The service as it is in the plan. `None` if it is started.
pub(super) fn resolved(
    site: &mut Site<'_>,
    name: &str,
    service: &file::ServiceTable,
) -> Option<Service> {
    let file::ServiceTable {
        url,
        kubernetes,
        ready,
        ready_timeout,
        // Rejected by `judge`.
        command: _,
        directory: _,
        container: _,
        compose: _,
        stop_timeout: _,
        env: _,
        port: _,
        needs: _,
        launcher: _,
        workers: _,
        pmx: _,
        templates: _,
    } = service;
    let source = match (url, kubernetes) {
        (Some(url), _) => ServiceSource::Url { url: url.clone() },
        (None, Some(kubernetes)) => ServiceSource::Deployed {
            kubernetes: kubernetes.clone(),
        },
        (None, None) => return None,
    };
    if kubernetes
        .as_ref()
        .is_some_and(|one| one.service.is_empty())
        && site.source.complete
    {
        let is_what = "the name of the Service: kubectl get services";
        report_missing(site, (name, "kubernetes"), "service", is_what);
    }
    let below = |path: &RequestPath| {
        url.as_ref()
            .map_or(path.0.clone(), |url| url.below(&path.0))
    };
    let ready = match ready {
        Some(path) => Ready::Http(below(path)),
        // A command of requests sends no other one.
        None if site.source.requests.is_some() => Ready::Tcp,
        None => Ready::Response,
    };
    let (name, ready_timeout) = (name.to_owned(), ready_timeout.0);
    Some(Service {
        name,
        source,
        ready,
        ready_timeout,
        needs: Vec::new(),
    })
}

/// Reports a mix of started and running variants. Started ones are fresh in each block and kept off the load
/// generator's processors, running ones are not, so the same program would seem to differ.
fn report_started_and_running(site: &mut Site<'_>, variants: &[Variant]) {
    let named = |runs: bool| {
        variants
            .iter()
            .find(|variant| variant.runs_already() == runs)
    };
    if let (Some(started), Some(running)) = (named(false), named(true)) {
        let message = format!(
            "`{}` is started for each block, and `{}` runs already",
            started.name, running.name
        );
        site.at_key(&["factors"], message, "these do not compare")
            .hint("let Proofload start both (`command`), or load both where they run (`url`)");
    }
}

/// Reports requirements of the design and the gate that cannot be measured for a running service.
pub(crate) fn judge_design(
    site: &mut Site<'_>,
    design: &Design,
    gate: &[GateEntry],
    variants: &[Variant],
) {
    report_started_and_running(site, variants);
    if let Some(variant) = variants
        .iter()
        .find(|variant| variant.runs_already())
        .filter(|_| design.explain)
    {
        let entry = &variant.entry;
        let message = format!(
            "`design.explain` takes profiles of processes, and those of `{entry}` run already"
        );
        site.at_key(&["design", "explain"], message, TOGETHER)
            .hint("leave it out; profile a copy of the service that Proofload starts");
    }
    let mut entries = variants.iter().filter_map(Variant::entry_service);
    let Some(Service { name: entry, .. }) = entries.find(|entry| !entry.may_be_seen()) else {
        return;
    };
    for (index, metric) in design
        .metrics()
        .enumerate()
        .filter(|(_, metric)| metric.is_of_processes())
    {
        let message = format!(
            "`design.metric`: `{}` of `{entry}` is not known: it runs already",
            metric.name()
        );
        site.report(
            site.tree.item_place(&["design", "metric"], index),
            message,
            TOGETHER,
        )
        .hint(UNKNOWN);
    }
    // Each key once, for any number of limits.
    let of_processes = |limit: &&GateEntry| {
        limit
            .limit
            .figure
            .metric()
            .is_some_and(Metric::is_of_processes)
    };
    let keys = gate
        .iter()
        .filter(of_processes)
        .map(|limit| (limit.of.as_deref(), limit.limit.figure.name()));
    for (of, figure) in keys.collect::<BTreeSet<_>>() {
        let path: &[&str] = &[
            &["gate"],
            of.map(|of| ["of", of]).as_slice().as_flattened(),
            &[figure],
        ]
        .concat();
        let message = format!("`gate`: `{figure}` of `{entry}` is not known: it runs already");
        site.at_key(path, message, TOGETHER).hint(UNKNOWN);
    }
}
