//! What the drawing rests on: trees laid over each other lose no time, and colours can be told apart.

use explain::{Frame, Kind, Node, Tree};

use super::colour::{CHALK, DARK, INK, LIGHT, Rgb, contrast, linear, of_change, text_on};
use super::forest::{Forest, Name};

fn frame(function: &str, kind: Kind) -> Frame {
    Frame { function: function.into(), file: String::new(), line: 0, kind, package: None }
}

/// A tree of functions with their callers and own times.
fn tree(nodes: &[(&str, Kind, Option<usize>, f64)]) -> Tree {
    let frames = nodes.iter().map(|(name, kind, ..)| frame(name, *kind)).collect();
    let node = |(index, (_, _, parent, own)): (usize, &(&str, Kind, Option<usize>, f64))| Node {
        frame: index,
        parent: *parent,
        self_value: *own,
        lines: Default::default(),
    };
    Tree { frames, nodes: nodes.iter().enumerate().map(node).collect() }
}

fn name(name: Name<'_>) -> &str {
    match name {
        Name::Function(frame) => &frame.function,
        Name::Smaller(_) => "(smaller)",
    }
}

#[test]
fn a_call_path_that_is_in_one_tree_alone_stands_beside_those_of_the_other() {
    let one = tree(&[("main", Kind::Core, None, 1.0), ("gone", Kind::Application, Some(0), 7.0)]);
    let other = tree(&[("main", Kind::Core, None, 2.0), ("new", Kind::Native, Some(0), 3.0)]);
    let forest = Forest::of(&[&one, &other]);
    let places: Vec<_> = forest.places.iter().map(|place| (name(place.name), &place.own[..])).collect();
    assert_eq!(places, [("main", &[1.0, 2.0][..]), ("gone", &[7.0, 0.0]), ("new", &[0.0, 3.0])]);
    assert_eq!(forest.totals()[0], [8.0, 5.0]);
}

#[test]
fn small_calls_are_summed_up_by_kind_unless_another_tree_has_them_large() {
    let calls = |small: f64| {
        tree(&[
            ("main", Kind::Core, None, 1000.0),
            ("kept", Kind::Application, Some(0), small),
            ("native", Kind::Native, Some(0), 0.01),
            ("below", Kind::Application, Some(2), 0.02),
            ("another", Kind::Native, Some(0), 0.03),
        ])
    };
    let (one, other) = (calls(0.001), calls(50.0));
    let pruned = Forest::of(&[&one, &other]).pruned(0.0002);
    let places: Vec<_> = pruned
        .forest
        .places
        .iter()
        .map(|place| (name(place.name), place.name.kind(), place.own[0]))
        .collect();
    let smaller = "(smaller)";
    let expected = [
        ("main", Kind::Core, 1000.0),
        ("kept", Kind::Application, 0.001),
        (smaller, Kind::Native, 0.04),
        (smaller, Kind::Application, 0.02),
    ];
    assert_eq!((places.as_slice(), pruned.smaller), (&expected[..], 3));
}

#[test]
fn a_name_can_be_read_on_every_colour() {
    for scheme in [&LIGHT, &DARK] {
        let changes = (-24..=24).map(|part| of_change(scheme, f64::from(part) / 24.0));
        for fill in scheme.kinds.into_iter().chain(changes) {
            let contrast = contrast(fill, text_on(fill));
            assert!(contrast >= 4.5, "{contrast:.2} on {fill:02x?}");
        }
    }
    assert!(contrast(INK, CHALK) > 15.0);
}

/// What people see who lack a kind of cone, from linear light: Machado, Oliveira and Fernandes (2009), severity 1.
const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
    ("normal", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    ),
    (
        "deuteranopia",
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    ),
    (
        "tritanopia",
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ),
];

/// Lightness and hues as OKLab has them (Ottosson, 2020), in which a distance of 0.02 is just seen.
fn seen(colour: Rgb, sight: &[[f64; 3]; 3]) -> [f64; 3] {
    let times = |matrix: &[[f64; 3]; 3], [x, y, z]: [f64; 3]| matrix.map(|[a, b, c]| a * x + b * y + c * z);
    let light = times(sight, colour.map(linear)).map(|part| part.clamp(0.0, 1.0));
    let cones = times(
        &[
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ],
        light,
    );
    times(
        &[
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ],
        cones.map(f64::cbrt),
    )
}

#[test]
fn no_two_kinds_look_alike_to_anybody() {
    for (sight, matrix) in SIGHTS {
        for scheme in [&LIGHT, &DARK] {
            let colours = scheme.kinds.map(|kind| seen(kind, &matrix));
            for (index, one) in colours.iter().enumerate() {
                for (before, other) in colours[..index].iter().enumerate() {
                    let distance =
                        one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt();
                    let names = [Kind::ALL[before].name(), Kind::ALL[index].name()];
                    assert!(distance > 0.035, "{names:?} are {distance:.3} apart with {sight}");
                }
            }
        }
    }
}

#[test]
fn below_a_function_that_moved_calls_lie_over_each_other() {
    let at = |line: u32| {
        let mut tree = tree(&[("handler", Kind::Application, None, 1.0), ("hash", Kind::Core, Some(0), 7.0)]);
        (tree.frames[0].file, tree.frames[0].line) = ("server.js".into(), line);
        tree
    };
    let (before, after) = (at(10), at(12));
    let aligned = super::aligned::like(&before, &after);
    let forest = Forest::of(&[&aligned, &after]);
    assert_eq!(
        forest.places.iter().map(|place| &place.own[..]).collect::<Vec<_>>(),
        [[1.0, 1.0], [7.0, 7.0]]
    );
    assert_eq!(Forest::of(&[&before, &after]).places.len(), 4);
}
