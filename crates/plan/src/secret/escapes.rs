//! Escape sequences for single characters: in JSON and programs (`\/`, `\u00f6`), XML and HTML (`&#x2F;`,
//! `&amp;`), and URLs (`%2F`).
//!
//! Secrets are searched for in the decoded text, because no list of spellings is complete. A [`DecodedText`]
//! maps each of its bytes to bytes of the original text. Text without escapes is unchanged.

use std::ops::Range;

/// Maximum length of an entity after its `&`, in bytes.
const ENTITY_BYTES_MAX: usize = 12;
/// The names of the characters from U+00A0 on (HTML 4.01, section 24.2).
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para \
    middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml \
    Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave \
    aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml \
    divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
/// Other names (HTML, section 13.5). XML has the first five.
const NAMED: [(&str, char); 33] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("AMP", '&'),
    ("LT", '<'),
    ("GT", '>'),
    ("QUOT", '"'),
    ("euro", '€'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("plus", '+'),
    ("equals", '='),
    ("num", '#'),
    ("percnt", '%'),
    ("dollar", '$'),
    ("excl", '!'),
    ("ast", '*'),
    ("lpar", '('),
    ("rpar", ')'),
    ("comma", ','),
    ("period", '.'),
    ("colon", ':'),
    ("semi", ';'),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("rsqb", ']'),
    ("lcub", '{'),
    ("rcub", '}'),
    ("lowbar", '_'),
    ("grave", '`'),
];

/// A kind of escapes. Kinds are decoded separately: a secret that contains `%41` is not escaped in JSON.
#[derive(Clone, Copy)]
pub(super) enum Escapes {
    Backslashes,
    Entities,
    Percents,
}

impl Escapes {
    pub const ALL: [Escapes; 3] = [Escapes::Backslashes, Escapes::Entities, Escapes::Percents];

    fn sign(self) -> char {
        match self {
            Escapes::Backslashes => '\\',
            Escapes::Entities => '&',
            Escapes::Percents => '%',
        }
    }

    /// Decodes an escape at the start of a text. Returns the character and the length of the escape.
    fn first(self, text: &str) -> Option<(char, usize)> {
        match self {
            Escapes::Backslashes => backslash(text),
            Escapes::Entities => entity(text),
            Escapes::Percents if text.as_bytes().get(1) == Some(&b'u') => {
                let (c, length) = utf16(&text[1..], "%u")?;
                Some((c, length + 1))
            }
            Escapes::Percents => utf8(text, |text| {
                let digits = text.strip_prefix('%')?;
                Some((u8::try_from(hex(digits, 2)?).ok()?, 3))
            }),
        }
    }
}

/// A text with escapes of one kind decoded.
pub(super) struct DecodedText {
    pub text: String,
    /// In order: the range of the character in `text`, and the range of the escape in the original.
    escapes: Vec<(Range<usize>, Range<usize>)>,
}

impl DecodedText {
    /// `None` if there is nothing to decode.
    pub fn of(written: &str, kind: Escapes) -> Option<DecodedText> {
        let (mut text, mut escapes) = (String::new(), Vec::new());
        let (mut from, mut at) = (0, 0);
        while let Some(length) = written[at..].find(kind.sign()) {
            let begin = at + length;
            at = begin + 1;
            if let Some((c, length)) = kind.first(&written[begin..]) {
                text.push_str(&written[from..begin]);
                (from, at) = (begin + length, begin + length);
                escapes.push((text.len()..text.len() + c.len_utf8(), begin..from));
                text.push(c);
            }
        }
        if escapes.is_empty() {
            return None;
        }
        text.push_str(&written[from..]);
        Some(DecodedText { text, escapes })
    }

    /// Range of the original for a non-empty range of the decoded text.
    pub fn written(&self, part: &Range<usize>) -> Range<usize> {
        let begin = match self.escape_before(part.start) {
            Some((plain, escape)) if part.start < plain.end => escape.start,
            Some((plain, escape)) => escape.end + (part.start - plain.end),
            None => part.start,
        };
        let end = match self.escape_before(part.end - 1) {
            Some((plain, escape)) if part.end <= plain.end => escape.end,
            Some((plain, escape)) => escape.end + (part.end - plain.end),
            None => part.end,
        };
        begin..end
    }

    /// The last escape whose character begins at or before this position.
    fn escape_before(&self, at: usize) -> Option<&(Range<usize>, Range<usize>)> {
        let behind = self.escapes.partition_point(|(plain, _)| plain.start <= at);
        self.escapes[..behind].last()
    }
}

/// Decodes the entities of XML and HTML.
pub(super) fn without_entities(text: &str) -> String {
    DecodedText::of(text, Escapes::Entities).map_or_else(|| text.to_owned(), |decoded| decoded.text)
}

/// Backslash escapes of JSON, shells and most languages.
fn backslash(text: &str) -> Option<(char, usize)> {
    let c = match *text.as_bytes().get(1)? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' if text[2..].starts_with('{') => {
            let digits = text[3..].bytes().take(7).position(|byte| byte == b'}')?;
            return Some((char::from_u32(hex(&text[3..], digits)?)?, digits + 4));
        }
        b'u' => {
            let (c, length) = utf16(&text[1..], "\\u")?;
            return Some((c, length + 1));
        }
        b'U' => return Some((char::from_u32(hex(&text[2..], 8)?)?, 10)),
        b'x' | b'0'..=b'3' => return utf8(text, backslash_byte),
        byte if byte.is_ascii_punctuation() => char::from(byte),
        _ => return None,
    };
    Some((c, 2))
}

/// A byte: `\xc3` or `\303`.
fn backslash_byte(text: &str) -> Option<(u8, usize)> {
    let rest = text.strip_prefix('\\')?;
    let (value, length) = match rest.strip_prefix('x') {
        Some(digits) => (hex(digits, 2)?, 4),
        None => (number(rest, 3, 8)?, 4),
    };
    Some((u8::try_from(value).ok()?, length))
}

/// A character of one or two UTF-16 units. The first is `u00f6`, the second begins with `sign`.
fn utf16(text: &str, sign: &str) -> Option<(char, usize)> {
    let first = u16::try_from(hex(&text[1..], 4)?).ok()?;
    let second = || {
        let digits = text[5..].strip_prefix(sign)?;
        u16::try_from(hex(digits, 4)?).ok()
    };
    let one = |units: &[u16]| char::decode_utf16(units.iter().copied()).next()?.ok();
    if let Some(c) = one(&[first]) {
        return Some((c, 5));
    }
    Some((one(&[first, second()?])?, 5 + sign.len() + 4))
}

/// A character with escaped bytes, in UTF-8 or otherwise Latin-1.
fn utf8(text: &str, byte: impl Fn(&str) -> Option<(u8, usize)>) -> Option<(char, usize)> {
    let (first, first_length) = byte(text)?;
    let (mut bytes, mut count, mut length) = ([first, 0, 0, 0], 1, first_length);
    loop {
        match std::str::from_utf8(&bytes[..count]) {
            Ok(found) => return found.chars().next().map(|c| (c, length)),
            Err(error) if error.error_len().is_none() => {}
            Err(_) => break,
        }
        let Some((next, more)) = byte(&text[length..]) else {
            break;
        };
        bytes[count] = next;
        (count, length) = (count + 1, length + more);
    }
    Some((char::from(first), first_length))
}

fn entity(text: &str) -> Option<(char, usize)> {
    let rest = &text[1..];
    let length = rest
        .bytes()
        .take(ENTITY_BYTES_MAX)
        .position(|byte| byte == b';')?;
    let name = &rest[..length];
    let c = match name.strip_prefix('#') {
        Some(digits) => {
            let value = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => hex(digits, digits.len())?,
                None => number(digits, digits.len(), 10)?,
            };
            char::from_u32(value)?
        }
        None => named(name)?,
    };
    Some((c, length + 2))
}

fn named(name: &str) -> Option<char> {
    let other = NAMED.iter().find(|(other, _)| *other == name);
    let latin = || ('\u{a0}'..='\u{ff}').zip(LATIN.split_whitespace());
    let of_latin = || latin().find(|(_, other)| *other == name).map(|(c, _)| c);
    other.map(|(_, c)| *c).or_else(of_latin)
}

fn hex(text: &str, digits: usize) -> Option<u32> {
    number(text, digits, 16)
}

/// Parses the first digits of a text. `None` if one of them is not a digit.
fn number(text: &str, digits: usize, radix: u32) -> Option<u32> {
    let digits = text.get(..digits).filter(|digits| !digits.is_empty())?;
    let is_digit = |c: char| c.is_digit(radix);
    let is_number = digits.chars().all(is_digit);
    is_number
        .then(|| u32::from_str_radix(digits, radix).ok())
        .flatten()
}
