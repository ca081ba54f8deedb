//! Tests of designs, effects and boundaries against known properties.

use proptest::prelude::*;

use super::*;

fn sign(on: bool) -> i32 {
    if on { 1 } else { -1 }
}

#[test]
fn columns_are_balanced_and_uncorrelated_in_a_row_and_its_mirror_image() {
    for settings in 1..=SETTINGS_MAX {
        let designs = designs(settings, 7).unwrap();
        assert!(
            designs.iter().all(|rows| rows.len() <= ROWS_MAX),
            "{settings}"
        );
        let rows: Vec<&Vec<bool>> = designs.iter().flatten().collect();
        for one in 0..settings {
            // Each block is balanced on its own. Otherwise its mean would bias an effect.
            for block in &designs {
                assert_eq!(
                    block.iter().map(|row| sign(row[one])).sum::<i32>(),
                    0,
                    "{settings}"
                );
            }
            for other in 0..one {
                let product: i32 = rows
                    .iter()
                    .map(|row| sign(row[one]) * sign(row[other]))
                    .sum();
                assert_eq!(product, 0, "{settings}: {one} and {other}");
            }
        }
    }
    assert_eq!((designs(0, 1), designs(SETTINGS_MAX + 1, 1)), (None, None));
}

/// Simulates trials without noise.
fn pairs(settings: usize, pairs: u64, log: impl Fn(&[bool], f64) -> f64) -> Vec<Vec<Mirrored>> {
    let designs = (0..pairs).flat_map(|pair| designs(settings, pair).unwrap());
    let block = |(number, rows): (usize, SettingRows)| {
        let row = |(place, row): (usize, &Vec<bool>)| {
            let mirrored: Vec<bool> = row.iter().map(|on| !on).collect();
            let (drift, noise) = (
                number as f64,
                ((number * 31 + place * 17) % 7) as f64 * 1e-4,
            );
            let logs = [log(row, drift) + noise, log(&mirrored, drift * 1.3)];
            Mirrored {
                on: row.iter().map(|on| Some(*on)).collect(),
                logs,
            }
        };
        rows.iter().enumerate().map(row).collect()
    };
    designs.enumerate().map(block).collect()
}

proptest! {
    /// Block effects and interactions of two settings do not affect main effects.
    #[test]
    fn effects_come_out_as_they_were_put_in(
        effects in prop::collection::vec(-0.5_f64..0.5, 2..19), synergy in -0.3_f64..0.3,
    ) {
        let world = |row: &[bool], drift: f64| {
            let main: f64 = row.iter().zip(&effects).map(|(on, effect)| f64::from(sign(*on)) * effect / 2.0).sum();
            main + drift + synergy * f64::from(sign(row[0]) * sign(row[1]))
        };
        let blocks = pairs(effects.len(), 3, world);
        let found = screened(&blocks).unwrap();
        for (found, effect) in found.effects.iter().zip(&effects) {
            prop_assert!((found.unwrap().value - effect).abs() < 1e-3, "{found:?} {effect}");
        }
        let both = interactions(&blocks, &[0, 1]).unwrap().pairs;
        prop_assert!((both[0].1.value - synergy).abs() < 1e-3, "{both:?}");
    }
}

#[test]
fn a_row_that_is_lost_costs_only_precision() {
    let mut blocks = pairs(5, 3, |row, drift| if row[2] { 0.3 + drift } else { drift });
    blocks[0].remove(3);
    blocks[4 % 3].remove(0);
    let found = screened(&blocks).unwrap();
    assert!((found.effects[2].unwrap().value - 0.3).abs() < 1e-3);
    assert_eq!(found.freedom, 22.0 - 3.0 - 5.0);
    assert_eq!(screened(&blocks[..0]), None);
}

/// Constants determined by simulation beforehand: looks at two and three pairs, family 5 %.
#[test]
fn the_boundary_is_that_of_the_simulations() {
    for (effects, c) in [(5, 2.64), (8, 2.79), (11, 2.89), (15, 2.99)] {
        let looks = ScreenLooks::new(&[2, 3], effects, 0.05).unwrap();
        assert!((looks.c - c).abs() < 0.02, "{effects}: {}", looks.c);
    }
    let one = ScreenLooks::new(&[4], 1, 0.05).unwrap();
    assert!((one.critical_t(4, 1e4) - 1.96).abs() < 0.01);
    assert!(one.critical_t(4, 10.0) > 2.2 && ScreenLooks::new(&[3, 2], 1, 0.05).is_none());
}
