//! One load by one generator, and the same by several: what they do together, and what one slice makes of theirs.

use std::time::Duration;

use proptest::prelude::*;
use stats::Latencies;

use crate::pacer::{Pace, Pacer};
use crate::*;

fn spec(connections: u32) -> LoadSpec {
    let address = Address::Tcp("127.0.0.1:1".parse().unwrap());
    LoadSpec { connections, ..LoadSpec::new(address, vec![Request::new("GET", "/", "a")]) }
}

proptest! {
    #[test]
    fn connections_and_lanes_are_dealt_whole(connections in 1u32..5_000, generators in 1u32..70, threads in 1u32..9) {
        let parts = spec(connections).divided(generators, threads);
        prop_assert_eq!(parts.iter().map(|part| part.connections).sum::<u32>(), connections);
        let least = parts.iter().map(|part| part.connections).min().unwrap();
        prop_assert!(parts.iter().all(|part| part.connections <= least + 1 && part.threads <= part.connections));
        let mut next = 0;
        for part in &parts {
            let lanes = part.lanes.unwrap();
            prop_assert_eq!(lanes.first, next);
            next += part.threads;
        }
        prop_assert!(parts.iter().all(|part| part.lanes.unwrap().of == next));
    }
}

#[test]
fn constant_arrivals_of_several_generators_are_those_of_one() {
    let pace = Pace { rate: Rate::Constant(997.0), process: Process::Constant, seed: 3 };
    let due = |lane, of| {
        let mut pacer = Pacer::new(pace, lane, of);
        pacer.restart();
        let mut due = Vec::new();
        while pacer.due_ns() < 1_000_000_000 {
            due.push(pacer.due_ns());
            pacer.advance();
        }
        due
    };
    let one = due(0, 1);
    let parts = spec(13).divided(5, 2);
    let mut several: Vec<u64> = parts
        .iter()
        .flat_map(|part| (0..part.threads).map(|thread| (part.lanes.unwrap(), thread)))
        .flat_map(|(lanes, thread)| due(lanes.first + thread, lanes.of))
        .collect();
    several.sort_unstable();
    assert_eq!(several, one);
}

/// Slices of so many generators, of which each has some of the same requests.
fn slices(samples: &[(u64, bool)], generators: usize) -> Vec<Slice> {
    (0..generators)
        .map(|generator| {
            let mut slice = Slice { window_ns: 1_000_000_000, ..Slice::default() };
            let mut done =
                Outcome { status: Some(200), response: Latencies::new(), latency: Latencies::new() };
            let mut given_up = Outcome { status: None, ..done.clone() };
            for (ns, answered) in samples.iter().skip(generator).step_by(generators) {
                slice.sent += 1;
                // What a user waited is longer than what the service took.
                let waited_ns = ns + ns / 7;
                if *answered {
                    (slice.ok, slice.answered) = (slice.ok + 1, slice.answered + 1);
                    slice.latency.record(*ns);
                    slice.response.record(waited_ns);
                    done.latency.record(*ns);
                } else {
                    slice.timed_out += 1;
                    slice.latency.censor(*ns);
                    slice.response.censor(waited_ns);
                    given_up.latency.censor(*ns);
                }
            }
            let outcomes = vec![done, given_up];
            let (sent, ok) = (slice.sent, slice.ok);
            let of = Endpoint { sent, ok, outcomes, ..Endpoint::new("GET /") };
            Slice { endpoints: vec![of], buckets: vec![slice.ok as u32], ..slice }
        })
        .collect()
}

/// A slice as it comes from a generator elsewhere.
fn sent(mut slice: Slice) -> Slice {
    slice.pack();
    serde_json::from_str(&serde_json::to_string(&slice).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn percentiles_of_64_generators_merged_are_those_of_one_histogram_of_all_samples(
        samples in proptest::collection::vec((1u64..3_000_000_000, prop::bool::weighted(0.98)), 100..2_000),
    ) {
        let one = slices(&samples, 1).remove(0);
        let mut merged = Slice::default();
        slices(&samples, 64).into_iter().map(sent).for_each(|slice| merged.absorb(slice));
        let percentiles: Vec<f64> = (0..=10_000).map(|part| f64::from(part) / 10_000.0).collect();
        for (merged, one) in [(&merged.latency, &one.latency), (&merged.response, &one.response)] {
            prop_assert_eq!(merged.quantiles(&percentiles), one.quantiles(&percentiles));
            prop_assert_eq!((merged.count(), merged.censored(), merged.mean()), (one.count(), one.censored(), one.mean()));
            prop_assert!(merged == one);
        }
        prop_assert_eq!((merged.sent, merged.ok, merged.timed_out), (one.sent, one.ok, one.timed_out));
        prop_assert_eq!(&merged.buckets, &one.buckets);
        prop_assert_eq!(merged.window_ns, one.window_ns);
        let (merged, one) = (&merged.endpoints[0], &one.endpoints[0]);
        prop_assert_eq!((merged.sent, merged.ok), (one.sent, one.ok));
        for (merged, one) in merged.outcomes.iter().zip(&one.outcomes) {
            prop_assert_eq!(merged.status, one.status);
            prop_assert!(merged.latency == one.latency);
        }
    }
}

#[test]
fn a_spec_and_a_slice_come_out_of_json_as_they_went_in() {
    let values = Values::csv(b"id,name\n1,\"a, b\"\n2,\xc3\xbc\n").unwrap();
    let request =
        Request { values: Some(values), body: vec![0, 255, b'{'], ..Request::new("POST", "/{id}", "a") };
    let rate = Rate::Ramp { from_per_s: 1.0, to_per_s: 2.5, over: Duration::from_millis(1500) };
    let arrivals = Arrivals::Open { rate, process: Process::Poisson, seed: u64::MAX };
    let contract = Contract { content: Some(Digest::of(b"x")), ..Contract::default() };
    let tls = Some(Tls { server_name: "a".into(), trust: Trust::Authorities(vec![1, 2]), resumption: true });
    let spec =
        LoadSpec { requests: vec![request], arrivals, contract, tls, ..spec(7) }.divided(2, 2).remove(1);
    let text = serde_json::to_string(&spec).unwrap();
    let back: LoadSpec = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{spec:?}"), format!("{back:?}"));
    // The lines of a source that is not there do not come back; cells do.
    assert_eq!(serde_json::to_string(&back).unwrap(), text);

    let slice = slices(&[(5_000, true), (70_000, false)], 1).remove(0);
    let back: Slice = serde_json::from_str(&serde_json::to_string(&slice).unwrap()).unwrap();
    assert_eq!((back.sent, back.ok, back.timed_out), (2, 1, 1));
    assert!(back.latency == slice.latency);

    let ragged = r#"{"columns":["a","b"],"rows":[["1"]]}"#;
    let error = serde_json::from_str::<Values>(ragged).unwrap_err().to_string();
    assert!(error.contains("row 1 has 1 values for 2 columns"), "{error}");
}
