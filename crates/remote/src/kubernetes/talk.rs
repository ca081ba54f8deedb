//! What goes between a pod and its pipes for as long as both are there, and why it ended.

use std::future::pending;
use std::time::Duration;

use kube::api::AttachedProcess;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::api::Namespace;
use super::pipe::{Ends, Heard};
use super::pods::{self, Ending};

/// When it is looked for why a pod ended, each time after the last: its node tells the cluster within a second or two. Few times, because
/// many may end together.
const LOOKS_MS: [u64; 5] = [0, 250, 500, 1000, 2000];
/// How long the cluster may take to say so. After 11 s nobody waits for a reason any more.
const WORD_MAX: Duration = Duration::from_secs(3);
/// How long after its output its complaints may end.
const A_MOMENT: Duration = Duration::from_millis(500);
/// How much of what a program complained of is kept.
const COMPLAINTS_BYTES_MAX: usize = 2048;
const PIECE_BYTES: usize = 64 << 10;
/// Of a pod that ended in good order though nobody had told it to.
const CUT_OFF: &str =
    "the connection to it ended, as in a restart of the API server, and its program with that";

/// Carries orders in and answers out until the pod ends. What nobody asked for is told with a reason.
pub(super) async fn carry(mut process: AttachedProcess, ends: Ends, namespace: Namespace, pod: String) {
    let Ends { orders, heard } = ends;
    let (Some(stdin), Some(stdout), Some(stderr)) = (process.stdin(), process.stdout(), process.stderr())
    else {
        // All three were asked for.
        return;
    };
    let fed = tokio::spawn(feed(stdin, orders));
    let complaints = tokio::spawn(complaints(stderr));
    let status = process.take_status();
    tokio::select! {
        // First what it has still said.
        biased;
        listened = listen(stdout, &heard) => if listened.is_err() {
            return;
        },
        () = broken(status) => {}
    }
    // Its orders came to an end before it did: it went because it was told to.
    let told = fed.is_finished() && matches!(fed.await, Ok(true));
    if told {
        return;
    }
    let ending = explanation(&namespace, &pod).await;
    // They end with the output, unless the connection broke.
    let complaints = timeout(A_MOMENT, complaints).await.ok().and_then(Result::ok).unwrap_or_default();
    let words = if ending.well { CUT_OFF.to_owned() } else { ending.words(&complaints) };
    // Nobody may be listening any more, and then it is of no interest.
    let _ = heard.send(Heard::Lost(words)).await;
}

/// Whether all orders were given; otherwise the pod takes none any more.
async fn feed(mut stdin: impl AsyncWrite + Unpin, mut orders: Receiver<Vec<u8>>) -> bool {
    while let Some(order) = orders.recv().await {
        if stdin.write_all(&order).await.is_err() {
            return false;
        }
    }
    stdin.shutdown().await.is_ok()
}

/// Until a connection breaks. What is read from it does not end then. (A pod that ends by itself says how.)
async fn broken<T>(status: Option<impl Future<Output = Option<T>>>) {
    let told = match status {
        Some(status) => status.await.is_some(),
        None => true,
    };
    if told {
        pending().await
    }
}

/// Passes on what a pod says until it says nothing more.
async fn listen(mut stdout: impl AsyncRead + Unpin, heard: &Sender<Heard>) -> Result<(), ()> {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        match stdout.read_buf(&mut piece).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => heard.send(Heard::Piece(piece)).await.map_err(drop)?,
        }
    }
}

async fn complaints(mut stderr: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    while let Ok(1..) = stderr.read_buf(&mut kept).await {
        let surplus = kept.len().saturating_sub(COMPLAINTS_BYTES_MAX);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Why a pod ended, as far as that can be found out.
async fn explanation(namespace: &Namespace, pod: &str) -> Ending {
    for wait_ms in LOOKS_MS {
        sleep(Duration::from_millis(wait_ms)).await;
        match timeout(WORD_MAX, namespace.pod(pod)).await {
            Ok(Ok(Some(pod))) => {
                if let Some(ending) = pods::ending(&pod) {
                    return ending;
                }
            }
            Ok(Ok(None)) => return Ending::told("somebody deleted the pod"),
            Ok(Err(error)) => return Ending::told(format!("the connection to it broke: {error}")),
            Err(_) => return Ending::told("the connection to it broke, and the cluster does not say why"),
        }
    }
    Ending::told("the connection to it broke, and as far as the cluster knows it still runs")
}
