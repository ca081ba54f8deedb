//! HPACK, the header compression of HTTP/2: a [`Decoder`] for responses and an [`Encoder`] for requests,
//! without I/O.
//!
//! Nearly every head repeats an earlier one of the connection. So the decoder caches the last block with its
//! fields as long as its table is unchanged. A repeated request reuses its encoded bytes.
//!
//! Source: RFC 7541, with limits of RFC 9113, section 10.5.1.

mod huffman;
mod table;

use std::collections::VecDeque;

use crate::reader::{HEAD_LIMIT_BYTES, HEADERS_LIMIT};
use table::STATIC;

/// Maximum size of either table: the initial size of both sides (RFC 7541, section 4.2).
pub(super) const TABLE_BYTES: usize = 4096;
/// Size of an entry in addition to its name and value (RFC 7541, section 4.1).
const ENTRY_BYTES: usize = 32;

/// A block that cannot be decoded. The connection cannot be used afterwards, because the tables of both sides
/// differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undecodable;

#[derive(Debug)]
struct HeaderEntry {
    text: Vec<u8>,
    name_bytes: usize,
}

impl HeaderEntry {
    fn field(&self) -> (&[u8], &[u8]) {
        self.text.split_at(self.name_bytes)
    }

    fn size(&self) -> usize {
        self.text.len() + ENTRY_BYTES
    }
}

/// The fields of a block in order.
#[derive(Debug, Default)]
pub(super) struct Fields {
    text: Vec<u8>,
    /// End offsets of the name and the value of each field.
    ends: Vec<(usize, usize)>,
    /// There was more than a head may contain. The excess is not stored.
    pub(super) too_large: bool,
}

impl Fields {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.too_large = false;
    }

    fn push(&mut self, (name, value): (&[u8], &[u8])) {
        // A line of HTTP/1.1 has four bytes more: a colon, a blank and its end.
        let bytes = self.text.len() + 4 * self.ends.len() + name.len() + value.len() + 4;
        if self.ends.len() > HEADERS_LIMIT || bytes > HEAD_LIMIT_BYTES {
            self.too_large = true;
            return;
        }
        self.text.extend_from_slice(name);
        let name_end = self.text.len();
        self.text.extend_from_slice(value);
        self.ends.push((name_end, self.text.len()));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |&(name_end, end)| {
            let field = (&self.text[from..name_end], &self.text[name_end..end]);
            from = end;
            field
        })
    }
}

/// The dynamic table of one direction.
#[derive(Debug)]
pub(super) struct HeaderTable {
    /// Newest first.
    entries: VecDeque<HeaderEntry>,
    pub(super) bytes: usize,
    max: usize,
}

impl Default for HeaderTable {
    fn default() -> HeaderTable {
        HeaderTable {
            entries: VecDeque::new(),
            bytes: 0,
            max: TABLE_BYTES,
        }
    }
}

impl HeaderTable {
    fn look_up(&self, index: usize) -> Result<(&[u8], &[u8]), Undecodable> {
        match index.checked_sub(1 + STATIC.len()) {
            Some(place) => self
                .entries
                .get(place)
                .map(HeaderEntry::field)
                .ok_or(Undecodable),
            None => {
                let (name, value) = STATIC.get(index.wrapping_sub(1)).ok_or(Undecodable)?;
                Ok((name.as_bytes(), value.as_bytes()))
            }
        }
    }

    /// Evicts entries to make room for `bytes`. Returns the memory of an evicted entry for reuse, because
    /// some servers send each head as new.
    fn evict(&mut self, bytes: usize) -> Vec<u8> {
        let mut room = Vec::new();
        while self.bytes + bytes > self.max
            && let Some(oldest) = self.entries.pop_back()
        {
            self.bytes -= oldest.size();
            room = oldest.text;
        }
        room
    }

    fn insert(&mut self, entry: HeaderEntry) {
        self.bytes += entry.size();
        self.entries.push_front(entry);
    }
}

/// Decodes the heads of one connection, each of which may refer to earlier ones.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub(super) table: HeaderTable,
    /// The fields of the last block.
    pub(super) fields: Fields,
    /// The block of `fields`, if decoding it again would give the same result.
    block: Vec<u8>,
    /// Buffer for strings that are added to the table.
    strings: Vec<u8>,
}

impl Decoder {
    /// Decodes a block. Returns false if it is the same as the last one and has the same meaning.
    ///
    /// # Errors
    /// Returns [`Undecodable`], after which nothing more can be decoded.
    pub(super) fn decode(&mut self, block: &[u8]) -> Result<bool, Undecodable> {
        if !block.is_empty() && self.block == block {
            return Ok(false);
        }
        self.block.clear();
        self.fields.clear();
        let mut rest = block;
        let mut table_changed = false;
        while let Some(&first) = rest.first() {
            match first {
                0x80.. => {
                    let index = integer(&mut rest, 7)?;
                    let field = self.table.look_up(index)?;
                    self.fields.push(field);
                }
                0x20..0x40 => {
                    let size = integer(&mut rest, 5)?;
                    // Only at the beginning, and not beyond what was allowed (RFC 7541, sections 4.2 and
                    // 6.3).
                    if !self.fields.ends.is_empty() || size > TABLE_BYTES {
                        return Err(Undecodable);
                    }
                    (self.table.max, table_changed) = (size, true);
                    let _ = self.table.evict(0);
                }
                _ => {
                    let is_kept = first >= 0x40;
                    self.literal(&mut rest, if is_kept { 6 } else { 4 }, is_kept)?;
                    table_changed |= is_kept;
                }
            }
        }
        if !table_changed {
            self.block.extend_from_slice(block);
        }
        Ok(true)
    }

    fn literal(&mut self, rest: &mut &[u8], prefix: u32, is_kept: bool) -> Result<(), Undecodable> {
        self.strings.clear();
        match integer(rest, prefix)? {
            0 => string(rest, &mut self.strings)?,
            index => self.strings.extend_from_slice(self.table.look_up(index)?.0),
        }
        let name_bytes = self.strings.len();
        string(rest, &mut self.strings)?;
        let (name, value) = self.strings.split_at(name_bytes);
        self.fields.push((name, value));
        if is_kept {
            let bytes = self.strings.len() + ENTRY_BYTES;
            let mut text = self.table.evict(bytes);
            // An entry larger than the table leaves it empty (RFC 7541, section 4.4).
            if bytes <= self.table.max {
                text.clear();
                text.extend_from_slice(&self.strings);
                self.table.insert(HeaderEntry { text, name_bytes });
            }
        }
        Ok(())
    }
}

/// Reads a number whose first bits are the last `prefix` bits of a byte (RFC 7541, section 5.1).
fn integer(rest: &mut &[u8], prefix: u32) -> Result<usize, Undecodable> {
    let mask = (1 << prefix) - 1;
    let mut number = usize::from(take(rest)?) & mask;
    if number < mask {
        return Ok(number);
    }
    // Four more bytes can represent any valid number.
    for shift in [0, 7, 14, 21] {
        let byte = usize::from(take(rest)?);
        number += (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Undecodable)
}

/// Appends a string (RFC 7541, section 5.2).
fn string(rest: &mut &[u8], into: &mut Vec<u8>) -> Result<(), Undecodable> {
    let is_huffman = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(Undecodable)?;
    *rest = behind;
    if is_huffman {
        return huffman::decode(bytes, into);
    }
    into.extend_from_slice(bytes);
    Ok(())
}

fn take(rest: &mut &[u8]) -> Result<u8, Undecodable> {
    let (&first, behind) = rest.split_first().ok_or(Undecodable)?;
    *rest = behind;
    Ok(first)
}

/// Encodes the requests of one connection.
///
/// A field that was sent once is in the table from then on and costs a byte or two. Nothing is ever evicted.
/// If the table is full, fields are written out.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    table: HeaderTable,
    /// The peer must empty its table, and its new size must be sent.
    is_resized: bool,
    block: Vec<u8>,
}

impl Encoder {
    /// Limits the peer's table to `bytes`.
    pub(super) fn limit(&mut self, bytes: u32) {
        let bytes = (bytes as usize).min(TABLE_BYTES);
        if bytes < self.table.max {
            self.table = HeaderTable {
                max: bytes,
                ..HeaderTable::default()
            };
            self.is_resized = true;
        }
    }

    /// Encodes a request. Returns the block and whether encoding it again would give the same block.
    pub(super) fn encode<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> (&[u8], bool) {
        self.block.clear();
        let known = self.table.entries.len();
        let mut is_same = !self.is_resized;
        if std::mem::take(&mut self.is_resized) {
            push_integer(&mut self.block, 0x20, 5, 0);
            push_integer(&mut self.block, 0x20, 5, self.table.max);
        }
        for (name, value) in fields {
            self.push(name, value);
        }
        is_same &= self.table.entries.len() == known;
        (&self.block, is_same)
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        let in_static = STATIC
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let in_table = self.table.entries.iter().map(HeaderEntry::field);
        let mut index_of_name = 0;
        for (index, known) in (1..).zip(in_static.chain(in_table)) {
            if known == (name, value) {
                return push_integer(&mut self.block, 0x80, 7, index);
            }
            if known.0 == name && index_of_name == 0 {
                index_of_name = index;
            }
        }
        let entry = HeaderEntry {
            text: [name, value].concat(),
            name_bytes: name.len(),
        };
        // Paths and lengths usually belong to one request and would fill the table.
        let is_kept = !matches!(name, b":path" | b"content-length")
            && self.table.bytes + entry.size() <= self.table.max;
        let (pattern, prefix) = if is_kept { (0x40, 6) } else { (0, 4) };
        push_integer(&mut self.block, pattern, prefix, index_of_name);
        if index_of_name == 0 {
            push_string(&mut self.block, name);
        }
        push_string(&mut self.block, value);
        if is_kept {
            self.table.insert(entry);
        }
    }
}

fn push_integer(block: &mut Vec<u8>, pattern: u8, prefix: u32, number: usize) {
    let mask = (1 << prefix) - 1;
    if number < mask {
        return block.push(pattern | number as u8);
    }
    block.push(pattern | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

fn push_string(block: &mut Vec<u8>, text: &[u8]) {
    push_integer(block, 0, 7, text.len());
    block.extend_from_slice(text);
}

#[cfg(test)]
mod tests;
