//! Contrasts of a factorial: what they are called, and which cells they need. Their coefficients are held against NumPy's in `vectors.rs`.

use proofload_stats::{Factor, contrasts};

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
    let values: Vec<_> = all.iter().map(|contrast| contrast.values(&blocks).expect("positive")).collect();
    let [first, second] = values[0].as_deref().expect("its cells are there") else { panic!("{values:?}") };
    assert!((first.exp() - 2.0).abs() < 1e-12 && *second == 0.0);
    assert_eq!(values[1], None);
}

#[test]
fn what_has_no_logarithm_is_named_by_block_and_cell() {
    let all = contrasts(&numbered(&[2, 2])).expect("few levels");
    let good = vec![Some(1.0); 4];
    for value in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let blocks = [good.clone(), vec![Some(1.0), Some(1.0), Some(value), None]];
        let error = all[0].values(&blocks);
        let error = error.expect_err("no logarithm").to_string();
        assert!(error.starts_with("block 1, cell 2: "), "{value}: {error}");
    }
    let short = [good.clone(), vec![Some(1.0); 3]];
    let error = all[0].values(&short).expect_err("too short").to_string();
    assert_eq!(error, "block 1 has 3 values, the design has 4");
    assert_eq!(all[0].values(&[]), Ok(Some(vec![])), "nothing is wrong with nothing");
}

#[test]
fn designs_that_vary_nothing_or_too_much_are_refused() {
    assert_eq!(contrasts(&[]), Ok(vec![]));
    for levels in [0, 1] {
        let error = contrasts(&numbered(&[2, levels])).expect_err("nothing varies").to_string();
        assert!(error.starts_with(&format!("factor `b` has {levels} levels")), "{error}");
    }
    let many = vec![factor("x", &["0", "1"]); 11];
    assert!(contrasts(&many).is_err());
    assert_eq!(contrasts(&many[..10]).expect("1,024").len(), 10 + 45);
}
