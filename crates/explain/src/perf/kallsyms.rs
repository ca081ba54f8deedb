//! `/proc/kallsyms`: which function of the kernel an address is in. Pure: text in, names out.

use std::collections::{BTreeSet, HashMap};

/// No function of the kernel is longer; an address further behind a symbol belongs to something that has none.
const FUNCTION_MAX: u64 = 1 << 20;

/// Names of the addresses asked for; `None` where the kernel hides its own addresses (`kernel.kptr_restrict`).
pub(crate) fn names(text: &str, wanted: &BTreeSet<u64>) -> Option<HashMap<u64, String>> {
    let mut symbols: Vec<(u64, &str)> = text.lines().filter_map(symbol).collect();
    if symbols.iter().all(|(address, _)| *address == 0) {
        return None;
    }
    // Stable: of several names for one address the first in the table.
    symbols.sort_by_key(|(address, _)| *address);
    symbols.dedup_by_key(|(address, _)| *address);
    let name = |address: u64| {
        let after = symbols.partition_point(|(start, _)| *start <= address);
        let (start, name) = symbols.get(after.checked_sub(1)?)?;
        (address - start < FUNCTION_MAX).then(|| (*name).to_owned())
    };
    Some(wanted.iter().filter_map(|address| Some((*address, name(*address)?))).collect())
}

/// `ffffffff81000000 T name`, and `[module]` after it; `None` for what is no code.
fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
    is_code.then_some((address, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T first
ffffffff81000100 t second
ffffffff81000180 d no_code
ffffffffc0000000 t of_module\t[nf_tables]
";

    #[test]
    fn an_address_is_in_the_function_before_it() {
        let wanted = BTreeSet::from([
            0xffff_ffff_8100_0010,
            0xffff_ffff_8100_01ff,
            0xffff_ffff_c000_0005,
            0xffff_ffff_9000_0000,
            5,
        ]);
        let names = names(TEXT, &wanted).unwrap();
        assert_eq!(names[&0xffff_ffff_8100_0010], "_stext");
        assert_eq!(names[&0xffff_ffff_8100_01ff], "second");
        assert_eq!(names[&0xffff_ffff_c000_0005], "of_module");
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn hidden_addresses_are_no_names() {
        assert_eq!(
            names("0000000000000000 T _stext\n0000000000000000 t second\n", &BTreeSet::from([5])),
            None
        );
        assert_eq!(names("", &BTreeSet::from([5])), None);
    }
}
