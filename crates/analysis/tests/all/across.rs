//! Two records are compared if that is meaningful. Otherwise the reason is reported in place of figures.

use proofload_analysis::{Essentials, Grade, SESSIONS_MIN, Shift, across, conclude};
use record::{RateChosen, Record, Slice};
use stats::{Interval, Latencies};

use crate::given::{open_loop, slices, sound};

#[test]
fn a_service_that_became_slower_shows_by_how_much_and_a_record_beside_itself_has_not_moved() {
    let mut after = sound();
    slices(&mut after).for_each(|slice| slice.counts.window_ns *= 2);
    let seen = across(&sound(), &after, &[]);
    let slower = seen
        .shifts
        .iter()
        .filter(|shift| shift.metric == plan::Metric::Throughput);
    let ratios: Vec<f64> = slower.map(|shift| shift.ratio).collect();
    assert!(
        !ratios.is_empty() && ratios.iter().all(|ratio| (ratio - 0.5).abs() < 1e-9),
        "{ratios:?}"
    );
    let same = across(&sound(), &sound(), &[]);
    assert!(
        same.findings.is_empty() && same.left_out.is_empty() && !same.shifts.is_empty(),
        "{same:?}"
    );
    let still = |shift: &Shift| (shift.ratio - 1.0).abs() < 1e-12 && shift.interval.is_none();
    assert!(same.shifts.iter().all(still), "{same:?}");
}

#[test]
fn another_machine_voids_every_absolute_figure() {
    let (mut before, mut after) = (sound(), sound());
    before.header.environment.cpu_model = Some("a processor".into());
    after.header.environment.cpu_model = Some("another processor".into());
    after.header.environment.cpus += 2;
    let seen = across(&before, &after, &[]);
    assert!(
        seen.shifts.is_empty(),
        "a number that is printed gets quoted"
    );
    let finding = seen.findings.first().expect("a finding");
    let told = (finding.check.name(), finding.grade, finding.check.number());
    assert_eq!(told, ("other_machine", Grade::Invalid, "V47"));
    assert!(
        finding
            .evidence
            .contains("a processor and another processor"),
        "{}",
        finding.evidence
    );
}

#[test]
fn what_one_record_does_not_tell_is_no_difference() {
    let mut after = sound();
    let there = &mut after.header.environment;
    (there.kernel, there.libc) = (None, Some("glibc 2.41".into()));
    there.memory_bytes = there.memory_bytes.map(|bytes| bytes + bytes / 100);
    assert!(across(&sound(), &after, &[]).findings.is_empty());
}

#[test]
fn another_load_is_left_out_and_named() {
    let mut after = sound();
    after.header.plan.variants[0].load.settings.connections += 1;
    after.header.plan.variants[1].name = "renamed".into();
    let seen = across(&sound(), &after, &[]);
    assert!(seen.shifts.is_empty(), "{seen:?}");
    let said = seen.left_out.join("\n");
    for part in [
        "another load was asked for",
        "renamed: only in the second",
        "only in the first",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn figures_of_another_kind_are_not_compared() {
    let mut after = sound();
    after.header.plan.design.pooled = true;
    let seen = across(&sound(), &after, &[]);
    assert_eq!(seen.left_out, ["all: quantiles of each process and of all"]);
    assert!(seen.shifts.is_empty(), "{seen:?}");
}

/// The stored record at another time, with a higher throughput.
fn session(day: usize, faster: f64) -> Record {
    let mut record = sound();
    record.header.created = format!("2026-10-{day:02}T00:00:00Z");
    let window_ns = |slice: &Slice| (slice.counts.window_ns as f64 / faster) as u64;
    slices(&mut record).for_each(|slice| slice.counts.window_ns = window_ns(slice));
    record
}

#[test]
fn how_much_other_runs_differ_is_the_interval() {
    let (before, after) = (session(1, 1.0), session(2, 1.03));
    let scattered = [1.02, 0.98, 1.01, 0.99, 1.0];
    let sessions = (10..)
        .zip(scattered)
        .map(|(day, faster)| session(day, faster));
    let kept: Vec<Essentials> = sessions
        .map(|of| Essentials::of(&of, &conclude(&of)))
        .collect();
    let interval = |known: &[Essentials]| {
        let seen = across(&before, &after, known);
        let shift = seen
            .shifts
            .into_iter()
            .find(|shift| shift.metric == plan::Metric::Throughput);
        shift.expect("throughput is judged").interval
    };
    let Interval { low, high } = interval(&kept).expect("five other runs");
    // s = 1.6 %, so 3 % between two runs is chance: t of 4 degrees of freedom, over several lines, times s
    // times the root of 2.
    assert!(low < 1.0 && high > 1.06 && high < 1.25, "{low} to {high}");
    assert_eq!(interval(&kept[..SESSIONS_MIN - 1]), None);
    // Runs with other conditions do not count, and neither do the two compared runs.
    let mut other = kept.clone();
    other
        .iter_mut()
        .for_each(|one| one.conditions.cpus_shared ^= true);
    assert_eq!(interval(&other), None);
    let same = Essentials::of(&before, &conclude(&before));
    assert_eq!(interval(&vec![same; 9]), None);
}

#[test]
fn runs_at_other_rates_or_warmed_up_otherwise_are_not_compared() {
    type Change = fn(&mut Record);
    let rate = |per_s| RateChosen {
        per_s,
        ramp_per_s: None,
        share: None,
        capacities_per_s: Vec::new(),
    };
    let cases: [(Change, &str); 3] = [
        (
            |record| record.rate.as_mut().expect("a rate").per_s = 500.0,
            "rates of 2,000/s and 500/s",
        ),
        (
            |record| record.warm_up.as_mut().expect("settled").seconds = 30.0,
            "warm-ups of",
        ),
        (
            |record| record.blocks[0].trials[0].started.cpus_shared ^= true,
            "a generator on other processors",
        ),
    ];
    for (change, said) in cases {
        let (mut before, mut after) = (sound(), sound());
        (before.rate, after.rate) = (Some(rate(2000.0)), Some(rate(2000.0)));
        assert!(across(&before, &after, &[]).left_out.is_empty());
        change(&mut after);
        let seen = across(&before, &after, &[]);
        let is_told = seen.left_out.iter().any(|line| line.contains(said));
        assert!(seen.shifts.is_empty() && is_told, "{:?}", seen.left_out);
    }
}

#[test]
fn a_figure_is_of_all_trials_or_there_is_none() {
    let mut record = sound();
    record.header.plan.design.metric = plan::Metric::P50;
    record.header.plan.design.rate = Some(plan::PlannedRate::PerSecond(1000.0));
    let load = |record: &mut Record, few: u64| {
        for slice in slices(record) {
            let requests = if slice.block == 1 && slice.variant == 0 {
                few
            } else {
                5000
            };
            let mut response = Latencies::new();
            (0..requests).for_each(|index| response.record(1_000_000 + 1000 * index));
            (slice.counts.responses, slice.counts.successful) = (requests, requests);
            slice.counts.open = Some(open_loop(1000.0, requests, response));
        }
    };
    load(&mut record, 40);
    let figures = Essentials::of(&record, &conclude(&record)).figures;
    let with = |metric| {
        figures
            .iter()
            .filter(move |of| of.metric == metric)
            .map(|of| of.variant.as_str())
    };
    assert_eq!(
        with(plan::Metric::P50).collect::<Vec<_>>(),
        ["level-0", "level-1"]
    );
    assert_eq!(with(plan::Metric::P99).collect::<Vec<_>>(), ["level-1"]);
    let mut after = record.clone();
    after.header.plan.design.metric = plan::Metric::P99;
    load(&mut after, 5000);
    let seen = across(&record, &after, &[]);
    let shifts = seen
        .shifts
        .iter()
        .filter(|of| of.metric == plan::Metric::P99);
    assert_eq!(
        shifts.map(|of| of.variant.as_str()).collect::<Vec<_>>(),
        ["level-1"],
        "{seen:?}"
    );
    assert!(
        seen.left_out
            .iter()
            .any(|line| line.starts_with("level-0: p99")),
        "{seen:?}"
    );
}
