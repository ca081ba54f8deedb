//! Flags that several commands have, each declared once, and the settings of an experiment that they become.
//!
//! A command adapts the help text of a flag with `mut_arg`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use plan::FlagSetting;
use toml::Value;

use crate::exit::CliError;
use crate::print::{AmountArgs, FormArgs};
use crate::prometheus;

/// Default budget: long enough for a difference of a few per cent on a quiet machine, and short enough to
/// wait for.
pub const BUDGET: Duration = Duration::from_secs(180);

/// Parses a count: `64`, `50k`.
pub fn counted<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let count = model::whole_amount(text).and_then(|count| T::try_from(count).ok());
    count.ok_or_else(|| "expected a whole number, such as 64 or 50k".to_owned())
}

/// The seed.
#[derive(Debug, Clone, Copy, Args)]
pub struct SeedFlag {
    /// Seed of every random choice [default: the file's, or a new one]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=plan::SEED_MAX))]
    pub seed: Option<u64>,
}

/// The folder of the record.
#[derive(Debug, Clone, Args)]
pub struct OutFlag {
    /// New folder for the record [default: records/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Consent to load other machines.
#[derive(Debug, Clone, Copy, Args)]
pub struct YesFlag {
    /// Do not ask before loading a host that may be another machine
    #[arg(long)]
    pub yes: bool,
}

/// The exporter of progress.
#[derive(Debug, Clone, Copy, Args)]
pub struct PrometheusFlag {
    /// Serve progress to Prometheus at /metrics of this address (docs/while-it-runs.md)
    #[arg(long, value_name = "HOST:PORT", value_parser = prometheus::address)]
    pub prometheus: Option<SocketAddr>,
}

/// Flags of a run and its output, for `run`, `compare` and `capacity`.
#[derive(Debug, Clone, Args)]
pub struct RunFlags {
    /// A first answer: the shortest budget that allows a verdict, about a minute where the difference is clear
    #[arg(long, conflicts_with = "budget")]
    pub quick: bool,
    /// Time the whole run may take, for example 90s or 10m, instead of the file's
    #[arg(long, value_parser = plan::budget)]
    pub budget: Option<Duration>,
    #[command(flatten)]
    pub seed: SeedFlag,
    /// Afterwards profile every variant, and say which functions cost more
    #[arg(long)]
    pub explain: bool,
    /// Start nothing: say what would run and for how long; with --format json print the checked plan
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub form: FormArgs,
    /// Print events as JSON lines on stdout while it runs, the report last (docs/events.md)
    #[arg(long, conflicts_with_all = ["format", "json", "dry_run"])]
    pub events: bool,
    #[command(flatten)]
    pub amount: AmountArgs,
    #[command(flatten)]
    pub yes: YesFlag,
    #[command(flatten)]
    pub prometheus: PrometheusFlag,
    #[command(flatten)]
    pub out: OutFlag,
}

/// `--seed` as a setting.
pub fn seed_setting(seed: u64) -> FlagSetting {
    let value = i64::try_from(seed).unwrap_or(i64::MAX);
    FlagSetting::new(&["design", "seed"], value, format!("--seed {seed}"))
}

/// `--explain` as a setting.
pub fn explain_setting() -> FlagSetting {
    FlagSetting::new(&["design", "explain"], true, "--explain")
}

/// A key of the file with the flag and value it was typed as.
pub fn setting(path: &[&str], flag: &str, value: impl Into<Value>) -> FlagSetting {
    let value = value.into();
    let typed = match &value {
        Value::String(text) => format!("{flag} {text}"),
        Value::Boolean(_) => flag.to_owned(),
        other => format!("{flag} {other}"),
    };
    FlagSetting::new(path, value, typed)
}

/// A key with one value, or with a list of several. `None` without values.
pub fn one_or_many(path: &[&str], mut values: Vec<Value>, from: String) -> Option<FlagSetting> {
    let value = if values.len() > 1 {
        Value::Array(values)
    } else {
        values.pop()?
    };
    Some(FlagSetting::new(path, value, from))
}

/// Parses `NAME: VALUE`.
pub fn header(text: &str) -> Result<(String, String), String> {
    match text
        .split_once(':')
        .map(|(name, value)| (name.trim(), value.trim()))
    {
        None | Some(("", _)) => Err("expected NAME: VALUE".to_owned()),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Makes the path absolute, because the generated file may be in another folder.
pub fn tls_file(flag: &str, path: &Path) -> Result<PathBuf, CliError> {
    let shown = plan::quotable(&path.display().to_string());
    let unreadable = |error| CliError::usage(format!("{flag}: cannot read {shown}: {error}"));
    plan::open_file(path)
        .and_then(|_| path.canonicalize())
        .map_err(unreadable)
}
