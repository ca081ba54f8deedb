//! Write-ups as people publish them: the finding that voids each is found, with its figures and its lines.

use std::path::PathBuf;

use model::{Code, Grade};
use proofload_foreign::{About, Audit, Check, Found, Pick, Reader, Sides};

fn study(name: &str) -> Audit {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/studies").join(name);
    read(name, &std::fs::read(path).unwrap())
}

fn read(name: &str, bytes: &[u8]) -> Audit {
    let mut reader = Reader::new(name);
    reader.feed(bytes);
    Audit::of(vec![reader.finish()])
}

fn found<'a>(audit: &'a Audit, check: &str) -> &'a Found {
    let found = audit.findings.iter().find(|found| found.check.code() == check);
    found.unwrap_or_else(|| panic!("{check} is not in {:?}", audit.findings))
}

fn labels(audit: &Audit) -> Vec<&str> {
    audit.groups.iter().map(|group| group.label.as_str()).collect()
}

#[test]
fn a_compression_that_never_was() {
    let audit = study("express-modes.md");
    assert_eq!((audit.runs.len(), audit.groups.len()), (12, 12));
    assert_eq!(audit.groups[4].label, "NODE_ENV=development · PM2 cluster · compression, default level");
    assert_eq!(audit.runs[4].requests_per_s, Some(1250.93));
    let compression = found(&audit, "no_compression");
    assert_eq!(
        (compression.grade, compression.check.about(), compression.cases.len()),
        (Grade::Invalid, About::Comparison, 8)
    );
    assert!(compression.remedy.contains("sends no Accept-Encoding"), "{}", compression.remedy);
    let timeouts = found(&audit, "timeouts");
    assert_eq!(
        (timeouts.grade, timeouts.check.about(), timeouts.cases.len()),
        (Grade::Invalid, About::Latency, 6)
    );
    assert_eq!(found(&audit, "connections_failed").cases.len(), 6);
    let one_run = found(&audit, "one_run");
    assert_eq!(one_run.grade, Grade::Invalid);
    assert!(one_run.cases[0].evidence.contains("of 66 pairs 30 differ by less"), "{one_run:#?}");
    assert!(found(&audit, "uneven").cases[0].evidence.starts_with("396 opened, not 400"));
}

#[test]
fn resets_and_times_that_say_nothing_in_another_language() {
    let audit = study("pbkdf2.md");
    assert_eq!(labels(&audit), ["Synchron", "Asynchron", "Synchron, 200 Verbindungen"]);
    let gave_up = found(&audit, "gave_up");
    assert_eq!((gave_up.grade, gave_up.cases.len()), (Grade::Invalid, 1));
    assert_eq!(
        gave_up.cases[0].evidence.as_str(),
        "apr_socket_recv: Connection reset by peer (104) after 153 requests"
    );
    let little = found(&audit, "closed_loop_latency");
    assert_eq!(little.cases[0].evidence.as_str(), "20 / 12.4/s = 1.61 s; printed: 1.61 s");
    let comparison = proofload_foreign::compare(&audit, 0, 1).unwrap();
    let Sides::Invalid { reasons } = &comparison.answer else { panic!("{comparison:#?}") };
    assert!(reasons[0].starts_with("one run a side: 12.4/s and 12.3/s, −0.8 %"), "{reasons:?}");
    assert_eq!(
        found(&audit, "tail").cases[0].evidence.as_str(),
        "p99 is a matter of 2.5 of 250 requests; it takes 1,000"
    );
}

#[test]
fn a_latency_that_was_never_measured_in_a_shell_transcript() {
    let audit = study("data-endpoints.txt");
    assert_eq!(labels(&audit), ["net, stream", "net, promise", "disk, stream", "disk, promise"]);
    let never = found(&audit, "latency_never_measured");
    assert_eq!((never.grade, never.check.about(), never.cases.len()), (Grade::Invalid, About::Latency, 3));
    assert!(
        never.cases[0].evidence.starts_with("291 of 291 requests timed out; latency printed as 0 or nan")
    );
    assert!(never.cases[0].evidence.contains("396 connections at 6.46/s wait 61.3 s each"), "{never:#?}");
    assert_eq!(audit.runs[0].lines.first, 10);
    let most = &found(&audit, "timeouts").cases[0];
    assert!(
        most.evidence.starts_with("1,141 of 1,175 requests (97 %)") && most.evidence.contains("other 34"),
        "{most:#?}"
    );
    assert_eq!(found(&audit, "start_up").grade, Grade::Invalid);
}

#[test]
fn three_seconds_once() {
    let audit = study("node-env.txt");
    assert_eq!(labels(&audit), ["NODE_ENV=development node server.js", "NODE_ENV=production node server.js"]);
    assert_eq!((audit.runs[0].requests, audit.runs[1].requests), (Some(124), Some(209)));
    assert_eq!(
        (audit.runs[0].latency.quantile(99.0), audit.runs[1].latency.mean_us),
        (Some(298e3), Some(143_823.0))
    );
    assert_eq!(found(&audit, "short").cases.len(), 2);
    assert_eq!(found(&audit, "tail").cases.len(), 2);
    assert_eq!(found(&audit, "new_connections").cases.len(), 2);
    assert!(found(&audit, "one_run").cases[0].evidence.starts_with("+68."));
    let reasons = proofload_foreign::compare(&audit, 0, 1).unwrap().answer;
    assert!(reasons.is_void(), "{reasons:?}");
}

#[test]
fn repeats_have_an_interval_and_the_proxy_a_suspicion() {
    let audit = study("reverse-proxy.md");
    assert_eq!(labels(&audit), ["Origin", "Node proxy", "nginx"]);
    let pooled = audit.groups[1].pooled.unwrap();
    assert_eq!((pooled.runs, pooled.low_per_s.round(), pooled.high_per_s.round()), (3, 5384.0, 5652.0));
    let proxied = found(&audit, "connection_per_request");
    assert_eq!((proxied.grade, proxied.cases.len()), (Grade::Warning, 2));
    assert!(proxied.cases[1].evidence.contains("a factor of 5.8"), "{proxied:#?}");
    found(&audit, "in_a_row");
    found(&audit, "same_machine");
    let comparison = proofload_foreign::compare(&audit, 1, 2).unwrap();
    // scipy's Welch interval of the logarithms.
    let Sides::Interval { ratio, low, high, .. } = comparison.answer else { panic!("{comparison:#?}") };
    assert_eq!([ratio, low, high].map(|ratio| (ratio * 1e4).round()), [14_890.0, 14_023.0, 15_811.0]);
    assert_eq!(proofload_foreign::pick(&audit.groups, "node"), Pick::One(1));
    assert_eq!(proofload_foreign::pick(&audit.groups, "#3"), Pick::One(2));
    assert_eq!(proofload_foreign::pick(&audit.groups, "n"), Pick::Several(vec![0, 1, 2]));
    assert_eq!(proofload_foreign::pick(&audit.groups, "haproxy"), Pick::None);
}

#[test]
fn a_clean_run_gives_no_warning() {
    let text = "Running 30s test @ http://192.0.2.7:3000/\n  2 threads and 64 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
                Latency     9.02ms    2.10ms  31.00ms   88.00%\n    Req/Sec     3.55k   120.00     3.90k    70.00%\n  \
                213010 requests in 30.01s, 30.00MB read\nRequests/sec:   7098.00\nTransfer/sec:      1.00MB\n";
    let audit = read("one.txt", text.as_bytes());
    let checks: Vec<Check> = audit.findings.iter().map(|found| found.check).collect();
    assert_eq!(checks, [Check::ClosedLoopLatency]);
    assert!(!audit.is_void());
}

#[test]
fn decimal_commas_and_truncated_runs() {
    let text = "**mit gzip**\nRunning 10s test @ http://localhost/\n  2 threads and 10 connections\n  Latency   1,50ms    0,30ms  12,00ms   88,00%\n  \
                66655 requests in 10,00s, 85,00MB read\nRequests/sec:  6.665,55\nTransfer/sec:  8,50MB\n\
                **ohne gzip**\nRunning 10s test @ http://localhost/\n  2 threads and 10 connections\n";
    let audit = read("messung.md", text.as_bytes());
    assert_eq!(labels(&audit), ["mit gzip", "ohne gzip"]);
    let run = &audit.runs[0];
    assert_eq!(
        (run.requests_per_s, run.latency.mean_us, run.duration_s),
        (Some(6665.55), Some(1500.0), Some(10.0))
    );
    assert_eq!(run.bytes, Some(85.0 * 1024.0 * 1024.0));
    let cut = found(&audit, "cut_off");
    assert_eq!((cut.cases.len(), cut.cases[0].label.as_str()), (1, "ohne gzip"));
}

#[test]
fn lines_of_few_words_name_runs_where_there_are_no_headings() {
    let run = |rate: u32| {
        format!(
            "  Latency 9.02ms 2.10ms 31.00ms 88.00%\n  {rate}0 requests in 10.00s, 30.00MB read\nRequests/sec: {rate}.00\nTransfer/sec: 1.00MB\n"
        )
    };
    let text = format!(
        "Hello all. This is what I got.\n\nBefore\n\n{}\nAfter the change\n\n{}",
        run(7000),
        run(8000)
    );
    assert_eq!(labels(&read("mail.txt", text.as_bytes())), ["Before", "After the change"]);
    let text = format!(
        "$ node server.js\nlistening\n$ wrk -d10s http://a/\n{}ready\n$ wrk -d10s http://a/\n{}",
        run(7000),
        run(8000)
    );
    assert_eq!(
        labels(&read("log.txt", text.as_bytes())),
        ["node server.js"],
        "what programs print is no heading"
    );
}

#[test]
fn an_output_that_was_pasted_twice() {
    let run = |rate: &str| {
        format!(
            "Thread Stats Avg Stdev Max\n  Latency 9.02ms 2.10ms 31.00ms 88.00%\n  213010 requests in 30.01s, 30.00MB read\nRequests/sec: {rate}\nTransfer/sec: 1.00MB\n"
        )
    };
    let text = |one: &str, other: &str| format!("before:\n{}after:\n{}", run(one), run(other));
    let audit = read("notes.txt", text("7098.00", "7098.00").as_bytes());
    let same = found(&audit, "same_output");
    assert_eq!(
        (same.grade, same.cases[0].evidence.as_str()),
        (Grade::Invalid, "2 runs with 7,100/s, in lines 2, 8")
    );
    let audit = read("notes.txt", text("7098.00", "7098.01").as_bytes());
    assert!(audit.findings.iter().all(|found| found.check != Check::SameOutput));
}
