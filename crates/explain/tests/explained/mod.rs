//! An invented but realistic explanation: a log-in service on Express behind a proxy, which hashes passwords
//! on the main thread, in the thread pool, or uses a cache first. Its trees come from a real profile.
//! Identical at every run.

use std::collections::BTreeMap;

use explain::{
    CodeKind, Cost, CostComparison, CostInterval, CpuProfile, Doubt, DoubtKind, ExplainedService,
    Explanation, Frame, HeapProfile, Naming, Tax, Tree, TreePlace, compare_trees, cpu_tree,
    heap_tree, merge,
};

const CPU: &[u8] = include_bytes!("../data/auth.cpuprofile");
const HEAP: &[u8] = include_bytes!("../data/auth.heapprofile");
/// The assumed number of requests in the profile.
const REQUESTS: f64 = 5000.0;

const NAMING: Naming<'static> = Naming {
    directory: "/srv/auth",
    source: &(),
};

pub const VARIANTS: [&str; 3] = ["hash=sync", "hash=pool", "hash=sync cache=on"];

/// A tree of paths, callers first, each with the self value of its last function.
pub fn grown(paths: impl IntoIterator<Item = (Vec<Frame>, f64)>) -> Tree {
    let row = |(frames, own): (Vec<Frame>, f64)| {
        let node = |frame: usize| {
            let parent = frame.checked_sub(1);
            TreePlace {
                frame,
                parent,
                self_value: 0.0,
                lines: BTreeMap::new(),
            }
        };
        let mut nodes: Vec<TreePlace> = (0..frames.len()).map(node).collect();
        nodes.last_mut().expect("a function").self_value = own;
        (Tree { frames, nodes }, 1.0)
    };
    let rows: Vec<(Tree, f64)> = paths.into_iter().map(row).collect();
    merge(
        &rows
            .iter()
            .map(|(tree, weight)| (tree, *weight))
            .collect::<Vec<_>>(),
    )
}

/// A function of the service's own.
pub fn frame(function: &str, file: &str, line: u32, kind: CodeKind) -> Frame {
    Frame {
        function: function.into(),
        file: file.into(),
        line,
        kind,
        package: None,
    }
}

/// The text between the first occurrences of two texts of a page.
pub fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split_once(from)
        .and_then(|(_, rest)| rest.split_once(to))
        .expect("the page has it")
        .0
}

/// A deterministic pseudo-random number from 0 to 1.
pub fn noise(seed: usize) -> f64 {
    let mixed = (seed as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// The service's own tree in a variant.
pub fn service(variant: usize) -> Tree {
    let whole = cpu_tree(&CpuProfile::read(CPU).expect("a profile"), None, &NAMING).tree;
    let mut tree = merge(&[(&whole, 1e-3 / REQUESTS)]);
    let (on_main, on_pool) = [(1.0, 0.0), (0.0, 0.95), (0.1, 0.0)][variant];
    let mut hashed = 0.0;
    for node in tree
        .nodes
        .iter_mut()
        .filter(|node| tree.frames[node.frame].function == "pbkdf2Sync")
    {
        hashed += node.self_value;
        node.self_value *= on_main;
        node.lines.values_mut().for_each(|line| *line *= on_main);
    }
    let pool = grown([(
        vec![frame("libuv-worker", "", 0, CodeKind::ThreadPool)],
        hashed * on_pool,
    )]);
    if on_pool > 0.0 {
        merge(&[(&tree, 1.0), (&pool, 1.0)])
    } else {
        tree
    }
}

fn proxy(variant: usize) -> Tree {
    let [forward, send] =
        ["forward", "send"].map(|name| frame(name, "proxy.js", 31, CodeKind::Application));
    grown([
        (vec![forward.clone()], 11.0 + variant as f64),
        (vec![forward, send], 22.0),
    ])
}

fn heap(variant: usize) -> Tree {
    let whole = heap_tree(&HeapProfile::read(HEAP).expect("a profile"), &NAMING).tree;
    merge(&[(&whole, (1.0 + variant as f64) / REQUESTS)])
}

pub fn about(value: f64, part: f64) -> CostInterval {
    CostInterval {
        value,
        low: value - (value * part).abs(),
        high: value + (value * part).abs(),
    }
}

pub fn subject(variant: &str, service: &str, tree: Tree, heap: Option<Tree>) -> ExplainedService {
    let waiting = |node: &&TreePlace| tree.frames[node.frame].kind == CodeKind::Waiting;
    let waited: f64 = tree
        .nodes
        .iter()
        .filter(waiting)
        .map(|node| node.self_value)
        .sum();
    let busy = tree.total() - waited;
    ExplainedService {
        variant: variant.into(),
        service: service.into(),
        requests: 41_230,
        cpu_us: about(busy * 1.04, 0.02),
        tax: Tax {
            cpu_ratio: about(1.06, 0.01),
            throughput_ratio: about(0.95, 0.01),
        },
        kinds: vec![Cost {
            what: CodeKind::Application,
            us: about(1.0, 0.1),
        }],
        packages: vec![],
        functions: vec![],
        workers: vec![],
        waiting: None,
        tree,
        heap,
    }
}

fn comparison(variant: usize, reconciliation: &str, story: &str) -> CostComparison {
    let (a, b) = (service(0), service(variant));
    CostComparison {
        measured_us: about(b.total() - a.total(), 0.05),
        explained_share: Some(0.96),
        reconciliation: reconciliation.into(),
        story: Some(story.into()),
        ..compare_trees((VARIANTS[0], &a), (VARIANTS[variant], &b))
    }
}

/// One service in two variants, the most common case.
pub fn simple() -> Explanation {
    let subjects = (0..2)
        .map(|variant| subject(VARIANTS[variant], "api", service(variant), None))
        .collect();
    let story = "pbkdf2Sync, called by checkSync (users.js:24), takes 218 µs of each request on the main thread. In hash=pool the \
                 same work is done by libuv's thread pool: the event loop is free meanwhile, and the CPU time is the same.";
    Explanation {
        rounds: 3,
        subjects,
        comparisons: vec![comparison(
            1,
            "profiles explain 96 % of +9 µs/request",
            story,
        )],
        doubts: vec![],
    }
}

/// Three variants, two services, CPU time and memory, and a doubt.
pub fn full() -> Explanation {
    let mut explanation = simple();
    let subjects = (0..3).flat_map(|variant| {
        let name = VARIANTS[variant];
        let api = subject(name, "api", service(variant), Some(heap(variant)));
        [api, subject(name, "proxy", proxy(variant), None)]
    });
    explanation.subjects = subjects.collect();
    let story =
        "The cache answers nine of ten log-ins, and pbkdf2Sync is called for the others alone.";
    explanation.comparisons.push(comparison(
        2,
        "profiles explain 96 % of −195 µs/request",
        story,
    ));
    explanation.doubts.push(Doubt::note(
        DoubtKind::PerfNotAllowed,
        "there is no native profile of api: perf_event_paranoid is 3",
        "sysctl kernel.perf_event_paranoid=1 allows it; without it, native code has the name of its caller",
    ));
    explanation
}

/// Four variants with trees of so many functions with long names that their drawings exceed the page limit.
pub fn vast() -> Explanation {
    let path = |number: usize| {
        (
            vec![frame(
                &format!("f{number}{}", "x".repeat(200)),
                "lib/index.js",
                1,
                CodeKind::Core,
            )],
            1.0,
        )
    };
    let tree = grown((0..3000).map(path));
    let subjects = ["a", "b", "c", "d"].map(|name| subject(name, "api", tree.clone(), None));
    Explanation {
        subjects: subjects.to_vec(),
        comparisons: vec![],
        ..simple()
    }
}
