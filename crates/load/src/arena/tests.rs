//! Rendered requests, draws from them, and rejected requests.

use std::sync::Arc;

use super::*;
use crate::{Users, Values};
use proptest::collection::vec;
use proptest::prelude::*;

fn get(path: &str, weight: u32) -> RequestSpec {
    let headers = vec![("user-agent".into(), "x".into())];
    RequestSpec {
        path: path.into(),
        weight,
        headers,
        host: "h".into(),
        ..RequestSpec::default()
    }
}

fn values(rows: usize) -> Option<Values> {
    let rows: String = (0..rows).map(|row| format!("{row}\n")).collect();
    Some(Values::csv(format!("id\n{rows}").as_bytes()).unwrap())
}

/// A list, items and a HEAD.
fn shop() -> Vec<RequestSpec> {
    vec![
        // Values may be given to requests that do not use them if another does.
        RequestSpec {
            name: "list".into(),
            values: values(3),
            ..get("/items", 2)
        },
        RequestSpec {
            values: values(3),
            ..get("/items/{id}", 5)
        },
        RequestSpec {
            method: "HEAD".into(),
            ..get("/items/long-name", 1)
        },
    ]
}

fn render(requests: &[RequestSpec]) -> Result<RequestArena, LoadError> {
    RequestArena::render(requests, &Users::default())
}

fn sampler(requests: &[RequestSpec], seed: u64, thread: u32) -> RequestSampler {
    RequestSampler::new(Arc::new(render(requests).unwrap()), seed, thread)
}

fn draws(mut sampler: RequestSampler, count: usize) -> Vec<RequestChoice> {
    (0..count).map(|_| sampler.draw()).collect()
}

/// The first line of the request that was drawn.
fn line(arena: &RequestArena, choice: RequestChoice) -> String {
    let bytes = arena.bytes(choice);
    let head = bytes.strip_suffix(b"\r\n\r\n").expect("a whole request");
    let line = head.split(|byte| *byte == b'\r').next().unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

#[test]
fn each_variant_is_a_whole_request_in_its_endpoint() {
    let arena = render(&shop()).unwrap();
    let all =
        [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)].map(|(endpoint, row)| arena.choice(endpoint, row));
    let expected = [
        "GET /items",
        "GET /items/0",
        "GET /items/1",
        "GET /items/2",
        "HEAD /items/long-name",
    ];
    assert_eq!(
        all.map(|choice| line(&arena, choice)),
        expected.map(|line| format!("{line} HTTP/1.1"))
    );
    assert_eq!(
        all.map(|choice| choice.bodiless),
        [false, false, false, false, true]
    );
    assert_eq!(
        arena.arena.len() as u32,
        all.iter().map(|choice| choice.length).sum::<u32>()
    );
    let places: Vec<_> = arena
        .endpoints
        .iter()
        .map(|e| (e.name.as_str(), e.first, e.count))
        .collect();
    assert_eq!(
        places,
        [
            ("list", 0, 1),
            ("GET /items/{id}", 1, 3),
            ("HEAD /items/long-name", 4, 1)
        ]
    );
}

/// Pearson's statistic compared with the limit that chance exceeds once in a thousand times. The seed is
/// fixed.
#[test]
fn endpoints_come_by_weight_and_rows_evenly() {
    const DRAWS: usize = 80_000;
    let arena = Arc::new(render(&shop()).unwrap());
    let mut counts = [0u32; 5];
    for choice in draws(RequestSampler::new(arena.clone(), 11, 0), DRAWS) {
        counts[arena
            .bounds
            .iter()
            .position(|bound| *bound == choice.start)
            .unwrap()] += 1;
    }
    let item = 5.0 / 8.0 / 3.0;
    let workers = [2.0 / 8.0, item, item, item, 1.0 / 8.0];
    let chi_square: f64 = counts
        .iter()
        .zip(workers)
        .map(|(count, share)| {
            (f64::from(*count) - share * DRAWS as f64).powi(2) / (share * DRAWS as f64)
        })
        .sum();
    assert!(
        chi_square < 18.47,
        "{chi_square} with 4 degrees of freedom: {counts:?}"
    );
}

#[test]
fn a_seed_means_the_same_requests_for_ever_and_each_thread_others() {
    let drawn = |seed, thread| draws(sampler(&shop(), seed, thread), 1000);
    let arena = render(&shop()).unwrap();
    let first: Vec<String> = drawn(42, 1)[..8]
        .iter()
        .map(|&choice| line(&arena, choice))
        .collect();
    let expected = ["/0", "/0", "", "/1", "", "/1", "/1", "/0"]
        .map(|item| format!("GET /items{item} HTTP/1.1"));
    assert_eq!(first, expected, "these lines must never change");
    assert_eq!(drawn(42, 1), drawn(42, 1));
    assert_ne!(drawn(42, 1), drawn(42, 0));
    assert_ne!(drawn(42, 1), drawn(43, 1));
}

#[test]
fn what_is_no_load_is_refused_with_its_limit() {
    let refused = |requests: &[RequestSpec]| render(requests).err().unwrap().to_string();
    let many: Vec<RequestSpec> = (0..=100)
        .map(|number| get(&format!("/{number}"), 1))
        .collect();
    assert_eq!(render(&many[..100]).unwrap().endpoints.len(), 100);
    let wrong = RequestSpec {
        values: values(1),
        ..get("/{idd}", 1)
    };
    let mistyped = RequestSpec {
        values: values(1),
        ..get("/{{id}}", 1)
    };
    for (requests, expected) in [
        (vec![], "load.requests: 0 requests, from 1 to 100"),
        (many, "load.requests: 101 requests, from 1 to 100"),
        (
            vec![get("/", 0)],
            "load.requests.weight: 0 for request `GET /`, at least 1; leave out what is not to be sent",
        ),
        (
            vec![get("/a", 1), get("/b", 1), get("/a", 2)],
            "load.requests.name: `GET /a` is there twice; give each request a name of its own",
        ),
        (
            vec![RequestSpec {
                name: "a\u{1b}[2J".into(),
                ..get("/", 1)
            }],
            "load.requests.name: `a\\u{1b}[2J` contains a control character",
        ),
        (
            vec![wrong.clone()],
            "load.path: there is no column `idd` (at byte 1); did you mean `id`?",
        ),
        (
            vec![get("/a", 1), wrong],
            "load.path: request `GET /{idd}`: there is no column `idd` (at byte 1); did you mean `id`?",
        ),
        (
            vec![get("/a", 1), mistyped],
            "load.requests.values: request `GET /{{id}}` has values and no placeholder for them; \
             a column is written {id}, with braces that are not doubled",
        ),
    ] {
        assert_eq!(refused(&requests), expected);
    }
}

#[test]
fn more_than_the_limit_is_refused_before_it_is_rendered() {
    let requests = [
        get("/", 1),
        RequestSpec {
            values: values(1000),
            ..get("/items/{id}", 1)
        },
    ];
    let size = render(&requests).unwrap().arena.len();
    assert!(RequestArena::render_within(&requests, &Users::default(), size).is_ok());
    let error = |limit| {
        RequestArena::render_within(&requests, &Users::default(), limit)
            .err()
            .unwrap()
    };
    assert!(
        error(size - 1)
            .to_string()
            .contains(&format!(" {size} bytes, at most {};", size - 1))
    );
    assert_eq!(
        error(1000).to_string(),
        "load.requests: request `GET /items/{id}`: rendered with its 1000 rows the load takes about 49542 bytes, \
         at most 1000; use fewer rows or smaller bodies"
    );
}

/// The share of each number, computed from the slots.
fn shares(table: &AliasTable) -> Vec<f64> {
    let mut workers = vec![0.0; table.slots.len()];
    for (own, slot) in table.slots.iter().enumerate() {
        let mark = slot.mark as f64 / 2f64.powi(64);
        workers[own] += mark / table.slots.len() as f64;
        workers[usize::from(slot.other)] += (1.0 - mark) / table.slots.len() as f64;
    }
    workers
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![1..10u32, 1..=u32::MAX]
}

proptest! {
    #[test]
    fn each_number_has_the_share_of_its_weight(weights in vec(weight(), 1..50)) {
        let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        for (share, weight) in shares(&AliasTable::new(&weights)).into_iter().zip(&weights) {
            let expected = f64::from(*weight) / total;
            prop_assert!((share - expected).abs() < 1e-12, "{} for {} of {}", share, weight, total);
        }
    }
}
