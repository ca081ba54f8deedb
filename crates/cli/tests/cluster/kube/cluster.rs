//! The cluster that `make test-cluster` has started: this test's place in its network, and a namespace of its own in it.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The image with the program that these tests were built with, or the one that `docker save` wrote to the file that PROOFLOAD_IMAGE names.
pub const IMAGE: &str = "localhost/proofload:test";

/// Moves this thread to where the API server is, and all that it starts from now on; the nodes get the image, once.
fn control_network() {
    static IMAGE_GIVEN: OnceLock<String> = OnceLock::new();
    let image =
        || std::env::var("PROOFLOAD_IMAGE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_proofload").into());
    IMAGE_GIVEN.get_or_init(|| script(&["image", IMAGE, &image()]));
    let network = File::open("/run/netns/proofload-control").expect("a cluster is there: make test-cluster");
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
}

/// What a command of `scripts/cluster/cluster.py` prints.
pub fn script(words: &[&str]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/cluster/cluster.py");
    let output = Command::new(path).args(words).output().expect("the script starts");
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
    /// From now on this thread is where the API server is.
    pub fn new(name: &str) -> Namespace {
        control_network();
        let namespace = Namespace { name: format!("test-{name}") };
        script(&["kubectl", "create", "namespace", &namespace.name]);
        // Whatever pods want comes with it a little later: seconds, where the cluster is busy.
        within(Duration::from_secs(60), || {
            namespace.kubectl(&["get", "serviceaccounts", "--output", "name"]).contains("/default")
        });
        namespace
    }

    /// Takes only pods that keep to the strictest of Kubernetes' standards.
    pub fn restricted(self) -> Namespace {
        let label = "pod-security.kubernetes.io/enforce=restricted";
        script(&["kubectl", "label", "namespace", &self.name, label]);
        self
    }

    /// The user `guest` gets the role that is shipped for generators.
    pub fn with_role(self) -> Namespace {
        self.give("role.yaml", "proofload");
        self
    }

    /// The user `guest` gets a role that is shipped.
    pub fn give(&self, file: &str, role: &str) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes");
        self.kubectl(&["apply", "--filename", &format!("{folder}/{file}")]);
        self.kubectl(&["create", "rolebinding", role, &format!("--role={role}"), "--user=guest"]);
    }

    /// The table of an experiment that has two pods here load it, made by the user `guest`.
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

    /// Has the cluster make what these objects say.
    pub fn apply(&self, objects: &serde_json::Value) {
        let file = tempfile::NamedTempFile::new().expect("a file for the objects");
        std::fs::write(file.path(), objects.to_string()).expect("it is written");
        self.kubectl(&["apply", "--filename", &file.path().display().to_string()]);
    }

    pub fn kubectl(&self, words: &[&str]) -> String {
        script(&[&["kubectl", "--namespace", &self.name], words].concat())
    }

    /// What a path says of all objects of a kind, one after the other.
    pub fn list(&self, kind: &str, path: &str) -> String {
        self.kubectl(&["get", kind, "--output", &format!("jsonpath={{range .items[*]}}{path}{{end}}")])
    }

    /// Waits until no Job and no pod is left.
    pub fn is_empty_within(&self, longest: Duration) {
        within(longest, || self.kubectl(&["get", "jobs,pods", "--output", "name"]).is_empty());
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A test that has failed says why by itself.
        if !std::thread::panicking() {
            script(&["kubectl", "delete", "namespace", "--wait=false", &self.name]);
        }
    }
}
