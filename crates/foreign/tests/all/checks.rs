//! Each check on an output that has its fault, and on one that nearly has it.

use crate::{audit, unnamed, wrk};
use model::{FindingCode, Grade};

/// The grades that a check gives for a text.
fn grades(text: &str, check: &str) -> Vec<Grade> {
    let audit = audit("notes.md", text.as_bytes());
    audit
        .findings
        .iter()
        .filter(|found| found.check.code() == check)
        .map(|found| found.grade)
        .collect()
}

#[test]
fn failures_void_above_one_in_a_thousand() {
    for (check, line) in [
        ("errors_in_throughput", "  Non-2xx or 3xx responses: "),
        (
            "connections_failed",
            "  Socket errors: connect 0, write 0, timeout 0, read ",
        ),
        (
            "timeouts",
            "  Socket errors: connect 0, read 0, write 0, timeout ",
        ),
    ] {
        let with =
            |failed: u64| grades(&wrk("a", 100_000, 500, &format!("{line}{failed}\n")), check);
        assert_eq!(with(102), [Grade::Invalid], "{check}");
        assert_eq!(with(99), [Grade::Warning], "{check}");
        assert_eq!(with(0), [], "{check}");
    }
    // Many failures of one side do not void the few of the other.
    let line = "  Non-2xx or 3xx responses: ";
    let both = wrk("a", 100_000, 500, &format!("{line}5000\n"))
        + &wrk("b", 100_000, 500, &format!("{line}5\n"));
    assert_eq!(
        grades(&both, "errors_in_throughput"),
        [Grade::Invalid, Grade::Warning]
    );
}

#[test]
fn compression_is_missed_only_where_it_is_missing() {
    let pair = |with: u64, name: &str| {
        wrk("no compression", 20_000, 134_000, "") + &wrk(name, 20_000, with, "")
    };
    assert_eq!(
        grades(&pair(134_300, "gzip"), "no_compression"),
        [Grade::Invalid]
    );
    assert_eq!(grades(&pair(21_000, "gzip"), "no_compression"), []);
    // No text mentions compression.
    assert_eq!(grades(&pair(134_300, "cluster"), "no_compression"), []);
    let prose = "We switched on gzip in the second run.\n".to_owned();
    let silent = wrk("before", 20_000, 134_000, "") + &wrk("after", 20_000, 134_100, "");
    assert_eq!(
        grades(&(prose.clone() + &silent), "no_compression"),
        [Grade::Warning]
    );
    assert_eq!(grades(&silent, "no_compression"), []);
    let asked = "`wrk -t2 -c64 -d30s -H 'Accept-Encoding: gzip' http://192.0.2.7/items`\n";
    // The request asked for it, and nothing is known of the rest.
    assert_eq!(grades(&(prose + asked + &silent), "no_compression"), []);
}

#[test]
fn repeats_and_distance_decide_about_one_run() {
    let sides = |other: u64| wrk("a", 100_000, 500, "") + &wrk("b", other, 500, "");
    assert_eq!(grades(&sides(127_000), "one_run"), [Grade::Invalid]);
    assert_eq!(grades(&sides(130_000), "one_run"), [Grade::Warning]);
    let turns: String = [100_000, 101_000, 102_000]
        .map(|requests| wrk("a", requests, 500, "") + &wrk("b", requests + 500, 500, ""))
        .concat();
    assert_eq!(grades(&turns, "one_run"), []);
    assert_eq!(grades(&turns, "in_a_row"), []);
}

#[test]
fn rates_lengths_and_sums() {
    let wrk2 = |rate: &str| {
        format!(
            "$ wrk2 -t2 -c64 -d30s -R2000 http://192.0.2.7/\nRunning 30s test @ http://192.0.2.7/\n  2 threads and 64 connections\n  \
             Thread calibration: mean lat.: 1.087ms, rate sampling interval: 10ms\n    Latency     1.12ms  520.00us   9.23ms   68.46%\n\
             Requests/sec: {rate}\nTransfer/sec: 1.00MB\n"
        )
    };
    assert_eq!(grades(&wrk2("1412.20"), "fell_behind"), [Grade::Invalid]);
    assert_eq!(grades(&wrk2("1990.00"), "fell_behind"), []);
    assert_eq!(grades(&wrk2("1990.00"), "closed_loop_latency"), []);
    let changed = |rate: &str| wrk("a", 300_000, 500, "").replace("10000.00", rate);
    assert_eq!(
        grades(&changed("12000.00"), "contradiction"),
        [Grade::Warning]
    );
    assert_eq!(grades(&changed("10400.00"), "contradiction"), []);
    let ab = |length: u64| {
        format!(
            "Server Software:\nServer Hostname: 192.0.2.7\nConcurrency Level: 4\nTime taken for tests: 30.000 seconds\nComplete requests: 30000\n\
             Failed requests: {length}\n   (Connect: 0, Receive: 0, Length: {length}, Exceptions: 0)\nKeep-Alive requests: 30000\n\
             Requests per second: 1000.00 [#/sec] (mean)\nTime per request: 4.000 [ms] (mean)\n"
        )
    };
    assert_eq!(grades(&ab(1200), "other_lengths"), [Grade::Note]);
    assert_eq!(
        grades(&ab(1200), "connections_failed"),
        [],
        "another length is no failure"
    );
    assert_eq!(grades(&ab(0), "other_lengths"), []);
    assert_eq!(grades(&ab(0), "new_connections"), []);
}

#[test]
fn what_got_no_response_is_throughput_where_the_tool_counts_it() {
    let all = include_str!("../corpus/tools/hey-0.1.5-timeouts.txt");
    // The same number of responses again, in the same time.
    let title = "Status code distribution:\n";
    let half = all
        .replace("3.9647", "7.9294")
        .replace(title, &format!("{title}  [200]\t8 responses\n"));
    for text in [all, half.as_str()] {
        assert_eq!(
            grades(text, "errors_in_throughput"),
            [Grade::Invalid],
            "{text}"
        );
        assert_eq!(grades(text, "contradiction"), [], "{text}");
    }
    let reset = "  [5]\tGet \"http://a/timeout\": read tcp 127.0.0.1:2->127.0.0.1:3: connection reset by peer\n";
    let audit = audit("notes.md", (all.to_owned() + reset).as_bytes());
    let failures = &audit.runs[0].failures;
    assert_eq!((failures.connect, failures.read), (None, Some(5)));
}

#[test]
fn h2load_counts_what_timed_out_once_and_has_its_times_in_both_layouts() {
    let text = "starting benchmark...\nfinished in 30.00s, 100.00 req/s, 50.00KB/s\n\
                requests: 3100 total, 3100 started, 3030 done, 3000 succeeded, 100 failed, 90 errored, 40 timeout\n\
                status codes: 3000 2xx, 0 3xx, 0 4xx, 10 5xx\n\
                min         max         median      p95         p99         mean        sd         +/- sd\n\
                request     :        7us       461us        10us        15us        20us        11us         3us    93.62%\n\
                connect     :       78us        97us        88us        97us        97us        88us         7us    50.00%\n";
    let audit = audit("notes.md", text.as_bytes());
    let run = &audit.runs[0];
    let failures = [
        run.failures.timeouts,
        run.failures.other,
        run.failures.status,
    ];
    assert_eq!(
        (run.requests, failures),
        (Some(3010), [40, 50, 10].map(Some)),
        "20 that are done were reset"
    );
    let latency = &run.latency;
    assert_eq!(
        (latency.mean_us, latency.max_us, latency.sd_us),
        (Some(11.0), Some(461.0), Some(3.0))
    );
    assert_eq!(
        [50.0, 95.0, 99.0].map(|percent| latency.quantile(percent)),
        [10.0, 15.0, 20.0].map(Some)
    );
}

#[test]
fn scenarios_in_k6s_full_summary_are_no_runs_of_their_own() {
    let whole = include_str!("../corpus/tools/k6-1.1.0-plain.txt");
    let http = &whole[whole.find("    HTTP\n").unwrap()..whole.find("    EXECUTION\n").unwrap()];
    let end = "\nrunning (02.0s), 0/5";
    let full = whole.replacen(end, &format!("\n  █ SCENARIO: default\n\n{http}{end}"), 1);
    // The second is pasted without its beginning.
    let both = full.clone() + &full[full.find("  █ TOTAL").unwrap()..];
    let audit = audit("notes.md", both.as_bytes());
    assert_eq!(
        audit
            .runs
            .iter()
            .map(|run| run.requests)
            .collect::<Vec<_>>(),
        [Some(14_194); 2]
    );
}

#[test]
fn several_scenarios_of_k6_have_no_rate_and_are_repeats_where_all_of_them_are_alike() {
    let one = include_str!("../corpus/tools/k6-1.1.0-plain.txt");
    let one = &one[one.find("execution: local").unwrap()..];
    let of = |rate: &str| {
        let first = "* a: 50.00 iterations/s for 2s (maxVUs: 5)\n";
        let two = format!(
            "{first}              * b: {rate} iterations/s for 9s (maxVUs: 5, startTime: 2s)"
        );
        one.replace("1 scenario,", "2 scenarios,")
            .replace("* default: 5 looping VUs for 2s", &two)
    };
    let groups = |other: &str| {
        let audit = audit("notes.md", (of("10.00") + &of(other)).as_bytes());
        assert!(
            audit
                .runs
                .iter()
                .all(|run| (run.load.rate_per_s, run.load.duration_s) == (None, None))
        );
        audit.groups.len()
    };
    assert_eq!([groups("10.00"), groups("20.00")], [1, 2]);
}

#[test]
fn a_warm_up_of_autocannon_is_no_run() {
    let warm_up = "Running 3s warmup @ http://127.0.0.1:3000\n1 connections\n\n".to_owned();
    let text = warm_up + include_str!("../corpus/tools/autocannon-9.0.0-plain.txt");
    assert_eq!(audit("notes.md", text.as_bytes()).runs.len(), 1);
}

#[test]
fn an_address_of_version_6_is_named_whole() {
    let text = wrk("a", 100_000, 500, "").replace("192.0.2.7", "[::1]");
    let audit = audit("notes.md", text.as_bytes());
    let found = audit
        .findings
        .iter()
        .find(|found| found.check.code() == "same_machine")
        .unwrap();
    assert_eq!(found.cases[0].evidence.to_string(), "[::1]");
}

#[test]
fn pasted_configuration_that_nobody_should_deploy_is_noted() {
    let runs = wrk("a", 100_000, 500, "") + &wrk("b", 100_000, 500, "");
    let nginx = "```nginx\nlocation / {\n  proxy_pass http://127.0.0.1:3000;\n}\n```\n";
    let kept = "```nginx\nupstream app {\n  server 127.0.0.1:3000;\n  keepalive 32;\n}\n```\n";
    let express = "```js\nconst express = require('express');\n```\n";
    let note = [Grade::Note];
    assert_eq!(grades(&format!("{nginx}{runs}"), "bare_proxy_pass"), note);
    assert_eq!(
        grades(&format!("{nginx}{runs}{kept}"), "bare_proxy_pass"),
        []
    );
    assert_eq!(
        grades(
            &format!("{runs}We put nginx and proxy_pass before it.\n"),
            "bare_proxy_pass"
        ),
        []
    );
    assert_eq!(grades(&format!("{runs}{express}"), "express_mode"), note);
    assert_eq!(
        grades(
            &format!("NODE_ENV=production node server.js\n{runs}{express}"),
            "express_mode"
        ),
        []
    );
    assert_eq!(
        grades(&format!("{nginx}{express}"), "bare_proxy_pass"),
        [],
        "there is nothing to judge"
    );
}

#[test]
fn runs_that_a_line_between_them_tells_apart_are_not_pooled() {
    let labels = |one: &str, other: &str| {
        let text = format!(
            "# Results\n{one}\n{}\n{other}\n{}",
            unnamed(100_000),
            unnamed(101_000)
        );
        audit("notes.md", text.as_bytes())
            .groups
            .iter()
            .map(|group| group.label.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(labels("without the cache", "with the cache").len(), 2);
    assert_eq!(labels("first run", "second run").len(), 1);
    assert_eq!(labels("", "").len(), 1);
    // With one rate they are repeats, with two they are not.
    let vegeta = include_str!("../corpus/by-hand/vegeta-6-rate.txt");
    let labels = |other: &str| {
        let text = vegeta.to_owned() + &vegeta.replace("120.00", other);
        audit("notes.md", text.as_bytes()).groups.len()
    };
    assert_eq!([labels("120.04"), labels("240.00")], [1, 2]);
}

#[test]
fn the_distances_told_are_those_that_were_measured() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../bench/truth/results/2026-11-21/by-hand.jsonl"
    );
    let mut apart = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let study: serde_json::Value = serde_json::from_str(line).unwrap();
        let rates = |side: &str| {
            study[side]
                .as_array()
                .unwrap()
                .iter()
                .map(|rate| rate.as_f64().unwrap())
                .collect::<Vec<_>>()
        };
        if study["effect"] == "none" {
            let pairs = rates("baseline_rates")
                .into_iter()
                .zip(rates("candidate_rates"));
            apart.extend(pairs.map(|(one, other)| (one / other).max(other / one) - 1.0));
        }
    }
    apart.sort_by(f64::total_cmp);
    assert_eq!(apart.len(), 60);
    assert!(((apart[29] + apart[30]) / 2.0 - proofload_foreign::HAND_MEDIAN).abs() < 0.005);
    assert_eq!(
        apart
            .iter()
            .filter(|apart| **apart > proofload_foreign::HAND_WIDE)
            .count(),
        6
    );
    assert!((apart[59] - proofload_foreign::HAND_MAX).abs() < 0.005);
}
