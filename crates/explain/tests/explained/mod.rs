//! A made-up explanation that looks like a real one: a log-in service by Express behind a proxy of its own, which hashes passwords
//! on the main thread, in the thread pool, or asks a cache first. The same at every run.

use std::collections::BTreeMap;

use explain::{
    Comparison, Cost, Doubt, DoubtKind, Explanation, Frame, Interval, Kind, Node, Package, Subject, Tax,
    Tree, compare_trees,
};

/// Id, function, file, line and package, `-` for none.
const FRAMES: &str = "\
parse parserOnIncoming node:_http_server 1043 -
emit emit node:events 466 -
handle handle lib/application.js 152 express@5.1.0
next next index.js 185 router@2.2.0
dispatch dispatch lib/route.js 98 router@2.2.0
logger logger index.js 102 morgan@1.10.0
query parse lib/parse.js 311 qs@6.14.0
auth auth server.js 58 -
auth2 auth2 server.js 71 -
check checkSync users.js 24 -
check2 checkAsync users.js 37 -
cached lookUp cache.js 12 -
pbkdf2s pbkdf2Sync node:internal/crypto/pbkdf2 63 -
pbkdf2 pbkdf2 node:internal/crypto/pbkdf2 32 -
json json lib/response.js 233 express@5.1.0
send send lib/response.js 125 express@5.1.0
store _storeHeader node:_http_outgoing 443 -
kwrite __libc_write [kernel] 0 -
gc (garbage_collector) - 0 -
program (program) - 0 -
pool libuv-worker - 0 -
sha sha512_block_data_order_avx2 libcrypto.so.3 0 -
idle (idle) - 0 -";

const TO_ROUTE: &str = "parse emit handle next dispatch";

/// Path, ROUTE standing for the way to the route, and own time in µs per request by the main thread, by the pool, and with a cache.
const STACKS: &str = "\
parse 5.1 5.3 5.0
parse emit handle 2.2 2.0 2.1
parse emit handle next 3.4 3.1 3.3
parse emit handle next query 6.6 6.7 6.7
parse emit handle next logger 8.9 9.3 9.1
ROUTE 1.2 1.1 1.3
ROUTE auth 1.8 0 1.9
ROUTE auth check 2.4 0 0.4
ROUTE auth check pbkdf2s 218.2 0 22.0
ROUTE auth cached 0 0 3.1
ROUTE auth json send 10.6 0 10.7
ROUTE auth json send store 7.9 0 8.1
ROUTE auth json send kwrite 24.0 0 23.2
ROUTE auth2 0 1.7 0
ROUTE auth2 check2 pbkdf2 0 15.7 0
ROUTE auth2 json send store 0 8.2 0
ROUTE auth2 json send kwrite 0 25.1 0
gc 11.2 14.9 10.8
program 18.3 21.0 17.9
idle 31.0 260.0 45.0
pool 0 2.8 0
pool sha 0 203.0 0";

/// Small application functions, to make a tree as wide as real ones.
const RULES: usize = 160;

pub const VARIANTS: [&str; 3] = ["hash=sync", "hash=pool", "hash=sync cache=on"];

/// A tree from paths with their own time.
#[derive(Default)]
pub struct Grown {
    pub tree: Tree,
    known: BTreeMap<(Option<usize>, usize), usize>,
}

impl Grown {
    /// Adds time to a path of frames, callers first, and tells the node.
    pub fn add(&mut self, path: &[Frame], own: f64) -> Option<usize> {
        let mut at = None;
        for frame in path {
            let number = self.tree.frames.iter().position(|known| known == frame).unwrap_or_else(|| {
                self.tree.frames.push(frame.clone());
                self.tree.frames.len() - 1
            });
            let nodes = &mut self.tree.nodes;
            at = Some(*self.known.entry((at, number)).or_insert_with(|| {
                nodes.push(Node { frame: number, parent: at, self_value: 0.0, lines: BTreeMap::new() });
                nodes.len() - 1
            }));
        }
        if let Some(node) = at {
            self.tree.nodes[node].self_value += own;
        }
        at
    }
}

/// A function of the service's own.
pub fn frame(function: &str, file: &str, line: u32, kind: Kind) -> Frame {
    Frame { function: function.into(), file: file.into(), line, kind, package: None }
}

fn known(id: &str) -> Frame {
    let mut rows = FRAMES.lines().map(|row| row.split(' ').collect::<Vec<_>>());
    let row = rows.find(|row| row[0] == id).expect("a frame of the table");
    let [_, function, file, line, package] = row[..] else { panic!("{row:?}") };
    let package = package.split_once('@');
    let kind = match (id, package) {
        ("gc", _) => Kind::Gc,
        ("idle", _) => Kind::Waiting,
        ("kwrite", _) => Kind::Kernel,
        ("pool" | "sha", _) => Kind::ThreadPool,
        ("program", _) => Kind::Native,
        (_, Some(("express" | "router", _))) => Kind::Framework,
        (_, Some(_)) => Kind::Middleware,
        _ if file.starts_with("node:") => Kind::Core,
        _ => Kind::Application,
    };
    let package = package.map(|(name, version)| Package { name: name.into(), version: Some(version.into()) });
    let function = function.replace('_', if id == "gc" { " " } else { "_" });
    Frame { package, ..frame(&function, file.trim_matches('-'), line.parse().expect("a line"), kind) }
}

fn path(ids: &str) -> Vec<Frame> {
    ids.replace("ROUTE", TO_ROUTE).split_whitespace().map(known).collect()
}

/// A number from 0 to 1 that looks random and is not.
pub fn noise(seed: usize) -> f64 {
    let mixed =
        (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// The service's own tree in a variant.
pub fn service(variant: usize) -> Tree {
    let mut grown = Grown::default();
    for row in STACKS.lines() {
        let figures = row.rsplit(' ').take(3).map(|own| own.parse().expect("a figure"));
        let own: Vec<f64> = figures.collect();
        if own[2 - variant] > 0.0 {
            grown.add(&path(row.rsplitn(4, ' ').last().expect("a path")), own[2 - variant]);
        }
    }
    let route = if variant == 1 { "auth2" } else { "auth" };
    let handler = path(&format!("{TO_ROUTE} {route}"));
    for rule in 0..RULES {
        let depth = 1 + (noise(rule) * 6.0) as usize;
        let rules = (0..depth).map(|level| {
            let number = (rule / 7_usize.pow(u32::try_from(depth - level).expect("small"))) * 10 + level;
            frame(&format!("checkRule{number}"), "rules/rules.js", 10 + number as u32, Kind::Application)
        });
        let below: Vec<Frame> = handler.iter().cloned().chain(rules).collect();
        grown.add(&below, 0.05 + 1.2 * noise(rule * 31 + 7).powi(4) + 0.03 * noise(rule + 1000 * variant));
    }
    if let Some(node) = grown.add(&path(&format!("{TO_ROUTE} auth check")), 0.0).filter(|_| variant != 1) {
        grown.tree.nodes[node].lines = [(27, 2.1), (28, 0.3)].into();
    }
    grown.tree
}

fn proxy(variant: usize) -> Tree {
    let mut grown = Grown::default();
    let forward = [known("parse"), known("emit"), frame("forward", "proxy.js", 31, Kind::Application)];
    grown.add(&forward, 11.0 + variant as f64);
    grown.add(&[&forward[..], &path("send kwrite")].concat(), 22.0 + noise(variant));
    grown.add(&path("gc"), 2.0);
    grown.tree
}

fn heap(variant: usize) -> Tree {
    let mut grown = Grown::default();
    grown.add(&path("parse emit handle next query"), 1_210.0);
    grown.add(&path(&format!("{TO_ROUTE} auth cached")), if variant == 2 { 4_096.0 } else { 0.0 });
    grown.add(&path("program"), 310.0);
    grown.tree
}

pub fn about(value: f64, part: f64) -> Interval {
    Interval { value, low: value - (value * part).abs(), high: value + (value * part).abs() }
}

pub fn subject(variant: &str, service: &str, tree: Tree, heap: Option<Tree>) -> Subject {
    let waiting = |node: &&Node| tree.frames[node.frame].kind == Kind::Waiting;
    let waited: f64 = tree.nodes.iter().filter(waiting).map(|node| node.self_value).sum();
    let busy = tree.total() - waited;
    Subject {
        variant: variant.into(),
        service: service.into(),
        requests: 41_230,
        cpu_us: about(busy * 1.04, 0.02),
        tax: Tax { cpu_ratio: about(1.06, 0.01), throughput_ratio: about(0.95, 0.01) },
        kinds: vec![Cost { what: Kind::Application, us: about(1.0, 0.1) }],
        packages: vec![],
        functions: vec![],
        workers: vec![],
        waiting: None,
        tree,
        heap,
    }
}

fn comparison(variant: usize, reconciliation: &str, story: &str) -> Comparison {
    let (a, b) = (service(0), service(variant));
    Comparison {
        measured_us: about(b.total() - a.total(), 0.05),
        explained_share: Some(0.96),
        reconciliation: reconciliation.into(),
        story: Some(story.into()),
        ..compare_trees((VARIANTS[0], &a), (VARIANTS[variant], &b))
    }
}

/// One service in two variants, as most explanations are.
pub fn simple() -> Explanation {
    let subjects = (0..2).map(|variant| subject(VARIANTS[variant], "api", service(variant), None)).collect();
    let story = "pbkdf2Sync, called by checkSync (users.js:24), takes 218 µs of each request on the main thread. In hash=pool the \
                 same work is done by libuv's thread pool: the event loop is free meanwhile, and the CPU time is the same.";
    Explanation {
        version: 1,
        rounds: 3,
        subjects,
        comparisons: vec![comparison(1, "profiles explain 96 % of +9 µs/request", story)],
        doubts: vec![],
    }
}

/// Three variants, two services, CPU time and memory, and something to doubt.
pub fn full() -> Explanation {
    let mut explanation = simple();
    let subjects = (0..3).flat_map(|variant| {
        let name = VARIANTS[variant];
        let api = subject(name, "api", service(variant), Some(heap(variant)));
        [api, subject(name, "proxy", proxy(variant), None)]
    });
    explanation.subjects = subjects.collect();
    let story = "The cache answers nine of ten log-ins, and pbkdf2Sync is called for the others alone.";
    explanation.comparisons.push(comparison(2, "profiles explain 96 % of −195 µs/request", story));
    explanation.doubts.push(Doubt::note(
        DoubtKind::PerfNotAllowed,
        "there is no native profile of api: perf_event_paranoid is 3",
        "sysctl kernel.perf_event_paranoid=1 allows it; without it, native code has the name of its caller",
    ));
    explanation
}

/// A tree of 60,000 places whose functions have long names.
pub fn vast_tree(seed: usize) -> Tree {
    const NODES: usize = 60_000;
    const FUNCTIONS: usize = 9_000;
    let frames = (0..FUNCTIONS).map(|number| {
        let kind = if number % 3 == 0 { Kind::Middleware } else { Kind::Application };
        frame(&format!("f{number}{}", "x".repeat(number % 400)), &format!("lib/{number}.js"), 1, kind)
    });
    let node = |number: usize| Node {
        frame: (number * 7) % FUNCTIONS,
        parent: (number > 20).then(|| number - 1 - (noise(number) * number.min(300) as f64) as usize),
        self_value: noise(number + seed).powi(12) * 100.0,
        lines: BTreeMap::new(),
    };
    Tree { frames: frames.collect(), nodes: (0..NODES).map(node).collect() }
}

/// Four variants with trees as large as minutes of profiling make them.
pub fn vast() -> Explanation {
    let names = ["a", "b", "c", "d"].into_iter().enumerate();
    let subjects = names.map(|(seed, name)| subject(name, "api", vast_tree(seed), None));
    Explanation { subjects: subjects.collect(), comparisons: vec![], ..simple() }
}
