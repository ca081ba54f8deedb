//! What the method says to a run's log ratios, and whether that is true: three stop rules, each over all its looks.
//!
//! It must not know where the log ratios come from. Intervals and verdicts are those of `stats`, put together as `audit` does.

use stats::{BLOCKS_MIN, Direction, Error, Estimate, Looks, Resampling, Rule, Verdict, judge};

/// The smallest difference that matters, as a share.
pub const MARGIN: f64 = 0.02;
/// Sign flips drawn where there are too many blocks to go through all; as many as `audit` draws.
const FLIPS: u32 = 9_999;

/// One stop rule, with the critical t of each of its looks.
pub struct Judge {
    looks: Vec<(u32, f64)>,
    /// Whether the t of the one look comes from sign flips.
    joint: bool,
}

/// What became of one run under one rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the intervals of all comparisons at all looks hold the truth.
    pub all_hold: bool,
    /// Whether the first verdict of any comparison is false: better or worse with no difference or one the other way,
    /// or equivalent with a difference beyond the margin.
    pub false_verdict: bool,
    /// Whether that is, for any comparison, better where it is worse or the other way round.
    pub wrong_sign: bool,
    /// Comparisons whose interval at the end of the run holds the truth.
    pub hold_at_end: u32,
    /// Blocks at the end of the run: the first look that decides every comparison, or the last.
    pub blocks: u32,
}

impl Judge {
    /// A plan of looks that ends with `blocks`.
    pub fn planned(blocks: u32, comparisons: u32) -> Result<Judge, Error> {
        Ok(Judge::of(&Rule::Planned(Looks::plan(blocks, comparisons)?), blocks))
    }

    /// A look after every block up to `blocks`, where the time ends.
    pub fn always(blocks: u32, comparisons: u32) -> Result<Judge, Error> {
        Ok(Judge::of(&Rule::always(comparisons)?, blocks))
    }

    /// One look after `blocks`.
    pub fn once(blocks: u32, comparisons: u32) -> Result<Judge, Error> {
        Ok(Judge { joint: comparisons > 1, ..Judge::of(&Rule::once(blocks, comparisons)?, blocks) })
    }

    fn of(rule: &Rule, blocks: u32) -> Judge {
        let looks = (BLOCKS_MIN..=blocks).filter(|&n| rule.is_look(n));
        Judge { looks: looks.filter_map(|n| Some((n, rule.critical_t(n)?))).collect(), joint: false }
    }

    /// The outcome for the log ratios of each comparison, block by block, whose truths are these.
    pub fn outcome(&self, log_ratios: &[Vec<f64>], truths: &[f64], seed: u64) -> Outcome {
        let mut first: Vec<Option<Verdict>> = vec![None; truths.len()];
        let mut all_hold = true;
        // What holds, the blocks, and whether all is decided.
        let mut end: Option<(u32, u32, bool)> = None;
        for &(blocks, rule_t) in &self.looks {
            let joint_t = if self.joint { joint_t(log_ratios, blocks, seed) } else { None };
            let critical_t = joint_t.unwrap_or(rule_t);
            let (mut holding, mut decided) = (0, true);
            for ((column, truth), first) in log_ratios.iter().zip(truths).zip(&mut first) {
                // Without spread there is no interval, so nothing is claimed and nothing decided.
                let estimate = Estimate::of(&column[..blocks as usize], critical_t).ok();
                let holds = estimate.is_none_or(|it| it.low.ln() <= *truth && *truth <= it.high.ln());
                let verdict = estimate.map(|it| judge(&it, MARGIN, Direction::HigherIsBetter));
                let verdict = verdict.filter(|verdict| *verdict != Verdict::Inconclusive);
                *first = first.or(verdict);
                holding += u32::from(holds);
                decided &= verdict.is_some();
            }
            all_hold &= holding as usize == truths.len();
            if end.is_none_or(|(_, _, decided)| !decided) {
                end = Some((holding, blocks, decided));
            }
        }
        let (hold_at_end, blocks, _) = end.unwrap_or_default();
        let any = |wrong: fn(Verdict, f64) -> bool| {
            first.iter().zip(truths).any(|(first, &truth)| first.is_some_and(|verdict| wrong(verdict, truth)))
        };
        Outcome {
            all_hold,
            false_verdict: any(is_false),
            wrong_sign: any(is_wrong_sign),
            hold_at_end,
            blocks,
        }
    }
}

fn is_false(verdict: Verdict, truth: f64) -> bool {
    match verdict {
        Verdict::Better => truth <= 0.0,
        Verdict::Worse => truth >= 0.0,
        Verdict::Equivalent => truth.abs() > MARGIN.ln_1p(),
        Verdict::Inconclusive => false,
    }
}

fn is_wrong_sign(verdict: Verdict, truth: f64) -> bool {
    verdict == Verdict::Better && truth < 0.0 || verdict == Verdict::Worse && truth > 0.0
}

/// The critical t that holds for all comparisons together at one look.
fn joint_t(log_ratios: &[Vec<f64>], blocks: u32, seed: u64) -> Option<f64> {
    let row = |block: usize| log_ratios.iter().map(|column| column[block]).collect();
    let rows: Vec<Vec<f64>> = (0..blocks as usize).map(row).collect();
    stats::joint_t(&rows, Resampling { resamples: FLIPS, seed }).ok()?
}
