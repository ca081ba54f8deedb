//! Services that are containers: with the local Docker if there is one, otherwise with a recording of one,
//! which is reported.
//!
//! The tests run this program again, because an engine is selected by environment variables.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use plan::{Container, ContainerOf, Ready, Service};
use proofload_services::{CpuSource, Exit, Listening, ProcessInfo, cpus_allowed};

use crate::stage::{PATIENCE, Stage, fixtures, get, of, signal, wait_until, with_env};

const IMAGE: &str = "proofload-test:1";
const PROJECT: &str = "a_project_is_started_healthy_and_taken_down_with_its_volumes";
const SOON: Duration = Duration::from_secs(20);

fn docker(words: &[&str]) -> Output {
    Command::new("docker")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("there is a docker")
}

fn is_there() -> bool {
    let asked = Command::new("docker")
        .args(["version"])
        .stdin(Stdio::null())
        .output();
    asked.is_ok_and(|output| output.status.success())
}

/// Builds an image of node, its libraries, and the server, without a registry.
fn make_image(folder: &Path) {
    let run = |script: &str| {
        let done = Command::new("sh")
            .args(["-ec", script])
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let server = fixtures().join("server.js").display().to_string();
    run(&format!(
        "node=$(readlink -f $(command -v node)); mkdir root; cp --parents -L $node $(ldd $node | grep -o '/[^ ]*') root
         cp {server} root; tar -C root -c . | docker import --change \"ENTRYPOINT [\\\"$node\\\", \\\"/server.js\\\"]\" \
         --change 'EXPOSE 3000' - {IMAGE}"
    ));
}

/// Runs the parts below with an engine: a real one if there is one. The project part needs a real one.
#[test]
fn containers_are_services_as_others_are() {
    let folder = tempfile::tempdir().unwrap();
    if is_there() {
        make_image(folder.path());
    }
    for part in [
        "a_service_as_others_are",
        "a_killed_proofload_leaves_none",
        "what_is_missing_is_told",
        PROJECT,
    ] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--ignored",
            "--exact",
            &format!("containers::{part}"),
            "--nocapture",
        ]);
        if !is_there() {
            // Not printed by a macro: the test runner would capture the output of a passing test.
            let what = if part == PROJECT {
                "skipped"
            } else {
                "against a recording of Docker, not the real one"
            };
            let _ = writeln!(
                std::io::stderr(),
                "{what}: {part}: no Docker daemon answers here"
            );
            if part == PROJECT {
                continue;
            }
            let path = std::env::var("PATH").unwrap();
            command.env(
                "PATH",
                format!("{}:{path}", fixtures().join("engine").display()),
            );
            command.env("FAKE_ENGINE", folder.path());
        }
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success() && said.contains("1 passed"),
            "{part}: {said}"
        );
    }
}

fn service(stage: &Stage, image: &str) -> Service {
    let what = ContainerOf::Image(image.to_owned());
    let mut service = with_env(
        stage.service(&[]),
        &[
            ("HOST", "{address}"),
            ("NODE_ENV", "test"),
            ("TOKEN", "hidden"),
            // The engine's command reads such names itself.
            ("SSH_TOKEN", "hidden too"),
        ],
    );
    service.ready = Ready::Http("/".to_owned());
    of(&mut service).container = Some(Container {
        of: what,
        port: None,
        engine: None,
    });
    service
}

/// Containers of any Proofload.
fn containers() -> String {
    let listed = docker(&[
        "ps",
        "--all",
        "--filter",
        "label=proofload.trial",
        "--format",
        "{{.ID}}",
    ]);
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
#[ignore = "run by the test above"]
fn a_service_as_others_are() {
    let stage = Stage::new();
    let service = service(&stage, IMAGE);
    let cpus = vec![*cpus_allowed().last().unwrap()];
    let start = || {
        stage
            .start_placed(&service, |placement| placement.cpus = cpus.clone())
            .unwrap()
    };
    let mut running = start();
    let sight = running.sight(&["NODE_ENV", "PORT", "TOKEN", "SSH_TOKEN"]);
    let is_node = |one: &&ProcessInfo| one.argv.iter().any(|word| word.ends_with("server.js"));
    let node = sight
        .processes
        .iter()
        .find(is_node)
        .unwrap_or_else(|| panic!("{sight:?}"))
        .clone();
    assert!(
        node.marked && node.environ["NODE_ENV"] == "test" && node.cpus == cpus,
        "{node:?}"
    );
    let engine = fs::read_to_string(format!("/proc/{}/cmdline", running.pid)).unwrap();
    assert_eq!(node.environ["TOKEN"], "hidden");
    assert_eq!(node.environ["SSH_TOKEN"], "hidden too");
    assert!(
        engine.contains("TOKEN") && !engine.contains("hidden"),
        "{engine}"
    );
    assert_eq!(sight.listening, Listening::Unknown);
    assert!(running.image.as_ref().unwrap().starts_with("sha256:"));
    let before = running.sample();
    get(running.address, "/burn/400");
    std::thread::sleep(Duration::from_millis(50));
    let after = running.sample();
    assert_eq!(after.cpu_source, CpuSource::Group);
    let (used, of_node) = (
        after.cpu_ns - before.cpu_ns,
        after.cpu_by_process_since(&before)[0],
    );
    assert!(
        (380_000_000..900_000_000).contains(&used) && of_node > 380_000_000,
        "{used} {of_node}"
    );
    assert!(
        after.rss_bytes > 20 << 20 && running.peak_memory() > 20 << 20 && after.threads > 4,
        "{after:?}"
    );
    let stopped = running.stop();
    assert_eq!((stopped.killed, stopped.leftovers), (0, Vec::new()));
    assert_eq!(containers(), "", "it is removed");

    // Its warden is killed. Its label and name are enough to remove it.
    let mut running = start();
    signal(running.warden_pid(), libc::SIGKILL);
    assert!(wait_until(SOON, || running.exited() == Some(Exit::WithWarden)));
    drop(running);
    assert!(
        wait_until(SOON, || containers().is_empty()),
        "{}",
        containers()
    );
}

#[test]
#[ignore = "run by the test above"]
fn a_killed_proofload_leaves_none() {
    let stage = Stage::new();
    let play = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--ignored", "--exact", "containers::proofload"])
            .env("PLAYED_IN", stage.folder.path());
        let played = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let report = stage.path("report");
        assert!(wait_until(PATIENCE, || report.exists()), "it never started");
        let warden: u32 = fs::read_to_string(&report).unwrap().parse().unwrap();
        fs::remove_file(report).unwrap();
        (played, warden)
    };
    let none_left = || {
        assert!(
            wait_until(SOON, || containers().is_empty()),
            "{}",
            containers()
        )
    };
    let (mut played, _) = play();
    played.kill().unwrap();
    played.wait().unwrap();
    none_left();
    let (mut played, warden) = play();
    for number in [libc::SIGSTOP, libc::SIGKILL] {
        [warden, played.id()]
            .iter()
            .for_each(|pid| signal(*pid, number));
    }
    played.wait().unwrap();
    let left = containers();
    assert_eq!(left.lines().count(), 1, "nobody was there to remove it");
    drop(stage.start(&service(&stage, IMAGE)).unwrap());
    assert_eq!(containers(), "");
    wait_until(SOON, || stage.alive().is_empty());
}

/// Not a test: starts a container, prints its warden, and waits to be killed.
#[test]
#[ignore = "run by the test above, as Proofload"]
fn proofload() {
    let Some(folder) = std::env::var_os("PLAYED_IN").map(PathBuf::from) else {
        return;
    };
    let stage = Stage::new();
    let mut service = service(&stage, IMAGE);
    of(&mut service)
        .env
        .insert("STAGE".to_owned(), folder.display().to_string());
    let running = stage.start(&service).unwrap();
    fs::write(folder.join("new"), running.warden_pid().to_string()).unwrap();
    fs::rename(folder.join("new"), folder.join("report")).unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
#[ignore = "run by the test above"]
fn what_is_missing_is_told() {
    let stage = Stage::new();
    let error = stage
        .start(&service(&stage, "no-such-image:1"))
        .unwrap_err();
    let start = "service api: there is no image no-such-image:1 here: ";
    assert!(error.to_string().starts_with(start), "{error}");
    assert!(
        error
            .hint()
            .unwrap()
            .contains("docker pull no-such-image:1")
    );
    let mut unknown = service(&stage, IMAGE);
    of(&mut unknown).container.as_mut().unwrap().engine = Some(plan::Engine::Podman);
    if let Err(error) = stage.start(&unknown) {
        assert!(
            error.to_string().ends_with("command not found: podman"),
            "{error}"
        );
        assert!(
            error.hint().unwrap().contains("apt-get install podman"),
            "{:?}",
            error.hint()
        );
    }
    if let Ok(state) = std::env::var("FAKE_ENGINE") {
        let elsewhere = Path::new(&state).join("elsewhere");
        fs::write(&elsewhere, "").unwrap();
        let error = stage.start(&service(&stage, IMAGE)).unwrap_err();
        assert!(error.hint().unwrap().contains("Docker Desktop"), "{error}");
        fs::remove_file(elsewhere).unwrap();
        let stuck = Path::new(&state).join("stuck");
        fs::write(&stuck, "").unwrap();
        let left = stage
            .start(&service(&stage, IMAGE))
            .unwrap()
            .stop()
            .leftovers;
        fs::remove_file(stuck).unwrap();
        let container = left[0].description.strip_prefix("container ").unwrap();
        docker(&["rm", "--force", "--volumes", container]);
        assert_eq!((left.len(), containers().as_str()), (1, ""));
    }
    // SAFETY: this process runs this test only.
    unsafe { std::env::set_var("DOCKER_HOST", "unix:///nowhere/docker.sock") };
    if let Ok(state) = std::env::var("FAKE_ENGINE") {
        fs::write(Path::new(&state).join("down"), "").unwrap();
    }
    let error = stage.start(&service(&stage, IMAGE)).unwrap_err();
    let start = "service api: docker does not answer: Cannot connect to the";
    assert!(error.to_string().starts_with(start), "{error}");
}

#[test]
#[ignore = "run by the test above"]
fn a_project_is_started_healthy_and_taken_down_with_its_volumes() {
    let stage = Stage::new();
    let file = stage.path("compose.yaml");
    let node =
        String::from_utf8(Command::new("which").arg("node").output().unwrap().stdout).unwrap();
    let node = fs::canonicalize(node.trim()).unwrap().display().to_string();
    let text = format!(
        "version: '3'\nservices:\n  db: {{ image: {IMAGE}, environment: {{ PORT: 3000, HOST: 0.0.0.0 }} }}\n  web:\n    image: proofload-test:${{TAG:?}}\n    \
             environment: {{ PORT: 3000, HOST: 0.0.0.0 }}\n    restart: always\n    depends_on: [db]\n    volumes: [data:/data]\n    healthcheck:\n      \
             test: [CMD, {node}, -e, \"fetch('http://127.0.0.1:3000/').then(r => process.exit(r.ok ? 0 : 1))\"]\n      interval: 1s\n\
             volumes: {{ data: {{}} }}\n"
    );
    fs::write(&file, text).unwrap();
    let mut service = with_env(service(&stage, ""), &[("TAG", "1")]);
    of(&mut service).directory = stage.folder.path().to_owned();
    let what = ContainerOf::Compose {
        file,
        service: "web".to_owned(),
    };
    of(&mut service).container = Some(Container {
        of: what,
        port: None,
        engine: None,
    });
    let cpus = vec![*cpus_allowed().last().unwrap()];
    let started = stage.start_placed(&service, |placement| placement.cpus = cpus.clone());
    let mut running = started.unwrap_or_else(|error| panic!("{error}\n{:?}", error.tail()));
    assert!(get(running.address, "/burn/100").parse::<u64>().unwrap() >= 100_000);
    let nodes = running.sight(&[]).processes;
    assert!(
        nodes.len() >= 2 && nodes.iter().all(|one| one.cpus == cpus),
        "{nodes:?}"
    );
    assert!(running.sample().cpu_ns > 100_000_000);
    // Started manually, as an engine restarts a failed container.
    let web = docker(&[
        "ps",
        "--quiet",
        "--filter",
        "label=com.docker.compose.service=web",
    ]);
    assert_eq!(running.workers_lost(), 0);
    docker(&[
        "restart",
        "-t",
        "0",
        String::from_utf8(web.stdout).unwrap().trim(),
    ]);
    assert!(
        wait_until(SOON, || running.workers_lost() == 1),
        "nobody is missed"
    );
    let stopped = running.stop();
    assert_eq!(stopped.leftovers, Vec::new());
    for kind in [
        &["ps", "--all", "--quiet"][..],
        &["network", "ls", "--quiet"],
        &["volume", "ls", "--quiet"],
    ] {
        let listed = docker(&[kind, &["--filter", "label=com.docker.compose.project"]].concat());
        assert_eq!(String::from_utf8(listed.stdout).unwrap(), "", "{kind:?}");
    }
    assert!(
        fs::read_to_string(stage.path("log"))
            .unwrap()
            .contains("web")
    );
}
