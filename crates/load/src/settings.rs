//! Settings shared by all connections of a worker.

use std::sync::Arc;

use crate::arena::RequestArena;
use crate::trust::TlsSettings;
use crate::user::UserSettings;
use crate::{Contract, Protocol};

/// Settings shared by all connections of a worker.
#[derive(Clone)]
pub(crate) struct WorkerSettings {
    pub(crate) arena: Arc<RequestArena>,
    pub(crate) protocol: Protocol,
    pub(crate) tls: Option<TlsSettings>,
    /// Each request opens its own connection and begins when that does.
    pub(crate) fresh: bool,
    /// The kernel can discard received bytes without copying them.
    pub(crate) can_skip: bool,
    pub(crate) timeout_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    /// Interval between connection attempts before a window.
    pub(crate) opening_gap_ns: u64,
    /// The contract of each endpoint.
    pub(crate) contracts: Vec<Contract>,
    /// One in n responses is checked in full. 0 means none.
    pub(crate) sample_every: u64,
    /// Settings shared by all users, if the load has distinct users.
    pub(crate) users: Option<Arc<UserSettings>>,
}
