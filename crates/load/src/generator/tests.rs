//! One load on one generator, and the same load divided among several.

use std::time::Duration;

use proptest::prelude::*;

use crate::*;

fn spec(connections: u32) -> LoadSpec {
    let address = Address::Tcp("127.0.0.1:1".parse().unwrap());
    LoadSpec {
        connections,
        ..LoadSpec::new(address, vec![RequestSpec::new("GET", "/", "a")])
    }
}

proptest! {
    #[test]
    fn connections_and_lanes_are_dealt_whole(
        connections in 1u32..500,
        threads in proptest::collection::vec(0u32..40, 1..70),
    ) {
        let parts = spec(connections).divided_among(threads.len() as u32, |index, _| threads[index as usize]);
        prop_assert_eq!(parts.iter().map(|part| part.connections).sum::<u32>(), connections);
        let least = parts.iter().map(|part| part.connections).min().unwrap();
        let mut next = 0;
        for (part, wanted) in parts.iter().zip(&threads) {
            prop_assert!(part.connections <= least + 1);
            prop_assert_eq!(part.threads, (*wanted).clamp(1, part.connections));
            prop_assert_eq!(part.lanes.unwrap().first, next);
            next += part.threads;
        }
        prop_assert!(parts.iter().all(|part| part.lanes.unwrap().of == next));
    }
}

#[test]
fn a_spec_comes_out_of_json_as_it_went_in() {
    let values = Values::csv(b"id,name\n1,\"a, b\"\n2,\xc3\xbc\n").unwrap();
    let request = RequestSpec {
        values: Some(values),
        body: vec![0, 255, b'{'],
        ..RequestSpec::new("POST", "/{id}", "a")
    };
    let rate = Rate::Ramp {
        from_per_s: 1.0,
        to_per_s: 2.5,
        over: Duration::from_millis(1500),
    };
    let arrivals = Arrivals::Open {
        rate,
        process: ArrivalProcess::Poisson,
        seed: u64::MAX,
    };
    let contract = Contract {
        content: Some(Digest::of(b"x")),
        ..Contract::default()
    };
    let tls = Some(TlsSpec {
        server_name: "a".into(),
        trust: Trust::Authorities(vec![1, 2]),
        resumption: true,
        client: None,
    });
    let spec = LoadSpec {
        requests: vec![request],
        arrivals,
        contract,
        tls,
        ..spec(7)
    }
    .divided_among(2, |_, _| 2)
    .remove(1);
    let text = serde_json::to_string(&spec).unwrap();
    let back: LoadSpec = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{spec:?}"), format!("{back:?}"));
    // Source lines are not restored without the source, but cells are.
    assert_eq!(serde_json::to_string(&back).unwrap(), text);

    let ragged = r#"{"columns":["a","b"],"rows":[["1"]]}"#;
    let error = serde_json::from_str::<Values>(ragged)
        .unwrap_err()
        .to_string();
    assert!(error.contains("row 1 has 1 value for 2 columns"), "{error}");
}
