//! Measures by simulation the error of capacities and the coverage of their intervals: the tables of
//! docs/capacity.md.
//!
//! ```text
//! cargo run --release -p proofload-lab --example simulated_capacity [-- RUNS]
//! ```
//! Services are simulated queues. Dispatcher, record and analysis are those of every run. Seeded, without
//! load or clock.

#[allow(dead_code, unused_imports)]
#[path = "../tests/environment/mod.rs"]
mod environment;

use std::io::{Result, Write};

use analysis::Outcome;
use environment::{Queue, QueueKind as Kind, Simulated, capacity_plan, finished, write_to_memory};

const RUNS: u64 = 200;
const SEED: u64 = 20_261_123;

/// A service with its capacity for p99 < 50 ms: µ − ln(100) / 50 ms for exponential service by one server.
/// With room for 26 requests, the rate at which 1 in 1,000 finds no room. For the others from a longer
/// simulation.
struct Case {
    name: &'static str,
    queue: Queue,
    truth_per_s: f64,
    budget_s: u64,
}

fn cases() -> Vec<Case> {
    let case = |name, kind, per_s, between_sd, truth_per_s, budget_s| Case {
        name,
        queue: Queue {
            per_s,
            kind,
            between_sd,
        },
        truth_per_s,
        budget_s,
    };
    vec![
        case("M/M/1, 1 ms", Kind::Exponential(1), 1000.0, 0.0, 907.9, 180),
        case(
            "M/M/1, 1 ms, 60 s",
            Kind::Exponential(1),
            1000.0,
            0.0,
            907.9,
            60,
        ),
        case(
            "M/M/1, 1 ms, processes 5 %",
            Kind::Exponential(1),
            1000.0,
            0.05,
            907.9,
            300,
        ),
        case(
            "M/M/1, 0.5 ms",
            Kind::Exponential(1),
            2000.0,
            0.0,
            1907.9,
            180,
        ),
        case("M/M/1, 5 ms", Kind::Exponential(1), 200.0, 0.0, 107.9, 180),
        case("M/D/1, 1 ms", Kind::Constant, 1000.0, 0.0, 954.1, 180),
        case("M/M/2, 2 ms", Kind::Exponential(2), 1000.0, 0.0, 906.7, 180),
        case(
            "pauses of 25 ms",
            Kind::Pauses,
            1.0 / 0.00105,
            0.0,
            788.0,
            180,
        ),
        case(
            "sheds above 26, 1 ms",
            Kind::Shedding(26),
            1000.0,
            0.0,
            818.6,
            180,
        ),
    ]
}

fn main() -> Result<()> {
    write_to_memory();
    let runs = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(RUNS);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{runs} runs a row.\n\n| service | budget | mean error | sd | intervals that hold | half-width | blocks |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    for case in cases() {
        let (errors, holds, widths, blocks) = simulate(&case, runs);
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let sd = (errors
            .iter()
            .map(|error| (error - mean).powi(2))
            .sum::<f64>()
            / (count - 1.0))
            .sqrt();
        writeln!(
            out,
            "| {} | {} s | {:+.1} % | {:.1} % | {:.1} % of {} | ±{:.1} % | {:.1} |",
            case.name,
            case.budget_s,
            mean * 100.0,
            sd * 100.0,
            holds as f64 / count * 100.0,
            count,
            widths / count * 100.0,
            blocks / count,
        )?;
        out.flush()?;
    }
    ratios(&mut out, runs)
}

/// Errors as logarithms, number of intervals that contain the truth, and sums of half-widths and blocks.
fn simulate(case: &Case, runs: u64) -> (Vec<f64>, u64, f64, f64) {
    let (mut errors, mut holds, mut widths, mut blocks) = (Vec::new(), 0, 0.0, 0.0);
    for run in 0..runs {
        let seed = SEED ^ run << 20;
        let mut plan = capacity_plan(1, case.budget_s);
        if let Kind::Shedding(_) = case.queue.kind {
            plan.design
                .slo
                .push(plan::limit("failed < 0.1%").expect("a limit"));
        }
        let record = finished(plan, seed, &mut Simulated::queueing(seed, &[case.queue]));
        let conclusion = analysis::conclude(&record);
        let found = &conclusion.capacities[0];
        let (Some(per_s), Some(interval)) = (found.reached_per_s, &found.reached_interval) else {
            continue;
        };
        errors.push((per_s / case.truth_per_s).ln());
        holds += u64::from(interval.low <= case.truth_per_s && case.truth_per_s <= interval.high);
        widths += (interval.high / interval.low).ln() / 2.0;
        blocks += f64::from(conclusion.blocks);
    }
    (errors, holds, widths, blocks)
}

/// How often two services are distinguished, if the second is 5 % faster, and if it is not.
fn ratios(out: &mut impl Write, runs: u64) -> Result<()> {
    writeln!(
        out,
        "\n| variants, 240 s | true ratio | mean error | intervals that hold | better | worse | equivalent |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    for (name, faster) in [("M/M/1, equal", 1.0), ("M/M/1, service 5 % faster", 1.05)] {
        let queue = |per_s: f64| Queue {
            per_s,
            kind: Kind::Exponential(1),
            between_sd: 0.02,
        };
        let truth = (1000.0 * faster - 92.1) / 907.9;
        let (mut count, mut error, mut holds, mut verdicts) = (0_u64, 0.0, 0_u64, [0_u64; 3]);
        for run in 0..runs {
            let seed = SEED ^ (run << 20) ^ 1;
            let queues = [queue(1000.0), queue(1000.0 * faster)];
            let record = finished(
                capacity_plan(2, 240),
                seed,
                &mut Simulated::queueing(seed, &queues),
            );
            let conclusion = analysis::conclude(&record);
            let Some(estimate) = conclusion.comparisons[0].estimate else {
                continue;
            };
            count += 1;
            error += (estimate.ratio / truth).ln();
            holds += u64::from(estimate.low <= truth && truth <= estimate.high);
            match conclusion.comparisons[0].outcome {
                Outcome::Better => verdicts[0] += 1,
                Outcome::Worse => verdicts[1] += 1,
                Outcome::Equivalent => verdicts[2] += 1,
                Outcome::Inconclusive | Outcome::NoSuccess | Outcome::Invalid => {}
            }
        }
        let part = |number: u64| number as f64 / count.max(1) as f64 * 100.0;
        writeln!(
            out,
            "| {name} | {truth:.3} | {:+.1} % | {:.1} % of {count} | {:.0} % | {:.0} % | {:.0} % |",
            error / count.max(1) as f64 * 100.0,
            part(holds),
            part(verdicts[0]),
            part(verdicts[1]),
            part(verdicts[2]),
        )?;
    }
    Ok(())
}
