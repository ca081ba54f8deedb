//! Names from outside as they may be shown: cut, and without characters that mislead.
//!
//! It must not know where a name comes from: all are taken to be hostile.

/// Characters of a name that are shown. Some minified or generated names are far longer.
const CHARACTERS_MAX: usize = 300;

/// A name in one line, no longer than can be read. Controls, and characters that turn the direction of what follows, are shown
/// as replacement characters: with them a name could look like another.
pub(crate) fn shown(name: &str) -> String {
    cut(name, CHARACTERS_MAX)
}

/// The same with a limit of its own.
pub(crate) fn cut(text: &str, characters_max: usize) -> String {
    let mut out: String = text.chars().take(characters_max).map(harmless).collect();
    if text.chars().nth(characters_max).is_some() {
        out.push('…');
    }
    out
}

/// A text of any length in one line, with the same care.
pub(crate) fn line(text: &str) -> String {
    let one = |c: char| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { harmless(c) };
    text.chars().map(one).collect()
}

/// A character that does not mislead, in its place.
pub(crate) fn harmless(c: char) -> char {
    let misleads = c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{180e}')
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{206f}').contains(&c);
    if misleads { '\u{fffd}' } else { c }
}
