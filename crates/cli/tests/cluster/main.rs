//! Proofload and other machines: hosts that the tests make themselves, each with a network, processes, a clock and a disk of its own,
//! that crash, are cut off and run full; and a real Kubernetes. They take root and some minutes, so that only `make test-cluster` runs them.

mod generators;
mod hosts;
mod kube;
mod services;
mod ssh;

use load::LoadSpec;
use remote::Channel;
use remote::generators::Fleet;

/// These as one fleet, which knows their clocks and has this to do.
fn begun(channels: Vec<Channel>, specs: Vec<LoadSpec>) -> Fleet {
    let mut fleet = Fleet::connect(channels).expect("all are there");
    fleet.compare_clocks().expect("all answer");
    fleet.give(specs).expect("all begin");
    fleet
}
