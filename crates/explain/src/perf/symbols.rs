//! Resolves addresses to functions: from the symbol tables of programs and libraries, `/proc/kallsyms`, and
//! `/tmp/perf-PID.map`.
//!
//! Only the needed parts of files are read, without mapping them: a mapped file that is truncated meanwhile
//! would kill this process with a signal. A name is read only on request, and its length is limited.
//! Arguments and return types are omitted, because they make names long and rarely distinguish overloads.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{BufRead, Read as _};

use cpp_demangle::{DemangleOptions, Symbol};
use model::text::cut;
use object::read::elf::ElfFile64;
use object::{
    Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, ReadCache, SymbolIndex, SymbolKind,
};

use super::space::open_regular;

/// Maximum file size. A browser with its debug information is smaller. The tables of a file are read into
/// memory.
const FILE_MAX: u64 = 4 << 30;
/// Maximum size assumed for a function without a size.
const UNSIZED_MAX: u64 = 64 << 10;
/// Maximum number of functions around an address: aliases, and separately named parts of functions.
const NESTED_MAX: usize = 32;
/// No kernel function is longer. An address further behind a symbol belongs to something unnamed.
const KERNEL_FUNCTION_MAX: u64 = 1 << 20;
/// Maximum bytes read of a name map. A long run of V8 writes some 100 MB.
const MAP_MAX: u64 = 1 << 30;
const LINE_MAX: u64 = 4096;
/// Maximum length of a name. Templates generate names of thousands of characters.
const NAME_MAX: usize = 255;
/// Longer symbols are not demangled.
const SYMBOL_MAX: usize = 8192;

type Elf<'d> = ElfFile64<'d, object::Endianness, &'d ReadCache<File>>;

/// Names for offsets in a program or library. Empty if it has no table, or is not an ELF file of this
/// machine.
pub(crate) fn of_program(file: File, wanted: &BTreeSet<u64>) -> HashMap<u64, String> {
    let cache = ReadCache::new(file);
    let Some(elf) = parsed(&cache) else {
        return HashMap::new();
    };
    let addresses: Vec<(u64, u64)> = wanted
        .iter()
        .filter_map(|offset| Some((*offset, address(&elf, *offset)?)))
        .collect();
    // A stripped file's own table names only its exports. Its debug file names all.
    let own = elf
        .symbol_table()
        .map(|table| from_table(&table, &addresses));
    let names = own.or_else(|| from_debug_file(&elf, &addresses));
    let names = names.or_else(|| Some(from_table(&elf.dynamic_symbol_table()?, &addresses)));
    names.unwrap_or_default()
}

fn parsed(cache: &ReadCache<File>) -> Option<Elf<'_>> {
    let size = object::ReadRef::len(cache).ok()?;
    if size > FILE_MAX {
        None
    } else {
        Elf::parse(cache).ok()
    }
}

/// The address in the file's table for an offset. It does not depend on where the file was loaded.
fn address(elf: &Elf<'_>, offset: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        let within = offset.checked_sub(start).filter(|within| *within < size)?;
        segment.address().checked_add(within)
    })
}

/// Distributions keep stripped symbols in files named by the program's build id.
fn from_debug_file(elf: &Elf<'_>, addresses: &[(u64, u64)]) -> Option<HashMap<u64, String>> {
    let id = elf.build_id().ok()??;
    let (first, rest) = id.split_first()?;
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let cache = ReadCache::new(open_regular(
        &format!("/usr/lib/debug/.build-id/{first:02x}/{hex}.debug"),
        0,
    )?);
    parsed(&cache)?
        .symbol_table()
        .map(|table| from_table(&table, addresses))
}

/// The range of a symbol. In a table sorted by it, the better of two with the same start comes later. Equal
/// ones keep the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    start: u64,
    is_sized: bool,
    is_global: bool,
    end: u64,
    index: usize,
}

fn from_table<'d>(
    table: &impl ObjectSymbolTable<'d>,
    addresses: &[(u64, u64)],
) -> HashMap<u64, String> {
    let mut ranges: Vec<Range> = table
        .symbols()
        .filter_map(|symbol| range(&symbol))
        .collect();
    ranges.sort_unstable();
    let name = |address: u64| {
        let aliases = aliases(&ranges, covering(&ranges, address)?);
        let symbols = aliases
            .iter()
            .filter_map(|alias| table.symbol_by_index(SymbolIndex(alias.index)).ok());
        let names = symbols.filter_map(|symbol| Some(without_version(symbol.name_bytes().ok()?)));
        names.min_by_key(|name| plainness(name)).map(demangle)
    };
    addresses
        .iter()
        .filter_map(|(offset, address)| Some((*offset, name(*address)?)))
        .collect()
}

/// All ranges with the same start and quality as this one, because a function may have several names.
fn aliases<'r>(ranges: &'r [Range], one: &Range) -> &'r [Range] {
    let key = |range: &Range| (range.start, range.is_sized, range.is_global);
    let first = ranges.partition_point(|range| key(range) < key(one));
    let last = ranges.partition_point(|range| key(range) <= key(one));
    ranges
        .get(first..last.min(first + NESTED_MAX))
        .unwrap_or_default()
}

/// A sort key. The smallest is the name that people know: of `__libc_read`, `__read` and `read` the last.
fn plainness(name: &[u8]) -> (usize, usize) {
    (
        name.iter().take_while(|byte| **byte == b'_').count(),
        name.len(),
    )
}

/// `cfree@GLIBC_2.2.5` becomes `cfree`.
fn without_version(symbol: &[u8]) -> &[u8] {
    symbol
        .split(|byte| *byte == b'@')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(symbol)
}

/// `None` for a symbol that is no code of this file.
fn range<'d>(symbol: &impl ObjectSymbol<'d>) -> Option<Range> {
    symbol.section_index()?;
    let (is_sized, is_global) = (symbol.size() > 0, symbol.is_global());
    let is_code = match symbol.kind() {
        SymbolKind::Text => true,
        // Assembler without a type. Labels within functions are like that too, but local and without a size.
        SymbolKind::Unknown | SymbolKind::Label => is_sized || is_global,
        _ => false,
    };
    let (start, size) = (
        symbol.address(),
        if is_sized { symbol.size() } else { UNSIZED_MAX },
    );
    let end = start.saturating_add(size);
    is_code.then_some(Range {
        start,
        is_sized,
        is_global,
        end,
        index: symbol.index().0,
    })
}

/// The innermost range around an address. A range without a size ends where the next begins.
fn covering(ranges: &[Range], address: u64) -> Option<&Range> {
    let before = &ranges[..ranges.partition_point(|range| range.start <= address)];
    let nearest = before.last()?.start;
    let holds = |range: &&Range| address < range.end && (range.is_sized || range.start == nearest);
    before.iter().rev().take(NESTED_MAX).find(holds)
}

/// Names of the kernel's functions from `/proc/kallsyms`. `None` if the kernel hides its addresses
/// (`kernel.kptr_restrict`).
pub(crate) fn of_kernel(text: &str, wanted: &BTreeSet<u64>) -> Option<HashMap<u64, String>> {
    let mut symbols: Vec<(u64, &str)> = text.lines().filter_map(kernel_symbol).collect();
    if symbols.iter().all(|(address, _)| *address == 0) {
        return None;
    }
    // Stable: of several names for one address, the first in the table is used.
    symbols.sort_by_key(|(address, _)| *address);
    symbols.dedup_by_key(|(address, _)| *address);
    let name = |address: u64| {
        let after = symbols.partition_point(|(start, _)| *start <= address);
        let (start, name) = symbols[..after].last()?;
        (address - start < KERNEL_FUNCTION_MAX).then(|| (*name).to_owned())
    };
    Some(
        wanted
            .iter()
            .filter_map(|address| Some((*address, name(*address)?)))
            .collect(),
    )
}

/// Parses `ffffffff81000000 T name`, optionally with `[module]` after it. `None` if it is not code.
fn kernel_symbol(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    fields
        .next()
        .filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))?;
    Some((address, fields.next()?))
}

/// Names of code generated at run time, from `/tmp/perf-PID.map`, if the program writes it (`node
/// --perf-basic-prof`). If code was moved, a later line replaces an earlier one.
pub(crate) fn of_run_time(lines: impl BufRead, wanted: &BTreeSet<u64>) -> HashMap<u64, String> {
    let (mut names, mut lines, mut line) = (HashMap::new(), lines.take(MAP_MAX), Vec::new());
    // Lines that are too long are read in pieces.
    while lines
        .by_ref()
        .take(LINE_MAX)
        .read_until(b'\n', &mut line)
        .is_ok_and(|bytes| bytes > 0)
    {
        if let Some((start, end, name)) = entry(&line) {
            names.extend(
                wanted
                    .range(start..end)
                    .map(|address| (*address, demangle(name))),
            );
        }
        line.clear();
    }
    names
}

/// Parses `START SIZE NAME`, with hexadecimal numbers. A name may contain spaces.
fn entry(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut fields = line.trim_ascii().splitn(3, |byte| *byte == b' ');
    let mut number = || {
        u64::from_str_radix(
            std::str::from_utf8(fields.next()?)
                .ok()?
                .trim_start_matches("0x"),
            16,
        )
        .ok()
    };
    let (start, size) = (number()?, number()?);
    Some((start, start.checked_add(size)?, fields.next()?))
}

/// Demangles a symbol. C and assembler symbols are unchanged.
fn demangle(symbol: &[u8]) -> String {
    let text = String::from_utf8_lossy(symbol);
    let mut name = Bounded(String::new());
    if symbol.len() > SYMBOL_MAX {
        return cut(&text, NAME_MAX);
    }
    // Whether truncated or not, the written text is the beginning of the name.
    let options = DemangleOptions::new().no_params().no_return_type();
    let is_named = match rustc_demangle::try_demangle(&text) {
        // Rust's older form is also valid C++, with a hash at the end, so Rust is tried first.
        Ok(rust) => write!(name, "{rust:#}").is_ok() || name.0.len() >= NAME_MAX,
        Err(_) if symbol.starts_with(b"_Z") => Symbol::new(symbol).is_ok_and(|symbol| {
            symbol.structured_demangle(&mut name, &options).is_ok() || name.0.len() >= NAME_MAX
        }),
        Err(_) => false,
    };
    cut(if is_named { &name.0 } else { &text }, NAME_MAX)
}

/// Text limited in length, because a short symbol may expand to a name of any length.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() > 4 * NAME_MAX {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// Uses bytes as input for every source of names. Panics if a name exceeds the maximum length.
#[cfg(fuzzing)]
pub fn names_anything(bytes: &[u8]) {
    use std::io::Write as _;
    let fd = rustix::fs::memfd_create("program", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
    let mut file = File::from(fd);
    file.write_all(bytes).expect("memory");
    let wanted: BTreeSet<u64> = (0..0x400)
        .step_by(3)
        .chain([0x40_1000, u64::MAX - 1, u64::MAX])
        .collect();
    let text = String::from_utf8_lossy(bytes);
    let found = [
        of_program(file, &wanted),
        of_run_time(bytes, &wanted),
        of_kernel(&text, &wanted).unwrap_or_default(),
        HashMap::from([(0, demangle(bytes))]),
    ];
    for (of, names) in found.iter().enumerate() {
        // Kernel names are not limited here.
        let bounded = |name: &String| name.chars().count() <= NAME_MAX + 1 || of == 2;
        assert!(
            names
                .iter()
                .all(|(at, name)| wanted.contains(at) && bounded(name)),
            "{names:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_has_no_names() {
        let text = open_regular(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), 0).unwrap();
        assert!(of_program(text, &BTreeSet::from([10])).is_empty());
        assert!(open_regular("/dev/null", 0).is_none());
    }

    #[test]
    fn of_several_names_the_plain_one_is_told() {
        let mut names: Vec<&[u8]> = vec![b"__libc_read", b"__read", b"read", b"_read_all"];
        names.sort_by_key(|name| plainness(name));
        assert_eq!(
            names,
            [&b"read"[..], b"_read_all", b"__read", b"__libc_read"]
        );
        assert_eq!(
            [
                without_version(b"cfree@GLIBC_2.2.5"),
                without_version(b"@odd")
            ],
            [&b"cfree"[..], b"@odd"]
        );
        let alias = |index, is_global| Range {
            start: 5,
            is_sized: true,
            is_global,
            end: 9,
            index,
        };
        let ranges = [alias(3, false), alias(1, true), alias(2, true)];
        assert_eq!(aliases(&ranges, &ranges[1]), &ranges[1..]);
    }

    #[test]
    fn an_address_belongs_to_the_innermost_function_that_reaches_it() {
        let range = |start, end, is_sized| Range {
            start,
            end,
            is_sized,
            is_global: true,
            index: 0,
        };
        // A function with a part inside, a hole, then assembler without a size before the next.
        let ranges = [
            range(100, 200, true),
            range(120, 130, true),
            range(300, 300 + UNSIZED_MAX, false),
            range(400, 450, true),
        ];
        let start = |address| covering(&ranges, address).map(|range| range.start);
        assert_eq!(
            [99, 100, 125, 150, 200].map(start),
            [None, Some(100), Some(120), Some(100), None]
        );
        assert_eq!(
            [300, 399, 400, 449, 450].map(start),
            [Some(300), Some(300), Some(400), Some(400), None]
        );
    }

    #[test]
    fn names_of_the_kernel_and_of_code_made_at_run_time() {
        let text = "f000 T _stext\nf000 T first\nf100 t second\nf180 d no_code\n9000000 t of_module\t[nf_tables]\n";
        let names = of_kernel(
            text,
            &BTreeSet::from([0xf010, 0xf1ff, 0x900_0005, 0x800_0000, 5]),
        )
        .unwrap();
        let expected = [
            (0xf010, "_stext"),
            (0xf1ff, "second"),
            (0x900_0005, "of_module"),
        ];
        assert_eq!(
            names,
            expected
                .map(|(address, name)| (address, name.to_owned()))
                .into()
        );
        for hidden in ["0000000000000000 T _stext\n0000000000000000 t second\n", ""] {
            assert_eq!(of_kernel(hidden, &BTreeSet::from([5])), None);
        }
        // The last entry for an address counts. A range that wraps around is ignored.
        let text = b"1000 20 JS:~first /a.js:1:2\n0x2000 10 other\nno line\n1010 10 JS:*second /b.js:3:4\n3000\nffffffffffffffff 10 x\n10 0 y\n";
        let wanted = BTreeSet::from([0x10, 0x1000, 0x1010, 0x100f, 0x1020, 0x2001, 0x3000]);
        let expected = [
            (0x1000, "JS:~first /a.js:1:2"),
            (0x100f, "JS:~first /a.js:1:2"),
            (0x1010, "JS:*second /b.js:3:4"),
            (0x2001, "other"),
        ];
        let names = of_run_time(text.as_slice(), &wanted);
        assert_eq!(
            names,
            expected
                .map(|(address, name)| (address, name.to_owned()))
                .into()
        );
    }

    #[test]
    fn names_are_what_people_write_and_bounded() {
        let collect = b"_ZN2v88internal4Heap14CollectGarbageENS0_15AllocationSpaceENS0_23GarbageCollectionReasonENS_15GCCallbackFlagsE";
        let vectors: [(&[u8], &str); 5] = [
            (collect, "v8::internal::Heap::CollectGarbage"),
            (
                b"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                "core::fmt::Formatter::pad",
            ),
            (b"_RNvC6_123foo3bar", "123foo::bar"),
            (
                b"sha512_block_data_order_avx2",
                "sha512_block_data_order_avx2",
            ),
            (b"_Znot a symbol", "_Znot a symbol"),
        ];
        for (symbol, name) in vectors {
            assert_eq!(demangle(symbol), name);
        }
        // f<pair<int, int>, pair<that, that>, ...>: each argument is twice as long as the previous one.
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let step =
            |id: usize| [b"S0_IS", &digits[id..=id], b"_S", &digits[id..=id], b"_E"].concat();
        let arguments: Vec<u8> = (1..=34).flat_map(step).collect();
        let symbol = [b"_Z1fISt4pairIiiE", &arguments[..], b"Evv"].concat();
        assert!(
            demangle(&symbol).starts_with("f<std::pair<int, int>, std::pair<std::pair<int, int>")
        );
        for symbol in [symbol, vec![b'a'; 100_000], b"\xff\xfe".to_vec()] {
            assert!(demangle(&symbol).chars().count() <= NAME_MAX + 1);
        }
    }
}
