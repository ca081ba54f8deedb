//! The combinations of levels and their numbers: the last factor changes fastest.
//!
//! ```text
//! app = json, views   node_env = development, production
//!
//!   0  json  · development
//!   1  json  · production
//!   2  views · development
//!   3  views · production
//! ```
//! Arithmetic on indices only.

use crate::model::Factor;

/// Separates the names of levels in the name of a variant.
pub(crate) const SEPARATOR: &str = " · ";

/// All combinations of the levels of some factors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid<'a> {
    factors: &'a [Factor],
}

impl<'a> Grid<'a> {
    /// Every factor has at least one level.
    pub fn new(factors: &'a [Factor]) -> Self {
        assert!(factors.iter().all(|factor| !factor.levels.is_empty()), "a factor without levels is none");
        Self { factors }
    }

    /// Number of combinations, 1 without factors; `usize::MAX` if it is larger than that.
    pub fn count_saturating(self) -> usize {
        self.factors.iter().fold(1, |count: usize, factor| count.saturating_mul(factor.levels.len()))
    }

    /// Index of each factor's level in the combination `index`.
    pub fn levels(self, index: usize) -> Vec<usize> {
        let mut rest = index;
        let mut levels: Vec<usize> = self
            .factors
            .iter()
            .rev()
            .map(|factor| {
                let level = rest % factor.levels.len();
                rest /= factor.levels.len();
                level
            })
            .collect();
        levels.reverse();
        levels
    }

    /// Index of the combination of these levels.
    pub fn index(self, levels: &[usize]) -> usize {
        self.factors.iter().zip(levels).fold(0, |index, (factor, level)| index * factor.levels.len() + level)
    }

    /// Factor and level names of the combination `index`.
    pub fn names(self, index: usize) -> Vec<(&'a str, &'a str)> {
        let levels = self.levels(index);
        let named =
            |(factor, level): (&'a Factor, usize)| (factor.name.as_str(), factor.levels[level].as_str());
        self.factors.iter().zip(levels).map(named).collect()
    }

    /// Name of the variant with the combination `index`.
    pub fn variant_name(self, index: usize) -> String {
        let levels: Vec<&str> = self.names(index).into_iter().map(|(_, level)| level).collect();
        if levels.is_empty() { "only".to_owned() } else { levels.join(SEPARATOR) }
    }
}
