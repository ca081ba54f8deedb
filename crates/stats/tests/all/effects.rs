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
    let values: Vec<_> = all.iter().map(|contrast| contrast.values(&blocks)).collect();
    let [first, second] = values[0].as_deref().expect("its cells are there") else { panic!("{values:?}") };
    assert!((first.exp() - 2.0).abs() < 1e-12 && *second == 0.0);
    assert_eq!(values[1], None);
}

#[test]
fn what_has_no_logarithm_and_designs_that_vary_nothing_or_too_much_have_no_answer() {
    let all = contrasts(&numbered(&[2, 2])).expect("few levels");
    for value in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let blocks = [vec![Some(1.0); 4], vec![Some(1.0), Some(1.0), Some(value), Some(1.0)]];
        assert_eq!(all[0].values(&blocks), None, "{value}");
    }
    assert_eq!(all[0].values(&[]), Some(vec![]), "nothing is wrong with nothing");
    assert_eq!(contrasts(&[]), Some(vec![]));
    assert_eq!((contrasts(&numbered(&[2, 0])), contrasts(&numbered(&[2, 1]))), (None, None));
    let many = vec![factor("x", &["0", "1"]); 11];
    assert_eq!(contrasts(&many), None);
    assert_eq!(contrasts(&many[..10]).expect("1,024").len(), 10 + 45);
}
