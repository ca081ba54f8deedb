//! Write-ups as people publish them: the finding that voids each is reported, with its figures and its lines.

use model::{FindingCode, Grade};
use proofload_foreign::{About, Audit, CheckResult, ComparisonAnswer, OutputCheck};

use crate::{audit, unnamed, written};

fn study(name: &str) -> Audit {
    audit(name, &std::fs::read(written("studies").join(name)).unwrap())
}

fn found<'a>(audit: &'a Audit, check: &str) -> &'a CheckResult {
    let found = audit
        .findings
        .iter()
        .find(|found| found.check.code() == check);
    found.unwrap_or_else(|| panic!("{check} is not in {:?}", audit.findings))
}

fn labels(audit: &Audit) -> Vec<&str> {
    audit
        .groups
        .iter()
        .map(|group| group.label.as_str())
        .collect()
}

/// Asserts that a check found this number of cases, and the start of the first one's evidence.
fn finds<'a>(
    audit: &'a Audit,
    check: &str,
    grade: Grade,
    cases: usize,
    first: &str,
) -> &'a CheckResult {
    let found = found(audit, check);
    assert_eq!(
        (found.grade, found.cases.len()),
        (grade, cases),
        "{found:#?}"
    );
    assert!(found.cases[0].evidence.starts_with(first), "{found:#?}");
    found
}

#[test]
fn a_compression_that_never_was() {
    let audit = study("express-modes.md");
    assert_eq!((audit.runs.len(), audit.groups.len()), (12, 12));
    assert_eq!(
        audit.groups[4].label,
        "NODE_ENV=development · PM2 cluster · compression, default level"
    );
    assert_eq!(audit.runs[4].requests_per_s, Some(1250.93));
    let compression = finds(&audit, "no_compression", Grade::Invalid, 8, "");
    assert!(
        compression.remedy.contains("sends no Accept-Encoding"),
        "{}",
        compression.remedy
    );
    let timeouts = finds(&audit, "timeouts", Grade::Invalid, 6, "");
    let about = [compression, timeouts].map(|found| found.check.about());
    assert_eq!(about, [About::Comparison, About::Latency]);
    assert_eq!(found(&audit, "connections_failed").cases.len(), 6);
    let one_run = finds(&audit, "one_run", Grade::Invalid, 1, "");
    assert!(
        one_run.cases[0]
            .evidence
            .contains("of 66 pairs 30 differ by less"),
        "{one_run:#?}"
    );
    assert!(
        found(&audit, "uneven").cases[0]
            .evidence
            .starts_with("396 opened, not 400")
    );
}

#[test]
fn resets_and_times_that_say_nothing_in_another_language() {
    let audit = study("pbkdf2.md");
    assert_eq!(
        labels(&audit),
        ["Synchron", "Asynchron", "Synchron, 200 Verbindungen"]
    );
    let reset = "apr_socket_recv: Connection reset by peer (104) after 153 requests";
    finds(&audit, "gave_up", Grade::Invalid, 1, reset);
    let first = |check: &str| found(&audit, check).cases[0].evidence.to_string();
    assert_eq!(
        first("closed_loop_latency"),
        "20 / 12.4/s = 1.61 s; printed: 1.61 s"
    );
    assert_eq!(
        first("tail"),
        "p99 is a matter of 2.5 of 250 requests; it takes 1,000"
    );
    let comparison = proofload_foreign::compare(&audit, 0, 1).unwrap();
    let ComparisonAnswer::Invalid { reasons } = &comparison.answer else {
        panic!("{comparison:#?}")
    };
    assert!(
        reasons[0].starts_with("one run a side: 12.4/s and 12.3/s, −0.8 %"),
        "{reasons:?}"
    );
}

#[test]
fn a_latency_that_was_never_measured_in_a_shell_transcript() {
    let audit = study("data-endpoints.txt");
    assert_eq!(
        labels(&audit),
        [
            "net, stream",
            "net, promise",
            "disk, stream",
            "disk, promise"
        ]
    );
    let all = "291 of 291 requests timed out; latency printed as 0 or nan";
    let never = finds(&audit, "latency_never_measured", Grade::Invalid, 3, all);
    assert_eq!(never.check.about(), About::Latency);
    assert!(
        never.cases[0]
            .evidence
            .contains("396 connections at 6.46/s wait 61.3 s each"),
        "{never:#?}"
    );
    assert_eq!(audit.runs[0].lines.first, 10);
    let most = &found(&audit, "timeouts").cases[0].evidence;
    assert!(
        most.starts_with("1,141 of 1,175 requests (97 %)") && most.contains("other 34"),
        "{most}"
    );
    assert_eq!(found(&audit, "start_up").grade, Grade::Invalid);
}

#[test]
fn three_seconds_once() {
    let audit = study("node-env.txt");
    assert_eq!(
        labels(&audit),
        [
            "NODE_ENV=development node server.js",
            "NODE_ENV=production node server.js"
        ]
    );
    let [development, production] = audit.runs.as_slice() else {
        panic!("{:?}", audit.runs)
    };
    assert_eq!(
        (development.requests, production.requests),
        (Some(124), Some(209))
    );
    assert_eq!(development.latency.quantile(99.0), Some(298e3));
    assert_eq!(production.latency.mean_us, Some(144_000.0));
    for check in ["short", "tail", "new_connections"] {
        assert_eq!(found(&audit, check).cases.len(), 2, "{check}");
    }
    assert!(
        found(&audit, "one_run").cases[0]
            .evidence
            .starts_with("+68.")
    );
    let reasons = proofload_foreign::compare(&audit, 0, 1).unwrap().answer;
    assert!(reasons.is_void(), "{reasons:?}");
}

#[test]
fn repeats_have_an_interval_and_the_proxy_a_suspicion() {
    let audit = study("reverse-proxy.md");
    assert_eq!(labels(&audit), ["Origin", "Node proxy", "nginx"]);
    let pooled = audit.groups[1].pooled.unwrap();
    assert_eq!(
        (
            pooled.runs,
            pooled.low_per_s.round(),
            pooled.high_per_s.round()
        ),
        (3, 5384.0, 5652.0)
    );
    let proxied = finds(&audit, "connection_per_request", Grade::Warning, 2, "");
    assert!(
        proxied.cases[1].evidence.contains("a factor of 5.8"),
        "{proxied:#?}"
    );
    found(&audit, "in_a_row");
    found(&audit, "same_machine");
    let comparison = proofload_foreign::compare(&audit, 1, 2).unwrap();
    // scipy's Welch interval of the logarithms.
    let ComparisonAnswer::Interval(of) = comparison.answer else {
        panic!("{comparison:#?}")
    };
    let found = [of.ratio, of.low, of.high].map(|ratio| (ratio * 1e4).round());
    assert_eq!(found, [14_890.0, 14_023.0, 15_811.0]);
    let picked =
        ["node", "#3", "n", "haproxy"].map(|name| proofload_foreign::pick(&audit.groups, name));
    assert_eq!(picked, [vec![1], vec![2], vec![0, 1, 2], Vec::new()]);
}

#[test]
fn a_clean_run_gives_no_warning() {
    let audit = audit("one.txt", unnamed(213_000).as_bytes());
    let checks: Vec<OutputCheck> = audit.findings.iter().map(|found| found.check).collect();
    assert_eq!(checks, [OutputCheck::ClosedLoopLatency]);
    assert!(!audit.is_void());
}

#[test]
fn decimal_commas_and_truncated_runs() {
    let text = "**mit gzip**\nRunning 10s test @ http://localhost/\n  2 threads and 10 connections\n  Latency   1,50ms    0,30ms  12,00ms   88,00%\n  \
                66655 requests in 10,00s, 85,00MB read\nRequests/sec:  6.665,55\nTransfer/sec:  8,50MB\n\
                **ohne gzip**\nRunning 10s test @ http://localhost/\n  2 threads and 10 connections\n";
    let audit = audit("messung.md", text.as_bytes());
    assert_eq!(labels(&audit), ["mit gzip", "ohne gzip"]);
    let run = &audit.runs[0];
    assert_eq!(
        (run.requests_per_s, run.latency.mean_us),
        (Some(6665.55), Some(1500.0))
    );
    assert_eq!(
        (run.duration_s, run.bytes),
        (Some(10.0), Some(85.0 * 1024.0 * 1024.0))
    );
    let cut = found(&audit, "cut_off");
    assert_eq!(
        (cut.cases.len(), cut.cases[0].label.as_str()),
        (1, "ohne gzip")
    );
}

#[test]
fn lines_of_few_words_name_runs_where_there_are_no_headings() {
    let (one, other) = (unnamed(210_000), unnamed(240_000));
    let text =
        format!("Hello all. This is what I got.\n\nBefore\n\n{one}\nAfter the change\n\n{other}");
    assert_eq!(
        labels(&audit("mail.txt", text.as_bytes())),
        ["Before", "After the change"]
    );
    // Program output is no heading.
    let wrk = "$ wrk -d30s http://192.0.2.7/items\n";
    let text = format!("$ node server.js\nlistening\n{wrk}{one}ready\n{wrk}{other}");
    assert_eq!(
        labels(&audit("log.txt", text.as_bytes())),
        ["node server.js"]
    );
}

#[test]
fn an_output_that_was_pasted_twice() {
    let run = unnamed(213_000);
    let text = |rate: &str| format!("before:\n{run}after:\n{}", run.replace("7100.00", rate));
    let audit = audit("notes.txt", text("7100.00").as_bytes());
    finds(
        &audit,
        "same_output",
        Grade::Invalid,
        1,
        "2 runs with 7,100/s, in lines 2, 10",
    );
    let audit = crate::audit("notes.txt", text("7100.01").as_bytes());
    assert!(
        audit
            .findings
            .iter()
            .all(|found| found.check != OutputCheck::SameOutput)
    );
}
