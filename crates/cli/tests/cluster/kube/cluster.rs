//! The cluster started by `make test-cluster`: this test's place in its network, and a namespace for it.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The image with the program that these tests were built with, or the one in the file PROOFLOAD_IMAGE,
/// written by `docker save`.
pub const IMAGE: &str = "localhost/proofload:test";

/// Moves this thread, and everything it starts later, to the API server's network. The nodes get the image,
/// once.
fn control_network() {
    static IMAGE_GIVEN: OnceLock<String> = OnceLock::new();
    let image = || {
        std::env::var("PROOFLOAD_IMAGE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_proofload").into())
    };
    IMAGE_GIVEN.get_or_init(|| script(&["image", IMAGE, &image()]));
    let network =
        File::open("/run/netns/proofload-control").expect("a cluster is there: make test-cluster");
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
}

/// Output of a command of `scripts/cluster/cluster.py`.
pub fn script(words: &[&str]) -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/cluster/cluster.py"
    );
    let output = Command::new(path)
        .args(words)
        .output()
        .expect("the script starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).expect("it prints text")
}

pub fn within(longest: Duration, is_so: impl FnMut() -> bool) {
    assert!(crate::within(longest, is_so), "not within {longest:?}");
}

/// A namespace of the cluster, deleted when dropped.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    /// Also moves this thread to the API server's network.
    pub fn new(name: &str) -> Namespace {
        control_network();
        let namespace = Namespace {
            name: format!("test-{name}"),
        };
        script(&["kubectl", "create", "namespace", &namespace.name]);
        // The service account of pods follows a little later: seconds on a busy cluster.
        within(Duration::from_secs(60), || {
            namespace
                .kubectl(&["get", "serviceaccounts", "--output", "name"])
                .contains("/default")
        });
        namespace
    }

    /// Only accepts pods that conform to the strictest of Kubernetes' standards.
    pub fn restricted(self) -> Namespace {
        let label = "pod-security.kubernetes.io/enforce=restricted";
        script(&["kubectl", "label", "namespace", &self.name, label]);
        self
    }

    /// Gives the user `guest` the shipped role for generators.
    pub fn with_role(self) -> Namespace {
        self.give("role.yaml", "proofload");
        self
    }

    /// Gives the user `guest` a shipped role.
    pub fn give(&self, file: &str, role: &str) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes");
        self.kubectl(&["apply", "--filename", &format!("{folder}/{file}")]);
        self.kubectl(&[
            "create",
            "rolebinding",
            role,
            &format!("--role={role}"),
            "--user=guest",
        ]);
    }

    /// The table of an experiment with two pods here as generators, created by the user `guest`.
    pub fn two_pods(&self) -> String {
        format!(
            r#"[generators.kubernetes]
context = "guest"
namespace = "{}"
pods = 2
image = "{IMAGE}"
resources = {{ cpu = "100m", memory = "64Mi" }}"#,
            self.name
        )
    }

    /// Creates these objects in the cluster.
    pub fn apply(&self, objects: &serde_json::Value) {
        let file = tempfile::NamedTempFile::new().expect("a file for the objects");
        std::fs::write(file.path(), objects.to_string()).expect("it is written");
        self.kubectl(&["apply", "--filename", &file.path().display().to_string()]);
    }

    pub fn kubectl(&self, words: &[&str]) -> String {
        script(&[&["kubectl", "--namespace", &self.name], words].concat())
    }

    /// Values of a path in all objects of a kind, concatenated.
    pub fn list(&self, kind: &str, path: &str) -> String {
        self.kubectl(&[
            "get",
            kind,
            "--output",
            &format!("jsonpath={{range .items[*]}}{path}{{end}}"),
        ])
    }

    /// Waits until no Job and no pod is left.
    pub fn is_empty_within(&self, longest: Duration) {
        within(longest, || {
            self.kubectl(&["get", "jobs,pods", "--output", "name"])
                .is_empty()
        });
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A failed test already has a message.
        if !std::thread::panicking() {
            script(&["kubectl", "delete", "namespace", "--wait=false", &self.name]);
        }
    }
}
