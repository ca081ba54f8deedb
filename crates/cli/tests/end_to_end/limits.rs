//! Limits and figures of `proofload load` if a service is silent, violates its contract or is measured for
//! too short a time.

use crate::place::{Place, Run, Running, Said, proofload, service, signal};

struct Service {
    running: Running,
    url: String,
}

impl Service {
    fn start(env: &[(&str, &str)]) -> Service {
        let (running, address) = service(env);
        Service {
            running,
            url: format!("http://{address}/"),
        }
    }

    fn load(&self, flags: &[&str]) -> Said {
        proofload().args(["load", &self.url]).args(flags).said()
    }
}

const FROZEN: [(&str, &str); 2] = [("FREEZE_AT", "600"), ("FREEZE_FOR", "1500")];
const FOR_3_S: [&str; 4] = ["-d", "3s", "-c", "4"];

#[test]
fn a_frozen_service_breaks_a_limit_on_a_quantile() {
    let said = Service::start(&FROZEN).load(&[&FOR_3_S[..], &["--limit", "p99 < 800ms"]].concat());
    said.ends(1).says(&[
        "V56",
        "no response for 1.",
        " of 3.",
        "would have meant a longer wait",
    ]);
    // A value as long as the silence passes.
    let allowed =
        Service::start(&FROZEN).load(&[&FOR_3_S[..], &["--limit", "p50 < 800ms"]].concat());
    allowed.ends(0).says(&["V56"]);
}

#[test]
fn a_service_that_responds_late_or_never_again_is_silent() {
    for env in [
        [("FREEZE_AT", "0"), ("FREEZE_FOR", "1800")],
        [("FREEZE_AT", "800"), ("FREEZE_FOR", "60000")],
    ] {
        // Of p99 a busy machine would show too few requests.
        let flags = [
            "-d",
            "3s",
            "-c",
            "4",
            "--timeout",
            "4s",
            "--limit",
            "p90 < 800ms",
        ];
        Service::start(&env)
            .load(&flags)
            .ends(1)
            .says(&["V56", "no response for"]);
    }
}

#[test]
fn a_stopped_service_is_silent() {
    let service = Service::start(&[]);
    let pid = service.running.child.id();
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(900));
            signal(pid, "-STOP");
            std::thread::sleep(std::time::Duration::from_millis(1400));
            signal(pid, "-CONT");
        });
        service.load(&[&FOR_3_S[..], &["--limit", "p99 < 800ms"]].concat())
    });
    said.ends(1).says(&["V56", "no response for 1."]);
}

#[test]
fn slow_responses_and_open_loop_show_no_silence() {
    let slow = Service::start(&[("MODE", "delay"), ("DELAY_MS", "700")]);
    let said = slow.load(&FOR_3_S);
    assert!(!said.ends(0).all().contains("V56"), "{said}");
    let said =
        Service::start(&FROZEN).load(&["--rate", "500", "-d", "3s", "--limit", "p99 < 800ms"]);
    assert!(!said.ends(1).all().contains("V56"), "{said}");
}

#[test]
fn accepting_connections_is_no_cost_of_requests() {
    let service = Service::start(&[]);
    let cpu_us = |connections: &str| {
        let said = service.load(&["--rate", "100", "-d", "2s", "-c", connections, "--json"]);
        let document = said.ends(0).json();
        let cpu_s = document["services_cpu_s"].as_f64().expect("CPU time");
        cpu_s * 1e6 / document["successful"].as_f64().expect("requests")
    };
    cpu_us("2");
    let (few, many) = (cpu_us("2"), cpu_us("500"));
    assert!(
        many < few * 1.7,
        "{few:.0} us with 2 connections, {many:.0} us with 500"
    );
}

#[test]
fn ten_requests_have_no_rate() {
    let said = Service::start(&[]).load(&["-n", "10"]);
    said.ends(0).says(&["too short for a rate", "V20"]);
    assert!(!said.all().contains("per request, "), "{said}");
    let said = Service::start(&[]).load(&["-n", "10", "--limit", "throughput > 1/s"]);
    said.ends(5).says(&["too short for a rate"]);
}

#[test]
fn a_window_shorter_than_a_response_has_no_throughput() {
    let slow = Service::start(&[("MODE", "delay"), ("DELAY_MS", "900")]);
    let said = slow.load(&["-d", "500ms", "-c", "4"]);
    said.ends(0)
        .says(&["no response came within the window", "4 successful"]);
    assert!(!said.all().contains(" 0/s"), "{said}");
}

#[test]
fn a_window_without_requests_due_measures_nothing() {
    let said = Service::start(&[]).load(&["--rate", "0.01", "-d", "200ms"]);
    said.ends(4).says(&["no request was due"]);
    assert!(!said.all().contains("no success"), "{said}");
}

#[test]
fn failures_of_sampled_contents_stand_for_all() {
    let service = Service::start(&[("MODE", "broken-gzip")]);
    let said = service.load(&["-n", "3000", "--limit", "failed < 0.1%"]);
    said.ends(4)
        .says(&["V9", "0 successful", "of 1 response sampled"]);
}

#[test]
fn each_request_of_a_mix_is_sampled() {
    let place = Place::new();
    let wrong = "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c";
    let mix = format!(
        "[[request]]\nname = \"a\"\npath = \"/a\"\nweight = 99\n\
         [[request]]\nname = \"b\"\npath = \"/b\"\nweight = 1\nexpect = {{ sha256 = \"{wrong}\" }}\n"
    );
    let mix = place.write("mix.toml", mix);
    let service = Service::start(&[]);
    let said = service.load(&[
        "--mix",
        mix.to_str().expect("a path"),
        "-n",
        "5000",
        "--limit",
        "failed < 0.1%",
    ]);
    said.ends(1)
        .says(&["1 of 2 responses sampled", "unexpected content"]);
}

#[test]
fn failed_requests_are_slower_than_any_limit() {
    let service = Service::start(&[("MODE", "half-500")]);
    let said = service.load(&["--rate", "500", "-d", "3s", "--limit", "p99 < 5s"]);
    said.ends(1).says(&["failed, which have no response time"]);
}

#[test]
fn an_unknown_content_coding_fails_no_response() {
    let service = Service::start(&[("MODE", "charset-as-coding")]);
    let said = service.load(&["-n", "3000", "--limit", "failed < 0.1%", "-v"]);
    said.ends(0).says(&["3,000 successful", "V57", "UTF-8"]);
}
