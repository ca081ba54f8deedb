//! Captures of invented runs, with known costs.

use std::collections::BTreeMap;
use std::path::Path;

use record::{Capture, CaptureKind, ProfileFile, Record};
use serde_json::{Value, json};

use crate::captures::Profiles;
use crate::cut::ThreadTrees;
use crate::doubt::{DoubtKind, Note};
use crate::tree::together;
use crate::{
    CodeKind, CostInterval, Cut, Explanation, Frame, Package, TimeWindow, Tree, TreePlace,
};

/// Length of every window.
pub const WINDOW_NS: u64 = 1_000_000_000;
const START_NS: u64 = 5_000_000_000;

/// A record with captures, and their profiles.
pub struct Made {
    pub record: Record,
    trees: BTreeMap<String, Tree>,
    native: BTreeMap<String, BTreeMap<u32, Tree>>,
    pub notes: Vec<Note>,
}

/// A Node.js process in a window.
#[derive(Clone)]
pub struct Worker {
    pub pid: u32,
    pub requests: Option<u64>,
    /// Its profile, in nanoseconds. `None` if it has none.
    pub tree: Option<Tree>,
    /// CPU time of its main thread. If None, taken from its profile.
    pub main_ns: Option<u64>,
    pub pool_ns: u64,
    pub v8_ns: u64,
}

impl Worker {
    pub fn with(tree: Tree) -> Worker {
        Worker {
            pid: 100,
            requests: Some(100),
            tree: Some(tree),
            main_ns: None,
            pool_ns: 0,
            v8_ns: 0,
        }
    }
}

/// A function of a package, version 1.2.3.
pub fn packaged(package: &str, name: &str, file: &str, kind: CodeKind) -> Frame {
    let package = Package {
        name: package.into(),
        version: Some("1.2.3".into()),
    };
    Frame {
        package: Some(package),
        ..Frame::new(name, file, 1, kind)
    }
}

/// A chain of calls, the last of which takes `us` microseconds in each of 100 requests.
pub fn calls(frames: &[&Frame], us: f64) -> Tree {
    let node = |index: usize| TreePlace {
        frame: index,
        parent: index.checked_sub(1),
        self_value: if index + 1 == frames.len() {
            us * 1e5
        } else {
            0.0
        },
        lines: BTreeMap::new(),
    };
    Tree {
        frames: frames.iter().map(|frame| (*frame).clone()).collect(),
        nodes: (0..frames.len()).map(node).collect(),
    }
}

/// A uniform service: 60 µs of its handler, 40 µs of V8 itself.
pub fn plain_service() -> Tree {
    let handler = Frame::new("handler", "server.js", 10, CodeKind::Application);
    together(&[
        calls(&[&handler], 60.0),
        calls(&[&Frame::new("(program)", "", 0, CodeKind::Native)], 40.0),
    ])
}

/// A record with blocks that count.
pub fn kept() -> Record {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../record/tests/records/v1"
    ));
    record::open(path).expect("the kept record opens")
}

impl Made {
    /// Variants 0 `plain` and 1 `changed`, compared, without captures.
    pub fn new() -> Made {
        let mut record = kept();
        let plan = &mut record.header.plan;
        let variant = plan.variants[0].clone();
        plan.variants = vec![variant.clone(), variant];
        for (variant, name) in plan.variants.iter_mut().zip(["plain", "changed"]) {
            (variant.name, variant.entry) = (name.into(), "api".into());
        }
        let asked = plan.comparisons[0].clone();
        plan.comparisons = vec![plan::Comparison {
            baseline: 0,
            candidate: 1,
            ..asked
        }];
        record.blocks.clear();
        Made {
            record,
            trees: BTreeMap::new(),
            native: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a CPU profile and a window without one, with the same resource use.
    pub fn capture(&mut self, round: u32, variant: usize, workers: &[Worker]) {
        self.window(CaptureKind::Cpu, round, variant, workers);
        self.window(CaptureKind::Plain, round, variant, workers);
    }

    /// The same in three rounds.
    pub fn rounds(&mut self, variant: usize, workers: &[Worker]) {
        (1..=3).for_each(|round| self.capture(round, variant, workers));
    }

    /// A window with 100 requests.
    pub fn window(&mut self, kind: CaptureKind, round: u32, variant: usize, workers: &[Worker]) {
        let mut process = |worker: &Worker| self.process(kind, round, variant, worker);
        let processes: Vec<Value> = workers.iter().map(&mut process).collect();
        let capture = json!({
            "round": round, "variant": variant, "kind": kind, "requests": 100, "errors": 0,
            "start_ns": START_NS, "end_ns": START_NS + WINDOW_NS,
            "services": [{ "service": "api", "directory": "/srv/api", "cpu_ns": 0, "processes": processes }],
        });
        let mut capture: Capture = serde_json::from_value(capture).expect("a capture");
        let service = &mut capture.services[0];
        let threads = service
            .processes
            .iter()
            .flat_map(|process| &process.threads);
        service.cpu_ns = threads.map(|thread| thread.cpu_ns).sum();
        self.record.captures.push(capture);
    }

    fn process(&mut self, kind: CaptureKind, round: u32, variant: usize, worker: &Worker) -> Value {
        let path = format!(
            "profiles/round-{round}/{variant}-api-{}.{kind:?}",
            worker.pid
        );
        let busy = worker
            .tree
            .as_ref()
            .map_or(0.0, |tree| crate::tree::without_waiting(tree).total());
        let tree = worker
            .tree
            .clone()
            .filter(|_| matches!(kind, CaptureKind::Cpu | CaptureKind::Heap));
        let profile = tree.map(|tree| {
            self.trees.insert(path.clone(), tree);
            json!({ "path": path, "bytes": 1 })
        });
        let thread = |place: u32, name: &str, cpu_ns: u64| json!({ "id": worker.pid + place, "name": name, "cpu_ns": cpu_ns, "waited_ns": 0 });
        let main = thread(0, "node", worker.main_ns.unwrap_or(busy as u64));
        json!({
            "pid": worker.pid, "parent": 1, "command": "node server.js",
            "threads": [main, thread(1, "V8Worker", worker.v8_ns), thread(7, "libuv-worker", worker.pool_ns)],
            "agents": [{
                "thread": 0, "thread_id": worker.pid, "role": "service", "versions": { "node": "22.1.0" },
                "node_env": null, "uv_threadpool_size": null, "main": null, "requests": worker.requests,
                "counters": null, "profile": profile, "failed": null,
            }],
        })
    }

    /// Adds kernel samples of a worker's threads in every round.
    pub fn native(&mut self, variant: usize, worker: &Worker, threads: &[(u32, Tree)]) {
        for round in 1..=3 {
            self.window(
                CaptureKind::Native,
                round,
                variant,
                std::slice::from_ref(worker),
            );
            let path = format!("native-{round}-{variant}-{}", worker.pid);
            let trees = threads
                .iter()
                .map(|(place, tree)| (worker.pid + place, tree.clone()));
            self.native.insert(path.clone(), trees.collect());
            let capture = self.record.captures.last_mut().expect("it was just made");
            capture.services[0].processes[0].native = Some(ProfileFile { path, bytes: 1 });
        }
    }

    /// Adds event loop counters of a variant in every round.
    pub fn counters(&mut self, variant: usize, utilisation: f64, pool_wait_us: u64) {
        for round in 1..=3 {
            self.window(
                CaptureKind::Counters,
                round,
                variant,
                &[Worker::with(plain_service())],
            );
            let capture = self.record.captures.last_mut().expect("it was just made");
            let counters = json!({
                "loop_active_ns": (utilisation * 1e9) as u64, "loop_idle_ns": ((1.0 - utilisation) * 1e9) as u64,
                "loop_delay_mean_ns": 0, "loop_delay_p50_ns": 0, "loop_delay_p99_ns": 3_000_000, "loop_delay_max_ns": 0,
                "gc": {}, "pool_wait": { "count": 10, "total_ns": 10_000 * pool_wait_us, "max_ns": 1 },
                "heap_used_bytes": 0, "external_bytes": 0,
            });
            let counters = serde_json::from_value(counters).expect("counters");
            capture.services[0].processes[0].agents[0].counters = Some(counters);
        }
    }

    /// All captures of this kind.
    pub fn of(&mut self, kind: CaptureKind) -> impl Iterator<Item = &mut Capture> {
        self.record
            .captures
            .iter_mut()
            .filter(move |capture| capture.kind == kind)
    }

    /// The explanation for this measured value, ±10 %.
    pub fn explained(&self, measured_us: f64) -> Explanation {
        let wide = measured_us.abs() * 0.1;
        let us = CostInterval {
            value: measured_us,
            low: measured_us - wide,
            high: measured_us + wide,
        };
        self.explained_by(us)
    }

    pub fn explained_by(&self, us: CostInterval) -> Explanation {
        super::super::explained(&self.record, &|_, _| Some(us), self)
    }
}

impl Profiles for Made {
    fn cpu(&self, file: &ProfileFile, _: TimeWindow, _: &str) -> Result<Cut, Note> {
        let cut_off = || Note::new(DoubtKind::ProfileCutOff, "cut off");
        let (tree, notes) = (
            self.trees.get(&file.path).cloned().ok_or_else(cut_off)?,
            self.notes.clone(),
        );
        Ok(Cut {
            tree,
            covered_ns: WINDOW_NS as f64,
            capped_ns: 0.0,
            samples: 1000,
            notes,
        })
    }

    fn native(&self, file: &ProfileFile, _: &str) -> Result<ThreadTrees, Note> {
        let threads = self
            .native
            .get(&file.path)
            .cloned()
            .ok_or_else(|| Note::remark("there is none"))?;
        Ok((threads.into_iter().collect(), Vec::new()))
    }

    fn heap(&self, file: &ProfileFile, _: &str) -> Result<Tree, Note> {
        self.trees
            .get(&file.path)
            .cloned()
            .ok_or_else(|| Note::new(DoubtKind::NotCaptured, "there is none"))
    }
}
