//! A setting: something about how a service is started that may make it faster, with the levels it may have.

use std::path::PathBuf;

use plan::{Bound, Figure, Limit};

use super::LEVEL;
use super::step::Known;
use crate::Ruling;

/// A setting that is tried. Level 0 is the service as it is; the others are those of `levels`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Setting {
    /// What reports call it.
    pub name: String,
    /// Its levels besides that of the service as it is, those that are preferred first; at least one.
    pub levels: Vec<Level>,
    /// Which of them stands for all while settings are screened.
    pub screened: usize,
    /// What it may cost besides what is measured.
    pub cost: String,
    /// Where the advice comes from.
    pub source: String,
    /// What our own experiments showed of it.
    pub seen: String,
}

/// A level of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// What people set: `NODE_ENV=production`.
    pub name: String,
    /// How it is set.
    pub changes: Vec<Change>,
}

/// A change to how a service is started.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A variable gets a value.
    Env(String, String),
    /// A value is put behind what a variable has, with a separator in between.
    Append {
        /// The variable.
        variable: String,
        /// What stands between.
        by: String,
        /// What is put there.
        value: String,
        /// What the service has of it from the shell, where the experiment does not set it.
        inherited: String,
    },
    /// Words behind the command.
    Arguments(Vec<String>),
    /// Words behind the program, before its script.
    Flags(Vec<String>),
    /// Words before the command.
    Before(Vec<String>),
    /// Another program in place of the command's first word.
    Program(String),
    /// So many processes of Node.js's cluster.
    Cluster(u32),
    /// Whether PM2 monitors it from inside.
    Pm2Metrics(bool),
    /// nginx in front of it, with the template of its configuration in this file.
    Nginx(PathBuf),
    /// Anything else of the experiment, as a table of TOML laid over it.
    Overlay(toml::Table),
}

impl Setting {
    fn of(name: &str, levels: Vec<Level>) -> Setting {
        Setting { name: name.to_owned(), levels, ..Setting::default() }
    }

    /// The variables that its levels set, with their values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let changes = self.levels.iter().flat_map(|level| &level.changes);
        changes.filter_map(|change| match change {
            Change::Env(name, value) => Some((name.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// Why this cannot be tried beside another setting; `None` where it can.
    pub fn clash(&self, other: &Setting) -> Option<String> {
        // What extends a variable is lost where another setting sets it.
        let changes = |of: &Setting, name: &str| {
            of.has(|change| match change {
                Change::Env(variable, _) | Change::Append { variable, .. } => variable == name,
                _ => false,
            })
        };
        let sets = |of: &Setting, beside: &Setting| of.variables().any(|(name, _)| changes(beside, name));
        if self.name == other.name || sets(self, other) || sets(other, self) {
            return Some(format!("`{}` sets it too", other.name));
        }
        // Of one flag twice, most programs take the last.
        let flags = |of: &Setting| -> Vec<String> {
            let changes = of.levels.iter().flat_map(|level| &level.changes);
            let words = changes.filter_map(|change| match change {
                Change::Arguments(words) => Some(words),
                _ => None,
            });
            let flags = words.flatten().filter(|word| word.starts_with('-'));
            flags.map(|word| word.split('=').next().unwrap_or_default().to_owned()).collect()
        };
        if let Some(flag) = flags(self).into_iter().find(|flag| flags(other).contains(flag)) {
            return Some(format!("`{}` has {flag} too", other.name));
        }
        // Which has one template for all rows.
        let nginx = |of: &Setting| of.has(|change| matches!(change, Change::Nginx(_)));
        if nginx(self) && nginx(other) {
            return Some(format!("one nginx stands in front, and `{}` configures it", other.name));
        }
        // A launcher makes workers of node alone, not of a program before it.
        let before = |of: &Setting| of.has(|change| matches!(change, Change::Before(_)));
        let several = |of: &Setting| of.has(|change| matches!(change, Change::Cluster(_)));
        (before(self) && several(other) || several(self) && before(other)).then(|| {
            format!("words before a command and several processes of it exclude each other: `{}`", other.name)
        })
    }

    fn has(&self, is: impl Fn(&Change) -> bool) -> bool {
        self.levels.iter().any(|level| level.changes.iter().any(&is))
    }

    /// The name of a level; of 0 that of the service as it is.
    pub fn level(&self, level: usize) -> &str {
        level.checked_sub(1).map_or(LEVEL, |index| &self.levels[index].name)
    }
}

/// Reads what a user wants tried: `GOGC=200`, `NAME=a|b|c`, `flag: --workers 4`, `before: nice -n 5`.
///
/// # Errors
/// What is wrong with it, and what is expected.
pub fn tried(text: &str) -> Result<Setting, String> {
    const FORMS: &str = "write NAME=value, NAME=a|b|c for several values, `flag: --workers 4` for words behind the command, or \
                         `before: nice -n 5` for words before it";
    let words = |rest: &str| match plan::words(rest) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(format!("there are no words in it, or a quote is not closed: {FORMS}")),
    };
    let level = |name: &str, change| Level { name: name.to_owned(), changes: vec![change] };
    if let Some(rest) = text.strip_prefix("flag:").map(str::trim) {
        return Ok(Setting::of(rest, vec![level(rest, Change::Arguments(words(rest)?))]));
    }
    if let Some(rest) = text.strip_prefix("before:").map(str::trim) {
        return Ok(Setting::of(rest, vec![level(rest, Change::Before(words(rest)?))]));
    }
    let (name, values) = text.split_once('=').ok_or_else(|| format!("there is no `=` in it: {FORMS}"))?;
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("`{name}` is no name of a variable: {FORMS}"));
    }
    let of = |value: &str| level(&format!("{name}={value}"), Change::Env(name.to_owned(), value.to_owned()));
    let levels: Vec<Level> = values.split('|').map(of).collect();
    if model::distinct(&levels).len() < levels.len() {
        return Err("a value is there twice".to_owned());
    }
    let screened = levels.len() / 2;
    Ok(Setting { screened, ..Setting::of(if levels.len() == 1 { text } else { name }, levels) })
}

/// A limit that what is advised must respect, against the service as it is: `memory < +20%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Keep {
    /// What it bounds.
    pub figure: Figure,
    /// The ratio to the service as it is that is not to be passed.
    pub ratio: f64,
    /// As it was written.
    pub text: String,
}

impl Keep {
    /// Whether it bounds a response time, which is none of a service at its limit.
    pub fn is_latency(&self) -> bool {
        self.figure.metric().is_some_and(|metric| metric.quantile().is_some())
    }

    /// Whether a ratio to the service as it is keeps it.
    pub fn holds(&self, ratio: f64) -> bool {
        if self.figure.wants_more() { ratio >= self.ratio } else { ratio <= self.ratio }
    }

    /// Whether an effect keeps it: only its whole interval says so.
    pub fn ruling(&self, seen: &Known) -> Ruling {
        match [seen.low, seen.high].map(|end| self.holds(end)) {
            [true, true] => Ruling::Pass,
            [false, false] => Ruling::Fail,
            [true, false] | [false, true] => Ruling::Inconclusive,
        }
    }

    /// Reads a limit.
    ///
    /// # Errors
    /// What is wrong with it, and what is expected.
    pub fn read(text: &str) -> Result<Keep, String> {
        // What people say, and what the file calls it.
        let named = text.trim().strip_prefix("memory").map(|rest| format!("peak_memory{rest}"));
        let Limit { figure, bound } = plan::limit(named.as_deref().unwrap_or(text))?;
        match bound {
            Bound::Change(_) => Ok(Keep { figure, ratio: bound.value(), text: text.trim().to_owned() }),
            Bound::Amount(..) => Err(format!("`{text}` is an amount, no change such as \"memory < +20%\"")),
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
        assert_eq!((names, several.screened), (("POOL", "POOL=8", "as it is"), 1));
        let cluster = Level { name: "2 processes".into(), changes: vec![Change::Cluster(2)] };
        let processes = Setting::of("processes", vec![cluster]);
        assert!(tried("before: nice -n 5").unwrap().clash(&processes).is_some());
        assert_eq!(one.clash(&processes), None);
        let flag = tried("flag: --workers 4").unwrap();
        assert_eq!(flag.levels[0].changes, [Change::Arguments(vec!["--workers".into(), "4".into()])]);
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
        let ruling = |low, high| keep.ruling(&Known { ratio: 1.0, low, high });
        let rulings = [ruling(0.9, 1.1), ruling(0.9, 1.3), ruling(1.3, 1.4)];
        assert_eq!(rulings, [Ruling::Pass, Ruling::Inconclusive, Ruling::Fail]);
        assert!(Keep::read("p99 < 50ms").unwrap_err().contains("amount"));
        assert!(Keep::read("memory > +20%").is_err());
    }
}
