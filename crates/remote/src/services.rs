//! Services on other machines: started, sampled and stopped there by an agent, as [`::services`] does it here.
//!
//! The agent starts them by the same [`::services::start`], below wardens of its own, so that a service is watched there as it is here.
//! Whatever ends the agent ends them: a run that is over, a Proofload here that was killed, a connection that broke, a timeout. Ports,
//! probes and owners of sockets are those of the other machine: nothing of it is judged from here.

mod agent;
mod host;
pub(crate) mod message;
mod service;

pub(crate) use agent::ServicesAgent;
pub use host::{PendingView, RemoteHost};
pub use message::{First, HostView, ServiceView};
pub use service::{RemoteService, ServiceHandle};
