//! Small pieces that must be whole to be understood: headers, trailers, a zstd block. It must not know what they mean.

/// Bytes held back until there are enough of them.
#[derive(Default)]
pub(super) struct Gather {
    held: Vec<u8>,
}

impl Gather {
    /// Moves bytes from the front of `bytes` until `need` are held; true when they are.
    pub(super) fn fill(&mut self, bytes: &mut &[u8], need: usize) -> bool {
        let missing = need.saturating_sub(self.held.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.held.extend_from_slice(taken);
        *bytes = rest;
        self.held.len() >= need
    }

    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

/// The first `N` bytes of a piece that is known to have them; zeros where it has not.
pub(super) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}
