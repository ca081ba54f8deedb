//! Programs in pods: one Indexed Job, with an attached connection to each of its pods.
//!
//! ```text
//!   Channel ── requests ──► WebSocket ── kubectl proxy ── API server ── kubelet ──► stdin  of a pod's proofload
//!           ◄─ responses ─                                            ◄────────── stdout
//! ```
//! Messages are sent by attach, as the SSH transport sends them by `ssh`. There is no ConfigMap, no volume
//! and no Service, and no pod can reach the API server. When this program dies, its connections end, then the
//! stdin of every pod, then the programs in the pods, and some time later the Job.
//!
//! This module does not parse messages, and does not decide how many pods are enough.

mod api;
mod attach;
mod deployed;
mod pods;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use self::api::{Namespace, OF_GENERATORS};
use self::attach::attach;
pub use self::deployed::{DeployedAccess, PodsBehind};
use self::pods::{Barrier, PodStep, PodView};
use crate::{Channel, Error};

/// Interval between lists of pods, if there are few.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Additional interval for each pod, because a list of a thousand pods has megabytes.
const LOOK_LATER_EACH: Duration = Duration::from_millis(2);
/// Interval between checks for cancellation.
const GLANCE: Duration = Duration::from_millis(100);
const ATTACHED_AT_ONCE: usize = 50;

/// Added to the arguments of the program. The stdin of a pod is open even if no client ever attaches, and the
/// pod must not wait forever if this program dies before that. Longer than [`pods::OPEN_MAX`].
const ALONE: [&str; 2] = ["--first-order-within", "10m"];

/// Starts `proofload` with `arguments` in as many pods as the plan has. `run` becomes part of their names.
/// Returns one channel for each pod, in the order of the completion indexes, named
/// `kubernetes://NAMESPACE/POD@NODE`. All pods are running and attached before any of them gets a message.
///
/// `tell` gets a line whenever more pods run. `cancelled` is polled, and stops the start. The Job is deleted
/// when the last keeper of its channels is dropped, and after any error.
///
/// # Errors
/// If not all pods run, with the reason that the cluster reports, or after a cancellation.
pub fn open(
    cluster: &plan::Kubernetes,
    run: &str,
    arguments: &[&str],
    tell: &mut dyn FnMut(String),
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<Channel>, Error> {
    let name = pods::name(run, rand::random());
    let manifest = pods::manifest(&name, run, cluster, &[arguments, &ALONE].concat());
    let namespace = Namespace::find(
        cluster.context.as_deref(),
        cluster.namespace.as_deref(),
        &OF_GENERATORS,
    )?;
    check(cancelled)?;
    // The guard comes first, because a Job may exist even if the response was lost.
    let job = Arc::new(Job { namespace, name });
    let made = job.namespace.create(&manifest)?;
    // Without `backoffLimitPerIndex`, a failing pod would end all others, or be replaced by one without a
    // connection.
    if made["spec"]["backoffLimitPerIndex"] != 0 {
        return Err(
            Error::new("the cluster does not support `backoffLimitPerIndex` of a Job")
                .help("requires Kubernetes 1.29 or later"),
        );
    }
    let pods = all_running(&job, cluster, tell, cancelled)?;
    all_attached(&job, pods, cancelled)
}

fn check(cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
    if cancelled() {
        Err(Error::cancelled("pods"))
    } else {
        Ok(())
    }
}

/// A Job that is deleted when dropped. If that fails, the cluster deletes it after its pods have lost their
/// stdin.
struct Job {
    namespace: Namespace,
    name: String,
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.namespace.delete(&self.name);
    }
}

fn all_running(
    job: &Job,
    cluster: &plan::Kubernetes,
    tell: &mut dyn FnMut(String),
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<PodView>, Error> {
    let began = Instant::now();
    let mut barrier = Barrier::new(cluster.pods, cluster.image.clone());
    let mut last = String::new();
    loop {
        let pods: Vec<PodView> = job
            .namespace
            .pods_of(&job.name)?
            .iter()
            .filter_map(pods::view)
            .collect();
        let are_few = pods.len() < cluster.pods as usize;
        let refusal = if are_few {
            job.namespace.refusal(&job.name)?
        } else {
            None
        };
        match barrier.step(began.elapsed(), &pods, refusal.as_deref()) {
            PodStep::Open(pods) => return Ok(pods),
            PodStep::Broken(error) => return Err(error),
            PodStep::Wait(words) if words != last => {
                tell(words.clone());
                last = words;
            }
            PodStep::Wait(_) => {}
        }
        let next = Instant::now() + LOOK_EVERY + LOOK_LATER_EACH * cluster.pods;
        while Instant::now() < next {
            check(cancelled)?;
            thread::sleep(GLANCE);
        }
    }
}

/// Attaches to all pods, up to [`ATTACHED_AT_ONCE`] at the same time.
fn all_attached(
    job: &Arc<Job>,
    pods: Vec<PodView>,
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<Channel>, Error> {
    let mut channels = Vec::with_capacity(pods.len());
    for group in pods.chunks(ATTACHED_AT_ONCE) {
        check(cancelled)?;
        let attached: Result<Vec<Channel>, Error> = thread::scope(|scope| {
            let threads: Vec<_> = group
                .iter()
                .map(|pod| scope.spawn(|| channel(job, pod)))
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined
                .map(|channel| channel.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        channels.extend(attached?);
    }
    Ok(channels)
}

fn channel(job: &Arc<Job>, pod: &PodView) -> Result<Channel, Error> {
    let (input, output, connection) = attach(&job.namespace, &pod.name)?;
    let name = format!(
        "kubernetes://{}/{}@{}",
        job.namespace.name, pod.name, pod.node
    );
    // The connection is dropped before the Job.
    Ok(Channel::new(
        name,
        input,
        output,
        (connection, Arc::clone(job)),
    ))
}
