//! Error rates of the guard and of the joint methods, by simulation. Seeded, so that it cannot fail by
//! chance.

use crate::simulation::{Noise, RunningT, share};
use proofload_stats::{ALPHA, Resampling, guard, joint_t};

fn rejects(d: &[f64], scale: f64) -> bool {
    guard(d, scale).expect("finite") > -ALPHA.ln()
}

/// Whether the guard rejects after any of the first hundred blocks.
fn ever_rejects(mut draw: impl FnMut() -> f64) -> bool {
    let mut d = Vec::new();
    (0..100).any(|_| {
        d.push(draw());
        rejects(&d, 1.0)
    })
}

#[test]
fn the_guard_sees_a_clear_difference_and_needs_ten_blocks_for_any() {
    assert!(rejects(&[0.02; 10], 0.01) && !rejects(&[0.02; 9], 0.01));
    // No scale rejects earlier. A wrong scale reduces power but does not cause errors.
    for exponent in -20..20 {
        let scale = 1.3_f64.powi(exponent);
        assert!(!rejects(&[1.0; 9], scale), "scale {scale}");
    }
    let mut noise = Noise::new(13);
    let power = share(2_000, || ever_rejects(|| 1.0 + noise.heavy()));
    assert!(power > 0.95, "{power}");
}

/// Draws log ratios of `candidates` against one baseline, with that baseline's noise in common.
fn blocks(noise: &mut Noise, blocks: usize, effects: &[f64]) -> Vec<Vec<f64>> {
    let row = |noise: &mut Noise| {
        let baseline = noise.normal();
        effects
            .iter()
            .map(|effect| effect + noise.normal() - baseline)
            .collect()
    };
    (0..blocks).map(|_| row(noise)).collect()
}

#[test]
fn joint_intervals_hold_all_truths_also_where_every_candidate_differs() {
    let resampling = Resampling {
        resamples: 1_000,
        seed: 1,
    };
    let mut noise = Noise::new(15);
    // For eight blocks all flips are enumerated, for fourteen they are drawn.
    for (count, paths) in [(8, 2_000), (14, 500)] {
        let missed = share(paths, || {
            let rows = blocks(&mut noise, count, &[5.0; 6]);
            let critical = joint_t(&rows, resampling).expect("spread");
            (0..6).any(|candidate| {
                let mut running = RunningT::default();
                rows.iter()
                    .for_each(|row| running.add(row[candidate] - 5.0));
                running.t().abs() > critical
            })
        });
        assert!((0.03..0.07).contains(&missed), "{count} blocks: {missed}");
    }
}
