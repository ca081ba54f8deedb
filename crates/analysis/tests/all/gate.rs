//! Tests of the gate: intervals against limits, refusals to judge, and the promised rate of false alarms.

use crate::given;
use crate::made::gates::Course;
use crate::made::{Maker, Run, give, slices, sound};
use model::Unfit;
use plan::{GateEntry, LimitFigure};
use proofload_analysis::{Gate, Ruling, blocks_to_find, conclude, gated, limits_settled, rule};
use record::{EndReason, Ended, Record, SliceKind};
use stats::Latencies;

fn entry(limit: &str) -> GateEntry {
    GateEntry {
        limit: plan::limit(limit).expect(limit),
        of: None,
        line: None,
    }
}

fn gate(record: &Record, limits: &[&str]) -> Gate {
    let entries: Vec<GateEntry> = limits.iter().map(|limit| entry(limit)).collect();
    gated(record, &conclude(record), &entries)
}

/// The ruling of a single limit.
fn ruling(record: &Record, limit: &str) -> Ruling {
    let gate = gate(record, &[limit]);
    assert_eq!((&gate.unfit, gate.judgements.len()), (&None, 1), "{limit}");
    gate.judgements[0].ruling
}

#[test]
fn a_limit_is_kept_or_broken_by_the_interval_that_the_report_prints_and_open_within_it() {
    let record = sound();
    let conclusion = conclude(&record);
    let estimate = conclusion.comparisons[0]
        .estimate
        .expect("the kept record has one");
    for (ratio, wanted) in [
        (estimate.low - 1e-6, Ruling::Pass),
        (estimate.low + 1e-6, Ruling::Inconclusive),
        (estimate.ratio, Ruling::Inconclusive),
        (estimate.high - 1e-6, Ruling::Inconclusive),
        (estimate.high + 1e-6, Ruling::Fail),
    ] {
        assert_eq!(
            ruling(
                &record,
                &format!("throughput > {:+.6}%", (ratio - 1.0) * 100.0)
            ),
            wanted
        );
    }
    let judged = gate(&record, &["throughput > -3%"]).judgements.remove(0);
    let measured = judged.measured.expect("an interval");
    let (value, ends) = (measured.value, (measured.low, measured.high));
    assert_eq!(
        (value, ends),
        (estimate.ratio, (estimate.low, Some(estimate.high)))
    );
    // Another metric has no verdict in this experiment. Its interval belongs to the gate's family, and is
    // wider with two members.
    let alone = gate(&record, &["cpu_per_request < +900%"]).judgements[0]
        .measured
        .expect("an interval");
    let two = gate(&record, &["cpu_per_request < +900%", "peak_memory < +900%"]);
    let shared = two.judgements[0].measured.expect("an interval");
    assert!(
        shared.low < alone.low && shared.high > alone.high,
        "{shared:?} {alone:?}"
    );
    // In this record every trial has the same peak.
    assert_eq!(
        (two.judgements[1].measured, two.ruling()),
        (None, Some(Ruling::Inconclusive))
    );
}

#[test]
fn a_damaged_record_passes_nothing() {
    let mut record = sound();
    let limits = [
        "throughput > -50%",
        "throughput > 1/s",
        "throughput > +900%",
    ];
    let rulings = |record: &Record| limits.map(|limit| ruling(record, limit));
    assert_eq!(rulings(&record), [Ruling::Pass, Ruling::Pass, Ruling::Fail]);
    record
        .damage
        .push("events.jsonl:7: it is not what was written".into());
    assert_eq!(
        rulings(&record),
        [Ruling::Inconclusive, Ruling::Inconclusive, Ruling::Fail]
    );
}

#[test]
fn amounts_are_about_candidates_and_their_intervals_are_over_blocks() {
    let record = sound();
    let figure = conclude(&record).variants[1]
        .throughput_per_s
        .expect("a figure");
    let judged = gate(&record, &["throughput > 1/s"]).judgements;
    let [judged] = &judged[..] else {
        panic!("{judged:?}")
    };
    assert_eq!(judged.name, record.header.plan.variants[1].name);
    let measured = judged.measured.expect("an interval");
    let high = measured.high.expect("an end");
    assert!((measured.value / figure - 1.0).abs() < 1e-9 && measured.low < figure && figure < high);
    for (at, wanted) in [
        (measured.low * 0.999, Ruling::Pass),
        (figure, Ruling::Inconclusive),
        (high * 1.001, Ruling::Fail),
    ] {
        assert_eq!(
            ruling(&record, &format!("throughput > {at:.6}/s")),
            wanted,
            "{at}"
        );
    }
    // No failure was observed, but a rate of one in a million cannot be excluded.
    assert_eq!(ruling(&record, "failed < 0.0001%"), Ruling::Inconclusive);
    assert_eq!(ruling(&record, "failed < 5%"), Ruling::Pass);
}

#[test]
fn failures_that_come_in_bursts_keep_no_limit_that_they_would_keep_if_they_were_independent() {
    let share = |burst: bool| {
        let mut record = sound();
        let of_it = slices(&mut record, 1).filter(|slice| slice.kind == SliceKind::Measured);
        let of_it: Vec<_> = of_it.collect();
        let first = if burst { of_it.len() as u64 } else { 1 };
        for (index, slice) in of_it.into_iter().enumerate() {
            give(slice, 10_000);
            let failed = if index == 0 { first } else { u64::from(!burst) };
            (slice.counts.successful, slice.counts.timed_out) = (10_000 - failed, failed);
        }
        gate(&record, &["failed < 1%"]).judgements[0]
            .measured
            .expect("an interval")
    };
    let (burst, spread) = (share(true), share(false));
    assert_eq!(burst.value, spread.value);
    assert!(
        burst.high > spread.high.map(|high| high * 1.5),
        "{burst:?} {spread:?}"
    );
}

/// The sound record in open loop. The candidate has `each` requests per slice without a response for 2 s.
fn unanswered(each: u64) -> Record {
    let mut record = sound();
    record.header.plan.design.metric = plan::Metric::P50;
    record.header.plan.design.rate = Some(plan::PlannedRate::PerSecond(1000.0));
    for slice in given::slices(&mut record) {
        let mut response = Latencies::new();
        for index in 0..5000 {
            response.record(1_000_000 + 10_000 * u64::from(slice.block) + 100 * index);
        }
        let censored = if slice.variant == 1 { each } else { 0 };
        (0..censored).for_each(|_| response.censor(2_000_000_000));
        slice.counts.open = Some(given::open_loop(1000.0, 5000 + censored, response));
    }
    record
}

#[test]
fn a_quantile_that_is_known_to_be_at_least_so_much_breaks_limits_and_keeps_none() {
    // Without findings: such a record is invalid because of its errors, but the stop rule still uses its
    // gate.
    let limits = |record: &Record, limit: &str| {
        let mut record = record.clone();
        record.header.plan.gate = vec![entry(limit)];
        limits_settled(&record, &conclude(&record))
    };
    let record = unanswered(100);
    assert!(
        limits(&record, "p99 < 50ms"),
        "each trial's p99 is 2 s or more"
    );
    assert!(
        !limits(&record, "p99 < 60s"),
        "nothing says that it ends below a minute"
    );
    assert!(limits(&unanswered(0), "p99 < 50ms") && limits(&unanswered(0), "p99 < 60s"));
}

fn ended(reason: EndReason) -> Record {
    let mut record = sound();
    let ended = record.ended.take().expect("the kept record has its end");
    record.ended = Some(Ended { reason, ..ended });
    record
}

#[test]
fn nothing_is_judged_of_a_run_that_is_void_or_did_not_end_by_its_rule() {
    let mut unfinished = sound();
    unfinished.ended = None;
    let mut void = sound();
    slices(&mut void, 1).for_each(|slice| {
        slice.counts.timed_out = slice.counts.successful / 10;
        slice.counts.successful -= slice.counts.timed_out;
    });
    let mut few = sound();
    few.blocks.truncate(3);
    for (record, wanted, said) in [
        (unfinished, Unfit::Unfinished, "was killed"),
        (
            ended(EndReason::Interrupted),
            Unfit::Interrupted,
            "interrupted",
        ),
        (
            ended(EndReason::ServiceFailed("api: gone".into())),
            Unfit::Failed,
            "api: gone",
        ),
        (void, Unfit::Invalid, "V"),
        (few, Unfit::TooFewBlocks, "blocks"),
    ] {
        let gate = gate(&record, &["throughput > -99%", "throughput > 1/s"]);
        let (unfit, reason) = gate.unfit.clone().expect("it is unfit");
        assert_eq!(
            (unfit, gate.judgements.len(), gate.ruling()),
            (wanted, 0, None)
        );
        assert!(reason.contains(said), "{reason}");
    }
}

#[test]
fn a_candidate_that_never_succeeds_breaks_every_limit_and_a_baseline_that_never_does_leaves_changes_open()
 {
    let without = |variant: usize| {
        let mut record = sound();
        for slice in slices(&mut record, variant) {
            let sent = slice.counts.sent;
            give(slice, 0);
            (slice.counts.sent, slice.counts.timed_out) = (sent, sent);
        }
        gate(
            &record,
            &["throughput > -3%", "throughput > 1/s", "failed < 1%"],
        )
    };
    let candidate = without(1);
    assert!(
        candidate
            .judgements
            .iter()
            .all(|judgement| judgement.ruling == Ruling::Fail),
        "{candidate:#?}"
    );
    let baseline = without(0);
    let rulings: Vec<Ruling> = baseline
        .judgements
        .iter()
        .map(|judgement| judgement.ruling)
        .collect();
    assert_eq!(rulings, [Ruling::Inconclusive, Ruling::Pass, Ruling::Pass]);
    let reason = baseline.judgements[0].reason.as_deref().unwrap_or_default();
    assert!(
        reason.contains(&sound().header.plan.variants[0].name),
        "{reason}"
    );
}

/// Shares of simulated runs that break and keep the limit, for a true change of the candidate.
fn rates(runs: u32, true_change: f64, limit: &str) -> (f64, f64) {
    let course = Course {
        blocks: 10,
        between: 0.02,
        true_change,
        limit,
    };
    let rates = course.rates(7, runs);
    (rates.broken, rates.kept)
}

#[test]
fn of_unchanged_runs_at_most_one_in_forty_breaks_a_limit_at_no_change_and_none_one_with_a_margin() {
    const RUNS: u32 = 250;
    // Four standard errors of a share of 2.5 %.
    let most = 0.025 + 4.0 * (0.025_f64 * 0.975 / f64::from(RUNS)).sqrt();
    let (broken, kept) = rates(RUNS, 0.0, "throughput > +0%");
    assert!(
        broken <= most && kept <= most,
        "{broken} broken, {kept} kept"
    );
    assert!(broken + kept > 0.01, "the simulation is blind");
    let (broken, _) = rates(RUNS, 0.0, "throughput > -5%");
    assert_eq!(broken, 0.0);
    // A change of exactly the limit's size is on neither side of it.
    let (broken, kept) = rates(RUNS, -0.05, "throughput > -5%");
    assert!(
        broken <= most && kept <= most,
        "{broken} broken, {kept} kept"
    );
    let (broken, kept) = rates(100, -0.15, "throughput > -5%");
    assert!(broken > 0.9 && kept == 0.0, "{broken} broken, {kept} kept");
}

#[test]
fn a_gate_that_is_open_keeps_a_run_going_and_one_without_limits_ends_none() {
    let mut record = sound();
    let conclusion = conclude(&record);
    assert!(conclusion.is_decided() && limits_settled(&record, &conclusion));
    let estimate = conclusion.comparisons[0].estimate.expect("an estimate");
    record.header.plan.gate = vec![entry(&format!(
        "throughput > {:+.6}%",
        (estimate.ratio - 1.0) * 100.0
    ))];
    assert!(!limits_settled(&record, &conclusion));
    record.header.plan.gate = vec![entry("throughput > -99%")];
    assert!(limits_settled(&record, &conclusion));
    let open = gate(
        &record,
        &[&format!(
            "throughput > {:+.6}%",
            (estimate.low - 1.0) * 100.0 + 0.01
        )],
    );
    let needed = open.judgements[0].blocks_needed;
    assert!(
        needed.is_none_or(|needed| needed > conclusion.blocks),
        "{needed:?}"
    );
    // −20 % is as far from 1 as +25 %.
    let wide = Maker::new(1).clean(Run::new(6, 0.3));
    let sd_log = conclude(&wide).comparisons[0]
        .estimate
        .expect("an estimate")
        .sd_log;
    let rise = rule(&wide).and_then(|rule| blocks_to_find(0.25, sd_log, &rule));
    assert_eq!(
        gate(&wide, &["throughput > -20%"]).judgements[0].blocks_needed,
        rise
    );
    assert!(LimitFigure::all().all(|figure| LimitFigure::named(figure.name()) == Some(figure)));
}
