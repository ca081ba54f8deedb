//! `proofload load`: loads one URL, as with wrk, or several, and prints what came of it.
//!
//! It turns flags into a [`load::LoadSpec`] and rates, has them run, and hands the result to `text`, `json` or `hdr`. It
//! judges nothing but whether there was anything to measure.

mod content;
mod flags;
mod hdr;
mod json;
mod kept;
mod mix;
mod open;
mod outcome;
mod rate;
mod retype;
mod runner;
#[cfg(test)]
mod sample;
mod series;
mod setup;
mod text;
mod url;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use foreign::{Difference, Tool};
use load::{LoadError, LoadSpec};

use crate::exit::{self, Failed};
use crate::print;
use hdr::Clocks;
use runner::Runner;
use url::Url;

/// The longest a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The tools whose command lines are understood, by their names.
fn compatible() -> impl TypedValueParser<Value = Tool> {
    PossibleValuesParser::new(Tool::compatible().map(Tool::name)).try_map(|name| {
        Tool::compatible().find(|tool| tool.name() == name).ok_or("not a tool whose command lines are known")
    })
}

/// Flags of `load`.
#[derive(Debug, Args)]
#[command(after_help = flags::EXAMPLES)]
pub struct LoadArgs {
    /// What to request: http://HOST:PORT/PATH or https://HOST:PORT/PATH
    #[arg(required_unless_present = "tool")]
    url: Option<String>,
    #[command(flatten)]
    pace: flags::Pace,
    #[command(flatten)]
    asking: flags::Asking,
    #[command(flatten)]
    expect: flags::Expect,
    #[command(flatten)]
    connection: flags::Connection,
    #[command(flatten)]
    output: flags::Output,
    /// Do what a command line of another tool means, and say what differs: --as wrk -- -t2 -c64 URL
    #[arg(long = "as", value_parser = compatible(), value_name = "TOOL", help_heading = "Other tools")]
    tool: Option<Tool>,
    /// With --as: that tool's command line, just as it is
    #[arg(last = true, requires = "tool", value_name = "ARGUMENTS", help_heading = "Other tools")]
    theirs: Vec<String>,
}

/// Runs the load and prints the result.
///
/// # Errors
/// If the flags make no request that can be sent, the host has no address, or the engine cannot start.
pub fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    let Some(tool) = args.tool else { return carry_out(args, &[]) };
    let (args, differences) = retype::retype(args, tool)?;
    carry_out(&args, &differences)
}

fn carry_out(args: &LoadArgs, differences: &[Difference]) -> anyhow::Result<ExitCode> {
    let clocks = Clocks::read();
    let url = Url::read(args.url.as_deref().unwrap_or_default()).map_err(Failed::usage)?;
    let runner = Runner {
        until: args.pace.until()?,
        url: if args.asking.mix().is_some() { url.origin() } else { url.to_string() },
        mix: args.asking.mix().map(|path| path.display().to_string()),
        spec: spec(args, &url)?,
        rates: args.pace.rate.clone(),
        process: args.pace.arrivals.into(),
        distribution: args.output.latency,
        differences: differences.to_vec(),
    };
    let hdr = args.output.hdr()?;
    let series = runner.run()?;
    if let Some(file) = hdr {
        hdr::write(file, clocks, &series)?;
    }
    print::data(&if args.output.json { json::render(&series)? } else { text::render(&series) })?;
    Ok(ExitCode::from(match () {
        () if series.interrupted => exit::INTERRUPTED,
        () if series.void().is_some() => exit::VOID,
        () => 0,
    }))
}

/// What can be said about the flags without a connection is said before one is tried.
fn spec(args: &LoadArgs, url: &Url) -> anyhow::Result<LoadSpec> {
    let (pace, connection) = (&args.pace, &args.connection);
    let requests = args.asking.requests(url)?;
    let (contract, tls, sources) = (args.expect.contract()?, connection.tls(url)?, connection.sources()?);
    Ok(LoadSpec {
        sources,
        tls,
        protocol: connection.protocol(),
        keep_alive: connection.keeps_alive(),
        seed: pace.seed,
        connections: pace.connections,
        threads: pace.threads,
        timeout: pace.timeout,
        connect_timeout: CONNECT_TIMEOUT,
        contract,
        sample_every: args.expect.sample,
        driver: pace.driver.into(),
        ..LoadSpec::new(connection.address(url)?, requests)
    })
}

/// A spec that cannot be is the user's to change; everything else the machine's.
fn refused(error: LoadError) -> Failed {
    let code = if matches!(error, LoadError::Spec { .. }) { exit::USAGE } else { exit::SELF };
    let hint = match &error {
        LoadError::Descriptors { needed, .. } => Some(format!("ulimit -n {needed}, or fewer --connections")),
        LoadError::Spec { field: "load.tls.trust", .. } => {
            Some("--cacert FILE says whom to trust, --insecure trusts anyone".into())
        }
        LoadError::Spec { field: "load.tls.server_name", .. } => Some("--sni NAME says another".into()),
        _ => None,
    };
    // The engine names fields of its own; these are flags here.
    let message = match &error {
        LoadError::Spec { field: "load.tls.trust", problem } => format!("trusted certificates: {problem}"),
        LoadError::Spec { field: "load.tls.server_name", problem } => format!("--sni: {problem}"),
        LoadError::Spec { field, problem } => {
            format!("{}: {problem}", field.trim_start_matches("load.").trim_start_matches("requests."))
        }
        other => other.to_string(),
    };
    Failed { message, hint, code }
}
