//! A chain of addresses as the kernel writes it → where each step is. Pure.
//!
//! ```text
//! kernel marker, where it is, its caller, ..., user marker, where it is, its caller, ...
//! ```
//!
//! Callers stand with the address that they will be returned to. The call itself is before it, and where it was the last
//! instruction of a function the address after it belongs to another: one byte less is always inside of the call.

/// One step from the function that ran towards the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// In the kernel.
    Kernel(u64),
    /// In the process.
    User {
        /// Where.
        address: u64,
        /// Whether it is where the thread was, which the kernel knows; callers it finds by frame pointers, if there are any.
        certain: bool,
    },
}

const KERNEL: u64 = (-128i64) as u64;
const USER: u64 = (-512i64) as u64;
/// Markers are this or more.
const MARKERS: u64 = (-4095i64) as u64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Kernel,
    User,
    Elsewhere,
}

/// Whether a chain says more than whose addresses would follow.
pub(crate) fn has_address(chain: &[u64]) -> bool {
    chain.iter().any(|entry| *entry < MARKERS)
}

/// The steps of a chain, the function that ran first.
pub(crate) fn steps(chain: &[u64]) -> Vec<Step> {
    // A chain without a marker is one address that stands for a sample without chain.
    let mut side =
        if chain.first().is_some_and(|address| address >> 63 == 1) { Side::Kernel } else { Side::User };
    let mut first = true;
    let mut steps = Vec::with_capacity(chain.len());
    for &entry in chain {
        if entry >= MARKERS {
            side = match entry {
                KERNEL => Side::Kernel,
                USER => Side::User,
                _ => Side::Elsewhere,
            };
            first = true;
            continue;
        }
        let address = if first { entry } else { entry.saturating_sub(1) };
        match side {
            Side::Kernel => steps.push(Step::Kernel(address)),
            Side::User => steps.push(Step::User { address, certain: first }),
            Side::Elsewhere => {}
        }
        first = false;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_looked_up_inside_of_their_call() {
        let chain = [KERNEL, 0xffff_ffff_8100_0000, 0xffff_ffff_8100_0100, USER, 0x1000, 0x2000, 0x3000];
        let user = |address, certain| Step::User { address, certain };
        let expected = [
            Step::Kernel(0xffff_ffff_8100_0000),
            Step::Kernel(0xffff_ffff_8100_00ff),
            user(0x1000, true),
            user(0x1fff, false),
            user(0x2fff, false),
        ];
        assert_eq!(steps(&chain), expected);
    }

    #[test]
    fn a_guest_is_not_mistaken_for_the_process() {
        let guest = (-2048i64) as u64;
        assert_eq!(steps(&[guest, 0x1000, USER, 0x2000]), [Step::User { address: 0x2000, certain: true }]);
    }

    #[test]
    fn a_sample_without_chain_is_its_address() {
        assert!(has_address(&[USER, 0x1000]) && !has_address(&[KERNEL, USER]) && !has_address(&[]));
        assert_eq!(steps(&[0x1000]), [Step::User { address: 0x1000, certain: true }]);
        assert_eq!(steps(&[0xffff_ffff_8100_0000]), [Step::Kernel(0xffff_ffff_8100_0000)]);
    }
}
