//! Records of the kernel's rings: bytes in, samples and losses out. Pure. Invalid data is skipped.
//!
//! The layout is that of perf_event_open(2) for the kind of sample that [`super::event`] requests.

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PerfRecord {
    /// A thread used another period of CPU time.
    Sample {
        pid: u32,
        tid: u32,
        address: u64,
        /// The address and its callers, with markers between kernel and user.
        chain: Vec<u64>,
    },
    /// Number of samples that were dropped, before one of this process.
    Lost { pid: u32, count: u64 },
    /// The kernel throttled an event because it sampled too often.
    Throttled,
    /// The rest of the bytes is invalid.
    Broken,
}

const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const SAMPLE: u32 = 9;
/// Kind, flags and size.
const HEADER_BYTES: usize = 8;

/// The records in these bytes, in order. Other kinds are skipped.
pub(crate) fn read(bytes: &[u8]) -> impl Iterator<Item = PerfRecord> {
    let mut rest = bytes;
    let next = move || {
        while !rest.is_empty() {
            let Some((kind, body, after)) = split(rest) else {
                rest = &[];
                return Some(PerfRecord::Broken);
            };
            rest = after;
            match kind {
                SAMPLE => return sample(body).or(Some(PerfRecord::Broken)),
                LOST => return lost(body).or(Some(PerfRecord::Broken)),
                THROTTLE => return Some(PerfRecord::Throttled),
                _ => {}
            }
        }
        None
    };
    std::iter::from_fn(next)
}

/// Kind and body of the first record, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let size = usize::from(u16::from_ne_bytes(*bytes.get(6..)?.first_chunk()?));
    Some((
        word(bytes, 0)?,
        bytes.get(HEADER_BYTES..size)?,
        bytes.get(size..)?,
    ))
}

fn sample(body: &[u8]) -> Option<PerfRecord> {
    let (address, pid, tid) = (long(body, 0)?, word(body, 8)?, word(body, 12)?);
    let count = usize::try_from(long(body, 16)?).ok()?;
    let chain = body.get(24..)?.get(..count.checked_mul(8)?)?;
    let chain = chain
        .chunks_exact(8)
        .filter_map(|bytes| long(bytes, 0))
        .collect();
    Some(PerfRecord::Sample {
        pid,
        tid,
        address,
        chain,
    })
}

fn lost(body: &[u8]) -> Option<PerfRecord> {
    Some(PerfRecord::Lost {
        count: long(body, 8)?,
        pid: word(body, 16)?,
    })
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(HEADER_BYTES + body.len()).unwrap();
        [&kind.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes(), body].concat()
    }

    fn longs(values: &[u64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect()
    }

    fn sample_bytes(count: u64, chain: &[u64]) -> Vec<u8> {
        let ids = [7u32.to_ne_bytes(), 8u32.to_ne_bytes()].concat();
        record(
            SAMPLE,
            &[longs(&[0x1234]), ids, longs(&[count]), longs(chain)].concat(),
        )
    }

    #[test]
    fn samples_and_losses_are_read_and_unknown_records_skipped() {
        let lost = [
            longs(&[3, 40]),
            7u32.to_ne_bytes().to_vec(),
            8u32.to_ne_bytes().to_vec(),
        ]
        .concat();
        let bytes = [
            record(3, b"a command"),
            sample_bytes(2, &[5, 6]),
            record(LOST, &lost),
            record(THROTTLE, &[]),
        ];
        let expected = [
            PerfRecord::Sample {
                pid: 7,
                tid: 8,
                address: 0x1234,
                chain: vec![5, 6],
            },
            PerfRecord::Lost { pid: 7, count: 40 },
            PerfRecord::Throttled,
        ];
        assert_eq!(read(&bytes.concat()).collect::<Vec<_>>(), expected);
        // A chain longer than its record is rejected.
        assert_eq!(
            read(&sample_bytes(3, &[5, 6])).collect::<Vec<_>>(),
            [PerfRecord::Broken]
        );
        assert_eq!(
            read(&sample_bytes(u64::MAX, &[5])).collect::<Vec<_>>(),
            [PerfRecord::Broken]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).count() <= bytes.len() / HEADER_BYTES + 1);
        }
    }
}
