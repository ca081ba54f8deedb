//! Tests of merging counts and of their serialized form.

use proofload_model::{
    Cause, ContentSeen, ContractFailure, Counts, EndpointCounts, EndpointOutcome, ErrorCount,
    FailureKind, GeneratorUse, OpenLoop, Phase, RAMP_PARTS, RampPart, SampleCounts, Silence,
    Windows, ramp_part,
};
use proptest::prelude::*;
use serde_json::Value;
use stats::Latencies;

/// Creates counts for several generators that share the same requests.
fn counts(samples: &[(u64, bool)], generators: usize) -> Vec<Counts> {
    let of_one = |generator| {
        let mut open = OpenLoop {
            rate_per_s: 100.0,
            ..OpenLoop::default()
        };
        let mut counts = Counts {
            window_ns: 1_000_000_000,
            ..Counts::default()
        };
        let mut done = EndpointOutcome {
            status: Some(200),
            ..EndpointOutcome::default()
        };
        let mut given_up = EndpointOutcome::default();
        for (ns, responded) in samples.iter().skip(generator).step_by(generators) {
            counts.sent += 1;
            // The response time is longer than the service time.
            let waited_ns = ns + ns / 7;
            if *responded {
                (counts.successful, counts.responses) =
                    (counts.successful + 1, counts.responses + 1);
                counts.latency.record(*ns);
                open.response.record(waited_ns);
                done.latency.record(*ns);
            } else {
                counts.timed_out += 1;
                counts.latency.censor(*ns);
                open.response.censor(waited_ns);
                given_up.latency.censor(*ns);
            }
        }
        open.intended = counts.sent;
        let (sent, successful, outcomes) = (counts.sent, counts.successful, vec![done, given_up]);
        let endpoint = EndpointCounts {
            sent,
            successful,
            outcomes,
            ..EndpointCounts::new("GET /")
        };
        Counts {
            status: [(200, successful)].into(),
            endpoints: vec![endpoint],
            successful_per_100_ms: vec![successful as u32],
            open: Some(Box::new(open)),
            ..counts
        }
    };
    (0..generators).map(of_one).collect()
}

/// Simulates transfer from a remote generator.
fn sent(mut counts: Counts) -> Counts {
    counts.pack();
    serde_json::from_str(&serde_json::to_string(&counts).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn percentiles_of_64_generators_merged_are_those_of_one_histogram_of_all_samples(
        samples in proptest::collection::vec((1u64..3_000_000_000, prop::bool::weighted(0.98)), 100..2_000),
    ) {
        let one = counts(&samples, 1).remove(0);
        let merged = counts(&samples, 64).into_iter().map(sent).reduce(|mut sum, counts| {
            sum.merge(counts, Windows::Parallel);
            sum
        });
        let merged = merged.unwrap();
        // The histograms are equal, and so are all their percentiles.
        prop_assert!(merged == one);
    }
}

#[test]
fn turns_add_up_their_times_and_parallel_windows_do_not() {
    let window = |started_ns, alive| Counts {
        started_ns,
        window_ns: 10,
        drain_ns: 2,
        successful_per_100_ms: vec![3, 4],
        connections_alive_at_start: 5,
        connections_alive: alive,
        errors: vec![ErrorCount {
            phase: Phase::Head,
            cause: Cause::Reset,
            count: 1,
        }],
        generator: GeneratorUse {
            driver: "readiness".into(),
            cpu_ns: vec![6],
            run_delay_ns: vec![1],
            wall_ns: vec![12],
        },
        ..Counts::default()
    };
    let merged = |windows| {
        let mut counts = window(100, 5);
        counts.merge(window(90, 4), windows);
        counts
    };
    let same = merged(Windows::Parallel);
    assert_eq!(
        (same.started_ns, same.window_ns, same.drain_ns),
        (90, 10, 2)
    );
    assert_eq!(
        (same.connections_alive_at_start, same.connections_alive),
        (10, 9)
    );
    assert_eq!(
        (&same.successful_per_100_ms[..], &same.generator.cpu_ns[..]),
        (&[6, 8][..], &[6, 6][..])
    );
    let next = merged(Windows::Sequential);
    assert_eq!(
        (next.started_ns, next.window_ns, next.drain_ns),
        (100, 20, 4)
    );
    assert_eq!(
        (next.connections_alive_at_start, next.connections_alive),
        (5, 4)
    );
    assert_eq!(
        (next.successful_per_100_ms.len(), &next.generator.cpu_ns[..]),
        (0, &[12][..])
    );
    for counts in [same, next] {
        assert_eq!(
            (
                counts.errors.len(),
                counts.errors[0].count,
                counts.generator.busiest_share()
            ),
            (1, 2, Some(0.5))
        );
        assert_eq!(counts.generator.driver, "readiness");
    }
}

#[test]
fn sampled_responses_stand_for_all_of_their_request() {
    let endpoint = |name: &str, successful: u64, judged: u64, failed: u64| EndpointCounts {
        sent: successful + failed,
        successful,
        successful_in_window: successful,
        sampled: SampleCounts { judged, failed },
        ..EndpointCounts::new(name)
    };
    let of = |endpoints: Vec<EndpointCounts>| {
        let successful: u64 = endpoints.iter().map(|endpoint| endpoint.successful).sum();
        let sampled = |of: fn(&SampleCounts) -> u64| {
            endpoints.iter().map(|endpoint| of(&endpoint.sampled)).sum()
        };
        let sampled = SampleCounts {
            judged: sampled(|of| of.judged),
            failed: sampled(|of| of.failed),
        };
        let sent = endpoints.iter().map(|endpoint| endpoint.sent).sum();
        let half = successful as u32 / 2;
        let buckets = vec![half, successful as u32 - half];
        let mut counts = Counts {
            sent,
            successful,
            successful_in_window: successful,
            sampled,
            ..Counts::default()
        };
        (counts.successful_per_100_ms, counts.endpoints) = (buckets, endpoints);
        counts.presume_failures();
        let sum: u32 = counts.successful_per_100_ms.iter().sum();
        assert_eq!(
            (counts.successful_in_window, u64::from(sum)),
            (counts.successful, counts.successful)
        );
        (counts.successful, counts.failed())
    };
    // All three sampled responses were wrong; one of two endpoints had wrong contents; a quarter was wrong.
    assert_eq!(of(vec![endpoint("a", 9998, 3, 3)]), (0, 10_001));
    assert_eq!(
        of(vec![endpoint("a", 9000, 4, 0), endpoint("b", 98, 2, 2)]),
        (9000, 100)
    );
    assert_eq!(of(vec![endpoint("a", 9999, 4, 1)]), (7500, 2500));
    assert_eq!(of(vec![endpoint("a", 10_000, 4, 0)]), (10_000, 0));
    // Records have no endpoints if the load has one request.
    let sampled = SampleCounts {
        judged: 2,
        failed: 2,
    };
    let mut counts = Counts {
        sent: 10,
        successful: 8,
        sampled,
        ..Counts::default()
    };
    counts.presume_failures();
    assert_eq!(counts.successful, 0);
}

/// Counts without an empty field. No field uses a default, so that a new field does not compile without a
/// value here.
fn full() -> Counts {
    let times = || {
        let mut times = Latencies::none();
        times.record(1_000_000);
        times
    };
    let outcome = EndpointOutcome {
        status: Some(200),
        response: times(),
        latency: times(),
    };
    let content = ContentSeen {
        sha256: "a".to_owned(),
        count: 1,
        encoded_bytes: 2,
        decoded_bytes: 3,
    };
    let sampled = SampleCounts {
        judged: 2,
        failed: 1,
    };
    let endpoint = EndpointCounts {
        name: "a".to_owned(),
        sent: 1,
        successful: 1,
        successful_in_window: 1,
        body_bytes: 1,
        sampled,
        outcomes: vec![outcome],
        contents: vec![content],
    };
    let open = OpenLoop {
        rate_per_s: 100.0,
        intended: 1,
        due_per_100_ms: vec![1],
        sent_in_window: 1,
        unsent: 1,
        queued: 1,
        response: times(),
        schedule_lag: times(),
        ramp_parts: vec![RampPart {
            successful: 1,
            response: times(),
        }],
    };
    let failure = ContractFailure {
        kind: FailureKind::Content,
        count: 1,
        example: "x".to_owned(),
    };
    Counts {
        started_ns: 1,
        window_ns: 1_000_000_000,
        drain_ns: 1,
        sent: 1,
        responses: 1,
        responses_in_window: 1,
        successful: 1,
        successful_in_window: 1,
        in_flight_ns: 1,
        first_successful: 1,
        first_in_flight_ns: 1,
        halted_ns: 1,
        silent: vec![Silence {
            from_ns: 0,
            waiting_ns: 0,
            to_ns: 500_000_000,
        }],
        timed_out: 1,
        broken: 1,
        unfinished: 1,
        status: [(200, 1)].into(),
        errors: vec![ErrorCount {
            phase: Phase::Head,
            cause: Cause::Reset,
            count: 1,
        }],
        contract_failures: vec![failure],
        sampled,
        unknown_coding: Some("x".to_owned()),
        wire_bytes: 1,
        body_bytes: 1,
        latency: times(),
        first_byte: times(),
        successful_per_100_ms: vec![1],
        log_ins: 1,
        connections_alive_at_start: 1,
        connections_alive: 1,
        connections_opened: 1,
        reconnects: 1,
        connect: times(),
        handshake: times(),
        tls_resumed: 1,
        tls_error: Some("x".to_owned()),
        generator: GeneratorUse {
            driver: "readiness".to_owned(),
            cpu_ns: vec![1],
            run_delay_ns: vec![1],
            wall_ns: vec![1],
        },
        endpoints: vec![endpoint],
        open: Some(Box::new(open)),
    }
}

/// Returns the paths of all values of an object, including nested objects and the first item of lists of
/// objects.
fn values(of: &Value, path: &str) -> Vec<(String, Value)> {
    let Value::Object(fields) = of else {
        return vec![(path.to_owned(), of.clone())];
    };
    let each = fields.iter().flat_map(|(name, value)| {
        let first = value.get(0).filter(|first| first.is_object());
        values(first.unwrap_or(value), &format!("{path}/{name}"))
    });
    each.collect()
}

#[test]
fn every_field_is_merged() {
    // Fields that identify an item, fields of which the first value is kept, and fields that are equal in all
    // windows.
    let both = "/unknown_coding /tls_error /generator/driver /open/rate_per_s /errors/phase /errors/cause \
        /contract_failures/kind /contract_failures/example /endpoints/name /endpoints/outcomes/status \
        /endpoints/contents/sha256";
    let parallel = "/started_ns /window_ns /drain_ns /halted_ns /silent/from_ns /silent/waiting_ns /silent/to_ns";
    // The second silence follows the first.
    let sequential = "/started_ns /connections_alive_at_start /connections_alive \
        /silent/from_ns /silent/waiting_ns /silent/to_ns";
    let json = |counts: &Counts| values(&serde_json::to_value(counts).expect("JSON"), "");
    for (windows, own) in [
        (Windows::Parallel, parallel),
        (Windows::Sequential, sequential),
    ] {
        let mut sum = full();
        sum.merge(full(), windows);
        let (before, after) = (json(&full()), json(&sum));
        let known: Vec<&str> = both
            .split_whitespace()
            .chain(own.split_whitespace())
            .collect();
        let same = before
            .into_iter()
            .filter(|one| after.contains(one))
            .map(|(path, _)| path);
        let mut same: Vec<String> = same.collect();
        let mut known: Vec<String> = known.into_iter().map(str::to_owned).collect();
        same.sort();
        known.sort();
        assert_eq!(same, known, "{windows:?}");
    }
}

#[test]
fn buckets_belong_to_the_part_that_begins_at_or_before_them() {
    for planned in 1..100 {
        let parts = planned.min(RAMP_PARTS);
        for part in 0..parts {
            let buckets = part * planned / parts..(part + 1) * planned / parts;
            assert!(
                buckets
                    .into_iter()
                    .all(|bucket| ramp_part(bucket, planned) == part)
            );
        }
    }
}

#[test]
fn first_responses_fail_in_the_same_share() {
    // Half of the responses are presumed wrong, and so half of the first responses.
    let sampled = SampleCounts {
        judged: 2,
        failed: 1,
    };
    let mut counts = Counts {
        sent: 100,
        responses: 100,
        successful: 99,
        first_successful: 50,
        sampled,
        ..Counts::default()
    };
    counts.presume_failures();
    assert_eq!((counts.successful, counts.first_successful), (50, 25));
}
