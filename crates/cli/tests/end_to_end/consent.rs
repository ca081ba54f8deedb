//! The confirmation for loading other machines is requested before anything is sent, by their addresses and
//! not by their names. Without a terminal `--yes` confirms.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::place::{Place, Run, Said, get, node, skip};

/// A `kubectl` whose cluster has the Service `shop` in the namespace `prod`, on the loopback port KUBE_PORT.
const KUBECTL: &str = r#"#!/usr/bin/env node
const words = process.argv.slice(2).join(' ');
if (words.startsWith('config view')) {
  console.log(JSON.stringify({ 'current-context': 'live', clusters: [{ name: 'c', cluster: { server: 'https://c' } }],
    contexts: [{ name: 'live', context: { cluster: 'c' } }] }));
} else {
  const port = Number(process.env.KUBE_PORT);
  const pod = { metadata: { name: 'shop-1', uid: 'p1' }, spec: { nodeName: 'n' }, status: { phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }], containerStatuses: [{ name: 'c', restartCount: 0, state: { running: {} } }] } };
  const answer = (path) => {
    if (path.includes('selfsubjectaccessreviews')) return { status: { allowed: true } };
    if (path.includes('/services/shop')) return { metadata: { name: 'shop', uid: 'u' }, spec: { type: 'ClusterIP', clusterIP: '127.0.0.1',
      ports: [{ port }], selector: { app: 'shop' } } };
    if (path.includes('endpointslices')) return { items: [{ addressType: 'IPv4', ports: [{ name: '', port }], endpoints: [
      { addresses: ['127.0.0.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', name: 'shop-1', uid: 'p1' } }] }] };
    return { items: path.includes('/pods') ? [pod] : [] };
  };
  const socket = process.argv.find((word) => word.startsWith('--unix-socket=')).slice('--unix-socket='.length);
  require('node:http').createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answer(request.url)));
  }).listen(socket, () => console.log('Starting to serve'));
}
"#;

/// A service that responds with its number of connections so far.
const COUNTING: &str = "let connections = 0; const server = require('node:http').createServer((_, response) => \
                        response.end(String(connections)));\n\
                        server.on('connection', () => { connections += 1; });\n\
                        server.listen(Number(process.env.PORT), '127.0.0.1');\n";

fn without_terminal(mut command: Command) -> Said {
    command.stdin(Stdio::null()).said()
}

#[test]
fn services_of_clusters_are_asked_for_by_name() {
    let place = Place::new();
    let (_running, address) = node(place.write("counting.js", COUNTING), &[]);
    let kubectl = place.write("bin/kubectl", KUBECTL);
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let service = "[services.api]\nkubernetes = { service = \"shop\", namespace = \"prod\" }";
    place.write(
        "k.toml",
        format!("name = \"k\"\n{service}\n[measure]\nduration = \"300ms\"\n"),
    );
    let path = format!(
        "{}:{}",
        place.path("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let run = |flags: &[&str]| {
        let mut command = place.proofload(&[&["run", "k.toml"], flags].concat());
        command
            .env("PATH", &path)
            .env("KUBE_PORT", address.port().to_string());
        without_terminal(command)
    };
    let asked = format!("kubernetes://prod/shop of the context live at {address}: this sends");
    let connections = || get(address, "/").parse::<u32>().expect("a number");
    let before = connections();
    run(&[]).ends(2).tells(&[&asked, "--yes"]);
    assert_eq!(connections(), before + 1, "nobody has connected meanwhile");
    let said = run(&["--yes", "--out", "record"]);
    assert!(matches!(said.code, Some(0 | 4)), "{said}");
    let record = place.opened();
    assert!(
        record
            .trials()
            .flat_map(|trial| &trial.slices)
            .any(|slice| slice.counts.successful > 0),
        "{said}"
    );
}

#[test]
fn what_is_not_this_machine_is_asked_for_whatever_its_name() {
    for words in [
        &["compare", "http://192.0.2.1", "http://127.0.0.1:1"][..],
        &["load", "http://192.0.2.1", "-n", "10"],
    ] {
        without_terminal(Place::new().proofload(words))
            .ends(2)
            .tells(&["192.0.2.1: this sends ", "--yes"]);
    }
    let words = [
        "compare",
        "http://192.0.2.1",
        "http://127.0.0.1:1",
        "--rate",
        "500",
        "-c",
        "2",
    ];
    without_terminal(Place::new().proofload(&words))
        .ends(2)
        .tells(&["/s, and requests at full speed over 2 connections while they warm up, for"]);
}

#[test]
fn a_local_name_that_leads_elsewhere_is_asked_for() {
    if !rustix::process::geteuid().is_root() {
        return skip("a file of hosts of its own wants root");
    }
    let place = Place::new();
    place.write("hosts", "192.0.2.7 prod.localhost\n127.0.0.1 localhost\n");
    let mut command = Command::new("unshare");
    let script = "mount --bind hosts /etc/hosts && ip link set lo up && exec \"$0\" load http://prod.localhost:80/ -n 10";
    command.args([
        "--mount",
        "--net",
        "sh",
        "-c",
        script,
        env!("CARGO_BIN_EXE_proofload"),
    ]);
    command.current_dir(place.path(""));
    let said = without_terminal(command);
    if said.err.contains("unshare") || said.err.contains("mount") {
        return skip("a mount namespace cannot be had here");
    }
    said.ends(2)
        .tells(&["prod.localhost (192.0.2.7): this sends", "--yes"]);
}
