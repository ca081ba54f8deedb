//! Measures how often a tuning of simulated services gives the right recommendation: `cargo run --release -p
//! proofload-analysis --example simulated_tune`.

mod world;

use world::World;

const WORLDS: u64 = 1_000;

fn main() {
    let world = |trial_s: f64, minutes: f64, percents: &[f64]| World {
        effects: percents
            .iter()
            .map(|percent| (percent / 100.0).ln_1p())
            .collect(),
        sd: 0.047,
        trial_s,
        budget_s: 60.0 * minutes,
        ..World::default()
    };
    let eleven = [30.0, 10.0, 5.0, 3.0, -5.0, -20.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let (eight, five) = (
        [30.0, 10.0, 5.0, -5.0, 0.0, 0.0, 0.0, 0.0],
        [10.0, 5.0, -5.0, 0.0, 0.0],
    );
    let tail = vec![0.5_f64.ln_1p(), 0.0, 0.0, 0.0, 0.0];
    let cells = [
        // Trials of 6.5 s, as for a service that starts or warms up slowly.
        ("11 settings, 13 min", world(6.5, 13.0, &eleven)),
        (
            "11 settings, 13 min, a pair of ×1.1",
            World {
                synergy: 0.095,
                ..world(6.5, 13.0, &eleven)
            },
        ),
        ("8 settings, 10 min", world(6.5, 10.0, &eight)),
        ("5 settings, 10 min", world(6.5, 10.0, &five)),
        (
            "11 settings that do nothing, 13 min",
            world(6.5, 13.0, &[0.0; 11]),
        ),
        // Trials of 3.5 s, as for a small service.
        ("11 settings, 10 min", world(3.5, 10.0, &eleven)),
        (
            "11 settings, 10 min, noisier (6.1 %)",
            World {
                sd: 0.061,
                ..world(3.5, 10.0, &eleven)
            },
        ),
        ("8 settings, 10 min", world(3.5, 10.0, &eight)),
        ("5 settings, 10 min", world(3.5, 10.0, &five)),
        (
            "5 settings, 10 min, noisier (6.1 %)",
            World {
                sd: 0.061,
                ..world(3.5, 10.0, &five)
            },
        ),
        (
            "5 settings, 10 min, p99 < +10 %; +30 % has +50 % of p99",
            World {
                tails: tail,
                ..world(3.5, 10.0, &[30.0, 10.0, 5.0, -5.0, 0.0])
            },
        ),
        ("3 settings, 3 min", world(3.5, 3.0, &[10.0, 0.0, 0.0])),
        (
            "11 settings that do nothing, 10 min",
            world(3.5, 10.0, &[0.0; 11]),
        ),
    ];
    println!(
        "| trial | world | right set | false advice | confirmed interval holds | its half-width | time | one at a time: right set | time |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    for (name, world) in cells {
        let trial_s = world.trial_s;
        let came: Vec<_> = (0..WORLDS).map(|seed| world.tuned(seed)).collect();
        let right = came.iter().filter(|came| world.is_right(came)).count();
        let bad = |came: &&world::Came| {
            came.set
                .iter()
                .any(|of| world.effects[*of] <= 0.0 || world.breaks(*of))
        };
        let wrong = came.iter().filter(bad).count();
        let truth = |came: &world::Came| {
            let row = (0..world.effects.len())
                .map(|of| usize::from(came.set.contains(&of)))
                .collect();
            world.log(&row).exp()
        };
        let advised: Vec<_> = came.iter().filter(|came| !came.set.is_empty()).collect();
        let holds = advised.iter().filter(|came| {
            came.confirmed
                .is_some_and(|[_, low, high]| (low..=high).contains(&truth(came)))
        });
        let width = advised
            .iter()
            .filter_map(|came| came.confirmed)
            .map(|[ratio, low, high]| (high - low) / 2.0 / ratio);
        let width = width.sum::<f64>() / advised.len().max(1) as f64 * 100.0;
        let alone: Vec<_> = (0..WORLDS)
            .map(|seed| world.compared_one_by_one(seed))
            .collect();
        let right_alone = alone.iter().filter(|came| world.is_right(came)).count();
        println!(
            "| {trial_s} s | {name} | {} | {} | {} of {} | {width:.1} % | {:.0} s | {} | {:.0} s |",
            share(right, came.len()),
            share(wrong, came.len()),
            share(holds.count(), advised.len()),
            advised.len(),
            seconds(&came),
            share(right_alone, alone.len()),
            seconds(&alone),
        );
    }
}

fn share(hits: usize, of: usize) -> String {
    if of == 0 {
        "–".to_owned()
    } else {
        format!("{:.1} %", hits as f64 / of as f64 * 100.0)
    }
}

/// Mean duration.
fn seconds(came: &[world::Came]) -> f64 {
    came.iter().map(|one| one.seconds).sum::<f64>() / came.len() as f64
}
