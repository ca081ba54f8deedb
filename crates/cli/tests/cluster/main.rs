//! Proofload and other machines: hosts created by the tests, each with separate network, processes, clock and
//! disk, which crash, are disconnected and run full. Also a real Kubernetes. The tests need root and some
//! minutes, so only `make test-cluster` runs them.

mod generators;
mod hosts;
mod kube;
#[allow(dead_code)]
#[path = "../end_to_end/place.rs"]
mod place;
// Other tests of fleets use the rest of it.
#[allow(dead_code)]
#[path = "../../../remote/tests/server/mod.rs"]
mod server;
mod ssh;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use load::{LoadSpec, Until};
use place::accounted_for;
use remote::Channel;
use remote::generators::{Fleet, FleetWindow};

const NEVER: &dyn Fn() -> bool = &|| false;

fn within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Number of slices measured so far.
fn measured(record: &Path) -> usize {
    let events = fs::read_to_string(record.join("events.jsonl")).unwrap_or_default();
    events.matches("\"measured\"").count()
}

/// These as one fleet with synchronized clocks and this load.
fn begun(channels: Vec<Channel>, specs: Vec<LoadSpec>) -> Fleet {
    let mut fleet = Fleet::connect(channels).expect("all are there");
    fleet.compare_clocks().expect("all answer");
    fleet.give(specs).expect("all begin");
    fleet
}

/// Runs a window of this length with an event one second into it. Returns the result, and the elapsed time.
fn window(
    fleet: &mut Fleet,
    seconds: u64,
    happens: impl FnOnce() + Send,
) -> (FleetWindow, Duration) {
    std::thread::scope(|scope| {
        let misfortune = scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            happens();
        });
        let begun = Instant::now();
        let ran = fleet.run(Until::Elapsed(Duration::from_secs(seconds)), NEVER);
        let took = begun.elapsed();
        misfortune.join().expect("it happens");
        (ran, took)
    })
}
