//! What a request costs the client in CPU time: the figure by which load generators are compared.
//!
//! ```text
//! cargo run --release -p proofload-load --example cost -- 127.0.0.1:8080 /small 64 5 completion
//! ```
//! Address, path, connections, seconds, driver. The same from outside for any other tool: user and system time of the
//! process over its requests. It must stay a thin shell around the engine, or it would measure itself.

use std::io::Write;
use std::time::Duration;

use proofload_load::{Arrivals, Contract, DriverChoice, Generator, LoadSpec, Request, Until};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, connections, seconds, driver] = arguments.as_slice() else {
        return Err("usage: cost ADDRESS:PORT PATH CONNECTIONS SECONDS readiness|completion|auto".into());
    };
    let request = Request {
        method: "GET".into(),
        path: path.clone(),
        headers: vec![],
        body: vec![],
        host: address.clone(),
        ..Request::default()
    };
    let driver = match driver.as_str() {
        "readiness" => DriverChoice::Readiness,
        "completion" => DriverChoice::Completion,
        _ => DriverChoice::Auto,
    };
    let mut generator = Generator::start(LoadSpec {
        address: address.parse()?,
        request,
        arrivals: Arrivals::Closed,
        connections: connections.parse()?,
        threads: 1,
        cpus: vec![],
        timeout: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(5),
        contract: Contract::default(),
        driver,
    })?;
    let before = process_cpu();
    let slice = generator.run(Until::Elapsed(Duration::from_secs_f64(seconds.parse()?)));
    let cpu = process_cpu() - before;
    writeln!(
        std::io::stdout(),
        "{:.2} cpu-us/request {:.0} ok/s by {}, {:?} us p50 errors {:?}",
        cpu.as_secs_f64() * 1e6 / slice.answered as f64,
        slice.ok_in_window as f64 * 1e9 / slice.window_ns as f64,
        slice.driver,
        slice.latency.quantile(0.5).map(|quantile| quantile.ns() / 1000),
        slice.errors,
    )?;
    Ok(())
}

/// CPU time of the whole process, as its rusage would have it.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
