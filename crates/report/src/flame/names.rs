//! Names from profiles as they may be shown: cut, without characters that mislead, and made harmless where they stand in markup.
//!
//! It must not know where a name comes from: all are taken to be hostile.

/// Characters of a name that are shown. Some minified or generated names are far longer.
const CHARACTERS_MAX: usize = 300;

/// A name in one line, no longer than can be read. Controls, and characters that turn the direction of what follows, are shown
/// as replacement characters: with them a name could look like another.
pub(super) fn shown(name: &str) -> String {
    cut(name, CHARACTERS_MAX)
}

/// The same with a limit of its own.
pub(super) fn cut(text: &str, characters_max: usize) -> String {
    let mut out: String = text.chars().take(characters_max).map(harmless).collect();
    if text.chars().nth(characters_max).is_some() {
        out.push('…');
    }
    out
}

fn harmless(c: char) -> char {
    let misleads = c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{180e}')
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{206f}').contains(&c);
    if misleads { '\u{fffd}' } else { c }
}

/// Text inside HTML or XML, in an attribute too.
pub(super) fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// JSON inside a script element: nothing in it can end the element or begin a comment, and it means the same.
pub(super) fn in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out += "\\u003c",
            '>' => out += "\\u003e",
            '&' => out += "\\u0026",
            '\u{2028}' => out += "\\u2028",
            '\u{2029}' => out += "\\u2029",
            c => out.push(c),
        }
    }
    out
}
