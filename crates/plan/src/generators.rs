//! Load generators: whether the configured generators are possible, and what each variant's load requires of
//! them.
//!
//! It accesses the file system only to check whether the program for hosts exists. Whether hosts can be
//! reached is checked on connecting.

use crate::model::{Generators, Kubernetes, Service, Variant};
use crate::shown::clipped;
use crate::site::Site;

/// More hosts are a mistake, or a job for a cluster.
const SSH_MAX: usize = 256;
/// Maximum length of a name, context or label in bytes, as in Kubernetes.
const NAME_BYTES_MAX: usize = 253;

pub(crate) fn generators(site: &mut Site<'_>, mut written: Generators) -> Generators {
    judge_ssh(site, &written.ssh);
    if let Some(cluster) = &written.kubernetes {
        judge_cluster(site, cluster);
    }
    let at = |key| ["generators", key];
    written.program = written
        .program
        .and_then(|path| site.file(&at("program"), &path.to_string_lossy()));
    if written.count() == 0 && site.source.complete {
        let message = "`generators.local` is 0, and there are no others";
        site.at(&at("local"), message, "expected at least one generator")
            .hint(
                "name hosts in `ssh`, or pods in `kubernetes`; without `local` there is one here",
            );
    }
    written
}

/// Reports requirements of a variant that these generators cannot fulfil together.
pub(crate) fn judge_variant(site: &mut Site<'_>, generators: &Generators, variant: &Variant) {
    let (count, load) = (generators.count(), &variant.load);
    let connections = load.settings.connections;
    if connections < count {
        let message = format!(
            "`load.connections` is {connections}, fewer than the {count} generators that share them"
        );
        site.at(
            &["load", "connections"],
            message,
            "expected at least one for each",
        )
        .hint("more connections, or fewer generators");
    }
    if !load.settings.sources.is_empty() && generators.is_elsewhere() {
        let message =
            "`load.sources` are addresses of this machine, and generators on others send load too";
        site.at(
            &["load", "sources"],
            message,
            "cannot be had with `generators`",
        );
    }
    let url = variant.entry_service().and_then(Service::url);
    if let Some(url) = url.filter(|url| url.is_local() && generators.is_elsewhere()) {
        let message =
            format!("{url} is this machine alone, and generators on others send load too");
        let label = "expected a URL that all of them can connect to";
        site.at(&["services", &variant.entry, "url"], message, label)
            .hint("the address of this machine as the generators see it");
    }
    if load.network.is_some() && !generators.is_here() {
        let message = "`load.network` is a link between this process and the entry, and other generators send the load";
        site.at(&["load", "network"], message, "cannot be had with `generators`").hint(
            "leave one of them out; between machines the network is what it is, and tc(8) on the generators' side can limit it",
        );
    }
    report_unreached(site, generators, variant);
}

/// A destination is passed to `ssh` as one word, and must not be taken for an option.
fn judge_ssh(site: &mut Site<'_>, hosts: &[String]) {
    const SSH: [&str; 2] = ["generators", "ssh"];
    for (index, host) in hosts.iter().enumerate() {
        let span = site.tree.item_place(&SSH, index);
        if !is_one_word(host) || host.starts_with('-') {
            let message = format!("`generators.ssh`: `{}` is not a destination", clipped(host));
            site.report(
                span,
                message,
                "expected `user@host`, or a name of ~/.ssh/config",
            );
        } else if hosts[..index].contains(host) {
            let message = format!("`generators.ssh` names `{}` twice", clipped(host));
            site.report(span, message, "named before")
                .hint("one generator can use all cores of its host: see `load.threads`");
        }
    }
    if hosts.len() > SSH_MAX {
        let message = format!(
            "`generators.ssh` names {} hosts, at most {SSH_MAX}",
            hosts.len()
        );
        site.at(&SSH, message, "too many")
            .hint("as many generators are easier to have in a cluster: `generators.kubernetes`");
    }
}

fn judge_cluster(site: &mut Site<'_>, cluster: &Kubernetes) {
    let Kubernetes {
        context,
        namespace,
        image,
        ..
    } = cluster;
    for (key, word) in [
        ("context", context.as_ref()),
        ("namespace", namespace.as_ref()),
        ("image", Some(image)),
    ] {
        let at = ["generators", "kubernetes", key];
        // A missing key was reported.
        if let Some(word) = word.filter(|_| site.tree.entry(&at).is_some()) {
            judge_word(site, word, &at);
        }
    }
    for (key, entries) in [
        ("node_selector", &cluster.node_selector),
        ("resources", &cluster.resources),
    ] {
        for (name, value) in entries {
            let at = ["generators", "kubernetes", key, name];
            if !is_one_word(name) {
                let message = format!(
                    "`{}` is not a name for `generators.kubernetes.{key}`",
                    clipped(name)
                );
                site.at_key(&at, message, "expected one word");
            }
            judge_word(site, value, &at);
        }
    }
}

fn judge_word(site: &mut Site<'_>, word: &str, at: &[&str]) {
    if !is_one_word(word) {
        let message = format!("`{}` cannot be `{}`", at[..3].join("."), clipped(word));
        site.at(at, message, "expected one word without blanks");
    }
}

fn is_one_word(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(plain)
}

/// An entry on this machine listens on loopback, unless the file sets the address by which others reach it.
fn report_unreached(site: &mut Site<'_>, generators: &Generators, variant: &Variant) {
    let is_told = site.tree.entry(&["generators", "address"]).is_some() || variant.runs_already();
    if !generators.is_elsewhere() || is_told || !site.source.complete {
        return;
    }
    let key = if generators.ssh.is_empty() {
        "kubernetes"
    } else {
        "ssh"
    };
    let message = format!(
        "`generators.{key}` are on other machines, and nothing says how they reach this one"
    );
    site.at_key(&["generators", key], message, "expected a key `address` beside it").hint(
        "address = \"10.0.0.2\": this machine's address as the generators see it; the entry is to listen on it: {address} in its \
         command or env",
    );
}
