//! Names as they may be shown: of bounded length, and without characters that are not seen or that turn what follows around. It
//! must not escape for HTML or a shell: that is for whoever draws them.

/// The most characters of a name.
const CHARS_MAX: usize = 200;

/// The name, at most 200 characters of it, with `\u{FFFD}` for what is not seen.
pub(crate) fn clean(name: &str) -> String {
    let mut clean: String = name.chars().take(CHARS_MAX).map(seen).collect();
    if name.chars().nth(CHARS_MAX).is_some() {
        clean.pop();
        clean.push('…');
    }
    clean
}

/// The same of a path, whose end says more than its beginning.
pub(crate) fn clean_path(path: &str) -> String {
    match path.char_indices().rev().nth(CHARS_MAX) {
        None => path.chars().map(seen).collect(),
        Some(_) => {
            let start = path.char_indices().rev().nth(CHARS_MAX - 2).map_or(0, |(start, _)| start);
            std::iter::once('…').chain(path[start..].chars().map(seen)).collect()
        }
    }
}

fn seen(c: char) -> char {
    let turns =
        matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}');
    if c.is_control() || turns { char::REPLACEMENT_CHARACTER } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_show_all_that_they_hold() {
        assert_eq!(clean("get a"), "get a");
        assert_eq!(clean("a\nb\u{202E}c\0"), "a\u{FFFD}b\u{FFFD}c\u{FFFD}");
        assert_eq!(
            clean("<img src=x onerror=alert(1)>"),
            "<img src=x onerror=alert(1)>",
            "whoever draws it escapes it"
        );
        let long = clean(&"é".repeat(1_000_000));
        assert_eq!((long.chars().count(), long.ends_with("é…")), (200, true));
        assert_eq!(clean(&"é".repeat(200)), "é".repeat(200));
        let path = clean_path(&format!("{}/end.js", "é".repeat(1_000_000)));
        assert!(path.chars().count() == 200 && path.starts_with("…é") && path.ends_with("/end.js"), "{path}");
        assert_eq!(clean_path(&"é".repeat(200)), "é".repeat(200));
    }
}
