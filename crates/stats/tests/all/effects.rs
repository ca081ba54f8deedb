//! Contrasts of a factorial: what they are called, which cells they need, and how often their intervals hold. Their coefficients are held
//! against NumPy's in `vectors.rs`.

use crate::simulation::Noise;
use proofload_stats::{Estimate, Factor, Looks, contrasts, plain_t, welch};

fn factor(name: &str, levels: &[&str]) -> Factor {
    Factor { name: name.to_owned(), levels: levels.iter().map(ToString::to_string).collect() }
}

fn numbered(levels: &[usize]) -> Vec<Factor> {
    let names = ["a", "b", "c", "d", "e"];
    let level_names = ["0", "1", "2", "3"];
    levels.iter().zip(names).map(|(&count, name)| factor(name, &level_names[..count])).collect()
}

#[test]
fn a_contrast_says_what_is_held_against_what() {
    let factors =
        [factor("node_env", &["development", "production"]), factor("gzip", &["off", "on", "best"])];
    let names: Vec<String> =
        contrasts(&factors).expect("few levels").into_iter().map(|contrast| contrast.name).collect();
    let expected = [
        "node_env: production / development",
        "gzip: on / off",
        "gzip: best / off",
        "node_env: production / development × gzip: on / off",
        "node_env: production / development × gzip: best / off",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_hole_matters_to_the_contrasts_that_need_its_cell_and_to_no_other() {
    let all = contrasts(&numbered(&[3])).expect("few levels");
    let blocks = [vec![Some(10.0), Some(20.0), None], vec![Some(8.0), Some(8.0), Some(8.0)]];
    let values: Vec<_> = all.iter().map(|contrast| contrast.values(&blocks)).collect();
    let [stratum] = values[0].as_deref().expect("its cells are there") else { panic!("{values:?}") };
    assert!((stratum[0].exp() - 2.0).abs() < 1e-12 && stratum[1] == 0.0);
    assert_eq!(values[1], None);
}

#[test]
fn what_has_no_logarithm_and_designs_that_vary_nothing_or_too_much_have_no_answer() {
    let all = contrasts(&numbered(&[2, 2])).expect("few levels");
    for value in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let blocks = [vec![Some(1.0); 4], vec![Some(1.0), Some(1.0), Some(value), Some(1.0)]];
        assert_eq!(all[0].values(&blocks), None, "{value}");
    }
    assert_eq!(all[0].values(&[]), Some(vec![vec![]; 2]), "nothing is wrong with nothing");
    assert_eq!(all[0].values(&[vec![Some(1.0); 2]]), None, "a row that is too short");
    assert_eq!(contrasts(&[]), Some(vec![]));
    assert_eq!((contrasts(&numbered(&[2, 0])), contrasts(&numbered(&[2, 1]))), (None, None));
    let many = vec![factor("x", &["0", "1"]); 11];
    assert_eq!(contrasts(&many), None);
    assert_eq!(contrasts(&many[..10]).expect("1,024").len(), 10 + 45);
}

#[test]
fn two_strata_have_the_interval_of_welch() {
    let (one, other) = ([0.11, 0.05, 0.08, 0.19, -0.02], [0.3, -0.4, 0.2, 0.1, 0.55]);
    let found = Estimate::of_strata(&[one.to_vec(), other.to_vec()], plain_t(5, 0.95).expect("five"))
        .expect("spread");
    // Half the difference of one from what the other is turned round.
    let halved = welch(&other.map(|d| -d), &one, 0.95).expect("spread");
    for (ours, theirs) in [(found.ratio, halved.ratio), (found.low, halved.low), (found.high, halved.high)] {
        assert!((ours - theirs.sqrt()).abs() < 1e-9, "{ours} is not {}", theirs.sqrt());
    }
}

#[test]
fn intervals_of_effects_hold_together_whatever_each_variant_spreads_and_are_narrow() {
    let all = contrasts(&numbered(&[2, 3, 2])).expect("few levels");
    let critical_t = Looks::new(all.len() as u32).and_then(|looks| looks.end_t(8)).expect("in range");
    let mut noise = Noise::new(1);
    let (runs, mut missed, mut narrower) = (4_000, 0, 0.0);
    for _ in 0..runs {
        let block = |noise: &mut Noise| {
            let shared = 0.2 * noise.normal();
            // The noisiest variant spreads four times as much as the quietest.
            let cells = (0..12).map(|cell| 0.03 * 4_f64.powf(f64::from(cell * 5 % 12) / 11.0));
            cells.map(|sd| Some((shared + sd * noise.normal()).exp())).collect::<Vec<_>>()
        };
        let blocks: Vec<Vec<Option<f64>>> = (0..8).map(|_| block(&mut noise)).collect();
        let values = all.iter().map(|contrast| contrast.values(&blocks).expect("whole"));
        let found: Vec<(Estimate, f64)> = values
            .map(|strata| {
                let average = |block| strata.iter().map(|d| d[block]).sum::<f64>() / strata.len() as f64;
                let plain =
                    Estimate::of(&(0..8).map(average).collect::<Vec<_>>(), critical_t).expect("spread");
                let found = Estimate::of_strata(&strata, critical_t).expect("spread");
                (found, (found.high / found.low).ln() / (plain.high / plain.low).ln())
            })
            .collect();
        missed += u32::from(found.iter().any(|(of, _)| of.low > 1.0 || of.high < 1.0));
        narrower += found[0].1;
    }
    let (missed, narrower) = (f64::from(missed) / f64::from(runs), narrower / f64::from(runs));
    assert!((0.03..0.055).contains(&missed), "{missed}");
    assert!(narrower < 0.85, "{narrower}");
}
