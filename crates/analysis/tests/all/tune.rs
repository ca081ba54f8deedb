//! Tunings of simulated services with known effects: a few of the cases that the example runs by the
//! thousand.

#[path = "../../examples/simulated_tune/world.rs"]
mod world;

use model::Metric;
use proofload_analysis::tune::{
    EffectEstimate, Keep, Purpose, RowFigures, Setting, SettingLevel, SettingState, StepOutcome,
    TuneSpec, Tuning,
};
use world::World;

fn world(percents: &[f64], budget_s: f64) -> World {
    let effects = percents
        .iter()
        .map(|percent| (percent / 100.0_f64).ln_1p())
        .collect();
    World {
        effects,
        sd: 0.047,
        trial_s: 6.5,
        budget_s,
        ..World::default()
    }
}

#[test]
fn what_breaks_a_limit_on_response_times_is_left_out() {
    let tails = vec![0.5, 0.0, 0.0, 0.0];
    let tail = World {
        tails,
        trial_s: 3.5,
        ..world(&[20.0, 20.0, 0.0, 0.0], 600.0)
    };
    let right = (0..100)
        .filter(|seed| tail.is_right(&tail.tuned(*seed)))
        .count();
    assert!(right >= 90, "{right} of 100");
    assert!((0..100).all(|seed| tail.tuned(seed).seconds <= 600.0 * 1.05));
}

#[test]
fn what_helps_is_advised_and_what_does_nothing_is_not() {
    let five = world(&[30.0, 10.0, -10.0, 0.0, 0.0], 600.0);
    let right = (0..100)
        .filter(|seed| five.is_right(&five.tuned(*seed)))
        .count();
    assert!(right >= 95, "{right} of 100");
}

#[test]
fn where_nothing_helps_nothing_is_advised() {
    let none = world(&[0.0; 11], 600.0);
    let advised = (0..100)
        .filter(|seed| !none.tuned(*seed).set.is_empty())
        .count();
    assert!(advised <= 3, "{advised} of 100");
}

#[test]
fn what_decided_settings_leave_of_the_budget_is_used() {
    let five = World {
        trial_s: 3.5,
        sd: 0.061,
        ..world(&[30.0, 10.0, 5.0, -10.0, 0.0], 600.0)
    };
    let seconds: Vec<f64> = (0..50).map(|seed| five.tuned(seed).seconds).collect();
    assert!(seconds.iter().sum::<f64>() / 50.0 > 480.0, "{seconds:?}");
    assert!(
        seconds.iter().all(|seconds| *seconds <= 600.0 * 1.05),
        "{seconds:?}"
    );
}

#[test]
fn eleven_settings_take_a_third_of_the_time_of_one_after_the_other_at_most() {
    let percents = [30.0, 10.0, 5.0, 3.0, -5.0, -20.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let eleven = World {
        trial_s: 3.5,
        ..world(&percents, 600.0)
    };
    let seconds = |tune: &dyn Fn(u64) -> f64| (0..20).map(tune).sum::<f64>();
    let (together, apart) = (
        seconds(&|seed| eleven.tuned(seed).seconds),
        seconds(&|seed| eleven.compared_one_by_one(seed).seconds),
    );
    assert!(together < apart / 3.0, "{together} and {apart} s");
}

/// A tuning of these settings, for ten minutes.
fn tuning(settings: Vec<Setting>) -> Tuning {
    let (metric, margin, keep) = (Metric::Throughput, 0.03, Vec::new());
    Tuning::new(TuneSpec {
        settings,
        metric,
        margin,
        keep,
        budget_s: 600.0,
        seed: 1,
    })
}

#[test]
fn levels_are_raced_by_the_figure_that_settings_are_screened_by() {
    let levels = ["fewer", "more"].map(|name| SettingLevel {
        name: name.into(),
        changes: Vec::new(),
    });
    let mut tuning = tuning(vec![Setting {
        levels: levels.into(),
        ..Setting::default()
    }]);
    let mut noise = [0.99, 1.0, 1.013, 1.004, 0.997, 1.008, 0.992]
        .into_iter()
        .cycle();
    let mut spent_s = 0.0;
    while let Some(step) = tuning.next_step().unwrap().filter(|step| !step.confirms()) {
        let mut figures = |level: usize| {
            let (cpu_us, per_s) = [(100.0, 1000.0), (70.0, 1200.0), (80.0, 1500.0)][level];
            let noise = noise.next().unwrap();
            let values = [
                (Metric::CpuPerRequest, cpu_us * noise),
                (Metric::Throughput, per_s / noise),
            ];
            RowFigures {
                values: values.into(),
                per_core: true,
            }
        };
        let block_s = 3.5 * step.rows.len() as f64;
        spent_s += block_s;
        let figures = step.rows.iter().map(|row| Some(figures(row[0]))).collect();
        tuning.take(StepOutcome::Measured(figures, block_s), spent_s);
    }
    // Per core-second, the first costs less. The higher request rate comes from processors that the load
    // generator leaves idle.
    assert!(tuning.per_core());
    assert_eq!((tuning.chosen, tuning.won), (vec![1], vec![Some(1)]));
}

#[test]
fn what_does_not_start_takes_its_time_from_the_budget() {
    let mut tuning = tuning(vec![Setting::default(); 2]);
    let measured = || StepOutcome::Measured(vec![Some(RowFigures::default())], 3.5);
    let failed = StepOutcome::Failed("not ready".into());
    for (outcome, spent_s) in [(measured(), 10.0), (failed, 560.0), (measured(), 564.0)] {
        tuning.next_step().unwrap();
        tuning.take(outcome, spent_s);
    }
    assert!(
        tuning.next_step().is_err(),
        "36 s hold no screening and confirmation"
    );
}

#[test]
fn a_confirmation_may_take_what_is_left_for_it_and_no_more() {
    let level = SettingLevel {
        name: "on".into(),
        changes: Vec::new(),
    };
    let mut tuning = tuning(vec![Setting {
        levels: vec![level],
        ..Setting::default()
    }]);
    tuning.spec.keep = vec![Keep::read("p99 < +10%").unwrap()];
    let (mut noise, mut spent_s, mut confirmations) =
        ([0.99, 1.0, 1.01].into_iter().cycle(), 0.0, 0);
    while let Some(step) = tuning.next_step().unwrap() {
        let outcome = if step.confirms() {
            let left_s = tuning.left_s() / f64::from(2 - confirmations);
            assert!(
                step.seconds < step.most_s && step.most_s <= left_s,
                "{step:?}, {left_s} s are left"
            );
            confirmations += 1;
            // The step takes its maximum duration.
            spent_s += step.most_s;
            let metric = if confirmations == 1 {
                Metric::Throughput
            } else {
                Metric::P99
            };
            StepOutcome::Confirmed(Some(vec![(
                metric,
                EffectEstimate {
                    ratio: 1.05,
                    low: 1.04,
                    high: 1.06,
                },
            )]))
        } else {
            let mut per_s = |level: usize| [1000.0, 1200.0][level] * noise.next().unwrap();
            let figures = |per_s| RowFigures {
                values: [(Metric::Throughput, per_s)].into(),
                per_core: false,
            };
            let figures = step
                .rows
                .iter()
                .map(|row| Some(figures(per_s(row[0]))))
                .collect();
            let block_s = 7.0 * step.rows.len() as f64;
            spent_s += block_s;
            StepOutcome::Measured(figures, block_s)
        };
        tuning.take(outcome, spent_s);
    }
    assert_eq!(confirmations, 2);
    assert!(spent_s <= 600.0, "{spent_s} s");
}

/// A tuning of five settings. The first helps, and the second and fourth do not start together. One row fails
/// to start by chance.
#[test]
fn settings_that_do_not_start_together_cost_one_of_them_and_not_the_tuning() {
    let of = |name: &str| SettingLevel {
        name: name.into(),
        changes: Vec::new(),
    };
    let setting = |name| Setting {
        name: String::from(name),
        levels: vec![of(name)],
        ..Setting::default()
    };
    let mut tuning = tuning(["a", "b", "c", "d", "e"].map(setting).into());
    let (mut noise, mut spent_s) = ([0.99, 1.0, 1.01, 1.005].into_iter().cycle(), 0.0);
    let mut chance = Some(0);
    while let Some(step) = tuning.next_step().unwrap() {
        spent_s += 3.5 * step.rows.len() as f64 * f64::from(step.blocks);
        let at_odds = step.rows.iter().position(|row| row[1] > 0 && row[3] > 0);
        let mut per_s =
            |row: &Vec<usize>| if row[0] > 0 { 1300.0 } else { 1000.0 } * noise.next().unwrap();
        let figures = |per_s| {
            Some(RowFigures {
                values: [(Metric::Throughput, per_s)].into(),
                per_core: false,
            })
        };
        let is_second = matches!(step.purpose, Purpose::Screen { pair: 2, .. });
        let outcome = match at_odds.or_else(|| chance.take_if(|_| is_second)) {
            Some(row) => StepOutcome::NotStarted(row, "bad option".into()),
            None if step.confirms() => {
                let known = EffectEstimate {
                    ratio: 1.3,
                    low: 1.28,
                    high: 1.32,
                };
                StepOutcome::Confirmed(Some(vec![(Metric::Throughput, known)]))
            }
            None => {
                let figures = step.rows.iter().map(|row| figures(per_s(row))).collect();
                StepOutcome::Measured(figures, 3.5 * step.rows.len() as f64)
            }
        };
        tuning.take(outcome, spent_s);
    }
    let SettingState::Failed(why) = &tuning.states[3] else {
        panic!("{:?}", tuning.states)
    };
    assert!(
        why.starts_with("not together with ") && why.contains('b') && why.ends_with(": bad option"),
        "{why}"
    );
    assert_eq!(tuning.lost.len(), 1, "{:?}", tuning.lost);
    assert_eq!(tuning.chosen, [1, 0, 0, 0, 0]);
    assert!(tuning.holds());
}

#[test]
fn no_tuning_takes_longer_than_its_budget() {
    for (count, budget_s) in [
        (3, 300.0),
        (8, 500.0),
        (11, 600.0),
        (18, 1500.0),
        (22, 2000.0),
    ] {
        let came = world(&vec![10.0; count], budget_s).tuned(1);
        assert!(
            came.seconds <= budget_s * 1.05,
            "{count}: {} of {budget_s}",
            came.seconds
        );
        assert!(came.confirmed.is_some(), "{count}");
    }
}
