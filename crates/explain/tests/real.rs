//! Profiles of the service targets/auth written by Node.js 20.20.2, compared with the results of an
//! independent reader.
//!
//! Made by `node --cpu-prof --cpu-prof-interval 1000 --heap-prof --heap-prof-interval 65536 server.js` under
//! requests to /auth, /ping and /auth2 in turn, on a machine with other load. Shortened to 2000 samples and
//! the nodes they need, moved to /srv. The numbers here are from a Python script of twenty lines that
//! processes `samples` and `timeDeltas` as the protocol describes them: each sample has the time until the
//! next one, at most three times the median.

use proofload_explain::{
    CpuProfile, Cut, Frame, HeapProfile, Naming, TimeWindow, Tree, TreeUnit, cpu_tree, cpuprofile,
    heap_tree,
};

const CPU: &[u8] = include_bytes!("data/auth.cpuprofile");
const HEAP: &[u8] = include_bytes!("data/auth.heapprofile");

const NAMING: Naming<'static> = Naming {
    directory: "/srv/auth",
    source: &(),
};

fn cut(window: Option<TimeWindow>) -> Cut {
    cpu_tree(&CpuProfile::read(CPU).expect("a profile"), window, &NAMING)
}

/// Self time of a function, in integer microseconds.
fn self_us(cut: &Cut, function: &str) -> i64 {
    let named = |frame: &Frame| frame.function == function;
    let functions = cut.tree.functions();
    let values = functions
        .iter()
        .filter(|it| named(&cut.tree.frames[it.frame]))
        .map(|it| it.self_value);
    (values.sum::<f64>() / 1e3).round() as i64
}

#[test]
fn sums_are_those_of_an_independent_reader() {
    let whole = cut(None);
    assert_eq!(
        (whole.covered_ns, whole.capped_ns),
        (2_511_297e3, 630_959e3)
    );
    // Times from the first sample to the end: all but the first, and the time after the last.
    assert_eq!(
        whole.covered_ns + whole.capped_ns,
        (3_142_841.0 - 1085.0 + 500.0) * 1e3
    );
    assert!((whole.tree.total() - whole.covered_ns).abs() < 1.0);
    assert_eq!((whole.samples, self_us(&whole, "(idle)")), (878, 1_314_220));
    for (function, us) in [
        ("pbkdf2Sync", 1_102_309),
        ("writevGeneric (native)", 17_754),
        ("pbkdf2", 7017),
        ("digest", 5417),
        ("write_", 5388),
        ("(garbage collector)", 3499),
    ] {
        assert_eq!(self_us(&whole, function), us, "{function}");
    }
    let top = whole.tree.functions();
    let top: Vec<&str> = top
        .iter()
        .take(2)
        .map(|it| &*whole.tree.frames[it.frame].function)
        .collect();
    assert_eq!(top, ["(idle)", "pbkdf2Sync"]);
    assert!(
        whole
            .notes
            .iter()
            .any(|note| note.text.contains("lie in gaps")),
        "{:?}",
        whole.notes
    );
}

#[test]
fn a_window_has_what_an_independent_reader_finds_there() {
    let part = cut(Some(TimeWindow {
        start_ns: 49_781_766_503_000,
        end_ns: 49_782_266_503_000,
    }));
    assert_eq!(part.covered_ns, 312_454e3);
    assert_eq!(
        (self_us(&part, "pbkdf2Sync"), self_us(&part, "(idle)")),
        (198_364, 84_480)
    );
    assert!(
        (part.covered_ns + part.capped_ns - 500e6).abs() < 1.0,
        "the window lies inside of the profile"
    );
}

#[test]
fn written_for_others_it_stays_what_it_is() {
    let one = cut(None);
    let written = cpuprofile(&one.tree, TreeUnit::Nanoseconds).to_string();
    let back = cpu_tree(
        &CpuProfile::read(written.as_bytes()).expect("ours"),
        None,
        &NAMING,
    );
    assert!((self_us(&back, "pbkdf2Sync") - 1_102_309).abs() <= 1);
    assert!((self_us(&back, "writevGeneric (native)") - 17_754).abs() <= 1);
    let kinds = |tree: &Tree| tree.sums(|frame| Some(frame.kind)).len();
    assert_eq!(kinds(&back.tree), kinds(&one.tree));
}

#[test]
fn bytes_of_the_heap_are_those_of_an_independent_reader() {
    let heap = HeapProfile::read(HEAP).expect("a profile of a heap");
    let tree = heap_tree(&heap, &NAMING).tree;
    assert_eq!(tree.total(), 4_606_624.0);
    let functions = tree.functions();
    let top: Vec<(&str, f64)> = functions
        .iter()
        .take(2)
        .map(|it| (&*tree.frames[it.frame].function, it.self_value))
        .collect();
    assert_eq!(
        top,
        [
            ("compileForInternalLoader", 606_480.0),
            ("readFileSync", 591_192.0)
        ]
    );
}
