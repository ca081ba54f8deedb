//! Resource use of runs of hours: the real dispatcher, record and analysis over a simulated environment, so
//! that only these take time. `bench/knocks/results/2026-11-23-long-and-large.md` contains its output.
//!
//! ```text
//! cargo run --release -p proofload-lab --example long_run [-- HOURS]
//! ```
//! Each run has an effect that nothing can decide, so it continues to the end. There is no load, and the only
//! clock is for the figures.

#[allow(dead_code, unused_imports)]
#[path = "../tests/environment/mod.rs"]
mod environment;

use std::io::{Error, Result, Write};
use std::time::Duration;

use environment::{Simulated, begun, plan};
use machine::process;
use plan::{Metric, Plan, PlannedRate};
use proofload_lab::{Progress, UpdateNews};
use record::{Event, MachineUse};

const HOURS: u64 = 6;
const HEAD: &str = "\
| run | time | blocks that count | dropped | slices | record | CPU time of a block: first ten, last ten, longest | of `conclude`: longest | memory after an hour, at the end |
|---|---:|---:|---:|---:|---:|---:|---:|---:|";

fn main() -> Result<()> {
    let hours = std::env::args()
        .nth(1)
        .map_or(Ok(HOURS), |given| given.parse().map_err(Error::other))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{hours} hours of simulated time.\n\n{HEAD}")?;
    for (name, mut plan, machine) in cases() {
        plan.design.budget = Duration::from_secs(hours * 3600);
        let mut environment = Simulated::new(1, &vec![0.0; plan.variants.len()]);
        environment.machine = machine;
        let costs = carried_out(plan, &mut environment)?;
        writeln!(out, "| {name} | {} |", costs.cells().join(" | "))?;
        out.flush()?;
    }
    Ok(())
}

type Case = (&'static str, Plan, fn(u32) -> MachineUse);

fn cases() -> Vec<Case> {
    let calm: fn(u32) -> MachineUse = |_| MachineUse::default();
    let stolen: fn(u32) -> MachineUse = |block| MachineUse {
        steal_share: f64::from(block % 2) * 0.4,
        ..MachineUse::default()
    };
    let mut latency = long(2, 100);
    (latency.design.metric, latency.design.rate) =
        (Metric::P99, Some(PlannedRate::ShareOfCapacity(0.6)));
    let mut pooled = latency.clone();
    pooled.design.pooled = true;
    vec![
        ("2 variants", long(2, 100), calm),
        ("12 variants", long(12, 16), calm),
        (
            "2 variants, every other block disturbed",
            long(2, 100),
            stolen,
        ),
        ("2 variants, p99 at 60 % of capacity", latency, calm),
        ("the same, of all responses together", pooled, calm),
    ]
}

/// A plan with such long trials that the maximum number of blocks takes more than six hours.
fn long(variants: usize, slices: u32) -> Plan {
    let mut plan = plan(variants);
    (plan.design.slices, plan.design.slice) = (Some(slices), Some(Duration::from_secs(1)));
    plan.design.margin = 1e-6;
    plan
}

/// Resources used by a run.
#[derive(Default)]
struct Costs {
    /// CPU time of each block, all of which is used by the lab. Unlike elapsed time, it is not longer on a
    /// busy machine.
    blocks: Vec<Duration>,
    concluding_max: Duration,
    /// Resident memory after an hour of the run and at its end, in bytes.
    resident: [u64; 2],
    record_bytes: u64,
    hours: f64,
    kept: u32,
    dropped: u32,
    slices: usize,
}

fn carried_out(plan: Plan, environment: &mut Simulated) -> Result<Costs> {
    let (mut costs, mut block_began, mut concluding) = (Costs::default(), cpu_time(), cpu_time());
    let (writer, folder) = begun(plan, 1);
    let (record, result) =
        proofload_lab::run(writer, environment, &mut |update| match &update.news {
            UpdateNews::Event(Event::BlockStarted { .. }) => block_began = cpu_time(),
            UpdateNews::Event(Event::BlockEnded { .. }) => {
                concluding = cpu_time();
                if update.elapsed_s < 3600.0 {
                    costs.resident[0] = resident_bytes();
                }
            }
            // Reported after each block that counts.
            UpdateNews::Progress(Progress::Concluded(_)) => {
                costs.blocks.push(cpu_time() - block_began);
                costs.concluding_max = costs.concluding_max.max(cpu_time() - concluding);
            }
            _ => {}
        });
    result.map_err(Error::other)?;
    costs.resident[1] = resident_bytes();
    costs.record_bytes = std::fs::metadata(folder.path().join("record/events.jsonl"))?.len();
    costs.hours = record
        .ended
        .as_ref()
        .map_or(0.0, |ended| ended.seconds / 3600.0);
    (costs.kept, costs.dropped) = (record.blocks_kept(), record.blocks_dropped());
    costs.slices = record.trials().map(|trial| trial.slices.len()).sum();
    Ok(costs)
}

impl Costs {
    fn cells(&self) -> Vec<String> {
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let mean = |of: &[Duration]| ms(of.iter().sum::<Duration>() / of.len().max(1) as u32);
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let (first, last) = (
            self.blocks.len().min(10),
            self.blocks.len().saturating_sub(10),
        );
        let longest = self.blocks.iter().max().copied().unwrap_or_default();
        vec![
            format!("{:.1} h", self.hours),
            self.kept.to_string(),
            self.dropped.to_string(),
            self.slices.to_string(),
            mib(self.record_bytes),
            format!(
                "{}, {}, {}",
                mean(&self.blocks[..first]),
                mean(&self.blocks[last..]),
                ms(longest)
            ),
            ms(self.concluding_max),
            self.resident.map(mib).join(", "),
        ]
    }
}

/// CPU time of this thread, which does all the work.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

fn resident_bytes() -> u64 {
    process::number(&process::text(std::process::id(), "status"), "VmRSS") * 1024
}
