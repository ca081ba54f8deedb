//! Services that run already in a cluster: what they cannot have, because nothing of them is started, and what cannot be measured of them.
//!
//! Of the cluster it knows nothing: what is there is found out when it is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::check::{clipped, shown_key};
use crate::file;
use crate::gate::{Figure, GateEntry};
use crate::launch::Launcher;
use crate::model::{Deployed, Design, Metric, Ready, Service, ServicePort, Variant};
use crate::problem::{Problem, Span};
use crate::site::Site;
use crate::tree::Value;

/// Keys of a service that mean something for one that is not started.
const KEYS: [&str; 3] = ["kubernetes", "ready", "ready_timeout"];
/// Longest name of a context.
const CONTEXT_BYTES_MAX: usize = 300;
/// Longest name of a Service, a namespace or a port: a DNS label.
const LABEL_BYTES_MAX: usize = 63;
/// Why there are no figures of its processes.
const UNKNOWN: &str = "CPU time and memory of a service are read where Proofload starts it; of one that runs already there are responses \
                       alone: throughput, response times, failures";

/// Reports what does not go together with a service that runs already.
pub(super) fn judge(site: &mut Site<'_>, name: &str, deployed: &file::Deployed) {
    let service = site.tree.entry(&["services", name]).and_then(|entry| entry.node.table());
    for entry in service.into_iter().flat_map(|table| &table.entries) {
        if KEYS.contains(&entry.key.as_str()) {
            continue;
        }
        let key = shown_key(&entry.key);
        let message =
            format!("`services.{name}.{key}` is for a service that is started, and `{name}` runs already");
        let problem = Problem::new(entry.key_span.clone(), message, "not together with `kubernetes`");
        site.report(problem.hint(match entry.key.as_str() {
            "port" => {
                "the Service's port stands beside its name: kubernetes = { service = \"shop\", port = 80 }"
            }
            "host" | "address" => "the cluster says where it is found; leave this out",
            "needs" => "what it needs runs already, too; leave this out",
            _ => "leave this out, or leave `kubernetes` out and have the service started",
        }));
    }
    let words = [("namespace", &deployed.namespace), ("service", &deployed.service)];
    for (key, word) in words {
        judge_label(site, name, key, word.as_deref());
    }
    if let Some(ServicePort::Name(port)) = &deployed.port {
        judge_label(site, name, "port", Some(port));
    }
    let odd = |context: &&String| {
        context.is_empty() || context.len() > CONTEXT_BYTES_MAX || context.chars().any(char::is_control)
    };
    if let Some(context) = deployed.context.as_ref().filter(odd) {
        let message = format!("`services.{name}.kubernetes.context` cannot be `{}`", clipped(context));
        let span = site.tree.place(&["services", name, "kubernetes", "context"]);
        site.report(Problem::new(span, message, "expected the name of a context"));
    }
}

fn judge_label(site: &mut Site<'_>, name: &str, key: &str, word: Option<&str>) {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |word: &str| {
        let bytes = word.as_bytes();
        let ends =
            bytes.first().zip(bytes.last()).is_some_and(|(first, last)| letter(*first) && letter(*last));
        ends && bytes.len() <= LABEL_BYTES_MAX && bytes.iter().all(|byte| letter(*byte) || *byte == b'-')
    };
    let Some(word) = word.filter(|word| !is_label(word)) else { return };
    let message = format!("`services.{name}.kubernetes.{key}` cannot be `{}`", clipped(word));
    let span = site.tree.place(&["services", name, "kubernetes", key]);
    let problem = Problem::new(span, message, "expected small letters, digits and `-`");
    site.report(match key {
        "port" => problem.hint("a number stands without quotes"),
        _ => problem,
    });
}

/// Reports a service that needs one which runs already.
pub(super) fn report_needed(site: &mut Site<'_>, name: &str, (index, need): (usize, &str)) {
    let message = format!("`services.{name}.needs`: `{need}` runs already, and can only be loaded");
    let span = site.tree.item_place(&["services", name, "needs"], index);
    let problem = Problem::new(span, message, "expected a service that is started");
    site.report(problem.hint(
        "what stands behind it may change under a service that needs it, and nobody would look; write its address into `env` yourself",
    ));
}

/// The service as the plan has it.
pub(super) fn resolved(
    site: &mut Site<'_>,
    name: &str,
    service: &file::Service,
    deployed: &file::Deployed,
) -> Service {
    if deployed.service.is_none() && site.source.complete {
        let message = format!("service `{name}` has no `kubernetes.service` in variant `{}`", site.variant);
        let span = site.tree.key_place(&["services", name, "kubernetes"]);
        let problem = Problem::new(span, message, "expected a key `service` in it");
        site.report(problem.hint("the name of the Service: kubectl get services"));
    }
    Service {
        name: name.to_owned(),
        command: Vec::new(),
        directory: PathBuf::new(),
        host: None,
        address: None,
        kubernetes: Some(Deployed {
            context: deployed.context.clone(),
            namespace: deployed.namespace.clone(),
            service: deployed.service.clone().unwrap_or_default(),
            port: deployed.port.clone(),
        }),
        env: BTreeMap::new(),
        port: None,
        ready: service.ready.as_ref().map_or(Ready::Tcp, |path| Ready::Http(path.0.clone())),
        ready_timeout: service.ready_timeout.0,
        stop_timeout: service.stop_timeout.0,
        needs: Vec::new(),
        launcher: Launcher::Exec,
        workers: None,
        pmx: true,
        templates: BTreeMap::new(),
    }
}

/// Reports a link between the load and an entry that runs already.
pub(super) fn report_link(site: &mut Site<'_>, entry: &Service) {
    let message = format!(
        "`load.network` makes a link within this machine, and service `{}` runs in a cluster",
        entry.name
    );
    let span = site.tree.place(&["load", "network"]);
    let problem = Problem::new(span, message, "not together with `kubernetes`");
    site.report(problem.hint("leave it out: there is a real network between the two"));
}

/// Reports what the design and the gate ask of a service that runs already and nobody can know.
pub(crate) fn judge_design(site: &mut Site<'_>, design: &Design, gate: &[GateEntry], variants: &[Variant]) {
    let Some(variant) = variants.iter().find(|variant| variant.deployed().is_some()) else { return };
    let entry = &variant.entry;
    let of_processes: Vec<Metric> = design.metrics().filter(|metric| metric.is_of_processes()).collect();
    for metric in of_processes {
        let message =
            format!("`design.metric`: `{}` of `{entry}` is not known: it runs already", metric.name());
        let span = metric_place(site, metric);
        site.report(Problem::new(span, message, "not together with `kubernetes`").hint(UNKNOWN));
    }
    judge_gate(site, gate, entry);
    if design.explain {
        let message =
            format!("`design.explain` takes profiles of processes, and those of `{entry}` run already");
        let problem = Problem::new(
            site.tree.key_place(&["design", "explain"]),
            message,
            "not together with `kubernetes`",
        );
        site.report(problem.hint("leave it out; profile a copy of the service that Proofload starts"));
    }
}

/// Each key once, however many limits it has.
fn judge_gate(site: &mut Site<'_>, gate: &[GateEntry], entry: &str) {
    let mut told: Vec<Vec<&str>> = Vec::new();
    let is_of_processes =
        |limit: &&GateEntry| limit.limit.figure.metric().is_some_and(Metric::is_of_processes);
    for limit in gate.iter().filter(is_of_processes) {
        let figure = limit.limit.figure.name();
        let path = match &limit.of {
            Some(of) => vec!["gate", "of", of, figure],
            None => vec!["gate", figure],
        };
        if !told.contains(&path) {
            let message = format!("`gate`: `{figure}` of `{entry}` is not known: it runs already");
            let span = site.tree.key_place(&path);
            site.report(Problem::new(span, message, "not together with `kubernetes`").hint(UNKNOWN));
            told.push(path);
        }
    }
}

fn metric_place(site: &Site<'_>, metric: Metric) -> Span {
    let at = ["design", "metric"];
    let is_it = |index: &usize| {
        let item = site.tree.item(&at, *index);
        item.is_some_and(|item| item.value == Value::String(metric.name().to_owned()))
    };
    let index = (0..Figure::all().count()).find(is_it).unwrap_or(0);
    site.tree.item_place(&at, index)
}
