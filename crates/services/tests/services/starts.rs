//! Services that become ready, the ways in which they do not, and the private folder of a service.

use std::cell::Cell;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use plan::{Ready, Workers};
use proofload_services::{
    Blame, Exit, Listening, Placement, Warden, check_command, cpus_allowed, start,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::stage::{LOOPBACK, Stage, get, of, ports, warden, with_env};

#[test]
fn a_service_is_ready_when_its_path_answers_with_2xx() {
    let stage = Stage::new();
    let mut service = with_env(stage.service(&["node", "server.js"]), &[("UNREADY", "3")]);
    service.ready = Ready::Http("/healthz".to_owned());
    let mut running = stage.start(&service).unwrap();
    // It would still be unready after fewer than four probes.
    assert!(get(running.address, "/").parse::<u64>().unwrap() > 0);
    assert_eq!(running.exited(), None);
    let sight = running.sight(&[]);
    assert_eq!(
        (sight.listening, sight.listeners),
        (Listening::Ours, vec![running.pid])
    );
    assert_eq!(stage.alive(), [running.pid]);
    let stopped = running.stop();
    assert_eq!(
        (stopped.exit, stopped.killed),
        (Some(Exit::Signal(libc::SIGTERM)), 0)
    );
}

#[test]
fn a_service_runs_on_its_cpus_with_its_variables_and_so_does_its_warden() {
    let stage = Stage::new();
    let service = with_env(
        stage.service(&["node", "server.js"]),
        &[("AT", "{address}:{api.port}/{what}")],
    );
    let cpu = *cpus_allowed().last().unwrap();
    let place = |placement: &mut Placement| {
        (placement.cpus, placement.padding_bytes) = (vec![cpu], 100);
        placement.values.insert("what".to_owned(), "x".to_owned());
    };
    let running = stage.start_placed(&service, place).unwrap();
    let processes = running
        .sight(&["AT", "PROOFLOAD_PADDING", "NODE_ENV"])
        .processes;
    assert_eq!(processes.len(), 1);
    assert_eq!(
        (processes[0].id.pid, processes[0].cpus.as_slice()),
        (running.pid, [cpu].as_slice())
    );
    assert_eq!(processes[0].argv, ["node", "server.js"]);
    assert_eq!(processes[0].environ["AT"], format!("{}/x", running.address));
    assert_eq!(processes[0].environ["PROOFLOAD_PADDING"].len(), 100);
    assert!(processes[0].marked && !processes[0].environ.contains_key("NODE_ENV"));
    let status = fs::read_to_string(format!("/proc/{}/status", running.warden_pid())).unwrap();
    assert!(
        status.contains(&format!("Cpus_allowed_list:\t{cpu}\n")),
        "{status}"
    );
}

#[test]
fn a_service_has_the_limit_on_open_files_that_proofload_was_started_with() {
    let stage = Stage::new();
    let warden = warden();
    let before = getrlimit(Resource::Nofile);
    // Raised or lowered as a load does. If the limit is already the maximum it cannot be raised.
    let changed = before.current.map(|soft| soft - 100);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: changed,
            maximum: before.maximum,
        },
    )
    .unwrap();
    let service = stage.shell("ulimit -n; exit 3");
    let error = start(
        &warden,
        &service,
        &ports(&service),
        &stage.placement(),
        &|| false,
    )
    .unwrap_err();
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(
        error.tail().unwrap().trim(),
        before.current.unwrap().to_string()
    );
}

#[test]
fn a_service_that_ends_at_once_shows_how_and_what_it_said() {
    let stage = Stage::new();
    let error = stage
        .start(&stage.shell("echo out; echo no such port: $PORT >&2; exit 3"))
        .unwrap_err();
    assert!(
        error.tail().unwrap().starts_with("out\nno such port: "),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .starts_with("service api ended with status 3 after "),
        "{error}"
    );
    let error = stage.start(&stage.shell("kill -SEGV $$")).unwrap_err();
    assert!(error.to_string().contains("signal 11 (SIGSEGV)"), "{error}");
}

#[test]
fn what_cannot_be_run_is_named() {
    let stage = Stage::new();
    let script = |name: &str, text: &str, mode: u32| {
        fs::write(stage.path(name), text).unwrap();
        fs::set_permissions(stage.path(name), fs::Permissions::from_mode(mode)).unwrap();
        stage.path(name).display().to_string()
    };
    let message = |command: &str| {
        stage
            .start(&stage.service(&[command]))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message("no-such-program"),
        "service api: command not found: no-such-program"
    );
    assert_eq!(
        message("./missing.sh"),
        "service api: command not found: ./missing.sh"
    );
    let error = stage
        .start(&stage.service(&["no-such-program"]))
        .unwrap_err();
    assert!(
        error.hint().unwrap().starts_with("looked for it in PATH: "),
        "{error:?}"
    );
    let plain = script("plain", "#!/bin/sh\n", 0o644);
    assert_eq!(
        message(&plain),
        format!("service api: cannot run {plain}: it is not executable (chmod +x)")
    );
    let lost = script("lost", "#!/no/such/interpreter -x\n", 0o755);
    assert!(message(&lost).ends_with("asks for \"/no/such/interpreter -x\", which is not there"));
    let mut service = stage.service(&["true"]);
    of(&mut service).directory = stage.path("nowhere");
    let error = stage.start(&service).unwrap_err().to_string();
    assert!(
        error.starts_with("service api: no such directory: "),
        "{error}"
    );
    let error = stage
        .start(&stage.service(&["true", "{prot}"]))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("service api: command: unknown placeholder `prot`"),
        "{error}"
    );
}

#[test]
fn only_an_interpreter_needs_its_script() {
    let stage = Stage::new();
    for (command, refused) in [
        (["true", "made-by-the-service.php"], false),
        (["sh", "made-by-the-service.php"], false),
        (["sh", "nowhere.sh"], true),
        (["node", "nowhere.js"], true),
    ] {
        let checked = check_command(&stage.service(&command));
        assert_eq!(checked.is_err(), refused, "{command:?}: {checked:?}");
    }
}

#[test]
fn a_service_that_is_not_ready_in_time_is_stopped_and_what_was_seen_is_told() {
    let server = |stage: &Stage, variable: &str| {
        let mut service = with_env(
            stage.service(&["node", "server.js"]),
            &[(variable, "1000000")],
        );
        service.ready = Ready::Http("/".to_owned());
        service
    };
    let check = |service: &dyn Fn(&Stage) -> plan::Service, seen: &str, tail: Option<&str>| {
        let stage = Stage::new();
        // Long enough for node to start on a busy machine.
        let service = plan::Service {
            ready_timeout: Duration::from_secs(4),
            ..service(&stage)
        };
        let error = stage.start(&service).unwrap_err();
        let (message, begin) = (
            error.to_string(),
            "service api was not ready after 4s: waited for ",
        );
        assert!(
            message.starts_with(begin) && message.ends_with(seen),
            "{message}"
        );
        assert_eq!(error.tail(), tail);
        assert!(stage.alive().is_empty());
    };
    let hello = |stage: &Stage| stage.shell("echo hello; sleep 600");
    let silent = ", but it accepts connections and does not answer";
    thread::scope(|scope| {
        scope.spawn(|| check(&hello, ", but nothing listens there", Some("hello")));
        scope.spawn(|| {
            check(
                &|stage| server(stage, "UNREADY"),
                ", last answer: status 503",
                None,
            )
        });
        scope.spawn(|| check(&|stage| server(stage, "SILENT"), silent, None));
    });
}

#[test]
fn a_stale_server_on_the_port_is_not_mistaken_for_the_service() {
    let stage = Stage::new();
    let service = stage.shell("sleep 600");
    let ports = ports(&service);
    let address = (LOOPBACK, ports.of("api").unwrap());
    let stale = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        TcpListener::bind(address).unwrap()
    });
    let error = start(&warden(), &service, &ports, &stage.placement(), &|| false).unwrap_err();
    let owner = format!("(pid {}), not by the service", std::process::id());
    assert!(
        error.to_string().contains(" is answered by ") && error.to_string().ends_with(&owner),
        "{error}"
    );
    drop(stale.join().unwrap());
}

#[test]
fn a_service_that_does_not_heed_its_port_is_found_by_its_own_sockets() {
    let stage = Stage::new();
    let node = |listen: &str| {
        let text =
            format!("const s = () => require('http').createServer((q, r) => r.end('x')); {listen}");
        let mut service = stage.service(&["node", "-e", &text]);
        service.command_mut().unwrap().env.remove("PORT");
        service.ready = Ready::Response;
        service
    };
    let raw = "require('net').createServer(c => c.end('SSH-2.0-x\\r\\n')).listen(0);";
    let service = node(&format!("s().listen(0); {raw}"));
    let running = stage.start(&service).unwrap();
    let found = running.found.clone().unwrap();
    assert_eq!(
        (found.given, found.address),
        (ports(&service).of("api").unwrap(), None)
    );
    assert_eq!(
        running.other_ports.len(),
        1,
        "a port that speaks something else: {found:?}"
    );
    assert_eq!(get(running.address, "/"), "x");
    running.stop();
    // PORT still has the assigned port, and IPv6 alone is another address.
    match stage.start(&node("s().listen(process.env.PORT, '::1')")) {
        Ok(running) => assert!(running.address.is_ipv6() && running.found.is_some()),
        Err(error) => {
            let has = |word: &str| error.tail().is_some_and(|tail| tail.contains(word));
            assert!(has("EADDRNOTAVAIL") || has("EAFNOSUPPORT"), "{error}");
            eprintln!("SKIPPED: this system has no IPv6");
        }
    }
    // A fixed port must be used.
    let mut fixed = node("s().listen(0)");
    fixed.command_mut().unwrap().port = ports(&fixed).of("api");
    fixed.ready_timeout = Duration::from_secs(3);
    let error = stage.start(&fixed).unwrap_err();
    assert!(
        error.to_string().contains(", but it listens on "),
        "{error}"
    );
}

/// A metrics server that opens first, and the application 1.2 s later.
fn with_metrics(stage: &Stage, port: &str) -> plan::Service {
    let text = format!(
        "const s = (text) => require('http').createServer((q, r) => r.end(text)); s('metrics').listen(0);\
         setTimeout(() => s('app').listen({port}, '127.0.0.1'), 1200)"
    );
    let mut service = stage.service(&["node", "-e", &text]);
    of(&mut service).env.remove("PORT");
    service.ready = Ready::Response;
    service
}

#[test]
fn port_wins_over_a_metrics_port_opened_first() {
    let stage = Stage::new();
    let service = with_metrics(&stage, "process.env.PORT");
    let running = stage.start(&service).unwrap();
    assert_eq!(
        (get(running.address, "/").as_str(), &running.found),
        ("app", &None)
    );
    assert_eq!(running.other_ports.len(), 1);
}

#[test]
fn several_responding_ports_end_the_start() {
    let stage = Stage::new();
    let error = stage.start(&with_metrics(&stage, "0")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(", all of which respond, and not on the PORT "),
        "{error}"
    );
    let hint = error.hint().unwrap();
    assert_eq!(hint.matches("--port ").count(), 2, "{hint}");
}

#[test]
fn a_port_of_an_earlier_start_is_not_given_as_port() {
    let stage = Stage::new();
    let free = TcpListener::bind((LOOPBACK, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let text =
        format!("require('http').createServer((q, r) => r.end(process.env.PORT)).listen({free})");
    let mut service = stage.service(&["node", "-e", &text]);
    of(&mut service).env.remove("PORT");
    of(&mut service).listens_on = Some(free);
    service.ready = Ready::Response;
    let running = stage.start(&service).unwrap();
    assert_eq!((running.address.port(), &running.found), (free, &None));
    assert_ne!(get(running.address, "/"), free.to_string());
    running.stop();
    // A service that listens on PORT this time may have been measured on another port before.
    let text = format!(
        "for (const p of [{free}, process.env.PORT]) require('http').createServer((q, r) => r.end()).listen(p)"
    );
    of(&mut service).command = ["node", "-e", &text].map(str::to_owned).into();
    let error = stage.start(&service).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("where it was found when it was started before"),
        "{error}"
    );
}

#[test]
fn a_status_of_500_or_more_is_not_ready() {
    let stage = Stage::new();
    let text = "const t = Date.now(); require('http').createServer((q, r) => {{\
        r.statusCode = q.url == '/' ? 500 : Date.now() - t < 1500 ? 503 : 404; r.end('starting') })\
        .listen(process.env.PORT)";
    let mut service = stage.service(&["node", "-e", text]);
    service.ready = Ready::Response;
    let path = |placement: &mut Placement| placement.ready_response.path = "/orders".to_owned();
    let running = stage.start_placed(&service, path).unwrap();
    assert!(
        get(running.address, "/orders").contains("starting"),
        "404 is an answer"
    );
    running.stop();
    let expected = |placement: &mut Placement| placement.ready_response.expected = vec![500];
    stage.start_placed(&service, expected).unwrap().stop();
    service.ready_timeout = Duration::from_secs(3);
    let error = stage.start(&service).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with(", last answer: status 500, \"starting\""),
        "{error}"
    );
    assert!(
        error.hint().unwrap().contains("--ready PATH"),
        "{:?}",
        error.hint()
    );
}

#[test]
fn a_service_of_http2_is_told_by_its_protocol() {
    let stage = Stage::new();
    let text = "const s = require('http2').createServer(); s.on('stream', t => {{ t.respond(); t.end() }); \
                s.listen(process.env.PORT, '127.0.0.1')";
    let mut service = stage.service(&["node", "-e", text]);
    (service.ready, service.ready_timeout) = (Ready::Response, Duration::from_secs(3));
    let error = stage.start(&service).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with(", last answer was HTTP/2, and not HTTP/1"),
        "{error}"
    );
    assert!(
        error.hint().unwrap().contains("--http2"),
        "{:?}",
        error.hint()
    );
}

#[test]
fn a_start_can_be_cancelled_also_while_an_answer_is_awaited() {
    let stage = Stage::new();
    let mut service = with_env(stage.service(&["node", "server.js"]), &[("SILENT", "1")]);
    service.ready = Ready::Http("/".to_owned());
    // If it were only checked between probes, it would not be checked this often within the permitted time.
    let asked = Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 150
    };
    let error = stage.start_unless(&service, &cancelled).unwrap_err();
    assert_eq!(*error.blame(), Blame::Cancelled, "{error}");
}

#[test]
fn a_program_that_is_no_warden_is_told() {
    let stage = Stage::new();
    let service = stage.service(&["true"]);
    let failure = |command: &[&str]| {
        let warden = Warden::new(command.iter().map(|part| (*part).into()).collect());
        start(
            &warden,
            &service,
            &ports(&service),
            &stage.placement(),
            &|| false,
        )
        .unwrap_err()
        .to_string()
    };
    let said = "service api: its warden failed: it said \"hello\" and ended with exit status: 0";
    assert_eq!(failure(&["/bin/echo", "hello"]), said);
    assert!(failure(&["/no/such/program"]).contains("cannot start /no/such/program"));
    // A warden whose output is closed is not waited for until its end.
    assert!(
        failure(&["/bin/sh", "-c", "exec >&-; exec sleep 100"]).contains("ended with signal: 9")
    );
}

#[test]
fn a_real_server_is_configured_by_a_template_and_its_folder_goes_with_it() {
    let stage = Stage::new();
    let mut service = stage.service(&["nginx", "-p", "{scratch}", "-c", "nginx.conf"]);
    of(&mut service).workers = Some(Workers::Number(2));
    let template = "daemon off; pid nginx.pid; error_log stderr; worker_processes {{workers}};\n\
                    events {}\n\
                    http { access_log off; server { listen {{address}}:{{ port }}; \
                    location / { return 200 \"{{scratch}}\"; } } }\n";
    of(&mut service)
        .templates
        .insert("nginx.conf".to_owned(), template.to_owned());
    let running = stage.start(&service).unwrap();
    let scratch = PathBuf::from(get(running.address, "/"));
    assert_eq!(
        scratch.metadata().unwrap().permissions().mode() & 0o777,
        0o700
    );
    let rendered = fs::read_to_string(scratch.join("nginx.conf")).unwrap();
    assert!(
        rendered.contains(&format!("listen {};", running.address)),
        "{rendered}"
    );
    assert_eq!(
        running.sight(&[]).processes.len(),
        3,
        "a master and two workers"
    );
    assert_eq!(running.stop().killed, 0);
    assert!(!scratch.exists());
}

#[test]
fn a_service_that_does_not_start_leaves_no_folder() {
    let stage = Stage::new();
    let service = with_env(
        stage.shell("echo $OWN_FOLDER; exit 1"),
        &[("OWN_FOLDER", "{scratch}")],
    );
    let error = stage.start(&service).unwrap_err();
    let tail = error.tail().unwrap();
    assert!(
        tail.starts_with('/') && !PathBuf::from(tail).exists(),
        "{tail}"
    );
}
