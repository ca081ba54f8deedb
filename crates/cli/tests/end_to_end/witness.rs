//! `proofload run` on variants that do not do what their names say: compression that no request asks for, a
//! variable that a wrapper removes. The same run has valid variants without findings.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::place::{Draft, Place, SERVICE};

#[test]
fn what_was_declared_and_never_happened_voids_and_what_happened_is_left_alone() {
    let place = Place::new();
    let levels = r#"[factors.way]
plain = {}
gzip = { api.env.MODE = "gzip", load.headers.accept-encoding = "gzip", expect.headers.content-encoding = "gzip" }
unasked = { api.env.MODE = "gzip", expect.headers.content-encoding = "gzip" }
lost = { api.command = ["env", "-u", "NODE_ENV", "node", "SERVICE"] }"#;
    let experiment = place.experiment(&Draft {
        service: "env = { PORT = \"{port}\", NODE_ENV = \"production\" }",
        more: &levels.replace("SERVICE", SERVICE),
        load: "connections = 2\ntimeout = \"20s\"",
        design: "budget = \"120s\"\nwarmup = \"100ms\"\nslice = \"100ms\"",
    });
    place
        .run(&experiment)
        .ends(4)
        .tells(&[
            "stopped early, as no further block could give an answer: unasked: level unasked of ",
        ])
        .prints(&[
            "declares content-encoding gzip, and ",
            "set load.headers.accept-encoding",
        ]);
    place.is_quiet();
    assert_eq!(place.opened().complete_blocks().count(), 0);
    let json = place.report("json").json();
    let findings = json["findings"].as_array().expect("findings");
    let voids: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["grade"] == "invalid")
        .collect();
    // The run ends at its first warm-up, because such a variant will not change.
    let [untreated, lost, pointless] = &voids[..] else {
        panic!("three are void: {findings:#?}")
    };
    assert_eq!(pointless["check"], "pointless");
    for (finding, check, variant, said) in [
        (
            untreated,
            "treatment_not_applied",
            2,
            "the requests said no accept-encoding",
        ),
        (
            lost,
            "environment_lost",
            3,
            "sets NODE_ENV=production for api, and its process ran with no NODE_ENV",
        ),
    ] {
        assert_eq!(
            (&finding["check"], &finding["variants"]),
            (&check.into(), &serde_json::json!([variant]))
        );
        assert!(
            finding["evidence"]
                .as_str()
                .is_some_and(|evidence| evidence.contains(said)),
            "{finding:#}"
        );
    }
    for check in [
        "errors",
        "no_success",
        "different_work",
        "different_bodies",
        "nothing_observable",
    ] {
        assert!(
            findings.iter().all(|finding| finding["check"] != check),
            "{check}: {findings:#?}"
        );
    }

    let record = place.opened();
    let mut looked_at = BTreeSet::new();
    for trial in record.trials() {
        // A variant that took more than a second is not checked again, which may happen on a busy machine.
        for witness in &trial.started.witnesses {
            looked_at.insert(trial.variant());
            assert_eq!((witness.status, witness.decoded_bytes), (200, Some(1000)));
            let coded = witness
                .headers
                .contains(&("content-encoding".into(), "gzip".into()));
            assert_eq!(
                (coded, witness.body_bytes < 1000),
                (trial.variant() == 1, trial.variant() == 1)
            );
        }
        let at_end = &trial.ended.as_ref().expect("it ended").processes_by_service["api"];
        for processes in [&trial.started.services[0].processes, at_end] {
            let [process] = &processes[..] else {
                panic!("one process: {processes:?}")
            };
            assert!(process.listens && process.marked, "{process:?}");
            assert_eq!(process.command, format!("node {SERVICE}"));
            let set = process.environment.get("NODE_ENV").map(String::as_str);
            assert_eq!(set, (trial.variant() != 3).then_some("production"));
        }
    }
    assert_eq!(looked_at, [0, 1, 2, 3].into());
}
