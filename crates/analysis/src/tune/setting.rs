//! Settings: changes to the start of a service that may make it faster, with their levels.

use std::path::PathBuf;

use plan::{Bound, Limit, LimitFigure};

use super::LEVEL;
use super::step::EffectEstimate;
use crate::Ruling;

/// A setting to try. Level 0 is the unchanged service. The others are those in `levels`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Setting {
    /// Name in reports.
    pub name: String,
    /// Levels other than the unchanged service, preferred ones first. At least one.
    pub levels: Vec<SettingLevel>,
    /// Index of the level that represents the setting in the screening.
    pub screened: usize,
    /// Costs that are not measured.
    pub cost: String,
    /// Source of the advice.
    pub source: String,
    /// Results of our own experiments.
    pub seen: String,
}

/// A level of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingLevel {
    /// Display name: `NODE_ENV=production`.
    pub name: String,
    /// Changes that set it.
    pub changes: Vec<SettingChange>,
}

/// A change to the start of a service.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingChange {
    /// Sets a variable.
    Env(String, String),
    /// Appends a value to a variable, with a separator.
    Append {
        /// The variable.
        variable: String,
        /// The separator.
        by: String,
        /// The appended value.
        value: String,
        /// The inherited value of the variable, if the experiment does not set it.
        inherited: String,
    },
    /// Appends words to the command.
    Arguments(Vec<String>),
    /// Inserts words after the program, before its script.
    Flags(Vec<String>),
    /// Prepends words to the command.
    Before(Vec<String>),
    /// Replaces the program, the first word of the command.
    Program(String),
    /// Starts this number of processes with Node.js's cluster.
    Cluster(u32),
    /// Whether PM2 monitors the process from inside.
    Pm2Metrics(bool),
    /// Puts nginx in front. The file is a template of its configuration.
    Nginx(PathBuf),
    /// Any other change of the experiment, as a TOML table merged into it.
    Overlay(toml::Table),
}

impl Setting {
    fn of(name: &str, levels: Vec<SettingLevel>) -> Setting {
        Setting {
            name: name.to_owned(),
            levels,
            ..Setting::default()
        }
    }

    /// Iterates over the variables set by the levels, with their values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let changes = self.levels.iter().flat_map(|level| &level.changes);
        changes.filter_map(|change| match change {
            SettingChange::Env(name, value) => Some((name.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// Why this cannot be tried together with another setting. `None` if it can.
    pub fn clash(&self, other: &Setting) -> Option<String> {
        // An appended value is lost if another setting sets the variable.
        let changes = |of: &Setting, name: &str| {
            of.has(|change| match change {
                SettingChange::Env(variable, _) | SettingChange::Append { variable, .. } => {
                    variable == name
                }
                _ => false,
            })
        };
        let sets =
            |of: &Setting, beside: &Setting| of.variables().any(|(name, _)| changes(beside, name));
        if self.name == other.name || sets(self, other) || sets(other, self) {
            return Some(format!("`{}` sets it too", other.name));
        }
        // If a flag is given twice, most programs use the last.
        let flags = |of: &Setting| -> Vec<String> {
            let changes = of.levels.iter().flat_map(|level| &level.changes);
            let words = changes.filter_map(|change| match change {
                SettingChange::Arguments(words) => Some(words),
                _ => None,
            });
            let flags = words.flatten().filter(|word| word.starts_with('-'));
            flags
                .map(|word| word.split('=').next().unwrap_or_default().to_owned())
                .collect()
        };
        if let Some(flag) = flags(self)
            .into_iter()
            .find(|flag| flags(other).contains(flag))
        {
            return Some(format!("`{}` has {flag} too", other.name));
        }
        // There is one nginx template for all rows.
        let nginx = |of: &Setting| of.has(|change| matches!(change, SettingChange::Nginx(_)));
        if nginx(self) && nginx(other) {
            return Some(format!(
                "one nginx stands in front, and `{}` configures it",
                other.name
            ));
        }
        // A launcher starts several workers only of node, not of a program in front of it.
        let before = |of: &Setting| of.has(|change| matches!(change, SettingChange::Before(_)));
        let several = |of: &Setting| of.has(|change| matches!(change, SettingChange::Cluster(_)));
        (before(self) && several(other) || several(self) && before(other)).then(|| {
            format!(
                "words before a command and several processes of it exclude each other: `{}`",
                other.name
            )
        })
    }

    fn has(&self, is: impl Fn(&SettingChange) -> bool) -> bool {
        self.levels
            .iter()
            .any(|level| level.changes.iter().any(&is))
    }

    /// Name of a level. 0 is the unchanged service.
    pub fn level(&self, level: usize) -> &str {
        level
            .checked_sub(1)
            .map_or(LEVEL, |index| &self.levels[index].name)
    }
}

/// Parses a setting from the user: `GOGC=200`, `NAME=a|b|c`, `flag: --workers 4`, `before: nice -n 5`.
///
/// # Errors
/// Describes the problem and the expected forms.
pub fn tried(text: &str) -> Result<Setting, String> {
    const FORMS: &str = "write NAME=value, NAME=a|b|c for several values, `flag: --workers 4` for words behind the command, or \
                         `before: nice -n 5` for words before it";
    let words = |rest: &str| match plan::words(rest) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(format!(
            "there are no words in it, or a quote is not closed: {FORMS}"
        )),
    };
    let level = |name: &str, change| SettingLevel {
        name: name.to_owned(),
        changes: vec![change],
    };
    if let Some(rest) = text.strip_prefix("flag:").map(str::trim) {
        return Ok(Setting::of(
            rest,
            vec![level(rest, SettingChange::Arguments(words(rest)?))],
        ));
    }
    if let Some(rest) = text.strip_prefix("before:").map(str::trim) {
        return Ok(Setting::of(
            rest,
            vec![level(rest, SettingChange::Before(words(rest)?))],
        ));
    }
    let (name, values) = text
        .split_once('=')
        .ok_or_else(|| format!("there is no `=` in it: {FORMS}"))?;
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("`{name}` is no name of a variable: {FORMS}"));
    }
    let of = |value: &str| {
        level(
            &format!("{name}={value}"),
            SettingChange::Env(name.to_owned(), value.to_owned()),
        )
    };
    let levels: Vec<SettingLevel> = values.split('|').map(of).collect();
    if model::distinct(&levels).len() < levels.len() {
        return Err("a value is there twice".to_owned());
    }
    let screened = levels.len() / 2;
    Ok(Setting {
        screened,
        ..Setting::of(if levels.len() == 1 { text } else { name }, levels)
    })
}

/// A limit that recommended settings must keep, relative to the unchanged service: `memory < +20%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Keep {
    /// The limited figure.
    pub figure: LimitFigure,
    /// The ratio to the unchanged service that must not be exceeded.
    pub ratio: f64,
    /// The limit as written.
    pub text: String,
}

impl Keep {
    /// Whether the limit is on a response time, which is not measured for a service at its limit.
    pub fn is_latency(&self) -> bool {
        self.figure
            .metric()
            .is_some_and(|metric| metric.quantile().is_some())
    }

    /// Whether a ratio to the unchanged service keeps the limit.
    pub fn holds(&self, ratio: f64) -> bool {
        if self.figure.wants_more() {
            ratio >= self.ratio
        } else {
            ratio <= self.ratio
        }
    }

    /// Whether an effect keeps the limit, judged by its whole interval.
    pub fn ruling(&self, seen: &EffectEstimate) -> Ruling {
        match [seen.low, seen.high].map(|end| self.holds(end)) {
            [true, true] => Ruling::Pass,
            [false, false] => Ruling::Fail,
            [true, false] | [false, true] => Ruling::Inconclusive,
        }
    }

    /// Parses a limit.
    ///
    /// # Errors
    /// Describes the problem and the expected form.
    pub fn read(text: &str) -> Result<Keep, String> {
        // Converts the user's name of the figure to that of the file.
        let named = text
            .trim()
            .strip_prefix("memory")
            .map(|rest| format!("peak_memory{rest}"));
        let Limit { figure, bound } = plan::limit(named.as_deref().unwrap_or(text))?;
        match bound {
            Bound::Change(_) => Ok(Keep {
                figure,
                ratio: bound.value(),
                text: text.trim().to_owned(),
            }),
            Bound::Amount(..) => Err(format!(
                "`{text}` is an amount, no change such as \"memory < +20%\""
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_want_tried_is_read() {
        let one = tried("GOGC=200").unwrap();
        assert_eq!((one.name.as_str(), one.levels.len()), ("GOGC=200", 1));
        let several = tried("POOL=2|4|8").unwrap();
        let names = (several.name.as_str(), several.level(3), several.level(0));
        assert_eq!(
            (names, several.screened),
            (("POOL", "POOL=8", "as it is"), 1)
        );
        let cluster = SettingLevel {
            name: "2 processes".into(),
            changes: vec![SettingChange::Cluster(2)],
        };
        let processes = Setting::of("processes", vec![cluster]);
        assert!(
            tried("before: nice -n 5")
                .unwrap()
                .clash(&processes)
                .is_some()
        );
        assert_eq!(one.clash(&processes), None);
        let flag = tried("flag: --workers 4").unwrap();
        assert_eq!(
            flag.levels[0].changes,
            [SettingChange::Arguments(vec![
                "--workers".into(),
                "4".into()
            ])]
        );
        let clash = tried("flag: --workers=8").unwrap().clash(&flag).unwrap();
        assert_eq!(clash, "`--workers 4` has --workers too");
        assert_eq!(tried("flag: --threads 4").unwrap().clash(&flag), None);
        for wrong in ["--workers 4", "2X=1", "flag:", "before: 'a"] {
            assert!(tried(wrong).unwrap_err().contains("NAME=value"), "{wrong}");
        }
    }

    #[test]
    fn limits_are_changes() {
        let keep = Keep::read("memory < +20%").unwrap();
        assert_eq!((keep.figure.name(), keep.ratio), ("peak_memory", 1.2));
        let ruling = |low, high| {
            keep.ruling(&EffectEstimate {
                ratio: 1.0,
                low,
                high,
            })
        };
        let rulings = [ruling(0.9, 1.1), ruling(0.9, 1.3), ruling(1.3, 1.4)];
        assert_eq!(rulings, [Ruling::Pass, Ruling::Inconclusive, Ruling::Fail]);
        assert!(Keep::read("p99 < 50ms").unwrap_err().contains("amount"));
        assert!(Keep::read("memory > +20%").is_err());
    }
}
