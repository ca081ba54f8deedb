//! Runs of different things are never merged as repeats, regardless of the text around them.

use model::Grade;
use proofload_foreign::{Audit, ComparisonAnswer, Reader, compare, pick};

use crate::{audit, unnamed};

fn labels(audit: &Audit) -> Vec<&str> {
    audit
        .groups
        .iter()
        .map(|group| group.label.as_str())
        .collect()
}

/// The labels of two runs with this text before each.
fn between(one: &str, other: &str) -> Vec<String> {
    let text = format!("{one}\n{}\n{other}\n{}", unnamed(100_000), unnamed(140_000));
    labels(&audit("notes.txt", text.as_bytes()))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

const WRK: &str = "$ wrk -d30s http://192.0.2.7/items";

#[test]
fn all_that_was_typed_before_a_run_names_it() {
    let typed = |commands: &str| {
        commands
            .lines()
            .map(|line| format!("$ {line}\n"))
            .collect::<String>()
            + WRK
    };
    for (one, other) in [
        (
            "git checkout main\nnpm start &",
            "git checkout feature\nnpm start &",
        ),
        (
            "nvm use 18\nnode server.js &",
            "nvm use 20\nnode server.js &",
        ),
        ("export CACHE=a\nnpm start &", "export CACHE=b\nnpm start &"),
        (
            "docker run app:v1\ndocker ps",
            "docker run app:v2\ndocker ps",
        ),
        ("cd ../old && npm start &", "cd ../new && npm start &"),
    ] {
        assert_eq!(between(&typed(one), &typed(other)).len(), 2, "{one}");
    }
    let named = between(
        &typed("git checkout main\nnpm start &"),
        &typed("git checkout feature\nnpm start &"),
    );
    assert_eq!(
        named,
        [
            "git checkout main · npm start",
            "git checkout feature · npm start"
        ]
    );
    // On the line of the load generator, and again for a second run.
    let line = |mode: &str| {
        format!("$ kill %1; MODE={mode} node app.js & sleep 2; wrk -d30s http://192.0.2.7/items")
    };
    assert_eq!(
        between(&line("one"), &line("two")),
        ["MODE=one node app.js", "MODE=two node app.js"]
    );
    assert_eq!(between(&line("one"), &line("one")).len(), 1);
    assert_eq!(between(&typed("npm start &\nsleep 5"), WRK), ["npm start"]);
    assert_eq!(between(&typed("cd app"), WRK), ["wrk"]);
    assert_eq!(
        between("$ ./bench.sh\nTesting one process", "Testing a cluster").len(),
        2
    );
}

#[test]
fn what_the_load_generator_was_asked_for_tells_runs_apart() {
    let asked = |words: &str| format!("$ wrk -d30s {words} http://192.0.2.7/items");
    assert_eq!(
        between(&asked("-s post.lua"), &asked("-s get.lua")).len(),
        2
    );
    assert_eq!(between(&asked("-H 'Connection: close'"), WRK).len(), 2);
    assert_eq!(between(WRK, WRK).len(), 1);
    assert_eq!(between(&asked("# warm-up"), WRK).len(), 2);
    // In a loop, a variable distinguishes the turns, and a plain count does not.
    let looped = |load: &str| {
        between(
            &format!("$ for c in 50 500; do {load} http://192.0.2.7/items; done"),
            "",
        )
    };
    assert_eq!(
        [
            looped("wrk -c$c").len(),
            looped("MODE=$c ./start; wrk -c50").len(),
            looped("wrk -c50").len()
        ],
        [2, 2, 1]
    );
}

#[test]
fn a_command_of_another_length_is_that_of_another_run() {
    let of = |command: &str| {
        let text = format!("{command}\n{}", unnamed(100_000));
        audit("notes.txt", text.as_bytes()).runs[0].command.clone()
    };
    assert!(of(WRK).is_some());
    assert_eq!(
        of("$ wrk -d5s -H 'Accept-Encoding: br' http://192.0.2.7/items"),
        None
    );
}

#[test]
fn headings_of_any_form_tell_runs_apart() {
    for (one, other) in [
        (
            "<details><summary>Before</summary>",
            "<details><summary>After</summary>",
        ),
        ("==> before.txt <==", "==> after.txt <=="),
        ("=== single ===", "=== cluster ==="),
        ("[single]", "[cluster]"),
        ("1. Before", "2. After"),
        ("* Before", "* After"),
        ("2 workers", "4 workers"),
        (
            "Benchmarking mode=single...",
            "Benchmarking mode=cluster...",
        ),
        ("## Node 18 test", "## Node 20 test"),
        ("### Option #1", "### Option #2"),
        ("# PR #101", "# PR #102"),
    ] {
        assert_eq!(between(one, other).len(), 2, "{one}");
    }
    // Times, and code, name no run.
    let time = "real\t0m10.03s\nuser\t0m0.61s\nsys\t0m4.74s";
    assert_eq!(between("# a", &time.replace('4', "5")), ["a"]);
    assert_eq!(between("```js\nserver.listen(3000)\n```", "").len(), 1);
    let remark = format!("## one\n{}Looks stable to me.\n\n", unnamed(100_000));
    assert_eq!(between(&format!("{remark}## two"), ""), ["one", "two"]);
    let ruled = format!("Before\n\n{}----------\n\nAfter\n", unnamed(90_000));
    assert_eq!(between(&ruled, "----------"), ["Before", "After"]);
}

#[test]
fn files_with_the_same_headings_are_no_repeats_of_each_other() {
    let of = |names: [&str; 2]| {
        let read = |(name, requests): (&str, u64)| {
            let mut reader = Reader::new(name);
            reader.feed(
                format!(
                    "# The API\n\n$ node server.js &\n{WRK}\n{}",
                    unnamed(requests)
                )
                .as_bytes(),
            );
            reader.finish()
        };
        let audit = Audit::of(vec![read((names[0], 100_000)), read((names[1], 140_000))]);
        labels(&audit)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(["before.txt", "after.txt"]).len(), 2);
    assert_eq!(of(["before/wrk.txt", "after/wrk.txt"]).len(), 2);
    assert_eq!(of(["wrk-run1.txt", "wrk-run2.txt"]), ["node server.js"]);
}

#[test]
fn output_that_is_not_read_is_told_and_names_nothing() {
    let plow = "$ plow -c 5 http://a/\nBenchmarking http://a/ for 10s using 5 connection(s)\nSummary:\n  Elapsed  10s\n  Count  614303\n  \
                Latency Distribution\n  Requests/sec: 61423.12\n";
    let audit = audit(
        "notes.txt",
        format!("{plow}{}", unnamed(100_000)).as_bytes(),
    );
    assert_eq!(
        (labels(&audit), audit.files[0].unread.len()),
        (vec!["wrk"], 1)
    );
}

/// Requests per second and failed responses of each run.
fn figures(text: &str) -> Vec<(Option<f64>, Option<u64>)> {
    audit("notes.txt", text.as_bytes())
        .runs
        .iter()
        .map(|run| (run.requests_per_s, run.failures.status))
        .collect()
}

#[test]
fn lines_that_were_picked_from_each_run_stay_with_it() {
    let of = |rate, failed| (Some(rate), failed);
    let wrk = "  Latency   1.50ms  0.30ms  12.00ms   88.00%\nRequests/sec:  24200.00\n  Latency   88.10ms  0.30ms  92.00ms   88.00%\n  \
               Non-2xx or 3xx responses: 120034\nRequests/sec:  34200.00\n";
    assert_eq!(
        figures(wrk),
        [of(24_200.0, None), of(34_200.0, Some(120_034))]
    );
    let ab = "fast\nComplete requests: 10000\nFailed requests: 0\nRequests per second: 4231.12 [#/sec] (mean)\nslow\nComplete requests: 9000\n\
              Failed requests: 8712\nNon-2xx responses: 8712\nRequests per second: 9120.55 [#/sec] (mean)\n";
    assert_eq!(figures(ab), [of(4231.12, None), of(9120.55, Some(8712))]);
    assert_eq!(labels(&audit("notes.txt", ab.as_bytes())), ["fast", "slow"]);
    let looped = format!(
        "$ for u in fast slow; do echo $u; ab -n 10000 -c 50 http://a/$u | grep -E 'Req|Fail'; done\n{ab}"
    );
    assert_eq!(
        labels(&audit("notes.txt", looped.as_bytes())),
        ["ab · fast", "ab · slow"]
    );
    let k6 = "http_req_failed....: 0.00%  0 out of 11988\nhttp_reqs....: 11988 399.41/s\nhttp_req_failed....: 50.00%  10000 out of 20000\n\
              http_reqs....: 20000 666.41/s\n";
    assert_eq!(figures(k6), [of(399.41, Some(0)), of(666.41, Some(10_000))]);
    let autocannon = "3000 2xx responses, 0 non 2xx responses\n3k requests in 10.01s, 5 MB read\n10 2xx responses, 5000 non 2xx responses\n\
                      5k requests in 10.01s, 5 MB read\n";
    assert_eq!(figures(autocannon), [(None, Some(0)), (None, Some(5000))]);
    let hey = "$ for c in 5 50; do hey -c $c http://a/ | grep -E 'Requests/sec|\\['; done\n  Requests/sec:\t24200.10\n  [200]\t242001 responses\n  \
               Requests/sec:\t34200.10\n  [200]\t42001 responses\n  [503]\t300000 responses\n";
    assert_eq!(
        figures(hey),
        [of(24_200.1, Some(0)), of(34_200.1, Some(300_000))]
    );
    // A missing value is not zero, and a truncated count is ignored.
    let k6 = "http_req_duration....: med=122.3ms p(95)=170.12ms p(99)=201.4ms\nhttp_reqs....: 11988  399.41/s\n";
    let audit = audit("notes.txt", k6.as_bytes());
    assert_eq!(audit.runs[0].latency.quantile(95.0), Some(170_120.0));
    assert!(!audit.is_void(), "{:?}", audit.findings);
    assert_eq!(figures("http_reqs....: 14\n194  7071.39/s\n"), []);
}

#[test]
fn a_fixed_rate_is_no_result_and_one_that_was_not_kept_is_told() {
    let run = |mean: &str, rate: f64| {
        format!(
            "$ wrk2 -R2000 -d30s http://192.0.2.7/\nRunning 30s test @ http://192.0.2.7/\n  2 threads and 64 connections\n  Latency  {mean}  \
             0.10ms  9.00ms  68.00%\n  60000 requests in 30.00s, 9.00MB read\nRequests/sec:  {rate}\nTransfer/sec:  0.30MB\n"
        )
    };
    let side = |name: &str, mean: &str| {
        (0..3)
            .map(|turn| format!("## {name}\n{}", run(mean, 1998.0 + f64::from(turn) / 10.0)))
            .collect::<String>()
    };
    let both = audit(
        "notes.md",
        (side("a", "1.10ms") + &side("b", "9.10ms")).as_bytes(),
    );
    let ComparisonAnswer::Invalid { reasons } = compare(&both, 0, 1).unwrap().answer else {
        panic!("{both:?}")
    };
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("both sides were sent at a fixed rate")),
        "{reasons:?}"
    );
    let closed = side("b", "9.10ms")
        .replace("wrk2 -R2000", "wrk -c64")
        .replace("1998", "7998");
    let one = audit("notes.md", (side("a", "1.10ms") + &closed).as_bytes());
    let ComparisonAnswer::Invalid { reasons } = compare(&one, 0, 1).unwrap().answer else {
        panic!("{one:?}")
    };
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("one side was sent at a fixed rate")),
        "{reasons:?}"
    );
    let behind = |text: &str| {
        let audit = audit("notes.txt", text.as_bytes());
        audit.findings.iter().any(|found| {
            found.grade == Grade::Invalid && found.evidence.to_string().contains("rate")
        })
    };
    assert!(behind(
        "dropped_iterations....: 18012  600.41/s\nhttp_reqs....: 11988  399.41/s\n"
    ));
    let vegeta = include_str!("../corpus/by-hand/vegeta-6-rate.txt");
    let asked = |rate: u32| {
        format!(
            "$ echo GET http://a/ | vegeta attack -rate={rate} -duration=10s | vegeta report\n{vegeta}"
        )
    };
    assert!(behind(&asked(1000)) && !behind(&asked(120)));
}

#[test]
fn one_run_is_not_counted_twice() {
    let copies = |text: &str| {
        let audit = audit("notes.txt", text.as_bytes());
        audit
            .findings
            .iter()
            .any(|found| found.check == proofload_foreign::OutputCheck::SameOutput)
    };
    let runs = unnamed(100_000) + &unnamed(140_000);
    assert!(copies(&format!(
        "{runs}Summary\nRequests/sec: {:.2}\n",
        140_000.0 / 30.0
    )));
    assert!(!copies(&format!("{runs}Summary\nRequests/sec: 4666.60\n")));
    let text = include_str!("../corpus/tools/k6-1.1.0-plain.txt").to_owned();
    assert!(copies(
        &(text + "\n" + include_str!("../corpus/tools/k6-1.1.0-plain.json"))
    ));
}

#[test]
fn a_number_is_that_of_the_table() {
    let text: String = [1, 2, 4]
        .map(|count| format!("## {count} workers\n{}", unnamed(100_000 * count)))
        .concat();
    let groups = audit("notes.md", text.as_bytes()).groups;
    assert_eq!(
        [pick(&groups, "2"), pick(&groups, "#2"), pick(&groups, "3")],
        [vec![1], vec![1], vec![2]]
    );
    assert_eq!(pick(&groups, "1"), [0]);
    let text = text.replace("## 1 workers", "## none");
    assert_eq!(
        pick(
            &audit("notes.md", text.replace("## 4", "## 3").as_bytes()).groups,
            "3"
        ),
        [2]
    );
    let groups = audit("notes.md", text.replace("## 4", "## 1").as_bytes()).groups;
    assert_eq!(pick(&groups, "1"), [0]);
    // Also if it is a label. Case distinguishes two labels if both are typed.
    let of = |names: [&str; 2]| {
        let text: String = names
            .map(|name| format!("## {name}\n{}", unnamed(100_000)))
            .concat();
        audit("notes.md", text.as_bytes()).groups
    };
    assert_eq!(pick(&of(["2", "gzip"]), "2"), [1]);
    let capitals = of(["GZIP", "gzip"]);
    assert_eq!(
        [pick(&capitals, "gzip"), pick(&capitals, "Gzip")],
        [vec![1], vec![0, 1]]
    );
}
