//! Agents that this test plays itself, over the real socket: well-behaved ones, silent ones, and some that mean harm.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// A host to which this very process counts as one of the service's.
fn host() -> AgentHost {
    let host = AgentHost::new().unwrap();
    host.belongs_to(std::os::unix::process::parent_id());
    host
}

/// One end of a talk, as an agent has it.
struct Player(BufReader<UnixStream>);

impl Player {
    fn join(host: &AgentHost) -> Self {
        let stream = UnixStream::connect(host.0.folder.join(SOCKET_NAME)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, line: &str) {
        // Who was thrown out finds the connection closed.
        let _ = self.0.get_mut().write_all(format!("{line}\n").as_bytes());
    }

    fn greet(host: &AgentHost, thread: u32, role: &str) -> Self {
        let mut player = Self::join(host);
        player.say(&format!(r#"{{"v":1,"type":"hello","pid":1,"thread":{thread},"role":"{role}","versions":{{"node":"22.0.0"}}}}"#));
        player
    }

    fn hear(&mut self) -> serde_json::Value {
        let mut line = String::new();
        // A connection that is closed before its end was read is an error, and nothing was said either way.
        let _ = self.0.read_line(&mut line);
        serde_json::from_str(&line).unwrap_or_default()
    }
}

fn never() -> bool {
    false
}

fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_capture_is_begun_and_ended_and_its_file_is_where_it_was_asked_for() {
    let host = host();
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("a.cpuprofile");
    let play = {
        let (mut main, mut tool) = (Player::greet(&host, 0, "service"), Player::greet(&host, 0, "tool"));
        move || {
            let arm = main.hear();
            assert_eq!((arm["type"].as_str(), arm["kind"].as_str()), (Some("arm"), Some("cpu")));
            assert_eq!(arm["intervalUs"], 1000);
            main.say(&json!({ "type": "armed", "id": arm["id"], "nodeEnv": "production" }).to_string());
            assert_eq!(main.hear(), json!({ "type": "disarm", "id": arm["id"] }));
            let file = arm["file"].as_str().unwrap();
            fs::write(file, "{}").unwrap();
            let told =
                json!({ "type": "captured", "id": arm["id"], "requests": 9, "file": file, "notes": ["x"] });
            main.say(&told.to_string());
            tool.0.get_mut().set_nonblocking(true).unwrap();
            let heard = tool.0.read_line(&mut String::new()).map_err(|error| error.kind());
            assert_eq!(heard, Err(io::ErrorKind::WouldBlock), "a tool is told nothing");
        }
    };
    until("both are there", || host.agents().len() == 2);
    let player = thread::spawn(play);
    let arming = host.arm(Wanted::Cpu { interval_us: 1000 }, &|_| asked.clone(), &never);
    let came = host.disarm(arming, &never);
    player.join().unwrap();
    let [(agent, Ok(take))] = &came[..] else { panic!("{came:?}") };
    assert_eq!(
        (agent.pid, agent.role, agent.node_env.as_deref()),
        (std::process::id(), Role::Service, Some("production"))
    );
    assert_eq!((take.requests, &take.file, take.notes.len()), (Some(9), &Some((asked, 2)), 1));
    assert_eq!(host.notes(), Vec::<String>::new());
}

#[test]
fn who_is_silent_or_gone_or_lies_is_missing_and_holds_nobody_up() {
    let host = host();
    let folder = tempfile::tempdir().unwrap();
    let mut players: Vec<Player> = (0..4).map(|thread| Player::greet(&host, thread, "worker")).collect();
    until("all are there", || host.agents().len() == 4);
    let over = AtomicBool::new(false);
    let cancelled = || over.load(Ordering::SeqCst);
    let came = thread::scope(|scope| {
        let capture = scope.spawn(|| {
            let file = |agent: &Agent| folder.path().join(agent.thread.to_string());
            let arming = host.arm(Wanted::Heap, &file, &never);
            host.disarm(arming, &cancelled)
        });
        let orders: Vec<serde_json::Value> = players.iter_mut().map(Player::hear).collect();
        let id = &orders[0]["id"];
        // The first refuses, the second ends, the third names a file that is not its own, the fourth never comes back.
        players[0].say(&json!({ "type": "failed", "id": id, "reason": "too old" }).to_string());
        for player in &mut players[1..] {
            player.say(&json!({ "type": "armed", "id": id }).to_string());
        }
        for player in &mut players {
            assert_eq!(player.hear()["type"], "disarm");
        }
        drop(players.remove(1));
        players[1].say(&json!({ "type": "captured", "id": id, "file": "/etc/passwd" }).to_string());
        let done = |number: usize| {
            host.0.book.lock().peers.iter().filter(|peer| peer.captured().is_some()).count() >= number
        };
        until("three have answered", || done(3));
        over.store(true, Ordering::SeqCst);
        capture.join().unwrap()
    });
    let told: Vec<&str> = came.iter().map(|(_, take)| take.as_ref().unwrap_err().as_str()).collect();
    assert_eq!(
        told,
        [
            "too old",
            "it ended in the meantime",
            "it wrote another file than it was told",
            "it did not end the capture within 10 s"
        ]
    );
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
    until("its role is known", || host.agents().first().is_some_and(|agent| agent.role == Role::Primary));
    let mut endless = Player::join(&host);
    let _ = endless.0.get_mut().write_all(&vec![b'x'; 1 << 20]);
    let mut chatty = Player::greet(&host, 1, "thread");
    (0..1100).for_each(|_| chatty.say(r#"{"type":"role","role":"thread"}"#));
    until("both are thrown out", || host.agents().len() == 1 && host.notes().len() == 5);
    let notes = host.notes().join("\n");
    for part in
        ["no message", "did not introduce itself first", "twice", "longer than", "more than 1000 messages"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn a_process_that_is_none_of_the_services_is_not_listened_to() {
    let host = AgentHost::new().unwrap();
    // Nobody is below this very process but its children.
    host.belongs_to(std::process::id());
    let mut stranger = Player::greet(&host, 0, "service");
    assert_eq!(stranger.hear(), serde_json::Value::Null, "the connection is closed");
    assert!(host.agents().is_empty() && !host.wait_for_agents(Duration::ZERO, &never));
    assert!(host.notes()[0].contains("is no process of the service"), "{:?}", host.notes());
}

#[test]
fn the_folder_is_private_short_and_goes_with_the_last_copy() {
    let host = AgentHost::new().unwrap();
    let folder = host.0.folder.clone();
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(folder.join(SOCKET_NAME).as_os_str().len() <= 107);
    assert_eq!(fs::read_to_string(folder.join(AGENT_NAME)).unwrap(), AGENT);
    let copy = host.clone();
    drop(host);
    assert!(folder.exists());
    drop(copy);
    assert!(!folder.exists());
}

#[test]
fn a_listener_that_can_take_nobody_in_does_not_spin() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    // As without descriptors: there is always somebody, and to take them in fails.
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
