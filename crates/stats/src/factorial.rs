//! Effects of factors from a full factorial in randomised complete blocks: the average effect of a factor
//! over all others, and interactions of two factors.
//!
//! Each effect is an average of the same difference at every combination of the other factors' levels, its
//! *strata*. Within each stratum the signs over the variants sum to 0, so that effects common to all variants
//! of a block cancel. A block gives one number per stratum, the log of a ratio.
//! [`crate::Estimate::of_strata`] computes the average and its interval from them.
//!
//! Missing cells are not filled in. The method does not apply to a fractional factorial, in which effects are
//! confounded. A main effect is an average: with a large interaction it does not describe any actual variant.

use std::collections::BTreeMap;

/// Maximum number of combinations of levels.
pub const COMBINATIONS_MAX: usize = 1_024;

/// A varied factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorLevels {
    /// Name of the factor.
    pub name: String,
    /// Levels of the factor. The first is the reference for the others.
    pub levels: Vec<String>,
}

/// A level of a factor, relative to that factor's first level. Both are indices from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Index of the factor.
    pub factor: usize,
    /// Index of the level, 1 or more.
    pub level: usize,
}

/// A main effect or a two-way interaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// Such as `node_env: production / development`, and two of these with ` × ` in between.
    pub name: String,
    /// One term for a main effect, two for an interaction.
    pub terms: Vec<Term>,
    /// One stratum for each combination of the other factors' levels: the indices of the compared cells and
    /// their signs. The last factor's levels change fastest. No two strata share a cell.
    pub strata: Vec<Vec<(usize, f64)>>,
}

/// All main effects, then all two-way interactions, of a full factorial.
///
/// ```text
/// main effect of level a      L = mean over the others of ln y(a) − ln y(first)
/// interaction of a with b     L = mean over the others of (ln y(a, b) − ln y(first, b)) − (ln y(a, first) − ln y(first, first))
/// ```
/// So exp L is a ratio, or a ratio of ratios: 1.1 means that the effect of a is 10 per cent larger with b
/// than without. (Textbooks halve the interaction of two-level factors, but half of a ratio of ratios has no
/// simple meaning.) With two levels each all contrasts are orthogonal. With more levels, contrasts with a
/// common first level are not. Source: Box, Hunter & Hunter, *Statistics for Experimenters*, 2005, chapters 4
/// and 5.
///
/// No factors give no contrasts. Many contrasts are many comparisons, and must share the error rate. `None`
/// for a factor with fewer than two levels, and above [`COMBINATIONS_MAX`].
pub fn contrasts(factors: &[FactorLevels]) -> Option<Vec<Contrast>> {
    let combinations = factors.iter().fold(1_usize, |all, factor| {
        all.saturating_mul(factor.levels.len())
    });
    if combinations > COMBINATIONS_MAX || factors.iter().any(|factor| factor.levels.len() < 2) {
        return None;
    }
    let singles: Vec<Term> = (0..factors.len())
        .flat_map(|factor| {
            (1..factors[factor].levels.len()).map(move |level| Term { factor, level })
        })
        .collect();
    let pairs = singles.iter().enumerate().flat_map(|(place, first)| {
        let later = singles[place + 1..]
            .iter()
            .filter(|second| second.factor != first.factor);
        later.map(|second| vec![*first, *second])
    });
    let all = singles.iter().map(|term| vec![*term]).chain(pairs);
    Some(all.map(|terms| contrast(factors, terms)).collect())
}

fn contrast(factors: &[FactorLevels], terms: Vec<Term>) -> Contrast {
    let combinations: usize = factors.iter().map(|factor| factor.levels.len()).product();
    let sign = |cell: usize, term: &Term| match level_of(factors, cell, term.factor) {
        level if level == term.level => 1.0,
        0 => -1.0,
        _ => 0.0,
    };
    let mut strata: BTreeMap<Vec<usize>, Vec<(usize, f64)>> = BTreeMap::new();
    for cell in 0..combinations {
        let signs: f64 = terms.iter().map(|term| sign(cell, term)).product();
        let others =
            (0..factors.len()).filter(|factor| terms.iter().all(|term| term.factor != *factor));
        if signs != 0.0 {
            let others = others
                .map(|factor| level_of(factors, cell, factor))
                .collect();
            strata.entry(others).or_default().push((cell, signs));
        }
    }
    let name = |term: &Term| {
        let FactorLevels { name, levels } = &factors[term.factor];
        format!("{name}: {} / {}", levels[term.level], levels[0])
    };
    let name = terms.iter().map(name).collect::<Vec<_>>().join(" × ");
    Contrast {
        name,
        terms,
        strata: strata.into_values().collect(),
    }
}

/// Returns the level of a factor in a combination.
fn level_of(factors: &[FactorLevels], cell: usize, factor: usize) -> usize {
    let faster: usize = factors[factor + 1..]
        .iter()
        .map(|later| later.levels.len())
        .product();
    cell / faster % factors[factor].levels.len()
}

impl Contrast {
    /// Computes the contrast in each stratum for each of `blocks`, as a log ratio. A block has one row: the
    /// metric of each cell in any unit (not its logarithm), and `None` for a cell that was not measured.
    ///
    /// `None` if a required cell is missing, because omitting its block would be valid only if it were
    /// missing for reasons unrelated to its value. `None` also for a value without a finite logarithm.
    pub fn values(&self, blocks: &[Vec<Option<f64>>]) -> Option<Vec<Vec<f64>>> {
        let value = |stratum: &Vec<(usize, f64)>, cells: &Vec<Option<f64>>| {
            let logs = stratum
                .iter()
                .map(|(cell, sign)| Some(sign * (*cells.get(*cell)?)?.ln()));
            logs.sum::<Option<f64>>().filter(|value| value.is_finite())
        };
        let values = |stratum| {
            blocks
                .iter()
                .map(|cells| value(stratum, cells))
                .collect::<Option<Vec<f64>>>()
        };
        self.strata.iter().map(values).collect()
    }
}
