//! Case-insensitive comparison of header field names (RFC 9110, section 5.1).
//!
//! This module does not know the meaning of any field.

/// Whether two names denote the same field.
#[inline]
pub fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Normalizes a name for use as a map key.
pub fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Whether a field with this name exists.
pub fn has<V>(fields: &[(String, V)], name: &str) -> bool {
    fields.iter().any(|(given, _)| is_same(given, name))
}

/// Returns the values of all fields with this name, in order.
pub fn values<'f, V>(fields: &'f [(String, V)], name: &str) -> impl Iterator<Item = &'f V> {
    fields
        .iter()
        .filter(move |(given, _)| is_same(given, name))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_make_no_difference() {
        let fields = [("Vary", "a"), ("VARY", "b"), ("Etag", "c")]
            .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(
            values(&fields, "vary").copied().collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert!(has(&fields, "ETag") && !has(&fields, "Va") && is_same(&key("ETag"), "etag"));
    }
}
