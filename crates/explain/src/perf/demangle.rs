//! Symbols as compilers write them → names as people do. Pure; the result is bounded whatever the symbol.
//!
//! Arguments and return types are left out: they make names long, and calls of overloads are seldom told apart by them.

use std::fmt;

use cpp_demangle::{DemangleOptions, Symbol};

/// Characters of a name. Templates make names of thousands.
const NAME_MAX: usize = 256;
/// Symbols longer than this are not looked into.
const SYMBOL_MAX: usize = 8192;

/// The name that a symbol stands for; of C and assembler the symbol itself.
pub(crate) fn demangle(symbol: &[u8]) -> String {
    let text = String::from_utf8_lossy(symbol);
    if symbol.len() > SYMBOL_MAX {
        return bounded(&text);
    }
    // Rust's older form is also one of C++, with a hash at the end, so that Rust is asked first.
    if let Ok(name) = rustc_demangle::try_demangle(&text) {
        return bounded(&Bounded::of(format_args!("{name:#}")));
    }
    if symbol.starts_with(b"_Z")
        && let Some(name) = cpp(symbol)
    {
        return bounded(&name);
    }
    bounded(&text)
}

fn cpp(symbol: &[u8]) -> Option<String> {
    let symbol = Symbol::new(symbol).ok()?;
    let mut name = Bounded(String::new());
    // Cut off or not: what has been written is the name's beginning.
    let done = symbol.structured_demangle(&mut name, &DemangleOptions::new().no_params().no_return_type());
    (done.is_ok() || name.0.len() >= NAME_MAX).then_some(name.0)
}

fn bounded(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

/// Takes text until there is enough: a short symbol may stand for a name of any length.
struct Bounded(String);

impl Bounded {
    fn of(text: fmt::Arguments<'_>) -> String {
        let mut into = Bounded(String::new());
        let _ = fmt::write(&mut into, text);
        into.0
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() > 4 * NAME_MAX { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_people_write() {
        let collect = b"_ZN2v88internal4Heap14CollectGarbageENS0_15AllocationSpaceENS0_23GarbageCollectionReasonENS_15GCCallbackFlagsE";
        let vectors: [(&[u8], &str); 6] = [
            (collect, "v8::internal::Heap::CollectGarbage"),
            (b"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            (b"_RNvC6_123foo3bar", "123foo::bar"),
            (b"BrotliEncoderCompressStream", "BrotliEncoderCompressStream"),
            (b"sha512_block_data_order_avx2", "sha512_block_data_order_avx2"),
            (b"_Znot a symbol", "_Znot a symbol"),
        ];
        for (symbol, name) in vectors {
            assert_eq!(demangle(symbol), name);
        }
    }

    #[test]
    fn a_short_symbol_for_an_endless_name_is_cut() {
        // f<pair<int, int>, pair<that, that>, ...>: each argument is twice as long as the one before it.
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let step = |id: usize| [b"S0_IS", &digits[id..=id], b"_S", &digits[id..=id], b"_E"].concat();
        let arguments: Vec<u8> = (1..=34).flat_map(step).collect();
        let symbol = [b"_Z1fISt4pairIiiE", &arguments[..], b"Evv"].concat();
        assert!(demangle(&symbol).starts_with("f<std::pair<int, int>, std::pair<std::pair<int, int>"));
        for symbol in [symbol, vec![b'a'; 100_000], b"\xff\xfe".to_vec()] {
            assert!(demangle(&symbol).chars().count() <= NAME_MAX);
        }
    }
}
