//! Complete responses to each request of a load before the load, to compare with the contract and with other
//! variants.
//!
//! It sends a few requests and judges nothing. Methods that may change later responses are not sent.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use load::{Address, Fetched, Protocol, RequestSpec};
use model::{WITNESS_VALUE_BYTES_MAX, header};
use plan::Secrets;
use record::Witness;
use services::NetworkPair;

use super::RealEnvironment;
use super::loading::{at_client, host, requests};
use crate::environment::Result;

/// Maximum number of requests of a mix to check.
const REQUESTS_MAX: usize = 8;
/// Timeout for all checks of a trial, and for each unless the load's timeout is shorter.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a slower response there is no second check, and none in later trials of the variant.
const SLOW: Duration = Duration::from_secs(1);
/// Maximum timeout of a load whose responses are fetched. Responses that may take longer cost much work, and a
/// few more would change the measurement, such as peak memory. A request that is abandoned after
/// [`PATIENCE`] would still be in progress when the load begins.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

impl RealEnvironment {
    /// Fetches the responses of a trial's requests, unless its variant is known to be slow.
    pub(super) fn witnesses(
        &mut self,
        variant: usize,
        address: &Address,
        network: Option<&NetworkPair>,
    ) -> Result<Vec<Witness>> {
        // Without a warm-up the first request is part of the measurement.
        let cold = self
            .plan
            .design
            .warmup
            .is_some_and(|warmup| warmup.is_zero());
        let plan = &self.plan.variants[variant];
        let looked_at = !cold && !self.slow.contains(&variant) && !plan.load.has_users();
        let Some(plain) = plain(&plan.load, address).filter(|_| looked_at) else {
            return Ok(Vec::new());
        };
        let cancelled = || self.stop.is_requested();
        let secrets = &self.plan.secrets;
        let codings = !self.coding_requested.contains(&variant);
        let seen = || {
            Ok(look(
                &plan.load,
                (plain, &host(plan, address)),
                secrets,
                codings,
                &cancelled,
            ))
        };
        let (witnesses, slow) = at_client(network, seen)?;
        self.coding_requested.insert(variant);
        if slow {
            self.slow.insert(variant);
        }
        Ok(witnesses)
    }
}

/// The address from which responses can be fetched: HTTP/1.1 over TCP without TLS. `None` if they cannot.
pub(super) fn plain(load: &plan::Load, address: &Address) -> Option<SocketAddr> {
    let is_plain = match load.protocol {
        Protocol::Http1 { .. } => load.tls.is_none(),
        Protocol::Http2 { .. } => false,
    };
    match address {
        Address::Tcp(at) => is_plain.then_some(*at),
        Address::Unix(_) => None,
    }
}

/// Fetches the responses of a load's requests. With `codings` also checks whether they would be compressed
/// for a client that accepts it. `cancelled` is called before each. Also returns whether it was too slow for
/// later trials.
fn look(
    load: &plan::Load,
    (address, host): (SocketAddr, &str),
    secrets: &Secrets,
    codings: bool,
    cancelled: &dyn Fn() -> bool,
) -> (Vec<Witness>, bool) {
    let (began, mut witnesses) = (Instant::now(), Vec::new());
    if load.timeout > TIMEOUT_MAX {
        return (witnesses, false);
    }
    let requests = requests(load, host, secrets).unwrap_or_default();
    for request in requests
        .iter()
        .filter(|request| is_harmless(request))
        .take(REQUESTS_MAX)
    {
        let left = PATIENCE.saturating_sub(began.elapsed()).min(load.timeout);
        if cancelled() || left.is_zero() {
            break;
        }
        let seen = witness(request, address, left, secrets);
        witnesses.extend(seen.map(|seen| Witness {
            coding_on_request: if codings {
                coding_on_request(&seen, request, address)
            } else {
                None
            },
            ..seen
        }));
    }
    (witnesses, began.elapsed() > SLOW.min(load.timeout / 2))
}

pub(super) fn is_harmless(request: &RequestSpec) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD")
}

/// Without a response nothing is recorded. The load will show the problem.
fn witness(
    request: &RequestSpec,
    address: SocketAddr,
    timeout: Duration,
    secrets: &Secrets,
) -> Option<Witness> {
    let began = Instant::now();
    let first = load::fetch(address, request, timeout)?;
    let quick = began.elapsed() <= SLOW;
    let second = if quick {
        load::fetch(address, request, timeout.min(SLOW))
    } else {
        None
    };
    Some(told(request, first, second.as_ref(), secrets))
}

/// The coding of the response if the request accepts gzip; see [`Witness::coding_on_request`].
fn coding_on_request(seen: &Witness, request: &RequestSpec, address: SocketAddr) -> Option<String> {
    let is_coded = seen
        .headers
        .iter()
        .any(|(name, _)| header::is_same(name, "content-encoding"));
    // A response that is not known to repeat may have been slow.
    if !seen.repeats || is_coded || seen.accept_encoding.is_some() {
        return None;
    }
    let mut request = request.clone();
    request
        .headers
        .push(("accept-encoding".to_owned(), "gzip".to_owned()));
    let coding = |(name, value): (String, String)| {
        (header::is_same(&name, "content-encoding") && value != "identity").then_some(value)
    };
    load::fetch(address, &request, SLOW)?
        .headers
        .into_iter()
        .find_map(coding)
}

fn told(
    request: &RequestSpec,
    first: Fetched,
    second: Option<&Fetched>,
    secrets: &Secrets,
) -> Witness {
    let accept: Vec<&str> = header::values(&request.headers, "accept-encoding")
        .map(String::as_str)
        .collect();
    let field = |(name, value): (String, String)| {
        let name = header::key(&name);
        // Without headers that may contain a session key.
        let mut value = secrets.mask(Some(&name), &value);
        model::text::cut_bytes(&mut value, WITNESS_VALUE_BYTES_MAX);
        (name, value)
    };
    let repeats =
        second.is_some_and(|second| first.decoded.is_some() && second.decoded == first.decoded);
    Witness {
        request: request.title().into_owned(),
        accept_encoding: (!accept.is_empty()).then(|| accept.join(", ")),
        status: first.status,
        headers: first.headers.into_iter().map(field).collect(),
        body_bytes: first.body_bytes,
        decoded_bytes: first.decoded.map(|(bytes, _)| bytes),
        decoded_sha256: first.decoded.map(|(_, digest)| digest.to_string()),
        repeats,
        coding_on_request: None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers each connection with the next of these bodies.
    fn server(bodies: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        std::thread::spawn(move || {
            for body in bodies {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nX-Long: {}\r\nContent-Length: {}\r\n\r\n{body}",
                    "é".repeat(200),
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        address
    }

    fn load(method: &str, timeout: Duration) -> plan::Load {
        let text = "name = \"x\"\n[services.api]\ncommand = [\"x\"]\n[load]\nheaders = { Accept-Encoding = \"gzip\" }";
        let plan = plan::parse(text, std::path::Path::new("/")).expect("a plan");
        let mut load = plan.variants[0].load.clone();
        (load.requests[0].method, load.timeout) = (method.into(), timeout);
        load
    }

    #[test]
    fn a_request_is_sent_twice_and_what_differs_does_not_repeat() {
        let patient = load("GET", Duration::from_secs(30));
        for (bodies, repeats) in [(&["same", "same"], true), (&["this", "that"], false)] {
            let (witnesses, _) = look(
                &patient,
                (server(bodies), "h"),
                &Secrets::default(),
                false,
                &|| false,
            );
            let [witness] = &witnesses[..] else {
                panic!("one request: {witnesses:?}")
            };
            assert_eq!(
                (witness.repeats, witness.decoded_bytes, witness.status),
                (repeats, Some(4), 200)
            );
            assert_eq!(
                (witness.accept_encoding.as_deref(), witness.request.as_str()),
                (Some("gzip"), "GET /")
            );
            assert_eq!(witness.headers[0], ("x-long".to_owned(), "é".repeat(128)));
        }
    }

    #[test]
    fn requests_a_compressed_response_once() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head) = (stream.expect("a connection"), [0; 4096]);
                let length = stream.read(&mut head).expect("a request");
                let accepts =
                    String::from_utf8_lossy(&head[..length]).contains("accept-encoding: gzip");
                let coding = if accepts {
                    "Content-Encoding: gzip\r\n"
                } else {
                    ""
                };
                let answer = format!("HTTP/1.1 200 OK\r\n{coding}Content-Length: 2\r\n\r\nok");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let mut load = load("GET", Duration::from_secs(30));
        let coding = |load: &plan::Load, codings: bool| {
            let (witnesses, _) = look(load, (address, "h"), &Secrets::default(), codings, &|| {
                false
            });
            witnesses[0].coding_on_request.clone()
        };
        assert_eq!(
            coding(&load, true),
            None,
            "the request says what it accepts"
        );
        load.requests[0].headers.clear();
        assert_eq!(coding(&load, true).as_deref(), Some("gzip"));
        assert_eq!(coding(&load, false), None);
    }

    #[test]
    fn what_changes_things_or_may_take_long_is_not_sent_and_nothing_is_after_the_user_stopped() {
        // A client would wait for ever.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        listener.set_nonblocking(true).expect("a socket");
        let short = Duration::from_millis(200);
        for (method, timeout, stopped) in [
            ("POST", short, false),
            ("GET", Duration::from_secs(31), false),
            ("GET", short, true),
        ] {
            let seen = look(
                &load(method, timeout),
                (address, "h"),
                &Secrets::default(),
                false,
                &|| stopped,
            );
            assert_eq!(seen, (Vec::new(), false));
            assert!(listener.accept().is_err(), "{method} was sent");
        }
        let (witnesses, _) = look(
            &load("GET", short),
            (address, "h"),
            &Secrets::default(),
            false,
            &|| false,
        );
        assert!(witnesses.is_empty());
        assert!(listener.accept().is_ok());
    }
}
