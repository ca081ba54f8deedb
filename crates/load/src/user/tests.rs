//! Users against a server that tracks them: a worker with seeded faults, cookies, and think times.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{Cause, Contract, Counts, FailureKind, Think};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::arena::RequestSampler;
use crate::settings::WorkerSettings;
use crate::worker::simulation::settings;
use crate::worker::{Action, Worker};
use crate::{Protocol, RequestSpec, Until};

const SEEDS: u64 = 500;
const CONNECTIONS: usize = 3;
/// More than the number of responses.
const SAMPLE_EVERY: u64 = 1000;

/// A log-in in two steps, and a request with one hole each in path, header and body.
fn requests() -> (RequestSpec, Users) {
    let post = |path: &str, body: &str| RequestSpec {
        body: body.into(),
        ..RequestSpec::new("POST", path, "h")
    };
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    let headers = vec![json.clone(), ("X-Csrf".into(), "{csrf}".into())];
    let values = crate::Values::csv(b"name\nann\nben\n").ok();
    let log_in = RequestSpec {
        headers,
        values,
        ..post("/login", r#"{{"user": "{name}"}}"#)
    };
    let auth = vec![("Authorization".into(), "Bearer {token}".into()), json];
    let first = vec![
        FirstRequest {
            request: RequestSpec {
                name: "form".into(),
                ..RequestSpec::new("GET", "/form", "h")
            },
            capture: vec![("csrf".into(), ResponseField::Header("x-csrf".into()))],
        },
        FirstRequest {
            request: RequestSpec {
                name: "log in".into(),
                ..log_in
            },
            capture: vec![("token".into(), ResponseField::Json("/user/token".into()))],
        },
    ];
    let ordinary = RequestSpec {
        headers: auth,
        ..post("/of/{token}", r#"{{"t": "{token}"}}"#)
    };
    (
        ordinary,
        Users {
            first,
            cookies: true,
            think: None,
        },
    )
}

fn worker(users: &Users, ordinary: RequestSpec, seed: u64) -> Worker {
    let mut all = vec![ordinary];
    all.extend(users.first.iter().map(|first| first.request.clone()));
    let arena = Arc::new(RequestArena::render(&all, users).unwrap());
    let common = UserSettings {
        users: users.clone(),
        endpoint: 1,
        seed,
        lane: (0, 1),
        now_s: 1_000_000_000,
    };
    let contracts = vec![Contract::default(); all.len()];
    let settings = WorkerSettings {
        users: Some(Arc::new(common)),
        arena: arena.clone(),
        contracts,
        sample_every: SAMPLE_EVERY,
        ..settings(&all[..1], Protocol::default())
    };
    assert_eq!(
        crate::protocol::is_plain(&settings),
        users.first.is_empty() && !users.cookies
    );
    Worker::new(
        settings,
        RequestSampler::new(arena, seed, 0),
        None,
        CONNECTIONS as u32,
    )
}

/// Both ends. The server causes faults from a seed, and compares each request with what it sent to that user.
struct World {
    rng: Pcg64Mcg,
    worker: Worker,
    now_ns: u64,
    open: [bool; CONNECTIONS],
    /// The next expected request of each user: its log-in step and its token.
    told: [(usize, String); CONNECTIONS],
    tokens: u64,
    succeeded: u64,
    refused: u64,
    served: u64,
    /// The server rejects every password.
    refuses: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let (ordinary, users) = requests();
        World {
            rng: Pcg64Mcg::seed_from_u64(seed),
            worker: worker(&users, ordinary, seed),
            now_ns: 1_000_000_000,
            open: [false; CONNECTIONS],
            told: Default::default(),
            tokens: 0,
            succeeded: 0,
            refused: 0,
            served: 0,
            refuses: false,
        }
    }

    /// Performs the worker's action, and lets the server answer.
    fn perform(&mut self, index: usize, mut act: Action) {
        loop {
            self.now_ns += 10_000;
            act = match act {
                Action::Wait => return,
                Action::Free => self.worker.start(index, self.now_ns),
                Action::Close => return self.open[index] = false,
                Action::Reopen => {
                    self.open[index] = true;
                    self.worker.connecting(index, self.now_ns);
                    self.worker.opened(index, self.now_ns)
                }
                Action::Send => {
                    let mut request = Vec::new();
                    while let Some(bytes) = self.worker.output(index) {
                        let count = self.rng.random_range(1..=bytes.len());
                        request.extend_from_slice(&bytes[..count]);
                        self.worker.wrote(index, count);
                    }
                    self.respond(index, &String::from_utf8(request).unwrap())
                }
            };
        }
    }

    fn respond(&mut self, index: usize, request: &str) -> Action {
        let (step, token) = self.told[index].clone();
        let trouble = if self.refuses && step == 1 {
            1
        } else {
            self.rng.random_range(0..12)
        };
        let is_log_in = step < 2;
        self.hold(index, request);
        if trouble == 0 {
            self.refused += u64::from(is_log_in);
            self.told[index].0 = if is_log_in { 0 } else { step };
            return self.worker.failed(index, self.now_ns, Cause::Reset);
        }
        let good = trouble > 2 || !is_log_in;
        let close = if trouble == 3 {
            "Connection: close\r\n"
        } else {
            ""
        };
        self.tokens += 1;
        let new = format!("t\\\"{}", self.tokens);
        let (head, body) = match (step, trouble) {
            (0 | 1, 1) => ("HTTP/1.1 403 Forbidden\r\n".to_owned(), "{}".to_owned()),
            (0, 2) => ("HTTP/1.1 200 OK\r\n".to_owned(), String::new()),
            (1, 2) => (
                "HTTP/1.1 200 OK\r\n".to_owned(),
                r#"{"user": {}}"#.to_owned(),
            ),
            (0, _) => (
                format!("HTTP/1.1 200 OK\r\nX-Csrf: c{index}\r\n"),
                String::new(),
            ),
            (1, _) => (
                format!(
                    "HTTP/1.1 200 OK\r\nSet-Cookie: s={}; Path=/of\r\n",
                    self.tokens
                ),
                format!(r#"{{"user": {{"token": "{new}"}}}}"#),
            ),
            _ => ("HTTP/1.1 200 OK\r\n".to_owned(), String::new()),
        };
        match (is_log_in, good) {
            (true, true) => {
                self.succeeded += 1;
                self.told[index] = (
                    step + 1,
                    if step == 1 {
                        self.tokens.to_string()
                    } else {
                        token
                    },
                );
            }
            (true, false) => {
                self.refused += 1;
                self.told[index].0 = 0;
            }
            (false, _) => self.served += 1,
        }
        let response = format!("{head}{close}Content-Length: {}\r\n\r\n{body}", body.len());
        let mut act = Action::Wait;
        let cut = self.rng.random_range(0..=response.len());
        for piece in [&response[..cut], &response[cut..]]
            .into_iter()
            .filter(|piece| !piece.is_empty())
        {
            act = self
                .worker
                .received(index, self.now_ns, &mut piece.as_bytes().to_vec())
                .after(act);
        }
        act
    }

    /// Asserts that a request contains the data of its own user and of no other.
    fn hold(&self, index: usize, request: &str) {
        let (step, token) = &self.told[index];
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let has = |field: &str| assert!(head.contains(field), "{field} is not in {request}");
        match step {
            0 => assert!(head.starts_with("GET /form ") && !head.contains("Cookie")),
            1 => {
                has(&format!("X-Csrf: c{index}"));
                assert_eq!(
                    body,
                    format!(r#"{{"user": "{}"}}"#, ["ann", "ben"][index % 2])
                );
            }
            _ => {
                has(&format!("POST /of/t%22{token} "));
                has(&format!("Authorization: Bearer t\"{token}"));
                has(&format!("\r\nCookie: s={token}"));
                has(&format!("Content-Length: {}\r\n", body.len()));
                assert_eq!(body, format!(r#"{{"t": "t\"{token}"}}"#));
            }
        }
    }

    fn slice(&mut self) -> Counts {
        (self.succeeded, self.refused, self.served) = (0, 0, 0);
        self.worker.prepare(self.now_ns, Some(60));
        while !self.worker.is_prepared(self.now_ns) {
            self.sweep();
        }
        self.worker.open_window(self.now_ns, Until::Requests(60));
        (0..CONNECTIONS).for_each(|index| self.perform(index, Action::Free));
        while !self.worker.is_window_over(self.now_ns) {
            self.sweep();
        }
        self.worker.stop_sending(self.now_ns, 1);
        let mut closed = Vec::new();
        let counts = self.worker.finish(self.now_ns, |index| closed.push(index));
        closed
            .into_iter()
            .for_each(|index| self.open[index] = false);
        counts
    }

    fn sweep(&mut self) {
        self.now_ns += 1_000_000;
        let mut from = 0;
        while let Some((index, act)) = self.worker.overdue(from, self.now_ns) {
            self.perform(index, act);
            from = index + 1;
        }
    }
}

#[test]
fn whatever_goes_wrong_each_user_logs_in_first_and_sends_what_is_its_own() {
    let mut kinds = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..2 {
            let counts = world.slice();
            let of_log_ins: u64 = counts
                .contract_failures
                .iter()
                .filter(|failure| matches!(failure.kind, FailureKind::LogIn(_)))
                .map(|failure| failure.count)
                .sum();
            kinds.extend(
                counts
                    .contract_failures
                    .into_iter()
                    .map(|failure| failure.example),
            );
            let sampled: Vec<u64> = counts.endpoints[0]
                .contents
                .iter()
                .map(|seen| seen.count)
                .collect();
            assert_eq!(
                sampled,
                [1],
                "seed {seed}: the first, and no log-in in its place"
            );
            assert_eq!(
                (counts.log_ins, counts.successful),
                (world.succeeded, world.served),
                "seed {seed}"
            );
            // The other responses were reset. The sent requests include only log-ins that failed.
            assert!(
                of_log_ins <= world.refused && counts.sent == 60 + world.refused,
                "seed {seed}"
            );
        }
    }
    let expected = [
        "csrf: the response has no header x-csrf",
        "status 403",
        "token: the body has no /user/token",
    ];
    assert_eq!(
        kinds.iter().map(String::as_str).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn a_log_in_that_is_the_same_for_all_is_no_bytes_of_the_arena_either() {
    // The worker's constructor asserts that this request is not plain.
    let request = RequestSpec {
        name: "hello".into(),
        ..RequestSpec::new("GET", "/hello", "h")
    };
    let users = Users {
        first: vec![FirstRequest {
            request,
            capture: Vec::new(),
        }],
        ..Users::default()
    };
    worker(&users, RequestSpec::new("GET", "/", "h"), 1);
}

#[test]
fn a_log_in_that_keeps_failing_is_tried_ever_more_rarely_and_not_for_ever() {
    let mut world = World {
        refuses: true,
        ..World::new(1)
    };
    let counts = world.slice();
    // Half a second before the window, in which no request can be sent.
    assert_eq!((counts.sent, counts.successful), (world.refused, 0));
    assert!((6..=30).contains(&counts.sent), "{}", counts.sent);
}

#[test]
fn cookies_have_paths_and_ends() {
    let (_, users) = requests();
    let common = UserSettings {
        users,
        endpoint: 1,
        seed: 0,
        lane: (0, 1),
        now_s: 1_000_000_000,
    };
    let mut user = User::new(&Arc::new(common), 0);
    let mut hear = |path: &str, set: &[&str]| {
        let fields = set
            .iter()
            .map(|value| ("Set-Cookie".to_owned(), value.as_bytes().to_vec()))
            .collect();
        let bytes = format!("GET {path} HTTP/1.1\r\n").into_bytes();
        user.keep_cookies(&Own {
            bytes: bytes.clone(),
            step: None,
            wants_content: false,
            fields,
        });
        let mut out = bytes.clone();
        push_cookies(&user.cookies, (b"Cookie: ", b"\r\n"), &mut out);
        String::from_utf8(out.split_off(bytes.len())).unwrap()
    };
    let first = ["x=1; HttpOnly", "y=2; path=/; Secure", "=3", "z"];
    assert_eq!(hear("/a/b?c=/d", &first), "Cookie: x=1; y=2\r\n");
    assert_eq!(hear("/", &[]), "Cookie: y=2\r\n");
    assert_eq!(hear("/ab", &[]), "Cookie: y=2\r\n");
    assert_eq!(hear("/a", &["x=9; Path=/a"]), "Cookie: x=9; y=2\r\n");
    assert_eq!(hear("/a", &["x=; Max-Age=0; Path=/a"]), "Cookie: y=2\r\n");
    let future = "y=4; Path=/; Expires=Wed, 09 Jun 2032 10:18:14 GMT";
    let past = "k=5; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
    assert_eq!(hear("/", &[future, past]), "Cookie: y=4; k=5\r\n");
    // A max-age that is not a number is ignored, and a cookie that would break its line is rejected.
    let refused = [
        "k=6; Max-Age=soon; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "b=1\r\nX: y",
        "d=\n",
    ];
    assert_eq!(hear("/", &refused), "Cookie: y=4\r\n");
    assert_eq!(
        hear(
            "/",
            &[
                "y=; Path=/; Expires=Thu, 01-Jan-1970 00:00:01 GMT",
                "k=; Max-Age=-1"
            ]
        ),
        ""
    );
    let many: Vec<String> = (0..60).map(|number| format!("c{number}=1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(hear("/", &many).matches('=').count(), COOKIES_MAX);
    assert_eq!(
        hear("/", &[&format!("c0={}", "x".repeat(5000))])
            .matches("c0=1")
            .count(),
        1
    );
}

#[test]
fn cookies_join_the_field_that_the_request_has() {
    let (_, users) = requests();
    let users = Users {
        first: Vec::new(),
        ..users
    };
    let headers = vec![("cookie".into(), "a=1".into()), ("X".into(), "y".into())];
    let request = RequestSpec {
        headers,
        ..RequestSpec::new("GET", "/", "h")
    };
    let arena = RequestArena::render(&[request], &users).unwrap();
    let common = UserSettings {
        users,
        endpoint: 1,
        seed: 0,
        lane: (0, 1),
        now_s: 1_000_000_000,
    };
    let mut user = User::new(&Arc::new(common), 0);
    let sent = |user: &User| {
        let own = user.own(arena.row_of(0, 0), &arena).unwrap();
        String::from_utf8(own.bytes).unwrap()
    };
    assert!(
        sent(&user).ends_with("\r\ncookie: a=1\r\nX: y\r\n\r\n"),
        "{}",
        sent(&user)
    );
    let fields = vec![("set-cookie".to_owned(), b"b=2".to_vec())];
    let bytes = b"GET / HTTP/1.1\r\n".to_vec();
    user.keep_cookies(&Own {
        bytes,
        step: None,
        wants_content: false,
        fields,
    });
    assert!(
        sent(&user).ends_with("\r\ncookie: a=1; b=2\r\nX: y\r\n\r\n"),
        "{}",
        sent(&user)
    );
}

#[test]
fn users_think_as_long_as_the_seed_says_whatever_the_service_takes() {
    // Think time before each request of each user, if a response takes `service_ns`.
    let thought = |seed, service_ns: u64, think| {
        let users = Users {
            think: Some(think),
            ..Users::default()
        };
        let mut worker = worker(&users, RequestSpec::new("GET", "/", "h"), seed);
        worker.prepare(0, None);
        for index in 0..CONNECTIONS {
            worker.connecting(index, 0);
            let _ = worker.opened(index, 0);
        }
        worker.open_window(0, Until::Elapsed(Duration::from_secs(60)));
        let (mut free_ns, mut thought) = ([0; CONNECTIONS], vec![Vec::new(); CONNECTIONS]);
        (0..CONNECTIONS).for_each(|index| assert_eq!(worker.start(index, 0), Action::Wait));
        while thought.iter().map(Vec::len).min() < Some(50) {
            let now_ns = worker.wake_ns();
            let (index, act) = worker.start_next(now_ns).unwrap();
            assert_eq!(act, Action::Send);
            let count = worker.output(index).unwrap().len();
            worker.wrote(index, count);
            thought[index].push(now_ns - free_ns[index]);
            free_ns[index] = now_ns + service_ns;
            let response = &mut b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
            assert_eq!(
                worker.received(index, free_ns[index], response),
                Action::Free
            );
            assert_eq!(worker.start(index, free_ns[index]), Action::Wait);
        }
        thought.iter_mut().for_each(|times| times.truncate(50));
        thought
    };
    let exponential = Think::Exponential(Duration::from_millis(100));
    let times = thought(7, 1_000, exponential);
    assert_eq!(times, thought(7, 30_000_000, exponential));
    assert_ne!(times, thought(8, 1_000, exponential));
    let mean_ms = times.iter().flatten().sum::<u64>() as f64 / 150.0 / 1e6;
    assert!((75.0..130.0).contains(&mean_ms), "{mean_ms}");
    let constant = thought(7, 1_000, Think::Constant(Duration::from_millis(100)));
    assert!(
        constant
            .iter()
            .all(|times| times[0] < 100_000_000 && times[1..].iter().all(|ns| *ns == 100_000_000))
    );
}

#[test]
fn captured_numbers_keep_their_text() {
    let body = br#"{"id":12345678901234567890123,"a":[1.10,{"b/c":1e3}],"t":true,"s":"x\u00e9","n":null,"id2":1,"id2":2}"#;
    let json: &RawValue = serde_json::from_slice(body).expect("JSON");
    for (pointer, text) in [
        ("/id", Some("12345678901234567890123")),
        ("/a/0", Some("1.10")),
        ("/a/1/b~1c", Some("1e3")),
        ("/t", Some("true")),
        ("/id2", Some("2")),
        ("/a/00", None),
        ("/a/2", None),
        ("/x", None),
        ("id", None),
    ] {
        assert_eq!(
            at_pointer(json, pointer).map(RawValue::get),
            text,
            "{pointer}"
        );
    }
}
