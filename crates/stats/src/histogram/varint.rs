//! Numbers in as few bytes as they need, seven bits a byte, the lowest first: LEB128 as HdrHistogram's V2 form has it, where the ninth
//! byte is the last one and has all its eight bits.

/// Bytes of the longest number.
const BYTES_MAX: u32 = 9;

/// Puts a number behind others.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    for _ in 1..BYTES_MAX {
        if number < 0x80 {
            break;
        }
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes the first number away; `None` where there is none, or it is cut off. What was there of it is gone then.
#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..BYTES_MAX {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if byte < 0x80 || place + 1 == BYTES_MAX {
            return Some(number | u64::from(byte) << (7 * place));
        }
        number |= u64::from(byte & 0x7f) << (7 * place);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_out_as_they_went_in(numbers in proptest::collection::vec((any::<u64>(), 0u32..64), 0..20)) {
            let numbers: Vec<u64> = numbers.into_iter().map(|(number, shift)| number >> shift).collect();
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put(&mut bytes, *number));
            let mut rest = bytes.as_slice();
            let back: Vec<u64> = std::iter::from_fn(|| take(&mut rest)).collect();
            prop_assert_eq!(back, numbers);
        }
    }

    #[test]
    fn the_ninth_byte_is_the_last_and_what_is_cut_off_is_no_number() {
        let mut bytes = Vec::new();
        put(&mut bytes, u64::MAX);
        assert_eq!(bytes, [0xff; 9]);
        assert_eq!(take(&mut &bytes[..8]), None);
        assert_eq!(take(&mut &[][..]), None);
    }
}
