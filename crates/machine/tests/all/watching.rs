//! What is made of two readings and of a row of equal work.

use proofload_machine::{Reading, Spin, Watched};

fn process(pid: u32, name: &str, user: u64, start: u64) -> String {
    let rest = "0 ".repeat(30);
    format!("{pid} ({name}) R 1 7 7 0 -1 4194560 100 0 0 0 {user} 0 0 0 20 0 1 0 {start} {rest}")
}

#[test]
fn who_used_a_processor_is_named_and_the_watcher_is_not() {
    let stat = |idle: u64, user: u64, steal: u64| {
        format!("cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\nintr 1\n")
    };
    let (odd, own, gone) =
        (process(20, "a) b(", 50, 9), process(30, "proofload", 10, 8), process(40, "old", 900, 7));
    let before = Reading::of(&stat(1000, 500, 0), &[&odd, &own, &gone]);
    // 200 ticks of two processors: 100 are a second.
    let (odd, own) = (process(20, "a) b(", 90, 9), process(30, "proofload", 30, 8));
    // A later process of the same number has its own account.
    let (later, idle) = (process(40, "ne\x1bw", 12, 99), process(41, "idle", 1, 98));
    let after = Reading::of(&stat(1100, 590, 10), &[&odd, &own, &later, &idle]);
    let seen = Watched::between(&before, &after, 30);
    let named: Vec<(&str, f64)> = seen.busiest.iter().map(|busy| (busy.name.as_str(), busy.share)).collect();
    assert_eq!(named, [("a) b(", 0.4), ("ne\u{fffd}w", 0.12)]);
    // 90 ticks of work, of which 20 were the watcher's own.
    assert_eq!((seen.others, seen.steal_share), (0.7, 0.05));
    assert_eq!(Watched::between(&before, &before, 30), Watched::default());
}

#[test]
fn equal_work_spreads_as_its_times_do() {
    let pieces: Vec<u64> = (0..160).map(|index| if index % 2 == 0 { 1_900_000 } else { 2_100_000 }).collect();
    let spin = Spin::of(&pieces).expect("enough of them");
    assert_eq!(spin.pieces, 140);
    assert!((spin.cv - 0.05).abs() < 0.001, "{spin:?}");
    // What is slow before the processor has sped up is left out.
    let mut pieces = vec![2_000_000; 80];
    pieces[..10].fill(9_000_000);
    assert_eq!(Spin::of(&pieces).map(|spin| spin.cv), Some(0.0));
    assert_eq!(Spin::of(&pieces[..20]), None);
}
