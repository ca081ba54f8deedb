//! Agents in real Node.js services with all launchers, and CPU time by thread compared with what processes
//! measure themselves.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use plan::{Launcher, Service};
use proofload_services::{AgentHostFolder, CaptureOrder, Role, Running, ThreadAgent};

use crate::launchers::{crew, with_pm2};
use crate::stage::{PATIENCE, Stage, get, wait_until, with_env};

/// Starts a service with an agent in each of its Node.js processes.
fn with_agent(stage: &Stage, service: &Service) -> (Running, AgentHostFolder) {
    let host = AgentHostFolder::new().unwrap();
    let running = stage
        .start_placed(service, |placement| placement.agent = Some(host.clone()))
        .unwrap();
    (running, host)
}

fn of(agents: &[ThreadAgent], role: Role) -> Vec<u32> {
    agents
        .iter()
        .filter(|agent| agent.role == role)
        .map(|agent| agent.pid)
        .collect()
}

#[test]
fn a_real_service_is_profiled_and_counts_its_requests_and_nothing_is_left() {
    let stage = Stage::new();
    let env = [("NODE_OPTIONS", "--no-deprecation"), ("NODE_ENV", "test")];
    let service = with_env(stage.service(&["node", "server.js"]), &env);
    let (running, host) = with_agent(&stage, &service);
    assert!(host.wait_for_agents(PATIENCE, &|| false));
    let agents = host.agents();
    assert_eq!(
        (of(&agents, Role::Service), agents.len()),
        (vec![running.pid], 1)
    );
    assert_eq!(agents[0].node_env.as_deref(), Some("test"));
    assert!(agents[0].versions.contains_key("node"), "{agents:?}");
    assert!(
        agents[0].main.as_ref().unwrap().ends_with("server.js"),
        "{agents:?}"
    );
    let options = running.sight(&["NODE_OPTIONS"]).processes[0].environ["NODE_OPTIONS"].clone();
    let has_both =
        options.starts_with("--require ") && options.ends_with("agent.cjs --no-deprecation");
    assert!(has_both, "{options}");
    for (wanted, key) in [
        (CaptureOrder::Cpu { interval_us: 1000 }, "nodes"),
        (CaptureOrder::Heap, "head"),
    ] {
        let file = stage.path(key);
        let arming = host.arm(wanted, &|_| file.clone(), &|| false);
        (0..3).for_each(|_| drop(get(running.address, "/burn/30")));
        let came = host.disarm(arming, &|| false);
        let take = came[0].1.as_ref().unwrap();
        assert_eq!((came.len(), take.requests), (1, Some(3)), "{came:?}");
        let profile: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert!(!profile[key].is_null(), "it is a profile");
    }
    let arming = host.arm(CaptureOrder::Counters, &|_| PathBuf::new(), &|| false);
    get(running.address, "/burn/30");
    let came = host.disarm(arming, &|| false);
    let counters = came[0].1.as_ref().unwrap().counters.as_ref().unwrap();
    assert!(
        counters["loop_active_ns"].as_u64().unwrap() >= 25_000_000,
        "{counters}"
    );
    assert_eq!(host.notes(), Vec::<String>::new());
    let environ = &running.processes(&["PROOFLOAD_AGENT"])[0].environ;
    let folder = PathBuf::from(&environ["PROOFLOAD_AGENT"])
        .parent()
        .unwrap()
        .to_owned();
    assert!(folder.join("agent.sock").exists());
    drop(host);
    assert!(folder.exists(), "the service still has it");
    let stopped = running.stop();
    assert_eq!((stopped.killed, folder.exists()), (0, false));
}

#[test]
fn every_worker_has_an_agent_from_its_start_whoever_starts_it() {
    for (launcher, role) in [
        (Launcher::Cluster, Role::Worker),
        (Launcher::Pm2Cluster, Role::Worker),
        (Launcher::Pm2Fork, Role::Service),
    ] {
        let stage = Stage::new();
        let workers = if role == Role::Worker { 3 } else { 1 };
        let service = match launcher {
            Launcher::Cluster => crew(&stage, launcher, &["node", "crew.js"], workers),
            _ => with_pm2(&stage, launcher, workers),
        };
        let service = with_env(service, &[("NODE_OPTIONS", "--no-deprecation")]);
        let (running, host) = with_agent(&stage, &service);
        let found = || of(&host.agents(), role).len() == workers as usize;
        assert!(
            wait_until(PATIENCE, found),
            "{launcher:?}: {:?} {:?}",
            host.agents(),
            host.notes()
        );
        let workers = of(&host.agents(), role);
        // The environment at the worker's start counts: Node.js reads it before PM2 can set anything.
        let processes = running.sight(&["NODE_OPTIONS"]).processes;
        for process in processes
            .iter()
            .filter(|process| workers.contains(&process.id.pid))
        {
            let options = &process.environ["NODE_OPTIONS"];
            let has_both =
                options.starts_with("--require ") && options.ends_with("--no-deprecation");
            assert!(has_both, "{process:?}");
        }
        assert_eq!(
            running.stop().killed,
            0,
            "{launcher:?}: an agent keeps no process alive"
        );
    }
}

#[test]
fn a_dropped_service_has_its_agents_folder_until_it_has_ended() {
    let stage = Stage::new();
    // The shell waits for node, which the same SIGTERM ends.
    let script = "trap 'test -S $PROOFLOAD_AGENT && echo there' TERM; node server.js; wait";
    let (running, host) = with_agent(&stage, &stage.shell(script));
    drop(host);
    drop(running);
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
    let log = fs::read_to_string(stage.path("log")).unwrap();
    assert!(log.ends_with("there\n"), "{log}");
}

#[test]
fn a_service_without_node_has_no_agent_and_starts_as_ever() {
    let stage = Stage::new();
    // It removes the variable, as some scripts do.
    let (running, host) = with_agent(
        &stage,
        &stage.shell("unset NODE_OPTIONS; exec node server.js"),
    );
    assert!(!host.wait_for_agents(Duration::from_millis(200), &|| false));
    let came = host.disarm(
        host.arm(CaptureOrder::Counters, &|_| PathBuf::new(), &|| false),
        &|| false,
    );
    assert!(came.is_empty() && running.threads()[0].program == "node");
}

#[test]
fn what_threads_used_adds_up_to_what_the_process_did() {
    let stage = Stage::new();
    let running = stage
        .start(&stage.shell("sleep 600 & exec node server.js"))
        .unwrap();
    let own_ns = |path: &str| get(running.address, path).parse::<u64>().unwrap() * 1000;
    let (before, began_ns) = (running.threads(), own_ns("/"));
    let truth_ns = own_ns("/burn/1000") - began_ns;
    // An ended process is fully accounted for.
    std::thread::sleep(Duration::from_millis(50));
    let after = running.threads();
    let node = after
        .iter()
        .find(|process| process.program == "node")
        .unwrap();
    let used = node.used_since(before.iter().find(|process| process.id == node.id));
    let sum_ns: u64 = used.iter().map(|thread| thread.cpu_ns).sum();
    // The requests themselves, and a scheduler's tick.
    let near = |ns: u64| ns + 5_000_000 >= truth_ns && ns < truth_ns + truth_ns / 10 + 25_000_000;
    assert!(
        near(sum_ns),
        "{sum_ns} ns, in truth {truth_ns} ns: {used:?}"
    );
    let main = used.iter().find(|thread| thread.id == node.id.pid).unwrap();
    assert!(main.cpu_ns >= 950_000_000 && used.len() > 4, "{used:?}");
    let sleeper = after
        .iter()
        .find(|process| process.program != "node")
        .unwrap();
    assert!(
        sleeper.argv[0].ends_with("sleep") && sleeper.parent == node.id.pid,
        "{sleeper:?}"
    );
}
