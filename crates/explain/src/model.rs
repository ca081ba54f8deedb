//! The one stack model: what the profiles of Node.js, of the kernel and of other tools become.
//!
//! It holds numbers and names. How they are read, keyed and compared is said elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose code it is in which time is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CodeKind")]
pub enum Kind {
    /// The service's own files.
    Application,
    /// The web framework: express, fastify, koa, hapi and their routers.
    Framework,
    /// Any other package below `node_modules`.
    Middleware,
    /// JavaScript of Node.js itself: `node:` modules.
    Core,
    /// Compiled code: bindings of Node.js, addons, services that are not Node.js.
    Native,
    /// Garbage collection.
    Gc,
    /// Compiling and optimising JavaScript.
    Jit,
    /// Threads of libuv's pool: file system, DNS, crypto, compression.
    ThreadPool,
    /// The kernel, on behalf of the service.
    Kernel,
    /// No CPU time: the event loop was idle.
    Waiting,
}

impl Kind {
    /// All of them, in the order in which people read them.
    pub const ALL: [Kind; 10] = [
        Kind::Application,
        Kind::Framework,
        Kind::Middleware,
        Kind::Core,
        Kind::Native,
        Kind::Gc,
        Kind::Jit,
        Kind::ThreadPool,
        Kind::Kernel,
        Kind::Waiting,
    ];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Application => "application",
            Kind::Framework => "framework",
            Kind::Middleware => "middleware",
            Kind::Core => "Node core",
            Kind::Native => "native",
            Kind::Gc => "GC",
            Kind::Jit => "JIT",
            Kind::ThreadPool => "thread pool",
            Kind::Kernel => "kernel",
            Kind::Waiting => "waiting",
        }
    }
}

/// A package of a package manager.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Package {
    /// Its name, with its scope.
    pub name: String,
    /// Its version; `None` where nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A function, as it is known by in every process, worker and variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// Its name; of one without, `(anonymous FILE:LINE)`. A name may hold anything: it comes out of somebody's code.
    pub function: String,
    /// Its file, without what differs from machine to machine: relative to its package or to the service's directory, `node:http`,
    /// or the name of a library. Empty where there is none.
    pub file: String,
    /// Line at which the function begins, from 1; 0 where unknown.
    pub line: u32,
    /// Whose code it is.
    pub kind: Kind,
    /// The package that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Package>,
}

/// A place in a tree of calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Index into [`Tree::frames`].
    pub frame: usize,
    /// Index of the caller's node, always smaller than the node's own; `None` for a root.
    pub parent: Option<usize>,
    /// Time in this frame itself, called from there, in nanoseconds; of a heap profile bytes.
    pub self_value: f64,
    /// The same by line of the file, where the profile tells: from 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lines: BTreeMap<u32, f64>,
}

/// A tree of calls: who called whom, and how long each took. Callers stand before what they call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    /// The functions, each once.
    pub frames: Vec<Frame>,
    /// The places.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Sum over all nodes.
    pub fn total(&self) -> f64 {
        self.nodes.iter().map(|node| node.self_value).sum()
    }
}
