//! Contrasts of a factorial: their names, the cells they need, and the coverage of their intervals.
//! `vectors.rs` compares their coefficients with NumPy.

use crate::simulation::Noise;
use proofload_stats::{Estimate, FactorLevels, Looks, contrasts, plain_t, welch};

fn factor(name: &str, levels: &[&str]) -> FactorLevels {
    FactorLevels {
        name: name.to_owned(),
        levels: levels.iter().map(ToString::to_string).collect(),
    }
}

fn numbered(levels: &[usize]) -> Vec<FactorLevels> {
    let names = ["a", "b", "c", "d", "e"];
    let level_names = ["0", "1", "2", "3"];
    levels
        .iter()
        .zip(names)
        .map(|(&count, name)| factor(name, &level_names[..count]))
        .collect()
}

#[test]
fn a_contrast_says_what_is_held_against_what() {
    let factors = [
        factor("node_env", &["development", "production"]),
        factor("gzip", &["off", "on", "best"]),
    ];
    let names: Vec<String> = contrasts(&factors)
        .expect("few levels")
        .into_iter()
        .map(|contrast| contrast.name)
        .collect();
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
    let blocks = [
        vec![Some(10.0), Some(20.0), None],
        vec![Some(8.0), Some(8.0), Some(8.0)],
    ];
    let values: Vec<_> = all
        .iter()
        .map(|contrast| contrast.values(&blocks))
        .collect();
    let [stratum] = values[0].as_deref().expect("its cells are there") else {
        panic!("{values:?}")
    };
    assert!((stratum[0].exp() - 2.0).abs() < 1e-12 && stratum[1] == 0.0);
    assert_eq!(values[1], None);
}

#[test]
fn what_has_no_logarithm_and_designs_that_vary_nothing_or_too_much_have_no_answer() {
    let all = contrasts(&numbered(&[2, 2])).expect("few levels");
    for value in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let blocks = [
            vec![Some(1.0); 4],
            vec![Some(1.0), Some(1.0), Some(value), Some(1.0)],
        ];
        assert_eq!(all[0].values(&blocks), None, "{value}");
    }
    assert_eq!(
        all[0].values(&[]),
        Some(vec![vec![]; 2]),
        "nothing is wrong with nothing"
    );
    assert_eq!(
        all[0].values(&[vec![Some(1.0); 2]]),
        None,
        "a row that is too short"
    );
    assert_eq!(contrasts(&[]), Some(vec![]));
    assert_eq!(
        (contrasts(&numbered(&[2, 0])), contrasts(&numbered(&[2, 1]))),
        (None, None)
    );
    let many = vec![factor("x", &["0", "1"]); 11];
    assert_eq!(contrasts(&many), None);
    assert_eq!(contrasts(&many[..10]).expect("1,024").len(), 10 + 45);
}

#[test]
fn two_strata_have_the_interval_of_welch() {
    let (one, other) = ([0.11, 0.05, 0.08, 0.19, -0.02], [0.3, -0.4, 0.2, 0.1, 0.55]);
    let found = Estimate::of_strata(
        &[one.to_vec(), other.to_vec()],
        plain_t(5, 0.95).expect("five"),
    )
    .expect("spread");
    // Half of the difference between one and the negated other.
    let halved = welch(&other.map(|d| -d), &one, 0.95).expect("spread");
    for (ours, theirs) in [
        (found.ratio, halved.ratio),
        (found.low, halved.low),
        (found.high, halved.high),
    ] {
        assert!(
            (ours - theirs.sqrt()).abs() < 1e-9,
            "{ours} is not {}",
            theirs.sqrt()
        );
    }
}

/// Share of runs without any effect in which an interval does not contain the true value, and the width of
/// the first effect's interval relative to that of the blocks' means. `tied` is the standard deviation of a
/// block's common effect on all variants with the same level of the first factor.
fn missed(levels: &[usize], tied: f64) -> (f64, f64) {
    let (all, cells) = (
        contrasts(&numbered(levels)).expect("few levels"),
        levels.iter().product::<usize>(),
    );
    let critical_t = Looks::new(all.len() as u32)
        .and_then(|looks| looks.end_t(8))
        .expect("in range");
    let mut noise = Noise::new(1);
    let (runs, mut missed, mut width) = (4_000, 0, 0.0);
    for _ in 0..runs {
        let block = |noise: &mut Noise| {
            let levels = [(); 2].map(|()| tied * noise.normal());
            // The standard deviation of the noisiest variant is four times that of the quietest.
            let sd = |cell: usize| 0.03 * 4_f64.powf((cell * 5 % 12) as f64 / 11.0);
            let mut log = |cell: usize| levels[cell * 2 / cells] + sd(cell) * noise.normal();
            (0..cells).map(|cell| Some(log(cell).exp())).collect()
        };
        let blocks: Vec<Vec<Option<f64>>> = (0..8).map(|_| block(&mut noise)).collect();
        let strata = all
            .iter()
            .map(|contrast| contrast.values(&blocks).expect("whole"));
        let strata: Vec<Vec<Vec<f64>>> = strata.collect();
        let found = |of: &Vec<Vec<f64>>| Estimate::of_strata(of, critical_t).expect("spread");
        missed += u32::from(
            strata
                .iter()
                .map(found)
                .any(|of| of.low > 1.0 || of.high < 1.0),
        );
        let mean = |block| strata[0].iter().map(|d| d[block]).sum::<f64>() / strata[0].len() as f64;
        let plain =
            Estimate::of(&(0..8).map(mean).collect::<Vec<_>>(), critical_t).expect("spread");
        let found = found(&strata[0]);
        width += (found.high / found.low).ln() / (plain.high / plain.low).ln();
    }
    (f64::from(missed) / f64::from(runs), width / f64::from(runs))
}

#[test]
fn intervals_of_effects_hold_together_whatever_each_variant_spreads_and_are_narrow() {
    let (share, width) = missed(&[2, 3, 2], 0.0);
    assert!(
        (0.03..0.055).contains(&share) && width < 0.9,
        "{share} {width}"
    );
}

#[test]
fn a_block_that_treats_levels_unlike_widens_them() {
    // Common to all pairs of the level: 7 % of the variance of each, a third, nearly all.
    for (levels, tied, most) in [
        (&[2, 3, 2][..], 0.02, 0.05),
        (&[2, 3, 2], 0.05, 0.08),
        (&[2, 3, 2], 0.5, 0.05),
        (&[2, 2], 0.05, 0.08),
        (&[2, 2], 0.5, 0.05),
    ] {
        let (share, _) = missed(levels, tied);
        println!("{levels:?} {tied}: {share}");
        assert!(share < most, "{levels:?} {tied}: {share}");
    }
    assert!(missed(&[2, 3, 2], 0.5).1 > 0.999);
}
