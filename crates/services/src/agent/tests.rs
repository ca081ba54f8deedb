//! Agents played by the test over the real socket: well-behaved, silent, and malicious ones.

use std::io::{BufRead, BufReader, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// A host that regards this process as one of the service's.
fn host() -> AgentHostFolder {
    let host = AgentHostFolder::new().unwrap();
    host.belongs_to(std::os::unix::process::parent_id());
    host
}

/// An agent's end of the connection.
struct Player(BufReader<UnixStream>);

impl Player {
    fn join(host: &AgentHostFolder) -> Self {
        let stream = UnixStream::connect(host.0.folder.join(SOCKET_NAME)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, line: &str) {
        // A rejected agent finds the connection closed.
        let _ = self.0.get_mut().write_all(format!("{line}\n").as_bytes());
    }

    fn greet(host: &AgentHostFolder, thread: u32, role: &str) -> Self {
        let mut player = Self::join(host);
        player.say(&format!(r#"{{"v":1,"type":"hello","pid":1,"thread":{thread},"role":"{role}","versions":{{"node":"22.0.0"}}}}"#));
        player
    }

    fn hear(&mut self) -> serde_json::Value {
        let mut line = String::new();
        // A connection that is closed before its end was read is an error, and no message arrived.
        let _ = self.0.read_line(&mut line);
        serde_json::from_str(&line).unwrap_or_default()
    }
}

fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_capture_is_where_it_was_asked_for_and_who_is_silent_or_gone_or_lies_is_missing_and_holds_nobody_up()
 {
    let host = host();
    let folder = tempfile::tempdir().unwrap();
    let mut players: Vec<Player> = (0..5)
        .map(|thread| Player::greet(&host, thread, "worker"))
        .collect();
    let mut tool = Player::greet(&host, 5, "tool");
    until("all are there", || host.agents().len() == 6);
    let file = |agent: &ThreadAgent| folder.path().join(agent.thread.to_string());
    let over = AtomicBool::new(false);
    let cancelled = || over.load(Ordering::SeqCst);
    let came = thread::scope(|scope| {
        let capture = scope.spawn(|| {
            let arming = host.arm(CaptureOrder::Cpu { interval_us: 1000 }, &file, &|| false);
            host.disarm(arming, &cancelled)
        });
        let orders: Vec<serde_json::Value> = players.iter_mut().map(Player::hear).collect();
        let arm = &orders[0];
        assert_eq!(
            (&arm["type"], &arm["kind"], &arm["intervalUs"]),
            (&json!("arm"), &json!("cpu"), &json!(1000))
        );
        let id = &arm["id"];
        // The first succeeds, the second refuses, the third ends, the fourth names a foreign file, the fifth
        // never responds.
        let armed = json!({ "type": "armed", "id": id, "nodeEnv": "production" });
        let failed = json!({ "type": "failed", "id": id, "reason": "too old" });
        for (at, player) in players.iter_mut().enumerate() {
            player.say(&if at == 1 { &failed } else { &armed }.to_string());
        }
        for player in &mut players {
            assert_eq!(player.hear(), json!({ "type": "disarm", "id": id }));
        }
        let mine = arm["file"].as_str().unwrap();
        fs::write(mine, "{}").unwrap();
        let told =
            json!({ "type": "captured", "id": id, "requests": 9, "file": mine, "notes": ["x"] });
        players[0].say(&told.to_string());
        drop(players.remove(2));
        players[2].say(&json!({ "type": "captured", "id": id, "file": "/etc/passwd" }).to_string());
        let answered = || {
            host.0
                .book
                .lock()
                .peers
                .iter()
                .filter(|peer| peer.captured().is_some())
                .count()
        };
        until("four have answered", || answered() >= 4);
        over.store(true, Ordering::SeqCst);
        capture.join().unwrap()
    });
    tool.0.get_mut().set_nonblocking(true).unwrap();
    let heard = tool
        .0
        .read_line(&mut String::new())
        .map_err(|error| error.kind());
    assert_eq!(
        heard,
        Err(io::ErrorKind::WouldBlock),
        "a tool is told nothing"
    );
    let [(agent, Ok(take)), rest @ ..] = came.as_slice() else {
        panic!("{came:?}")
    };
    assert_eq!((agent.pid, agent.role), (std::process::id(), Role::Worker));
    assert_eq!(agent.node_env.as_deref(), Some("production"));
    assert_eq!(
        (take.requests, &take.file, take.notes.len()),
        (Some(9), &Some((file(agent), 2)), 1)
    );
    let told: Vec<&str> = rest
        .iter()
        .map(|(_, take)| take.as_ref().unwrap_err().as_str())
        .collect();
    let [refused, gone, liar, silent] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(
        [*refused, *gone],
        ["too old", "it exited before the capture ended"]
    );
    assert_eq!(*liar, "it wrote a different file than requested");
    assert_eq!(*silent, "it did not end the capture within 10 s");
    assert_eq!(host.notes(), Vec::<String>::new());
}

#[test]
fn what_means_harm_is_left_out_and_told() {
    let host = host();
    let mut odd = Player::join(&host);
    odd.say("GET / HTTP/1.1");
    odd.say(r#"{"type":"armed","id":0}"#);
    odd.say(r#"{"v":1,"type":"hello","role":"service"}"#);
    odd.say(r#"{"v":1,"type":"hello","role":"tool"}"#);
    odd.say(r#"{"type":"role","role":"primary"}"#);
    until("its role is known", || {
        host.agents()
            .first()
            .is_some_and(|agent| agent.role == Role::Primary)
    });
    let mut endless = Player::join(&host);
    let _ = endless.0.get_mut().write_all(&vec![b'x'; 1 << 20]);
    let mut chatty = Player::greet(&host, 1, "thread");
    (0..1100).for_each(|_| chatty.say(r#"{"type":"role","role":"thread"}"#));
    until("both are thrown out", || {
        host.agents().len() == 1 && host.notes().len() == 5
    });
    let notes = host.notes().join("\n");
    let parts = [
        "no message",
        "did not introduce itself first",
        "twice",
        "longer than",
        "more than 1000",
    ];
    assert!(parts.iter().all(|part| notes.contains(part)), "{notes}");
}

#[test]
fn a_process_that_is_none_of_the_services_is_not_listened_to() {
    let host = AgentHostFolder::new().unwrap();
    // Only children of this process are below it.
    host.belongs_to(std::process::id());
    let mut stranger = Player::greet(&host, 0, "service");
    assert_eq!(
        stranger.hear(),
        serde_json::Value::Null,
        "the connection is closed"
    );
    assert!(host.agents().is_empty() && !host.wait_for_agents(Duration::ZERO, &|| false));
    assert!(
        host.notes()[0].contains("is not a process of the service"),
        "{:?}",
        host.notes()
    );
}

#[test]
fn a_listener_that_can_take_nobody_in_does_not_spin() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    // As without free descriptors: there is always a pending connection, and accepting it fails.
    rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
    let (life, ours) = rustix::pipe::pipe().unwrap();
    let book = Bell::default();
    let listening = thread::spawn(move || {
        listen(&listener, &life, &book);
        rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)
    });
    thread::sleep(Duration::from_millis(500));
    drop(ours);
    let used = listening.join().unwrap();
    assert!(used.tv_sec == 0 && used.tv_nsec < 100_000_000, "{used:?}");
}
