//! Scratch.
#[allow(dead_code, unused_imports)]
#[path = "../tests/environment/mod.rs"]
mod environment;
use environment::*;
fn main() {
    let q = Queue { per_s: 1000.0, kind: QueueKind::Exponential(1), between_sd: 0.0 };
    let record = finished(capacity_plan(1, 180), 5, &mut Queues::new(5, &[q]));
    for block in &record.blocks {
        for trial in &block.trials {
            println!("block {} at limit {:?}", block.number, analysis::capacity::at_limit_per_s(trial));
            for s in &trial.slices {
                let o = s.counts.open.as_ref();
                println!(
                    "  {:?} {:.1}s rate {:?} due {} ok {} p99 {:?}",
                    s.kind,
                    s.counts.window_ns as f64 / 1e9,
                    o.map(|o| o.rate_per_s),
                    s.counts.due(),
                    s.counts.successful,
                    o.and_then(|o| o.response.quantile(0.99))
                );
            }
        }
    }
    println!("{:#?}", analysis::conclude(&record).capacities);
}
