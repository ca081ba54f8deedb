//! Programs in pods: one Indexed Job, each pod attached to.

use std::io;

use crate::{Channel, HostError};

/// Starts the program with `arguments` in as many pods as the plan has; one channel a pod.
///
/// # Errors
/// If not all pods are there.
pub fn open(
    _: &plan::Kubernetes,
    _: &str,
    _: &[&str],
    _: &mut dyn FnMut(String),
    _: &dyn Fn() -> bool,
) -> Result<Vec<Channel>, HostError> {
    let source = io::Error::other("this build reaches no clusters");
    Err(HostError::NotStarted { host: "kubernetes".into(), source })
}
