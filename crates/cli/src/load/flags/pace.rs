//! How much load, for how long, and when: rates, connections, threads and times.

use std::time::Duration;

use clap::{Args, ValueEnum};
use load::{DriverChoice, Process, Until};

use super::super::rate::{self, Rates};
use crate::exit::Failed;

/// Flags about the amount of load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct Pace {
    #[arg(short, long, help = rate::HELP)]
    pub rate: Option<Rates>,
    /// How the requests of --rate are spread in time
    #[arg(long, requires = "rate", value_enum, default_value_t = Spread::Constant)]
    pub arrivals: Spread,
    /// Decides when requests are due if that is random, and which of several are sent: the same seed, the same load
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Connections kept open, each with one request at a time
    #[arg(short, long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// How long to send, for example 10s or 1m30s; each step of --rate that long
    #[arg(short, long, default_value = "10s", value_parser = plan::duration)]
    duration: Duration,
    /// How many requests to send, instead of a duration
    #[arg(short = 'n', long, conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Engine threads; one can do tens of thousands of requests a second
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// The longest a request may take
    #[arg(long, default_value = "5s", value_parser = plan::duration)]
    pub timeout: Duration,
    /// What moves the bytes
    #[arg(long, value_enum, default_value_t = Driver::Auto)]
    pub driver: Driver,
}

/// [`Process`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Spread {
    /// Evenly
    Constant,
    /// At random and independent of each other, as from many users
    Poisson,
}

/// [`DriverChoice`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Driver {
    /// io_uring where the kernel grants it, else epoll
    Auto,
    /// epoll
    Readiness,
    /// io_uring, or epoll where it is refused and where TLS, HTTP/2, pipelining or a unix socket need it
    Completion,
}

impl Pace {
    /// How long a slice is.
    ///
    /// # Errors
    /// If it has no length though one is needed.
    pub fn until(&self) -> Result<Until, Failed> {
        if self.requests.is_some() && self.rate.as_ref().is_some_and(Rates::is_ramp) {
            let hint = "--duration in place of --requests says how long the ramp is";
            return Err(Failed::usage("--rate is a ramp, which --requests gives no length").hint(hint));
        }
        Ok(self.requests.map_or(Until::Elapsed(self.duration), Until::Requests))
    }
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
