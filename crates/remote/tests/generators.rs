//! Tests fleets of real generators. Each runs on threads of this process behind pipes, as in a remote
//! process.

mod server;

use std::io::{self, BufReader, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use load::{LoadSpec, Until};
use proofload_remote::generators::{Fleet, FleetError, FleetWindow};
use proofload_remote::protocol::{AgentRequest as Message, GeneratorRequest, VERSION};
use proofload_remote::{AgentHost, Channel, ServeError, serve};
use server::Server;

/// Longer than any of these tests.
const TIMEOUT: Duration = Duration::from_secs(600);

const LOOPBACK: &str = "127.0.0.1";

fn host(name: &str) -> AgentHost {
    AgentHost {
        proofload: "0.0.0".into(),
        name: name.into(),
        processors: 1,
        timeout: TIMEOUT,
    }
}

/// Starts a generator on separate threads.
fn generator(name: &str) -> Channel {
    let (requests, input) = io::pipe().unwrap();
    let (output, responses) = io::pipe().unwrap();
    let host = host(name);
    std::thread::spawn(move || serve(requests, responses, host));
    Channel::new(name, input, output, ())
}

const NEVER: &dyn Fn() -> bool = &|| false;

/// Connects a fleet and gives it a load.
fn begun(channels: Vec<Channel>, specs: Vec<LoadSpec>) -> Fleet {
    let mut fleet = Fleet::connect(channels).unwrap();
    fleet.compare_clocks().unwrap();
    fleet.give(specs).unwrap();
    fleet
}

fn run_window(fleet: &mut Fleet, until: Until, stopped: &dyn Fn() -> bool) -> FleetWindow {
    fleet.prepare(until, stopped);
    fleet.run(until, stopped)
}

#[test]
fn three_generators_send_exactly_what_one_would_and_the_server_has_seen_it() {
    let server = Server::start(LOOPBACK);
    let specs = server.evenly(5, 301.0).divided(3, 1);
    let mut fleet = begun(["a", "b", "c"].map(generator).into(), specs);
    let ran = run_window(
        &mut fleet,
        Until::Elapsed(Duration::from_millis(1000)),
        NEVER,
    );
    assert!(ran.lost.is_empty(), "{:?}", ran.lost);
    // ⌈1 s · 301/s⌉ regardless of the speed of the machine, because arrivals follow a schedule.
    assert_eq!((ran.counts.due(), ran.parts.len()), (301, 3));
    assert_eq!(
        ran.counts.sent + ran.counts.open.as_ref().map_or(0, |open| open.unsent),
        301
    );
    assert_eq!(server.requests(), ran.counts.sent);
    assert_eq!(
        ran.counts.successful,
        ran.counts.latency.count() - ran.counts.latency.censored()
    );
    assert_eq!(
        ran.parts.iter().map(|part| part.sent).sum::<u64>(),
        ran.counts.sent
    );
    // A p99 needs 1,000 requests.
    assert!(
        ran.parts
            .iter()
            .all(|part| part.lag_p99_ns.is_none() && part.cpu_ns > 0),
        "{:?}",
        ran.parts
    );
    let hosts: Vec<String> = fleet
        .generators()
        .into_iter()
        .map(|generator| generator.host)
        .collect();
    assert_eq!(hosts, ["a", "b", "c"]);
    // Connections stay open between consecutive windows.
    let again = run_window(&mut fleet, Until::Requests(10), NEVER);
    assert_eq!(
        (again.counts.sent, again.counts.connections_opened),
        (10, 0)
    );
    assert_eq!(
        again.parts.iter().map(|part| part.sent).collect::<Vec<_>>(),
        [4, 3, 3]
    );
}

#[test]
fn a_fleet_is_given_one_load_after_another_and_leaves_no_connection_open() {
    let (first, second) = (Server::start(LOOPBACK), Server::start(LOOPBACK));
    let mut fleet = begun(
        ["a", "b"].map(generator).into(),
        first.spec(5).divided(2, 1),
    );
    let told = fleet.generators();
    assert_eq!(
        (told.len(), told[1].name.as_str(), told[1].processors),
        (2, "b", 1)
    );
    let ran = run_window(&mut fleet, Until::Requests(10), NEVER);
    assert_eq!((ran.counts.sent, first.open()), (10, 5));
    fleet.give(second.spec(3).divided(2, 1)).unwrap();
    let ran = run_window(&mut fleet, Until::Requests(10), NEVER);
    assert_eq!(
        (
            ran.counts.sent,
            ran.counts.connections_opened,
            second.requests()
        ),
        (10, 3, 10)
    );
    assert_eq!(first.requests(), 10);
    fleet.rest();
    // The threads of the servers detect closed connections a little later.
    let closed = || first.open() + second.open() == 0;
    let soon = || {
        std::thread::sleep(Duration::from_millis(20));
        closed()
    };
    assert!((0..250).any(|_| soon()), "connections are still open");
    assert!(fleet.missing().is_empty());
}

#[test]
fn a_generator_that_goes_is_named_the_others_count_and_another_takes_its_place() {
    let server = Server::start(LOOPBACK);
    let mut remotes: Vec<Channel> = vec![generator("stays")];
    // Reports that it is ready, answers pings, prepares, and ends when it should run.
    let (orders, input) = io::pipe().unwrap();
    let (output, answers) = io::pipe().unwrap();
    std::thread::spawn(move || goes_at_run(BufReader::new(orders), answers));
    remotes.push(Channel::new("goes", input, output, ()));
    let mut fleet = begun(remotes, server.spec(5).divided(2, 1));
    let ran = run_window(&mut fleet, Until::Requests(10), NEVER);
    // The lost generator has three of the five connections.
    assert_eq!((ran.counts.sent, ran.parts.len()), (6, 1));
    assert_eq!(
        ran.lost
            .iter()
            .map(|lost| lost.generator.as_str())
            .collect::<Vec<_>>(),
        ["goes"]
    );
    assert_eq!(fleet.missing(), [1]);
    // The loss was reported once and is not reported again.
    assert!(fleet.take_lost().is_empty());
    let nobody = Channel::new("nobody", io::sink(), io::empty(), ());
    assert_eq!(fleet.replace(1, nobody).unwrap_err().generator, "nobody");
    assert_eq!(fleet.missing(), [1]);
    fleet.replace(1, generator("comes")).unwrap();
    assert!(fleet.missing().is_empty());
    fleet.compare_clocks().unwrap();
    fleet.give(server.spec(5).divided(2, 1)).unwrap();
    let ran = run_window(&mut fleet, Until::Requests(10), NEVER);
    let names: Vec<&str> = ran.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!((ran.counts.sent, names), (10, vec!["stays", "comes"]));
}

fn goes_at_run(mut orders: impl io::BufRead, mut answers: impl Write) -> io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        orders.read_line(&mut line)?;
        let answer = if line.contains("hello") {
            format!(
                r#"{{"ready":{{"version":{VERSION},"proofload":"0","host":"h","processors":1}}}}"#
            )
        } else if line.contains("begin") {
            r#"{"generator":"begun"}"#.to_owned()
        } else if let Some(number) = line.strip_prefix("{\"ping\":") {
            format!(
                "{{\"pong\":{{\"ping\":{},\"clock_ns\":5}}}}",
                number.trim_end_matches(['}', '\n'])
            )
        } else if line.contains("prepare") {
            r#"{"generator":{"prepared":{"number":1}}}"#.to_owned()
        } else {
            return Ok(());
        };
        writeln!(answers, "{answer}")?;
    }
}

#[test]
fn what_cannot_begin_says_why_and_by_whom_all_of_them_at_once() {
    let server = Server::start(LOOPBACK);
    let mut fleet = Fleet::connect(vec![generator("a")]).unwrap();
    let errors = fleet.give(vec![server.spec(0)]).unwrap_err();
    assert!(errors.len() == 1 && errors[0].is_refusal, "{errors:?}");
    assert_eq!(
        errors[0].to_string(),
        "generator a: load.connections: 0 is too few, at least 1"
    );
    // A lost generator takes no part in a later load, and this is reported.
    assert_eq!(fleet.missing(), [0]);

    let speaks = |name: &str, text: &'static [u8]| Channel::new(name, io::sink(), text, ());
    let errors = Fleet::connect(vec![
        speaks("b", b"Last login: Sun Nov 22\n"),
        generator("well"),
        speaks("c", b""),
    ]);
    let said: Vec<String> = errors
        .unwrap_err()
        .iter()
        .map(FleetError::to_string)
        .collect();
    assert!(
        said[0].contains("generator b: ") && said[0].contains("Last login"),
        "{said:?}"
    );
    assert_eq!(
        (said[1].as_str(), said.len()),
        ("generator c exited before responding", 2)
    );

    let other =
        b"{\"ready\":{\"version\":1,\"proofload\":\"9.9\",\"host\":\"d\",\"processors\":1}}\n";
    let said = Fleet::connect(vec![speaks("d", other)]).unwrap_err()[0].to_string();
    let versions = format!("protocol version 1 (Proofload 9.9) does not match version {VERSION} (");
    assert!(
        said.contains(&versions) && said.contains("use the same Proofload on both machines"),
        "{said}"
    );
}

#[test]
fn a_window_that_is_stopped_has_what_was_done_and_nothing_is_sent_behind_it() {
    let server = Server::start(LOOPBACK);
    let mut fleet = begun(vec![generator("a")], vec![server.spec(5)]);
    let asked = AtomicU64::new(0);
    let stopped = || asked.fetch_add(1, Ordering::SeqCst) > 3;
    let ran = run_window(
        &mut fleet,
        Until::Elapsed(Duration::from_secs(60)),
        &stopped,
    );
    assert!(
        ran.lost.is_empty() && ran.parts.len() == 1 && ran.counts.successful > 0,
        "{ran:?}"
    );
    assert!(
        ran.counts.window_ns < 50_000_000_000,
        "{} ns",
        ran.counts.window_ns
    );
    assert!(
        (0..20).any(|_| is_quiet(&server)),
        "it still sends six seconds later"
    );
}

fn is_quiet(server: &Server) -> bool {
    let before = server.requests();
    std::thread::sleep(Duration::from_millis(300));
    server.requests() == before
}

fn line(request: &Message) -> String {
    format!("{}\n", serde_json::to_string(request).unwrap())
}

#[test]
fn a_generator_that_hears_nothing_ends_itself_also_within_a_window_and_with_an_output_that_nobody_reads()
 {
    const TIMEOUT: Duration = Duration::from_millis(1500);
    let server = Server::start(LOOPBACK);
    let (orders, mut input) = io::pipe().unwrap();
    let (output, answers) = io::pipe().unwrap();
    let (host, (to, ended)) = (
        AgentHost {
            timeout: TIMEOUT,
            ..host("a")
        },
        channel(),
    );
    std::thread::spawn(move || to.send(serve(orders, answers, host)));
    // There is no timeout before the first message, because other generators may still be starting.
    assert!(
        ended.recv_timeout(2 * TIMEOUT).is_err(),
        "it went before anything came"
    );
    for request in [
        Message::Hello { version: VERSION },
        Message::Generator(GeneratorRequest::Begin {
            spec: Box::new(server.spec(5)),
        }),
        Message::Generator(GeneratorRequest::Prepare {
            number: 1,
            until: Until::Elapsed(Duration::from_secs(600)),
        }),
        Message::Generator(GeneratorRequest::Run {
            number: 1,
            start_at_ns: 0,
        }),
    ] {
        input.write_all(line(&request).as_bytes()).unwrap();
    }
    for _ in 0..4 {
        std::thread::sleep(TIMEOUT / 3);
        input.write_all(b"\"heartbeat\"\n").unwrap();
    }
    assert!(ended.try_recv().is_err() && server.requests() > 0);
    // The pongs fill the pipe, and the writing thread blocks.
    input
        .write_all(line(&Message::Ping(1)).repeat(5_000).as_bytes())
        .unwrap();
    let ending = ended
        .recv_timeout(Duration::from_secs(20))
        .expect("it ends");
    assert!(
        matches!(ending, Err(ServeError::TimedOut { timeout: TIMEOUT })),
        "{ending:?}"
    );
    assert!((0..20).any(|_| is_quiet(&server)), "it still sends");
    drop((input, output));
}
