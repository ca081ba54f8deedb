//! Tests of what variants really are: each fault planted into the sound record is found by its check, and
//! near misses are not.

use std::collections::BTreeMap;

use plan::Variant;
use proofload_analysis::Grade::{Invalid, Note, Warning};
use proofload_analysis::{Check, Finding, Outcome, conclude};
use record::{
    ContentSeen, ContractFailure, FailureKind, ProcessSeen, Record, ServiceStarted, Slice,
    TrialStarted, Witness,
};

use crate::given::{Plant, each, found, map, service, slices_of, trials_of};
use crate::made;

fn starts(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut TrialStarted> {
    trials_of(record, variant).map(|trial| &mut trial.started)
}

fn witnesses(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut Witness> {
    starts(record, variant).flat_map(|started| &mut started.witnesses)
}

fn processes(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut ProcessSeen> {
    starts(record, variant).flat_map(|started| &mut started.services[0].processes)
}

fn only(record: &Record) -> Finding<Check> {
    let mut findings = conclude(record).findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn process(pid: u32, environment: &[(&str, &str)]) -> ProcessSeen {
    ProcessSeen {
        pid,
        parent: 1,
        command: "node server.js".into(),
        listens: true,
        marked: true,
        environment: map(environment),
    }
}

fn field(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Makes a variant declare a content coding.
fn declare_gzip(record: &mut Record, index: usize) {
    variant(record, index).expect.headers =
        [("content-encoding".to_owned(), vec!["gzip".to_owned()])].into();
}

/// The sound record with all observations of a variant. Level 0 runs with MODE=a and level 1 with MODE=b, as
/// configured.
fn sound() -> Record {
    let mut record = crate::given::sound();
    for (variant, mode) in ["a", "b"].into_iter().enumerate() {
        let set = [("MODE", mode), ("PORT", "{port}"), ("TEXT", "{{x")];
        record.header.plan.variants[variant].services =
            vec![service("api", &["node", "server.js"], &set)];
        for (number, started) in starts(&mut record, variant).enumerate() {
            let port = 4000 + number as u16;
            let env = [("MODE", mode), ("PORT", &port.to_string()), ("TEXT", "{x")];
            let service = made::service_of(0, None);
            started.services = vec![ServiceStarted {
                port,
                processes: vec![process(7, &env)],
                ..service
            }];
            started.witnesses = vec![Witness {
                request: "GET /".into(),
                status: 200,
                headers: vec![
                    field("content-type", "text/plain"),
                    field("date", &format!("now {number}")),
                ],
                body_bytes: 1000,
                decoded_bytes: Some(1000),
                decoded_sha256: Some("aa".repeat(32)),
                repeats: true,
                ..Witness::default()
            }];
        }
        for trial in trials_of(&mut record, variant) {
            let seen = trial.started.services[0].processes.clone();
            if let Some(ended) = &mut trial.ended {
                ended.processes_by_service = [("api".to_owned(), seen)].into();
            }
        }
    }
    record
}

fn command(record: &mut Record, index: usize) -> &mut plan::ServiceCommand {
    variant(record, index).services[0]
        .command_mut()
        .expect("it is started")
}

fn variant(record: &mut Record, index: usize) -> &mut Variant {
    &mut record.header.plan.variants[index]
}

/// Makes the plan start both variants in the same way.
fn alike(record: &mut Record) {
    let service = variant(record, 0).services.clone();
    variant(record, 1).services = service;
    processes(record, 1)
        .for_each(|process| drop(process.environment.insert("MODE".into(), "a".into())));
    for trial in trials_of(record, 1) {
        trial
            .ended
            .as_mut()
            .expect("it ended")
            .processes_by_service
            .clear();
    }
}

#[test]
fn a_sound_record_that_tells_all_has_no_finding() {
    assert_eq!(found(&sound()), []);
    let mut same = sound();
    alike(&mut same);
    assert_eq!(
        found(&same),
        [],
        "the plan itself starts them alike: a calibration"
    );
}

/// Level 1 should be compressed, but no response is.
fn uncompressed(record: &mut Record) {
    declare_gzip(record, 1);
    each(record, 1, |slice| {
        let (kind, count) = (
            FailureKind::Header("content-encoding".into()),
            slice.counts.responses,
        );
        slice.counts.contract_failures = vec![ContractFailure {
            kind,
            count,
            example: "absent".into(),
        }];
        (slice.counts.successful, slice.counts.successful_in_window) = (0, 0);
    });
}

#[test]
fn compression_that_was_declared_and_not_negotiated_voids_and_is_said_once() {
    let mut record = sound();
    uncompressed(&mut record);
    let finding = only(&record);
    assert_eq!(
        (finding.check.name(), finding.grade),
        ("treatment_not_applied", Invalid)
    );
    for part in [
        "level-1: level level-1 of setting declares content-encoding gzip, and ",
        "responses had none instead; the requests said no accept-encoding, and bodies have 1,000 bytes",
    ] {
        assert!(finding.evidence.contains(part), "{}", finding.evidence);
    }
    assert!(
        finding.remedy.contains("set load.headers.accept-encoding"),
        "{}",
        finding.remedy
    );
    let comparison = &conclude(&record).comparisons[0];
    assert_eq!(
        (comparison.outcome, &comparison.no_success),
        (Outcome::Invalid, &None)
    );

    variant(&mut record, 1).load.requests[0].headers =
        vec![field("Accept-Encoding", "br, gzip;q=0.5")];
    let remedy = only(&record).remedy;
    assert!(remedy.contains("begins at 1024 bytes"), "{remedy}");
    witnesses(&mut record, 1).for_each(|witness| witness.decoded_bytes = Some(1024));
    assert!(
        found(&record)
            .iter()
            .any(|found| found.0 == "treatment_not_applied")
    );

    // Before any load the first response is enough.
    record.blocks.truncate(1);
    record.blocks[0].seconds = None;
    trials_of(&mut record, 1).for_each(|trial| trial.slices.clear());
    assert!(found(&record).contains(&("treatment_not_applied", Invalid)));
    witnesses(&mut record, 1)
        .for_each(|witness| witness.headers.push(field("content-encoding", "GZIP")));
    assert!(
        !found(&record)
            .iter()
            .any(|found| found.0 == "treatment_not_applied")
    );
}

#[test]
fn a_header_that_is_lost_now_and_then_is_an_error_and_no_lost_treatment() {
    let mut record = sound();
    uncompressed(&mut record);
    each(&mut record, 1, |slice| {
        slice.counts.contract_failures[0].count = slice.counts.responses * 9 / 10;
        slice.counts.successful = slice.counts.responses / 10;
        slice.counts.successful_in_window = slice.counts.successful;
    });
    assert!(
        found(&record).contains(&("errors", Invalid)),
        "{:?}",
        found(&record)
    );
    assert!(
        !found(&record)
            .iter()
            .any(|found| found.0 == "treatment_not_applied")
    );
}

#[test]
fn a_variable_that_did_not_arrive_is_found_in_the_process_that_serves() {
    type Plant = fn(&mut ProcessSeen);
    let cases: [(Option<&str>, Plant); 8] = [
        (Some("no MODE (node server.js, pid 7)"), |process| {
            drop(process.environment.remove("MODE"))
        }),
        (Some("MODE=bb "), |process| {
            drop(process.environment.insert("MODE".into(), "bb".into()))
        }),
        (Some("TEXT={{x "), |process| {
            drop(process.environment.insert("TEXT".into(), "{{x".into()))
        }),
        // The process proves nothing about variables: a different environment, or one overwritten by its
        // title.
        (None, |process| {
            (process.marked, process.environment) = (false, BTreeMap::new())
        }),
        (None, |process| {
            drop(process.environment.insert("MODE".into(), "c:b".into()))
        }),
        (None, |process| {
            drop(process.environment.insert("PORT".into(), "80".into()))
        }),
        (None, |process| {
            drop(process.environment.insert("OTHER".into(), "x".into()))
        }),
        (None, |process| process.pid = 8),
    ];
    for (said, plant) in cases {
        let mut record = sound();
        processes(&mut record, 1).for_each(plant);
        let Some(said) = said else {
            assert_eq!(found(&record), []);
            continue;
        };
        assert_eq!(found(&record), [("environment_lost", Invalid)], "{said}");
        let evidence = only(&record).evidence;
        assert!(
            evidence.contains(said) && evidence.contains("in 10 of 10 trials"),
            "{evidence}"
        );
    }
}

#[test]
fn of_a_cluster_primary_and_workers_are_judged_and_helpers_of_a_single_server_are_not() {
    let lost = |workers: Option<u32>, listens: bool| {
        let mut record = sound();
        for started in starts(&mut record, 1) {
            let service = &mut started.services[0];
            service.workers = workers;
            service.processes[0].listens = listens;
            let mut child = ProcessSeen {
                parent: 7,
                listens: false,
                ..process(8, &[])
            };
            child.environment.insert("MODE".into(), "other".into());
            service.processes.push(child);
        }
        found(&record)
    };
    assert_eq!(
        lost(None, true),
        [],
        "a child that a server starts with variables to its own liking"
    );
    assert_eq!(lost(Some(2), true), [("environment_lost", Invalid)]);
    assert_eq!(
        lost(None, false),
        [("environment_lost", Invalid)],
        "nobody is known to listen"
    );
}

#[test]
fn another_server_on_the_port_voids() {
    let mut record = sound();
    let ended = trials_of(&mut record, 0).filter_map(|trial| trial.ended.as_mut());
    ended
        .take(1)
        .for_each(|ended| ended.strangers_listening.push("node old.js (pid 9)".into()));
    let finding = only(&record);
    assert_eq!(
        (finding.check.name(), finding.grade),
        ("stale_server", Invalid)
    );
    assert!(
        finding
            .evidence
            .contains("node old.js (pid 9) (block 1; so in 1 of 10"),
        "{}",
        finding.evidence
    );
}

#[test]
fn ports_opened_under_load_void() {
    let mut record = sound();
    let ended = trials_of(&mut record, 0).filter_map(|trial| trial.ended.as_mut());
    ended
        .take(1)
        .for_each(|ended| ended.late_ports.push("3000 beside port 9464 of app".into()));
    let finding = only(&record);
    assert_eq!(
        (finding.check.name(), finding.grade),
        ("stale_server", Invalid)
    );
    let said = "3000 beside port 9464 of app (block 1; so in 1 of 10";
    assert!(finding.evidence.contains(said), "{}", finding.evidence);
}

#[test]
fn variants_alike_in_all_that_was_seen_are_told_unless_the_plan_starts_them_alike_or_something_differs()
 {
    let planted = |plant: Plant| {
        let mut record = sound();
        alike(&mut record);
        command(&mut record, 1).command = ["./start.sh", "fast"].map(str::to_owned).into();
        // As similar as two copies.
        let cost =
            |slice: &mut Slice| slice.services[0].cpu_ns as f64 / slice.counts.successful as f64;
        let costs: Vec<f64> = slices_of(&mut record, 0).map(cost).collect();
        for (slice, cost) in slices_of(&mut record, 1).zip(costs) {
            slice.services[0].cpu_ns = (cost * 1.03 * slice.counts.successful as f64) as u64;
        }
        plant(&mut record);
        found(&record)
    };
    assert_eq!(planted(|_| {}), [("nothing_observable", Warning)]);
    let silent: [Plant; 6] = [
        |record| each(record, 1, |slice| slice.services[0].cpu_ns *= 2),
        |record| processes(record, 1).for_each(|process| process.command.push_str(" fast")),
        |record| {
            starts(record, 1).for_each(|started| {
                started.services[0]
                    .processes
                    .push(process(8, &[("MODE", "a")]))
            });
        },
        |record| witnesses(record, 1).for_each(|witness| witness.headers[0].1 = "text/html".into()),
        |record| starts(record, 1).for_each(|started| started.services[0].processes.clear()),
        // Limits set by a shell are not visible.
        |record| {
            command(record, 1).command = vec!["sh".into(), "-c".into(), "ulimit -n 99; x".into()]
        },
    ];
    for (number, plant) in silent.into_iter().enumerate() {
        let found = planted(plant);
        assert!(
            !found.iter().any(|found| found.0 == "nothing_observable"),
            "case {number}: {found:?}"
        );
    }
}

#[test]
fn different_answers_to_one_request_are_graded_by_what_the_plan_says_of_them() {
    let graded = |plant: Plant, declare: Plant| {
        let mut record = sound();
        plant(&mut record);
        declare(&mut record);
        found(&record)
    };
    let of_length = |bytes: u64, declare: Plant| {
        let mut record = sound();
        witnesses(&mut record, 1).for_each(|witness| witness.decoded_bytes = Some(bytes));
        declare(&mut record);
        found(&record)
    };
    let (void, warned) = ([("different_work", Invalid)], [("different_work", Warning)]);
    assert_eq!(of_length(1100, |_| {}), void);
    assert_eq!(of_length(1005, |_| {}), [], "within one per cent");
    assert_eq!(of_length(1030, |_| {}), warned, "a few words more");
    assert_eq!(
        of_length(1100, |record| variant(record, 1).load.requests[0].path =
            "/other".into()),
        warned
    );
    assert_eq!(
        of_length(1100, |record| variant(record, 1).expect.body_bytes =
            Some(1100)),
        warned
    );
    let declared: [Plant; 4] = [
        |record| variant(record, 1).load.requests[0].values = Some("/large.csv".into()),
        |record| variant(record, 1).load.requests[0].body_file = Some("/large.json".into()),
        |record| variant(record, 1).expect.content = Some(model::Digest::of(b"x")),
        |record| {
            let expect = plan::Contract {
                body_bytes: Some(1100),
                ..plan::Contract::default()
            };
            variant(record, 1).load.requests[0].expect = Some(expect);
        },
    ];
    for (number, declare) in declared.into_iter().enumerate() {
        assert_eq!(of_length(1100, declare), warned, "case {number}");
    }
    let changing: Plant = |record| witnesses(record, 1).for_each(|witness| witness.repeats = false);
    assert_eq!(of_length(1100, changing), [], "it is never the same");

    let other_status: Plant = |record| {
        for index in [0, 1] {
            variant(record, index).expect.status = vec![200, 204];
        }
        witnesses(record, 1).for_each(|witness| witness.status = 204);
    };
    assert_eq!(graded(other_status, |_| {}), void);
    assert_eq!(
        graded(other_status, |record| variant(record, 1).expect.status =
            vec![204]),
        []
    );

    let other_hash: Plant = |record| {
        witnesses(record, 1).for_each(|witness| witness.decoded_sha256 = Some("bb".repeat(32)));
    };
    assert_eq!(graded(other_hash, |_| {}), warned);
    let of_its_own: Plant = |record| {
        for (number, witness) in witnesses(record, 1).enumerate() {
            witness.decoded_sha256 = Some(format!("{number:064}"));
        }
    };
    assert_eq!(
        graded(other_hash, of_its_own),
        [],
        "each process says something of its own"
    );

    // Two requests in either order: one with different content of the same length, and one with shorter
    // content.
    let second: Plant = |record| {
        for index in [0, 1] {
            let requests = &mut variant(record, index).load.requests;
            let other = plan::Request {
                path: "/z".into(),
                ..requests[0].clone()
            };
            requests.push(other);
            for started in starts(record, index) {
                let other = Witness {
                    request: "GET /z".into(),
                    ..started.witnesses[0].clone()
                };
                started.witnesses.push(other);
            }
        }
        starts(record, 1).for_each(|started| started.witnesses[1].decoded_bytes = Some(90));
    };
    let first_and_second: Plant = |record| {
        starts(record, 1)
            .for_each(|started| started.witnesses[0].decoded_sha256 = Some("bb".repeat(32)));
    };
    assert_eq!(graded(second, first_and_second), void);
}

/// Replaces responses before the load: each trial of a variant ends with these contents of POST /, with these
/// sizes.
fn sample(record: &mut Record, index: usize, contents: &[(&str, u64)]) {
    for trial in trials_of(record, index) {
        trial.started.witnesses.clear();
        let seen = contents.iter().map(|(hash, bytes)| ContentSeen {
            sha256: (*hash).to_owned(),
            count: 3,
            encoded_bytes: 3 * bytes,
            decoded_bytes: 3 * bytes,
        });
        let contents = [("POST /".to_owned(), seen.collect())].into();
        trial.ended.as_mut().expect("it ended").contents = contents;
    }
}

#[test]
fn sampled_contents_are_compared_for_every_method() {
    let graded = |one: &[(&str, u64)], other: &[(&str, u64)], declare: Plant| {
        let mut record = sound();
        for (index, contents) in [one, other].into_iter().enumerate() {
            variant(&mut record, index).load.requests[0].method = "POST".into();
            sample(&mut record, index, contents);
        }
        declare(&mut record);
        found(&record)
    };
    let (void, warned) = ([("different_work", Invalid)], [("different_work", Warning)]);
    let plain: Plant = |_| {};
    assert_eq!(graded(&[("a", 600)], &[("b", 50)], plain), void);
    assert_eq!(graded(&[("a", 600)], &[("a", 600)], plain), []);
    assert_eq!(
        graded(&[("a", 600)], &[("b", 600)], plain),
        warned,
        "as long"
    );
    assert_eq!(
        graded(&[("a", 600), ("c", 610)], &[("b", 50)], plain),
        [],
        "it is never the same"
    );
    let declared: Plant = |record| variant(record, 1).load.requests[0].body = "other".into();
    assert_eq!(graded(&[("a", 600)], &[("b", 50)], declared), warned);
}

#[test]
fn names_the_flag_for_compression_nobody_requested() {
    let planted = |variants: &[usize]| {
        let mut record = sound();
        for index in variants {
            let coding = Some("gzip".to_owned());
            witnesses(&mut record, *index)
                .take(1)
                .for_each(|seen| seen.coding_on_request = coding.clone());
        }
        conclude(&record).findings
    };
    let one = planted(&[1]);
    let finding = one
        .iter()
        .find(|of| of.check.name() == "coding_not_requested")
        .expect("it is told");
    assert_eq!(
        (finding.grade, finding.variants.as_slice()),
        (Warning, &[1][..])
    );
    assert!(
        finding.remedy.contains("-H 'accept-encoding: gzip'"),
        "{}",
        finding.remedy
    );
    assert!(
        planted(&[0, 1]).iter().all(|of| of.grade == Note),
        "both would"
    );
}

#[test]
fn notes_a_setting_that_changed_nothing_visible() {
    let planted = |cost: f64| {
        let mut record = sound();
        let others: Vec<Slice> = slices_of(&mut record, 0)
            .map(|slice| slice.clone())
            .collect();
        for (slice, other) in slices_of(&mut record, 1).zip(others) {
            (slice.counts, slice.services) = (other.counts, other.services);
            slice.services[0].cpu_ns = (slice.services[0].cpu_ns as f64 * cost) as u64;
        }
        conclude(&record).findings
    };
    let findings = planted(1.001);
    let note = findings
        .iter()
        .find(|of| of.check.name() == "nothing_observable")
        .expect("it is told");
    assert_eq!(note.grade, Note);
    assert!(
        note.remedy.contains("may not have taken effect"),
        "{}",
        note.remedy
    );
    assert!(
        planted(1.2)
            .iter()
            .all(|of| of.check.name() != "nothing_observable")
    );
}

#[test]
fn fewer_bytes_on_the_wire_are_no_other_work_where_a_declared_coding_explains_them() {
    let coded = |declare: bool| {
        let mut record = sound();
        each(&mut record, 1, |slice| slice.counts.body_bytes /= 2);
        witnesses(&mut record, 1).for_each(|witness| {
            witness.body_bytes = 500;
            witness.headers.push(field("content-encoding", "gzip"));
        });
        if declare {
            declare_gzip(&mut record, 1);
        }
        record
    };
    assert_eq!(found(&coded(true)), []);
    assert_eq!(
        found(&coded(false)),
        [("different_bodies", Warning)],
        "nobody asked for it"
    );
    // The responses before the load differ from those during the load.
    let mut record = coded(true);
    each(&mut record, 1, |slice| slice.counts.body_bytes /= 2);
    assert_eq!(found(&record), [("different_bodies", Warning)]);
}

#[test]
fn a_profiler_is_found_in_a_command_and_in_variables_and_what_resembles_one_is_not() {
    let with = |command: &str, environment: &[(&str, &str)]| {
        let mut record = sound();
        for process in processes(&mut record, 1) {
            process.command = command.into();
            process.environment.extend(map(environment));
        }
        found(&record).contains(&("profiler_on", Invalid))
    };
    for command in [
        "node --cpu-prof server.js",
        "/usr/bin/node --require ./x.js --inspect=0 server.js",
        "node --trace_gc server.js",
        "node /app/node_modules/.bin/c8 node server.js",
        "npm exec clinic doctor -- node server.js",
        "perf record -g node server.js",
        "python3 -m cProfile app.py",
        "java -agentlib:jdwp=transport=dt_socket -jar app.jar",
        "sh -c exec 0x server.js",
        "strace -f node server.js",
    ] {
        assert!(with(command, &[]), "{command}");
    }
    for command in [
        "node --max-old-space-size=99 --inspect-port=0 --trace-warnings server.js",
        "node server.js --prof --inspect --trace-level=3",
        "python3 -m http.server",
        "java -jar app.jar -agentlib:jdwp",
        "node server.js strace gdb",
        "perf stat node server.js",
    ] {
        assert!(!with(command, &[]), "{command}");
    }
    let node = "node server.js";
    assert!(with(node, &[("NODE_OPTIONS", "--no-warnings --heap-prof")]));
    assert!(with(node, &[("NODE_V8_COVERAGE", "/tmp/c")]));
    assert!(with(
        node,
        &[("JAVA_TOOL_OPTIONS", "-XX:StartFlightRecording")]
    ));
    assert!(!with(
        node,
        &[
            ("NODE_OPTIONS", "--max-old-space-size=99"),
            ("NODE_V8_COVERAGE", "")
        ]
    ));

    // The cost of a profiler can be the question, unless all variants have one.
    let mut record = sound();
    let profiled = ["node", "--cpu-prof", "server.js"].map(str::to_owned);
    processes(&mut record, 1).for_each(|process| process.command = profiled.join(" "));
    command(&mut record, 1).command = profiled.clone().into();
    assert_eq!(found(&record), []);
    command(&mut record, 0).command = profiled.into();
    assert_eq!(
        found(&record),
        [("profiler_on", Invalid), ("profiler_on", Invalid)]
    );
}
