//! The way from the generator to a trial's services: loopback, or a link of the trial's own.
//!
//! It makes links and takes threads to their ends; what is started there is the caller's business.

use std::time::Duration;

use plan::{Generators, Load};
use services::{Error, Network};

use super::hinted;
use crate::environment::{Failure, Result};

/// Longest wait for a connection to open, over loopback.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The same from other machines: a packet that is lost on the way is sent again after 1 s, and then after 2 s.
const CONNECT_TIMEOUT_ELSEWHERE: Duration = Duration::from_secs(5);
/// Bytes that opening a connection sends in one direction: some frames without content.
const CONNECT_BYTES: u64 = 200;

/// The link that a load asks for; `None` is loopback. What carries it runs where the generator does.
pub(super) fn make(load: &Load, cpus: &[usize]) -> Result<Option<Network>> {
    load.network.as_ref().map(|link| Network::make(link, cpus)).transpose().map_err(failed)
}

/// Does `job` where the client is. The generator's threads and connections, made there, stay there.
pub(super) fn at_client<T>(network: Option<&Network>, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let _there = network.map(Network::visit_client).transpose().map_err(failed)?;
    job()
}

/// Does `job` where the services are, so that they stay there. Looks at whether they are ready have no link to cross.
pub(super) fn at_services<T>(network: Option<&Network>, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let _there = network.map(Network::visit_services).transpose().map_err(failed)?;
    job()
}

/// How long a connection may take to open: two round trips more on a link, and the time that it takes to carry the
/// first frames of all connections, which are opened at once.
pub(super) fn connect_timeout(load: &Load, generators: &Generators) -> Duration {
    let without = if generators.is_elsewhere() { CONNECT_TIMEOUT_ELSEWHERE } else { CONNECT_TIMEOUT };
    let Some(link) = &load.network else { return without };
    let frames = u64::from(load.connections) * CONNECT_BYTES * 8;
    let queue = link.rate_bit_per_s.map_or(0.0, |rate| frames as f64 / rate as f64);
    CONNECT_TIMEOUT + link.delay.unwrap_or_default() * 4 + Duration::from_secs_f64(queue)
}

fn failed(error: Error) -> Failure {
    Failure::Generator(format!("{error}{}", hinted(error.hint())))
}
