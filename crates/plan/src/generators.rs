//! Where load comes from: whether the generators that the file asks for can be, and what each variant's load must be for them.
//!
//! Touches the world in one way only: it looks whether the program for hosts exists. Whether hosts can be reached is found out by whoever
//! reaches for them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::check::clipped;
use crate::file;
use crate::model::{Generators, Kubernetes, Variant};
use crate::problem::{Problem, Span};
use crate::shape::Scalar;
use crate::site::Site;

/// More hosts than this are a slip, or a job for a cluster.
const SSH_MAX: usize = 256;
/// Of a name, context or label, in bytes; Kubernetes allows no longer ones.
const NAME_BYTES_MAX: usize = 253;

/// The generators of the file.
pub(crate) fn generators(site: &mut Site<'_>, written: &file::Generators) -> Generators {
    judge_ssh(site, &written.ssh);
    let kubernetes = written.kubernetes.as_ref().map(|cluster| kubernetes(site, cluster));
    let program = written.program.as_ref().and_then(|path| program(site, path));
    let address = written.address.as_ref().and_then(|text| address(site, text));
    let generators =
        Generators { local: written.local, ssh: written.ssh.clone(), kubernetes, program, address };
    if site.source.complete {
        report_none(site, &generators);
    }
    generators
}

/// What a variant asks for that these generators cannot do together.
pub(crate) fn judge_variant(site: &mut Site<'_>, generators: &Generators, variant: &Variant) {
    let (count, load) = (generators.count(), &variant.load);
    if load.connections < count {
        let message = format!(
            "`load.connections` is {}, fewer than the {count} generators that share them",
            load.connections
        );
        let problem = Problem::new(
            site.tree.place(&["load", "connections"]),
            message,
            "expected at least one for each",
        );
        site.report(problem.hint("more connections, or fewer generators"));
    }
    if load.network.is_some() && !generators.is_here() {
        let message =
            "`load.network` is a link between this process and the entry, and other generators send the load";
        let problem =
            Problem::new(site.tree.place(&["load", "network"]), message, "cannot be had with `generators`");
        site.report(problem.hint(
            "leave one of them out; between machines the network is what it is, and tc(8) on the generators' side can limit it",
        ));
    }
    report_unreached(site, generators, variant);
}

/// A destination is handed to `ssh` as one word, and must not be taken for an option.
fn judge_ssh(site: &mut Site<'_>, hosts: &[String]) {
    for (index, host) in hosts.iter().enumerate() {
        let span = || site.tree.item_place(&["generators", "ssh"], index);
        let problem = if !is_one_word(host) || host.starts_with('-') {
            let message = format!("`generators.ssh`: `{}` is not a destination", clipped(host));
            Problem::new(span(), message, "expected `user@host`, or a name of ~/.ssh/config")
        } else if hosts[..index].contains(host) {
            let message = format!("`generators.ssh` names `{}` twice", clipped(host));
            Problem::new(span(), message, "named before")
                .hint("one generator can use all cores of its host: see `load.threads`")
        } else {
            continue;
        };
        site.report(problem);
    }
    if hosts.len() > SSH_MAX {
        let message = format!("`generators.ssh` names {} hosts, at most {SSH_MAX}", hosts.len());
        let problem = Problem::new(site.tree.place(&["generators", "ssh"]), message, "too many");
        site.report(
            problem.hint("as many generators are easier to have in a cluster: `generators.kubernetes`"),
        );
    }
}

fn kubernetes(site: &mut Site<'_>, written: &file::Kubernetes) -> Kubernetes {
    let at = |key| ["generators", "kubernetes", key];
    let words = [
        ("context", written.context.as_ref()),
        ("namespace", written.namespace.as_ref()),
        ("image", Some(&written.image)),
    ];
    for (key, word) in words {
        // One that is not there at all has been told.
        let there = site.tree.entry(&at(key)).is_some();
        judge_word(site, &format!("generators.kubernetes.{key}"), word.filter(|_| there), at(key));
    }
    Kubernetes {
        context: written.context.clone(),
        namespace: written.namespace.clone(),
        pods: written.pods,
        image: written.image.clone(),
        node_selector: judged(site, "node_selector", &written.node_selector),
        resources: judged(site, "resources", &written.resources),
    }
}

/// The entries of a table of names and plain values.
fn judged(site: &mut Site<'_>, key: &str, entries: &BTreeMap<String, Scalar>) -> BTreeMap<String, String> {
    for (name, value) in entries {
        let path = ["generators", "kubernetes", key, name.as_str()];
        if !is_one_word(name) {
            let message = format!("`{}` is not a name for `generators.kubernetes.{key}`", clipped(name));
            let problem = Problem::new(site.tree.key_place(&path), message, "expected one word");
            site.report(problem);
        }
        judge_word(site, &format!("generators.kubernetes.{key}"), Some(&value.0), path);
    }
    entries.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
}

fn judge_word<const N: usize>(site: &mut Site<'_>, key: &str, word: Option<&String>, path: [&str; N]) {
    let Some(word) = word.filter(|word| !is_one_word(word)) else { return };
    let message = format!("`{key}` cannot be `{}`", clipped(word));
    site.report(Problem::new(site.tree.place(&path), message, "expected one word without blanks"));
}

fn is_one_word(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(plain)
}

/// The program for hosts, absolute; that it is a file is checked.
fn program(site: &mut Site<'_>, written: &str) -> Option<PathBuf> {
    let wanted = site.source.directory.join(written);
    let reason = match wanted.canonicalize() {
        Ok(path) if path.is_file() => return Some(path),
        Ok(_) => "it is no file".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("`generators.program`: `{}` cannot be put on hosts: {reason}", clipped(written));
    let problem =
        Problem::new(site.tree.place(&["generators", "program"]), message, "expected a build of proofload");
    site.report(problem.hint(format!("looked for {}", wanted.display())));
    None
}

fn address(site: &mut Site<'_>, written: &str) -> Option<IpAddr> {
    let span: Span = site.tree.place(&["generators", "address"]);
    let problem = match written.parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() => {
            let message =
                format!("`generators.address`: `{address}` is every address, and none to send requests to");
            Problem::new(span, message, "expected one address").hint(ADDRESS_HINT)
        }
        Ok(address) => return Some(address),
        Err(_) => {
            let message = format!("`generators.address`: `{}` is not an IP address", clipped(written));
            Problem::new(span, message, "expected an address such as \"10.0.0.2\"").hint(ADDRESS_HINT)
        }
    };
    site.report(problem);
    None
}

const ADDRESS_HINT: &str = "the address of this machine in the network that it shares with the generators, without a port; `ip -brief address` lists them";

fn report_none(site: &mut Site<'_>, generators: &Generators) {
    if generators.count() > 0 {
        return;
    }
    let message = "`generators.local` is 0, and there are no others";
    let problem =
        Problem::new(site.tree.place(&["generators", "local"]), message, "expected at least one generator");
    site.report(
        problem.hint("name hosts in `ssh`, or pods in `kubernetes`; without `local` there is one here"),
    );
}

/// An entry that runs here listens on loopback, unless the file says by which address others reach it.
fn report_unreached(site: &mut Site<'_>, generators: &Generators, variant: &Variant) {
    let entry = variant.services.iter().find(|service| service.name == variant.entry);
    let is_told = site.tree.entry(&["generators", "address"]).is_some()
        || entry.is_some_and(|entry| {
            entry.host.is_some() || entry.address.is_some() || entry.kubernetes.is_some()
        });
    if !generators.is_elsewhere() || is_told || !site.source.complete {
        return;
    }
    let key = if generators.ssh.is_empty() { "kubernetes" } else { "ssh" };
    let message =
        format!("`generators.{key}` are on other machines, and nothing says how they reach this one");
    let span = site.tree.key_place(&["generators", key]);
    let problem = Problem::new(span, message, "expected a key `address` beside it");
    site.report(problem.hint(
        "address = \"10.0.0.2\": this machine's address as the generators see it; the entry is to listen on it: {address} in its \
         command or env",
    ));
}
