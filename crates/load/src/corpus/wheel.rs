//! Draws a number by weight, in the same time however many there are: Vose's form of Walker's alias method.
//!
//! ```text
//!   weights 6, 3, 1 have 18, 9 and 3 of thirty parts; a slot holds ten parts of at most two numbers
//!
//!   slot 0  0000000000        word ── high part ──► slot
//!   slot 1  1111111110             └─ low part ───► its own number below the mark, the other above
//!   slot 2  2220000000
//! ```
//! Weights are whole numbers and are dealt exactly; only the marks are rounded, to 2⁻⁶⁴ of a slot. Pure: the random
//! word comes from outside. What is drawn for a word must never change, for seeds in records stand for it.

use std::hint::select_unpredictable;

/// Numbers from 0, each with its share of all words.
#[derive(Debug, Clone)]
pub(crate) struct Wheel {
    slots: Box<[Slot]>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    mark: u64,
    /// What is drawn from the mark on.
    other: u16,
}

impl Wheel {
    /// A wheel for at least one and at most 65 536 weights, each at least 1.
    pub(crate) fn new(weights: &[u32]) -> Wheel {
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        // A slot holds `total`, and a number fills as many parts of slots as its weight says: at most 2³² · 2¹⁶, which
        // 64 bits hold.
        let mut left: Vec<u64> =
            weights.iter().map(|weight| u64::from(*weight) * weights.len() as u64).collect();
        let mut slots: Vec<Slot> =
            (0..weights.len()).map(|own| Slot { mark: u64::MAX, other: own as u16 }).collect();
        let (mut below, mut above): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&own| left[own] < total);
        while let (Some(small), Some(&large)) = (below.pop(), above.last()) {
            let mark = (u128::from(left[small]) << 64) / u128::from(total);
            slots[small] = Slot { mark: mark as u64, other: large as u16 };
            left[large] -= total - left[small];
            if left[large] < total {
                above.pop();
                below.push(large);
            }
        }
        Wheel { slots: slots.into() }
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number that a random word stands for.
    pub(crate) fn pick(&self, word: u64) -> usize {
        let place = u128::from(word) * self.slots.len() as u128;
        let (own, within) = ((place >> 64) as usize, place as u64);
        let Slot { mark, other } = self.slots[own];
        // A branch would be guessed wrong up to every other time.
        select_unpredictable(within < mark, own, other.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The share of each number, read off the slots.
    fn shares(wheel: &Wheel) -> Vec<f64> {
        let mut shares = vec![0.0; wheel.len()];
        for (own, slot) in wheel.slots.iter().enumerate() {
            let mark = slot.mark as f64 / 2f64.powi(64);
            shares[own] += mark / wheel.len() as f64;
            shares[usize::from(slot.other)] += (1.0 - mark) / wheel.len() as f64;
        }
        shares
    }

    fn weight() -> impl Strategy<Value = u32> {
        prop_oneof![1..10u32, 1..=u32::MAX]
    }

    proptest! {
        #[test]
        fn each_number_has_the_share_of_its_weight(weights in vec(weight(), 1..50)) {
            let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
            for (share, weight) in shares(&Wheel::new(&weights)).into_iter().zip(&weights) {
                let expected = f64::from(*weight) / total;
                prop_assert!((share - expected).abs() < 1e-12, "{} for {} of {}", share, weight, total);
            }
        }
    }

    #[test]
    fn words_from_end_to_end_draw_what_the_marks_say() {
        let wheel = Wheel::new(&[6, 3, 1]);
        let words = (0..3000u64).map(|index| index * (u64::MAX / 3000));
        let mut counts = [0; 3];
        words.for_each(|word| counts[wheel.pick(word)] += 1);
        assert_eq!(counts, [1800, 900, 300]);
        let largest = Wheel::new(&[u32::MAX; 1000]);
        assert_eq!((largest.pick(0), largest.pick(u64::MAX)), (0, 999));
        assert_eq!(Wheel::new(&[7]).pick(u64::MAX), 0);
    }
}
