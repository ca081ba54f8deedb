//! Cleans one line of terminal, Markdown, log and mail decorations. This module does not interpret the rest.

/// `38;5;255`, with some margin.
const COLOUR_BYTES_MAX: usize = 11;
/// Maximum number of words before the time, such as names of a job and a step.
const STAMP_WORDS_MAX: usize = 12;
/// Maximum length of window titles.
const TITLE_CHARS_MAX: usize = 300;

/// Cleans a line, including surrounding blanks.
pub fn clean(raw: &str) -> String {
    let spaced = plain_spaces(&without_escapes(raw));
    let text = without_cells(without_quote(without_stamp(spaced.trim())));
    without_tags(text)
}

/// A line without Markdown's marks of emphasis, lists and headings, in which a tool's figures may be wrapped.
pub fn undecorated(text: &str) -> String {
    let text = text.trim_start_matches('#').trim_start();
    let text = ["- ", "* ", "+ ", "• ", "· "]
        .iter()
        .find_map(|mark| text.strip_prefix(mark))
        .unwrap_or(text)
        .trim_start_matches('#')
        .trim_start();
    let text = text.replace("**", "");
    text.trim_matches(['`', '\\', ' ']).to_owned()
}

/// HTML around a line of output. Tags of headings and emphasis name runs, and are left.
const TAGS: [&str; 13] = [
    "br", "p", "pre", "code", "div", "span", "li", "ul", "td", "tr", "th", "tbody", "table",
];

/// Removes these tags, and resolves the entities of a page that was saved.
fn without_tags(text: &str) -> String {
    if !text.contains(['<', '&']) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        rest = after_tag(tag).unwrap_or_else(|| {
            out.push('<');
            &tag[1..]
        });
    }
    out.push_str(rest);
    let entities = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ];
    let text = entities
        .iter()
        .fold(out, |text, (entity, sign)| text.replace(entity, sign));
    text.trim().to_owned()
}

/// The longest tag that is removed.
const TAG_CHARS_MAX: usize = 100;

fn after_tag(text: &str) -> Option<&str> {
    let body = text.strip_prefix('<')?;
    let end = body
        .bytes()
        .take(TAG_CHARS_MAX)
        .position(|byte| byte == b'>')?;
    let name = body[..end]
        .trim_start_matches('/')
        .trim_end_matches('/')
        .trim();
    let name = name.split(' ').next()?.to_ascii_lowercase();
    TAGS.contains(&name.as_str()).then(|| &body[end + 1..])
}

/// Whether a clean line begins or ends a block of code in Markdown.
pub fn is_fence(text: &str) -> bool {
    text.starts_with("```") || text.starts_with("~~~")
}

/// Removes terminal sequences: colours, cursor moves, titles, and colours whose escape byte was lost in
/// copying.
fn without_escapes(raw: &str) -> String {
    if !raw.contains(['\u{1b}', '[', '\u{8}']) {
        return raw.to_owned();
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(['\u{1b}', '[', '\u{8}']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        rest = after_sequence(found).unwrap_or_else(|| {
            match found.chars().next() {
                Some('[') => out.push('['),
                // A backspace removes the last typed character.
                Some('\u{8}') => drop(out.pop()),
                _ => {}
            }
            &found[1..]
        });
    }
    out + rest
}

/// The rest after the sequence at the start, if there is one.
fn after_sequence(text: &str) -> Option<&str> {
    let Some(body) = text.strip_prefix('\u{1b}') else {
        return after_colour(text);
    };
    if let Some(parameters) = body.strip_prefix('[') {
        let end = parameters.find(|c: char| ('@'..='~').contains(&c))?;
        return parameters.get(end + 1..);
    }
    if let Some(title) = body.strip_prefix(']') {
        // Limited to the length of a title, otherwise a line of sequence starts would take quadratic time.
        let end = title
            .char_indices()
            .take(TITLE_CHARS_MAX)
            .find(|(_, c)| matches!(c, '\u{7}' | '\u{1b}'))?
            .0;
        return title
            .get(end + 1..)
            .map(|after| after.strip_prefix('\\').unwrap_or(after));
    }
    // A character set, such as ESC ( B.
    let set = body.strip_prefix(['(', ')'])?;
    let mut chars = set.chars();
    chars.next().map(|_| chars.as_str())
}

/// `[32m` with its escape byte lost.
fn after_colour(text: &str) -> Option<&str> {
    let body = text.strip_prefix('[')?;
    let end = body
        .bytes()
        .take(COLOUR_BYTES_MAX + 1)
        .position(|byte| byte == b'm')?;
    let (parameters, after) = (&body[..end], &body[end + 1..]);
    let colour = |part: &str| part.parse::<u16>().is_ok_and(|code| code <= 107);
    // Without a number it may be a word: `[mean, 50, …]`.
    let colours = !parameters.is_empty()
        && parameters
            .split(';')
            .all(|part| part.is_empty() || colour(part));
    // `[2ms, 4ms]` is a bucket of a histogram, `[5m]` a time.
    (colours && !after.starts_with(['s', ']', ','])).then_some(after)
}

/// Converts all kinds of blanks to spaces, and removes thousands separators among them.
fn plain_spaces(text: &str) -> String {
    if text.is_ascii() {
        return text.replace('\t', " ");
    }
    let chars: Vec<char> = text.chars().collect();
    let digit = |at: Option<usize>| {
        at.and_then(|at| chars.get(at))
            .is_some_and(char::is_ascii_digit)
    };
    let mut out = String::with_capacity(text.len());
    for (at, c) in chars.iter().enumerate() {
        let in_number = || digit(at.checked_sub(1)) && digit(Some(at + 1));
        match c {
            '\u{feff}' | '\u{200b}' => {}
            '\u{a0}' | '\u{202f}' | '\u{2009}' if in_number() => {}
            '\t' | '\u{a0}' | '\u{202f}' | '\u{2009}' => out.push(' '),
            c => out.push(*c),
        }
    }
    out
}

/// Removes the prefixes of CI and containers: `2026-11-21T10:00:00.123Z `, `job step [2026-11-21T10:00:00Z]
/// `, `10:00:05 `, `#12 10.35 `, `wrk_1  | `.
fn without_stamp(text: &str) -> &str {
    let text = behind_stamp(text)
        .filter(|rest| !rest.is_empty())
        .unwrap_or(text);
    match text.split_once(" | ") {
        Some((name, rest)) if is_container(name.trim_end()) => rest.trim_start(),
        _ => text,
    }
}

/// The rest after a time at the beginning, or after a date with a time among the first words.
fn behind_stamp(text: &str) -> Option<&str> {
    let shaped = |word: &str, shape: &str| {
        let fits = |(byte, of)| {
            if of == b'd' {
                u8::is_ascii_digit(byte)
            } else {
                *byte == of
            }
        };
        word.len() >= shape.len() && word.as_bytes().iter().zip(shape.bytes()).all(fits)
    };
    let (first, rest) = text.split_once(' ')?;
    let rest = rest.trim_start();
    let bare = first.trim_start_matches('[');
    if shaped(bare, "dd:dd:dd") {
        return Some(rest);
    }
    let (second, third) = rest.split_once(' ').unwrap_or((rest, ""));
    if shaped(bare, "dddd-dd-dd") && bare.len() == "dddd-dd-dd".len() && shaped(second, "dd:dd:dd")
    {
        return Some(third.trim_start());
    }
    let seconds = second.contains('.')
        && second
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if first.len() > 1 && first.starts_with('#') && shaped(&first[1..], "d") && seconds {
        return Some(third.trim_start());
    }
    // GitLab adds the stream after it: `01O`.
    let stream = |word: &&str| word.len() == 3 && shaped(word, "dd") && word.ends_with(['O', 'E']);
    let mut words = text.split(' ').take(STAMP_WORDS_MAX);
    let stamp = words.find(|word| shaped(word.trim_start_matches('['), "dddd-dd-ddTdd:dd:dd"))?;
    let rest = text.split_once(stamp)?.1.trim_start();
    Some(
        rest.split_once(' ')
            .filter(|(word, _)| stream(word))
            .map_or(rest, |(_, rest)| rest.trim_start()),
    )
}

fn is_container(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let named = name.len() <= 40 && name.starts_with(|c: char| c.is_ascii_alphabetic());
    let numbered = name.ends_with(|c: char| c.is_ascii_digit()) && name.contains(['-', '_']);
    named && numbered && name.chars().all(plain)
}

/// Removes quote marks of Markdown and mail, and the marks of comments.
fn without_quote(text: &str) -> &str {
    // Comments of code: `// Requests/sec: 5`.
    let comment = text
        .strip_prefix("//")
        .map(|rest| rest.trim_start_matches('/'));
    let mut text = comment
        .filter(|rest| rest.is_empty() || rest.starts_with(' '))
        .map_or(text, str::trim_start);
    while let Some(rest) = text.strip_prefix('>') {
        if !(rest.is_empty() || rest.starts_with([' ', '>'])) {
            break;
        }
        text = rest.trim_start();
    }
    text
}

/// Removes the frame of a table with one column.
fn without_cells(text: &str) -> &str {
    match text.strip_prefix('|') {
        Some(inner) => inner.trim_end_matches('|').trim(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_a_line_is_taken_off() {
        let table = [
            ("\u{1b}[1;32mRunning\u{1b}[0m 10s", "Running 10s"),
            ("[32mRunning[0m 10s", "Running 10s"),
            ("[200]\t1000 responses", "[200] 1000 responses"),
            ("[2ms,   4ms]   5505", "[2ms,   4ms]   5505"),
            (
                "Latencies [mean, 50] 1ms, 2ms",
                "Latencies [mean, 50] 1ms, 2ms",
            ),
            ("\u{1b}]0;title\u{7}Requests/sec: 5", "Requests/sec: 5"),
            ("> > Requests/sec: 5", "Requests/sec: 5"),
            ("//   Requests/sec: 5", "Requests/sec: 5"),
            ("//host/path", "//host/path"),
            ("| Requests/sec: 5 |", "Requests/sec: 5"),
            (
                "2026-11-21T10:00:00.1234567Z Requests/sec: 5",
                "Requests/sec: 5",
            ),
            (
                "[2026-11-21T10:00:00.123Z] Requests/sec: 5",
                "Requests/sec: 5",
            ),
            (
                "load\tRun wrk\t2026-11-21T10:00:00.1234567Z Requests/sec: 5",
                "Requests/sec: 5",
            ),
            (
                "2026-11-21T10:00:00.123456Z 01O Requests/sec: 5",
                "Requests/sec: 5",
            ),
            ("2026-11-21 10:00:00 Requests/sec: 5", "Requests/sec: 5"),
            ("10:00:05 Requests/sec: 5", "Requests/sec: 5"),
            ("#12 10.35 Requests/sec: 5", "Requests/sec: 5"),
            ("50.000%    1.09ms", "50.000%    1.09ms"),
            ("wrk-1  | Requests/sec: 5", "Requests/sec: 5"),
            ("hey -c 100\u{8}\u{1b}[K http://a/", "hey -c 10 http://a/"),
            ("1\u{202f}234 requests in 1.00s", "1234 requests in 1.00s"),
            ("\u{1b}[", "["),
            ("\u{1b}", ""),
        ];
        for (raw, text) in table {
            assert_eq!(clean(raw), text, "{raw:?}");
        }
        assert!(is_fence(&clean("> ```text")));
    }
}
