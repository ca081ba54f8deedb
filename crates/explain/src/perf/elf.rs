//! Symbol tables of programs and libraries: which function a place in a file is in.
//!
//! Only the parts that are needed are read, by ordinary reading: a file mapped into memory would end us with a signal if somebody
//! cut it off meanwhile. A name is read only if it is asked for.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, ReadCache, SymbolIndex, SymbolKind};

use crate::perf::binaries::open_regular;
use crate::perf::demangle::demangle;

/// A browser with its debug information is smaller. The tables of a file are read into memory.
const FILE_MAX: u64 = 4 << 30;
/// What a function without a size may cover.
const UNSIZED_MAX: u64 = 64 << 10;
/// Functions that may lie around an address: aliases, and parts of one that have a name of their own.
const NESTED_MAX: usize = 32;

type Elf<'d> = ElfFile64<'d, object::Endianness, &'d ReadCache<File>>;

/// Names for places in a file, given in bytes from its begin. Empty where the file has no table, or is none of ours.
pub(crate) fn names(file: File, wanted: &BTreeSet<u64>) -> HashMap<u64, String> {
    let cache = ReadCache::new(file);
    let Some(elf) = parsed(&cache) else { return HashMap::new() };
    let addresses: Vec<(u64, u64)> =
        wanted.iter().filter_map(|offset| Some((*offset, address(&elf, *offset)?))).collect();
    // A stripped file's own table names only what it gives to others; its debug file names all.
    if let Some(table) = elf.symbol_table() {
        return from_table(&table, &addresses);
    }
    if let Some(names) = from_debug_file(&elf, &addresses) {
        return names;
    }
    elf.dynamic_symbol_table().map(|table| from_table(&table, &addresses)).unwrap_or_default()
}

fn parsed(cache: &ReadCache<File>) -> Option<Elf<'_>> {
    let size = object::ReadRef::len(cache).ok()?;
    if size > FILE_MAX { None } else { Elf::parse(cache).ok() }
}

/// The address that the file's table has for a place in it. Where the file was loaded to does not matter so.
fn address(elf: &Elf<'_>, offset: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        let within = offset.checked_sub(start).filter(|within| *within < size)?;
        segment.address().checked_add(within)
    })
}

/// Distributions keep what they stripped in files named by the program's build id.
fn from_debug_file(elf: &Elf<'_>, addresses: &[(u64, u64)]) -> Option<HashMap<u64, String>> {
    let id = elf.build_id().ok()??;
    let (first, rest) = id.split_first()?;
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let file = open_regular(&format!("/usr/lib/debug/.build-id/{first:02x}/{hex}.debug"), 0)?;
    let cache = ReadCache::new(file);
    let elf = parsed(&cache)?;
    elf.symbol_table().map(|table| from_table(&table, addresses))
}

/// What a symbol covers. In the order of a table sorted by it, the better of two with the same start comes later; which of two equally good ones is the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    start: u64,
    is_sized: bool,
    is_global: bool,
    end: u64,
    index: usize,
}

fn from_table<'d>(table: &impl ObjectSymbolTable<'d>, addresses: &[(u64, u64)]) -> HashMap<u64, String> {
    let mut ranges: Vec<Range> = table.symbols().filter_map(|symbol| range(&symbol)).collect();
    ranges.sort_unstable();
    let name = |address: u64| {
        let aliases = aliases(&ranges, covering(&ranges, address)?);
        let symbols = aliases.iter().filter_map(|alias| table.symbol_by_index(SymbolIndex(alias.index)).ok());
        let names = symbols.filter_map(|symbol| Some(without_version(symbol.name_bytes().ok()?)));
        names.min_by_key(|name| plainness(name)).map(demangle)
    };
    addresses.iter().filter_map(|(offset, address)| Some((*offset, name(*address)?))).collect()
}

/// All ranges that are as good as this one and begin with it: a function may have several names.
fn aliases<'r>(ranges: &'r [Range], one: &Range) -> &'r [Range] {
    let key = |range: &Range| (range.start, range.is_sized, range.is_global);
    let first = ranges.partition_point(|range| key(range) < key(one));
    let last = ranges.partition_point(|range| key(range) <= key(one));
    ranges.get(first..last.min(first + NESTED_MAX)).unwrap_or_default()
}

/// The least is the name that people know: of `__libc_read`, `__read` and `read` the last.
fn plainness(name: &[u8]) -> (usize, usize) {
    (name.iter().take_while(|byte| **byte == b'_').count(), name.len())
}

/// `cfree@GLIBC_2.2.5` is `cfree`.
fn without_version(symbol: &[u8]) -> &[u8] {
    symbol.split(|byte| *byte == b'@').next().filter(|name| !name.is_empty()).unwrap_or(symbol)
}

/// `None` for what is no code of this file.
fn range<'d>(symbol: &impl ObjectSymbol<'d>) -> Option<Range> {
    symbol.section_index()?;
    let (is_sized, is_global) = (symbol.size() > 0, symbol.is_global());
    let is_code = match symbol.kind() {
        SymbolKind::Text => true,
        // Assembler without the wish to be found. Labels within functions are like that too, but local and without a size.
        SymbolKind::Unknown | SymbolKind::Label => is_sized || is_global,
        _ => false,
    };
    let size = if is_sized { symbol.size() } else { UNSIZED_MAX };
    let start = symbol.address();
    is_code.then_some(Range {
        start,
        is_sized,
        is_global,
        end: start.saturating_add(size),
        index: symbol.index().0,
    })
}

/// The innermost range around an address. One without a size ends where the next begins.
fn covering(ranges: &[Range], address: u64) -> Option<&Range> {
    let after = ranges.partition_point(|range| range.start <= address);
    let before = ranges.get(..after)?;
    let nearest = before.last()?.start;
    let holds = |range: &&Range| address < range.end && (range.is_sized || range.start == nearest);
    before.iter().rev().take(NESTED_MAX).find(holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::binaries::Binaries;
    use crate::perf::space::{Place, Space};

    #[inline(never)]
    fn landmark(value: u64) -> u64 {
        std::hint::black_box(value) + 1
    }

    #[test]
    fn a_function_of_this_program_is_found_by_its_address() {
        assert_eq!(landmark(1), 2);
        let mut binaries = Binaries::default();
        let space = Space::of(std::process::id(), &mut binaries);
        let address = landmark as fn(u64) -> u64 as usize as u64;
        let Place::Binary { binary, offset } = space.place(address + 1) else {
            panic!("no file at {address:x}")
        };
        let binary = binaries.into_list().swap_remove(binary);
        assert_eq!(
            Some(binary.module.as_str()),
            std::env::current_exe().unwrap().file_name().unwrap().to_str()
        );
        let names = names(binary.file.unwrap(), &BTreeSet::from([offset, u64::MAX]));
        assert!(names[&offset].ends_with("elf::tests::landmark"), "{names:?}");
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn what_is_no_program_has_no_names() {
        let text = open_regular(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), 0).unwrap();
        assert!(names(text, &BTreeSet::from([10])).is_empty());
        assert!(open_regular("/dev/null", 0).is_none());
    }

    #[test]
    fn of_several_names_the_plain_one_is_told() {
        let mut names: Vec<&[u8]> = vec![b"__libc_read", b"__read", b"read", b"_read_all"];
        names.sort_by_key(|name| plainness(name));
        assert_eq!(names, [&b"read"[..], b"_read_all", b"__read", b"__libc_read"]);
        assert_eq!(without_version(b"cfree@GLIBC_2.2.5"), b"cfree");
        assert_eq!(without_version(b"@odd"), b"@odd");
        let alias = |index, is_global| Range { start: 5, is_sized: true, is_global, end: 9, index };
        let ranges = [alias(3, false), alias(1, true), alias(2, true)];
        assert_eq!(aliases(&ranges, &ranges[1]), &ranges[1..]);
    }

    #[test]
    fn an_address_belongs_to_the_innermost_function_that_reaches_it() {
        let range = |start, end, is_sized| Range { start, end, is_sized, is_global: true, index: 0 };
        // One with a part of its own inside, a hole, then assembler without a size before the next.
        let ranges = [
            range(100, 200, true),
            range(120, 130, true),
            range(300, 300 + UNSIZED_MAX, false),
            range(400, 450, true),
        ];
        let start = |address| covering(&ranges, address).map(|range| range.start);
        assert_eq!([99, 100, 125, 150, 200].map(start), [None, Some(100), Some(120), Some(100), None]);
        assert_eq!([300, 399, 400, 449, 450].map(start), [Some(300), Some(300), Some(400), Some(400), None]);
    }
}
