//! CPU time of the client per request: the figure by which load generators are compared.
//!
//! ```text
//! cargo run --release -p proofload-load --example cost -- 127.0.0.1:8080 /small 64 5 completion
//! ```
//! Address, path, connections, seconds, driver, and the protocol if it is not `http1`: `tls`, `http2:10` or
//! `http2-tls:10`, with the number of streams. No certificate is verified. For other tools the same figure is
//! the process's user and system time divided by its requests. This example stays a thin shell around the
//! engine, or it would measure itself.

use std::io::Write;
use std::time::Duration;

use proofload_load::{
    Address, DriverChoice, Generator, LoadSpec, Protocol, RequestSpec, TlsSpec, Trust, Until,
};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, connections, seconds, driver, rest @ ..] = arguments.as_slice() else {
        return Err(
            "usage: cost ADDRESS:PORT PATH CONNECTIONS SECONDS readiness|completion|auto [PROTOCOL]".into()
        );
    };
    let (protocol, secure) = match rest
        .first()
        .map(|text| text.split(':').collect::<Vec<_>>())
        .as_deref()
    {
        None | Some(["http1"]) => (Protocol::Http1 { pipeline: 1 }, false),
        Some(["tls"]) => (Protocol::Http1 { pipeline: 1 }, true),
        Some(["http2", streams]) => (
            Protocol::Http2 {
                streams: streams.parse()?,
            },
            false,
        ),
        Some(["http2-tls", streams]) => (
            Protocol::Http2 {
                streams: streams.parse()?,
            },
            true,
        ),
        Some(_) => {
            return Err("the protocol is http1, tls, http2:STREAMS or http2-tls:STREAMS".into());
        }
    };
    let tls = TlsSpec {
        server_name: "localhost".into(),
        trust: Trust::Anything,
        resumption: true,
        client: None,
    };
    let driver = match driver.as_str() {
        "readiness" => DriverChoice::Readiness,
        "completion" => DriverChoice::Completion,
        _ => DriverChoice::Auto,
    };
    let mut generator = Generator::start(LoadSpec {
        connections: connections.parse()?,
        driver,
        protocol,
        tls: secure.then_some(tls),
        ..LoadSpec::new(
            Address::Tcp(address.parse()?),
            vec![RequestSpec::new("GET", path, address)],
        )
    })?;
    let before = process_cpu();
    let slice = generator.run(Until::Elapsed(Duration::from_secs_f64(seconds.parse()?)));
    let cpu = process_cpu() - before;
    writeln!(
        std::io::stdout(),
        "{:.2} cpu-us/request {:.0} ok/s by {}, {:?} us p50, {} KiB peak, errors {:?}",
        cpu.as_secs_f64() * 1e6 / slice.responses as f64,
        slice.successful_in_window as f64 * 1e9 / slice.window_ns as f64,
        slice.generator.driver,
        slice
            .latency
            .quantile(0.5)
            .map(|quantile| quantile.ns() / 1000),
        peak_memory_kib(),
        slice.errors,
    )?;
    Ok(())
}

/// CPU time of the whole process, as in its rusage.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Peak memory of this process, as reported by the kernel.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
