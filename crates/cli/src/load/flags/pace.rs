//! How much load, for how long, and when: rates, connections, threads and times.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use load::DriverChoice;
use model::Rates;
use plan::Setting;

/// The help of `--rate`.
const RATE: &str = "\
Open loop: requests due per second, whether the service keeps up or not
  1000           at this rate
  1000..5000     rising, or falling, over --duration
  500,1000,2000  one after the other, each for --duration
  60%            of capacity, measured first: 4 s in closed loop
  25%,50%,100%   likewise, and so 10%..150%
Without it each connection sends its next request when the last one is done: closed loop";

/// How requests may be spread in time, as the file of a plan has it.
fn arrivals() -> PossibleValuesParser {
    let poisson = "At random and independent of each other, as from many users";
    [PossibleValue::new("constant").help("Evenly"), PossibleValue::new("poisson").help(poisson)].into()
}

/// Flags about the amount of load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct Pace {
    #[arg(short, long, help = RATE)]
    rate: Option<Rates>,
    /// How the requests of --rate are spread in time
    #[arg(long, requires = "rate", value_parser = arrivals(), default_value = "poisson")]
    arrivals: String,
    /// Decides when requests are due if that is random, and which of several are sent: the same seed, the same load
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Connections kept open, each with one request at a time
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
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

/// [`DriverChoice`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Driver {
    /// io_uring where the kernel grants it, else epoll
    Auto,
    /// epoll
    Readiness,
    /// io_uring, or epoll where it is refused
    Completion,
}

impl Pace {
    /// What is measured, as the file of a plan has it.
    pub fn measure(&self) -> Vec<Setting> {
        let set = |key, value: toml::Value, flag: String| Setting::new(&["measure", key], value, flag);
        let length = match self.requests {
            // More than a file can say is as much as there is time for.
            Some(requests) => {
                let requests = i64::try_from(requests).unwrap_or(i64::MAX);
                set("requests", requests.into(), format!("--requests {requests}"))
            }
            None => {
                let duration = format!("{}ms", self.duration.as_millis());
                set("duration", duration.clone().into(), format!("--duration {duration}"))
            }
        };
        let rate = self.rate.as_ref().map(Rates::written);
        let rate = rate.map(|rate| set("rate", rate.clone().into(), format!("--rate {rate}")));
        let arrivals =
            set("arrivals", self.arrivals.as_str().into(), format!("--arrivals {}", self.arrivals));
        [Some(length), rate, Some(arrivals)].into_iter().flatten().collect()
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
