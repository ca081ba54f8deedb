//! Random frames, split at random. The meaning of each is tested in `connection/tests`.

use proptest::prelude::*;

use super::frame::push;
use super::pieces::same_for_every_cut;

/// A frame that is often well-formed: for one of the three requests, with a valid or invalid head, length or
/// padding.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![4 => 0..=1_u8, 1 => 2..=10_u8];
    let stream = prop_oneof![6 => (0..3_u32).prop_map(|number| number * 2 + 1), 1 => 0..10_u32];
    let payload = prop_oneof![
        2 => Just(vec![0x88]),
        1 => Just(b"\x88\x0f\x0d\x015".to_vec()),
        1 => Just(b"hello".to_vec()),
        1 => Just(vec![0, 0, 0, 1]),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::collection::vec(0..6_u8, 0..12),
    ];
    let flags = prop_oneof![Just(0_u8), Just(1), Just(4), Just(5), any::<u8>()];
    (kind, stream, payload, flags).prop_map(|(kind, stream, payload, flags)| {
        let mut frame = Vec::new();
        push(&mut frame, kind, flags, stream, &payload);
        frame
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn cuts_change_nothing(
        frames in prop::collection::vec(any_frame(), 1..12),
        rest in prop::collection::vec(any::<u8>(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        same_for_every_cut(&[frames.concat(), rest].concat(), &cuts);
    }
}
