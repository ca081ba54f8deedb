//! `proofload load`: loads one URL, as with wrk, and prints what came of it.
//!
//! It turns flags into a [`load::LoadSpec`] and rates, has them run, and hands the result to `text` or `json`. It judges
//! nothing but whether there was anything to measure.

mod json;
mod kept;
mod open;
mod outcome;
mod rate;
mod retype;
mod runner;
#[cfg(test)]
mod sample;
mod series;
mod text;
mod url;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use load::{Address, Contract, DriverChoice, LoadError, LoadSpec, Process, Request, Until};

use crate::exit::{self, Failed};
use crate::habits::{Difference, Tool};
use crate::print;
use rate::Rates;
use runner::Runner;
use url::{NoAddress, Url};

/// The longest a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Flags of `load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// What to request: http://HOST:PORT/PATH
    #[arg(required_unless_present = "tool")]
    url: Option<String>,
    #[arg(short, long, help = rate::HELP)]
    rate: Option<Rates>,
    /// How the requests of --rate are spread in time
    #[arg(long, requires = "rate", value_enum, default_value_t = Spread::Constant)]
    arrivals: Spread,
    /// Decides when they are due if that is random: the same seed, the same times
    #[arg(long, requires = "rate", default_value_t = 1)]
    seed: u64,
    /// Connections kept open, each with one request at a time
    #[arg(short, long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// How long to send, for example 10s or 1m30s; each step of --rate that long
    #[arg(short, long, default_value = "10s", value_parser = plan::duration)]
    duration: Duration,
    /// How many requests to send, instead of a duration
    #[arg(short = 'n', long, conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Engine threads; one can do tens of thousands of requests a second
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    /// A request header, NAME: VALUE; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// The request's method [default: GET, or POST with a body]
    #[arg(short = 'X', long)]
    method: Option<String>,
    /// The request's body: its text, or @FILE for what a file contains
    #[arg(short, long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// The longest a request may take
    #[arg(long, default_value = "5s", value_parser = plan::duration)]
    timeout: Duration,
    /// The status codes that count as good, separated by commas [default: any 2xx]
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..1000))]
    expect_status: Vec<u16>,
    /// What moves the bytes
    #[arg(long, value_enum, default_value_t = Driver::Auto)]
    driver: Driver,
    /// Print more of the latency distribution, as wrk --latency does
    #[arg(long)]
    latency: bool,
    /// Keep connections open between requests: the default, for those used to ab -k
    #[arg(short = 'k', long = "keepalive", alias = "keep-alive")]
    keep_alive: bool,
    /// Print everything that was measured as JSON
    #[arg(long)]
    json: bool,
    /// Do what a command line of another tool means, and say what differs: --as wrk -- -t2 -c64 URL
    #[arg(long = "as", value_enum, value_name = "TOOL")]
    tool: Option<Tool>,
    /// With --as: that tool's command line, just as it is
    #[arg(last = true, requires = "tool", value_name = "ARGUMENTS")]
    theirs: Vec<String>,
}

/// [`Process`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Spread {
    /// Evenly
    Constant,
    /// At random and independent of each other, as from many users
    Poisson,
}

/// [`DriverChoice`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Driver {
    /// io_uring where the kernel grants it, else epoll
    Auto,
    /// epoll
    Readiness,
    /// io_uring, or epoll where it is refused
    Completion,
}

impl From<Driver> for DriverChoice {
    fn from(driver: Driver) -> DriverChoice {
        match driver {
            Driver::Auto => DriverChoice::Auto,
            Driver::Readiness => DriverChoice::Readiness,
            Driver::Completion => DriverChoice::Completion,
        }
    }
}

impl From<Spread> for Process {
    fn from(spread: Spread) -> Process {
        match spread {
            Spread::Constant => Process::Constant,
            Spread::Poisson => Process::Poisson,
        }
    }
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
    let url = Url::read(args.url.as_deref().unwrap_or_default()).map_err(Failed::usage)?;
    if args.requests.is_some() && args.rate.as_ref().is_some_and(Rates::is_ramp) {
        let hint = "--duration in place of --requests says how long the ramp is";
        return Err(Failed::usage("--rate is a ramp, which --requests gives no length").hint(hint).into());
    }
    let runner = Runner {
        url: url.to_string(),
        spec: spec(args, &url)?,
        until: args.requests.map_or(Until::Elapsed(args.duration), Until::Requests),
        rates: args.rate.clone(),
        process: args.arrivals.into(),
        seed: args.seed,
        distribution: args.latency,
        differences: differences.to_vec(),
    };
    let series = runner.run()?;
    print::data(&if args.json { json::render(&series)? } else { text::render(&series) })?;
    Ok(ExitCode::from(match () {
        () if series.interrupted => exit::INTERRUPTED,
        () if series.void().is_some() => exit::VOID,
        () => 0,
    }))
}

fn spec(args: &LoadArgs, url: &Url) -> anyhow::Result<LoadSpec> {
    let body = args.body.as_deref().map(body).transpose()?;
    let default_method = if body.is_some() { "POST" } else { "GET" };
    let method = args.method.as_deref().unwrap_or(default_method);
    let request = Request {
        headers: args.headers.clone(),
        body: body.unwrap_or_default(),
        ..Request::new(method, &url.path, &url.authority())
    };
    Ok(LoadSpec {
        connections: args.connections,
        threads: args.threads,
        timeout: args.timeout,
        connect_timeout: CONNECT_TIMEOUT,
        driver: args.driver.into(),
        contract: Contract { status: args.expect_status.clone(), ..Contract::default() },
        ..LoadSpec::new(Address::Tcp(url.resolve().map_err(unreachable)?), vec![request])
    })
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn body(text: &str) -> anyhow::Result<Vec<u8>> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.as_bytes().to_vec()) };
    let unreadable = |error| Failed::usage(format!("cannot read the body from {path}: {error}"));
    Ok(std::fs::read(Path::new(path)).map_err(unreadable)?)
}

/// Where nobody listens there is nothing to measure.
fn unreachable(error: NoAddress) -> Failed {
    match error {
        NoAddress::Unknown(message) => Failed::usage(message),
        NoAddress::Silent(message) => {
            let hint = Some("is the service running, and on this port?".into());
            Failed { message: format!("no request was sent: {message}"), hint, code: exit::VOID }
        }
    }
}

/// A spec that cannot be is the user's to change; everything else the machine's.
fn refused(error: LoadError) -> Failed {
    let code = if matches!(error, LoadError::Spec { .. }) { exit::USAGE } else { exit::SELF };
    let hint = match error {
        LoadError::Descriptors { needed, .. } => Some(format!("ulimit -n {needed}, or fewer --connections")),
        _ => None,
    };
    Failed { message: error.to_string(), hint, code }
}
