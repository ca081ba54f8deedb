//! Simulated runs with a gate, each ended as in the lab: how often a limit fails, passes and is inconclusive.

use plan::GateEntry;
use proofload_analysis::{Ruling, conclude, gated, limits_settled, rule};
use record::{EndReason, Ended, Record};

use super::{Maker, Run};

/// Parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    /// Number of blocks at the last look.
    pub blocks: u32,
    /// Standard deviation of log throughput between processes.
    pub between: f64,
    /// True change of the candidate's throughput: −0.03 is 3 % less.
    pub true_change: f64,
    pub limit: &'a str,
}

/// Shares of all runs, and their average number of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub broken: f64,
    pub kept: f64,
    pub open: f64,
    pub blocks: f64,
}

impl Course<'_> {
    pub fn rates(&self, seed: u64, runs: u32) -> Rates {
        let mut maker = Maker::new(seed);
        let all: Vec<(Ruling, u32)> = (0..runs).map(|_| self.run(&mut maker)).collect();
        let share = |count: u32| f64::from(count) / f64::from(runs);
        let of = |wanted| share(all.iter().filter(|(ruling, _)| *ruling == wanted).count() as u32);
        Rates {
            broken: of(Ruling::Fail),
            kept: of(Ruling::Pass),
            open: of(Ruling::Inconclusive),
            blocks: share(all.iter().map(|(_, blocks)| blocks).sum()),
        }
    }

    fn run(&self, maker: &mut Maker) -> (Ruling, u32) {
        let run = Run {
            slices: 2,
            ..Run::new(self.blocks, self.between)
        };
        let added = (1.0 + self.true_change).ln();
        let mut record = maker.planted(run, |at| if at.variant == 1 { added } else { 0.0 });
        record.header.plan.gate = vec![GateEntry {
            limit: plan::limit(self.limit).expect(self.limit),
            of: None,
            line: None,
        }];
        let rule = rule(&record).expect("so many blocks allow a verdict");
        let looks = (1..=self.blocks).filter(|blocks| rule.is_look(*blocks));
        let ended = looks
            .into_iter()
            .find_map(|blocks| self.at(&record, blocks));
        ended.expect("the last look ends it")
    }

    /// The result, if the run ends at this look.
    fn at(&self, record: &Record, blocks: u32) -> Option<(Ruling, u32)> {
        let mut record = record.clone();
        record.blocks.truncate(blocks as usize);
        let reason = if blocks == self.blocks {
            EndReason::BudgetSpent
        } else {
            EndReason::Decided
        };
        record.ended = Some(Ended {
            reason,
            seconds: 1.0,
        });
        let mut conclusion = conclude(&record);
        // Findings are removed, because checks occasionally report noise.
        conclusion.findings.clear();
        let ends = conclusion.is_decided() && limits_settled(&record, &conclusion);
        let gate = gated(&record, &conclusion, &record.header.plan.gate);
        (ends || blocks == self.blocks).then(|| (gate.ruling().expect("it is judged"), blocks))
    }
}
