//! Several requests of one load, the one among them whose latencies are judged, and who runs on which processors.
//!
//! Types of the plan, kept as JSON in the record; what is allowed is judged where they are made.

use serde::{Deserialize, Serialize};

use super::Load;

/// One of several requests of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What reports call it, unlike every other of its load.
    pub name: String,
    /// How often it is sent, compared with the others; at least 1.
    pub weight: u32,
    /// Request method.
    pub method: String,
    /// Request target, beginning with `/`.
    pub path: String,
    /// Header fields, those of the load included.
    pub headers: Vec<(String, String)>,
    /// Request body, empty for none.
    pub body: String,
}

/// The request whose response times the latency metrics are about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its name, the same in every variant.
    pub name: String,
    /// Its share of all requests, above 0 and at most 1; where variants differ, the smallest.
    pub share: f64,
}

/// Which processors the services may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// Those that the generator does not run on, as far as there are enough.
    #[default]
    Separate,
    /// All of them, the generator's too.
    Shared,
}

impl Load {
    /// The share of all requests that those of this name have; `None` where there are several requests and none is called so, and
    /// where there is one, which needs no name.
    pub fn share_of(&self, name: &str) -> Option<f64> {
        let total: f64 = self.requests.iter().map(|request| f64::from(request.weight)).sum();
        let named = self.requests.iter().find(|request| request.name == name)?;
        Some(f64::from(named.weight) / total)
    }
}
