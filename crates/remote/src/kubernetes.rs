//! Programs in pods: one Indexed Job, each of its pods attached to.
//!
//! ```text
//!   Channel ── orders ──► one thread ── WebSocket ── API server ── kubelet ──► stdin  of a pod's proofload
//!           ◄─ answers ──                                       ◄────────────── stdout
//! ```
//! What is said travels by attach, as over SSH by ssh: there is no ConfigMap, no volume and no Service, and no pod can reach the API server.
//! When this program dies the connections end, with them every pod's stdin, with that its program, and some time later the Job.
//! It must not know what is said, or decide how many pods are enough.

mod api;
mod deployed;
mod error;
mod job;
mod pipe;
mod pods;
mod talk;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use self::api::{Namespace, OF_GENERATORS};
pub use self::deployed::{Behind, Deployed, Pod};
pub use self::error::ClusterError;
use self::job::Wanted;
use self::pipe::{Ends, Input, Output, pipes};
use self::pods::{Barrier, Seen, Step};
use crate::{Channel, HostError};

/// How often whoever waits is asked whether they still do.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How often pods are looked at, for few of them.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How much longer for each pod: a list of a thousand is megabytes.
const LOOK_LATER_EACH: Duration = Duration::from_millis(2);
/// How many connections are made at once.
const ATTACHED_AT_ONCE: usize = 50;

/// What is added to the program's arguments: a pod's stdin is open whether or not anybody ever attaches, and who dies before that must not
/// leave it waiting. Longer than [`pods::OPEN_MAX`].
const ALONE: [&str; 2] = ["--first-order-within", "10m"];

/// Starts `proofload generate`, as `arguments` say, in as many pods as the plan has; `run` becomes part of their names. One channel a pod in the order
/// of their completion index, named `kubernetes://NAMESPACE/POD@NODE`. All are running and attached: before that, none is told anything.
///
/// `tell` is given what there is to say while it takes; `cancelled` is asked all the time, and ends it. The Job is deleted when the last
/// channel's keeper is dropped, and where anything fails.
///
/// # Errors
/// If not all pods are there, with what the cluster says of it; or if they were not wanted any more.
pub fn open(
    cluster: &plan::Kubernetes,
    run: &str,
    arguments: &[&str],
    tell: &mut dyn FnMut(String),
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<Channel>, HostError> {
    let wanted = Wanted {
        name: job::name(run, rand::random()),
        run: run.to_owned(),
        cluster: cluster.clone(),
        arguments: arguments.iter().chain(&ALONE).map(|word| word.to_string()).collect(),
    };
    let (to, news) = channel();
    let keeper = Keeper::begin(wanted, to)?;
    loop {
        match news.recv_timeout(ASK_EVERY) {
            Ok(News::Told(words)) => tell(words),
            Ok(News::Open(pods)) => return Ok(channels(pods, Arc::new(keeper))),
            Ok(News::Failed(error)) => return Err(error.into()),
            Err(RecvTimeoutError::Disconnected) => return Err(ClusterError::Cancelled.into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if cancelled() {
            return Err(ClusterError::Cancelled.into());
        }
    }
}

fn channels(pods: Vec<Attached>, keeper: Arc<Keeper>) -> Vec<Channel> {
    let channel = |pod: Attached| Channel {
        name: pod.name,
        input: Box::new(pod.input),
        output: Box::new(pod.output),
        keeper: Box::new(keeper.clone()),
    };
    pods.into_iter().map(channel).collect()
}

/// What the thread that speaks with the cluster has to say.
enum News {
    Told(String),
    Open(Vec<Attached>),
    Failed(ClusterError),
}

/// A pod that can be spoken with.
struct Attached {
    name: String,
    input: Input,
    output: Output,
}

/// The thread that speaks with the cluster. Dropping it has the Job deleted, and waits for that.
struct Keeper {
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn begin(wanted: Wanted, news: Sender<News>) -> Result<Keeper, HostError> {
        let failed = |source| HostError::NotStarted { host: "kubernetes".into(), source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (over, ended) = oneshot::channel();
        let speak = move || {
            runtime.block_on(live(wanted, news, ended));
            // A name that is being looked up must not keep us.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("kubernetes".into()).spawn(speak).map_err(failed)?;
        Ok(Keeper { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The thread may have ended by itself.
        self.over.take().map(|over| over.send(()));
        self.thread.take().map(JoinHandle::join);
    }
}

/// From the first request to the last.
async fn live(wanted: Wanted, news: Sender<News>, mut ended: oneshot::Receiver<()>) {
    let found = tokio::select! {
        found = find(&wanted) => found,
        _ = &mut ended => return,
    };
    let failed = match found {
        Err(error) => Some(error),
        // Not broken off: what is made must be known, to be deleted.
        Ok(namespace) => {
            let made = make(&namespace, &wanted).await;
            let begun = async {
                made?;
                begin(&namespace, &wanted, &news).await
            };
            let opened = tokio::select! {
                opened = begun => opened,
                _ = &mut ended => Err(ClusterError::Cancelled),
            };
            let failed = match opened {
                Ok(pods) => {
                    if news.send(News::Open(pods)).is_ok() {
                        let _ = ended.await;
                    }
                    None
                }
                Err(error) => Some(error),
            };
            // Where that fails it goes by itself, when its pods have no stdin any more.
            let _ = namespace.delete(&wanted.name).await;
            failed
        }
    };
    if let Some(error) = failed {
        let _ = news.send(News::Failed(error));
    }
}

async fn find(wanted: &Wanted) -> Result<Namespace, ClusterError> {
    let config = api::config(wanted.cluster.context.as_deref()).await?;
    let namespace = Namespace::find(wanted.cluster.namespace.as_deref(), config, &OF_GENERATORS)?;
    namespace.check_rights().await?;
    Ok(namespace)
}

async fn make(namespace: &Namespace, wanted: &Wanted) -> Result<(), ClusterError> {
    let made = namespace.create(&job::manifest(wanted)).await?;
    // Without it one pod that fails would end all others, or be replaced by one that nobody speaks with.
    let kept = made.spec.is_some_and(|spec| spec.backoff_limit_per_index == Some(0));
    if kept { Ok(()) } else { Err(ClusterError::Old { what: "backoffLimitPerIndex" }) }
}

/// Waits until all pods run, and attaches to each.
async fn begin(
    namespace: &Namespace,
    wanted: &Wanted,
    news: &Sender<News>,
) -> Result<Vec<Attached>, ClusterError> {
    let pods = all_running(namespace, wanted, news).await?;
    let mut attaching = JoinSet::new();
    let turns = Arc::new(Semaphore::new(ATTACHED_AT_ONCE));
    for pod in pods {
        let (namespace, turns) = (namespace.clone(), turns.clone());
        attaching.spawn(async move {
            let _turn = turns.acquire().await;
            attach(namespace, pod).await
        });
    }
    let mut attached = Vec::new();
    while let Some(joined) = attaching.join_next().await {
        let one = joined.map_err(|_| ClusterError::Cancelled)?;
        attached.push(one?);
    }
    attached.sort_by_key(|(index, _)| *index);
    Ok(attached.into_iter().map(|(_, pod)| pod).collect())
}

async fn all_running(
    namespace: &Namespace,
    wanted: &Wanted,
    news: &Sender<News>,
) -> Result<Vec<Seen>, ClusterError> {
    let began = Instant::now();
    let mut barrier = Barrier::new(wanted.cluster.pods, wanted.cluster.image.clone());
    let mut told = String::new();
    loop {
        let pods: Vec<Seen> = namespace.pods_of(&wanted.name).await?.iter().filter_map(pods::see).collect();
        let refusal = match pods.len() < wanted.cluster.pods as usize {
            true => namespace.refusal(&wanted.name).await?,
            false => None,
        };
        match barrier.step(began.elapsed(), &pods, refusal.as_deref()) {
            Step::Open(pods) => return Ok(pods),
            Step::Broken(error) => return Err(error),
            Step::Wait(words) if words != told => {
                let _ = news.send(News::Told(words.clone()));
                told = words;
            }
            Step::Wait(_) => {}
        }
        sleep(LOOK_EVERY + LOOK_LATER_EACH * wanted.cluster.pods).await;
    }
}

async fn attach(namespace: Namespace, pod: Seen) -> Result<(u32, Attached), ClusterError> {
    let process = namespace.attach(&pod.name).await?;
    let (input, output, ends): (Input, Output, Ends) = pipes();
    let name = format!("kubernetes://{}/{}@{}", namespace.name, pod.name, pod.node);
    tokio::spawn(talk::carry(process, ends, namespace, pod.name));
    Ok((pod.index, Attached { name, input, output }))
}
