//! The names of the load generators.

use serde::Serialize;

/// A load generator with supported output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// wrk 3 and 4
    #[default]
    Wrk,
    /// wrk2
    Wrk2,
    /// ApacheBench
    Ab,
    /// oha
    Oha,
    /// autocannon
    Autocannon,
    /// hey
    Hey,
    /// h2load, of nghttp2
    H2load,
    /// Grafana k6
    K6,
    /// vegeta
    Vegeta,
    /// bombardier
    Bombardier,
    /// siege
    Siege,
    /// rewrk
    Rewrk,
}
