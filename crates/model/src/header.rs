//! Names of header fields, in which capitals make no difference (RFC 9110, section 5.1): the one comparison of them.
//!
//! Must not: know what any field means.

/// Whether two names are those of the same field.
#[inline]
pub fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// A name as a key, by which fields are found and compared in maps.
pub fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Whether there is a field of this name.
pub fn has<V>(fields: &[(String, V)], name: &str) -> bool {
    fields.iter().any(|(given, _)| is_same(given, name))
}

/// The values of all fields of this name, in their order.
pub fn values<'f, V>(fields: &'f [(String, V)], name: &str) -> impl Iterator<Item = &'f V> {
    fields.iter().filter(move |(given, _)| is_same(given, name)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_make_no_difference() {
        let fields =
            [("Vary", "a"), ("VARY", "b"), ("Etag", "c")].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(values(&fields, "vary").copied().collect::<Vec<_>>(), ["a", "b"]);
        assert!(has(&fields, "ETag") && !has(&fields, "Va") && is_same(&key("ETag"), "etag"));
    }
}
