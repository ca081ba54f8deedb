//! Headings above a line: Markdown's, bold lines, lines that end with a colon, and typed commands.
//!
//! This module does not know tools.

/// Longer lines are prose.
const HEADING_CHARS_MAX: usize = 100;
const COLON_CHARS_MAX: usize = 70;
const COLON_WORDS_MAX: usize = 12;
const LEVEL_BOLD: u8 = 7;
const LEVEL_COLON: u8 = 8;
const LEVEL_TYPED: u8 = 9;
const LEVEL_BARE: u8 = 10;
/// Commands beyond this number, including headings, are ignored.
const TYPED_MAX: usize = 20;
const BARE_CHARS_MAX: usize = 50;
const BARE_WORDS_MAX: usize = 8;

/// Levels of Markdown and HTML begin sections.
const LEVEL_SECTION_MAX: u8 = 6;

/// A heading and its level. 1 is the outermost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    level: u8,
    text: String,
}

impl Heading {
    /// Parses a line as a heading. Within a block of code, `#` begins a comment, which names what follows it.
    pub fn of(text: &str, in_code: bool) -> Option<Self> {
        if text.chars().count() > HEADING_CHARS_MAX {
            return None;
        }
        let hashes = text.chars().take_while(|c| *c == '#').count();
        if (1..=6).contains(&hashes) {
            let name = text.trim_start_matches('#');
            let level = if in_code {
                LEVEL_COLON
            } else {
                u8::try_from(hashes).unwrap_or(1)
            };
            // `#two` is a heading to people, `#include <stdio.h>` and `#!/bin/sh` are not.
            let code = ["!", "include", "define", "if", "else", "end", "pragma", "["];
            let named = name.starts_with(' ')
                || hashes == 1
                    && name.contains(char::is_alphabetic)
                    && !code.iter().any(|code| name.starts_with(code))
                    && words_of(name) <= BARE_WORDS_MAX;
            return if named {
                Self::named(level, name)
            } else {
                None
            };
        }
        if let Some((level, name)) = html(text) {
            return Self::named(level, &name);
        }
        if is_announced(text) {
            return Self::named(LEVEL_COLON, text);
        }
        if let Some(name) = bold(text) {
            return Self::named(LEVEL_BOLD, name);
        }
        let name = text.strip_suffix([':', '：'])?;
        let words = name.split_whitespace().count();
        let short =
            name.chars().count() <= COLON_CHARS_MAX && (1..=COLON_WORDS_MAX).contains(&words);
        let prose = name.starts_with(['{', '<', '"', '|']) || name.contains("://");
        if short && !prose && !is_log(text) {
            Self::named(LEVEL_COLON, name)
        } else {
            None
        }
    }

    /// Whether it begins a section.
    pub fn is_section(&self) -> bool {
        self.level <= LEVEL_SECTION_MAX
    }

    /// A line underlined by the next one.
    pub fn underlined(text: &str, rule: &str) -> Option<Self> {
        let is_of = |sign: char| rule.len() >= 3 && rule.chars().all(|c| c == sign);
        let (_, level) = [('=', 1), ('-', 2), ('~', 3)]
            .into_iter()
            .find(|(sign, _)| is_of(*sign))?;
        if text.chars().count() > HEADING_CHARS_MAX {
            None
        } else {
            Self::named(level, text)
        }
    }

    /// A short line, for texts without any other heading: `Before`. A false heading only separates two runs
    /// that may be repeats. A missed one would merge runs that were compared.
    pub fn bare(text: &str) -> Option<Self> {
        let words = text.split_whitespace().count();
        let short = text.chars().count() <= BARE_CHARS_MAX && (1..=BARE_WORDS_MAX).contains(&words);
        let named = text.starts_with(char::is_alphabetic)
            && text.ends_with(|c: char| c.is_alphanumeric() || c == ')');
        if short && named && !is_log(text) {
            Self::named(LEVEL_BARE, text)
        } else {
            None
        }
    }

    /// A short line of any form that may name the next run: `<h3>Before</h3>`, `== 2 workers ==`, `[single]`.
    /// Times and lines without a word are ignored.
    pub fn near(text: &str) -> Option<String> {
        // GitHub's group marks, and ASCII art letters.
        let text = text
            .strip_prefix("##[group]")
            .or_else(|| text.strip_prefix("::group::"))
            .unwrap_or(text);
        if text.contains(['\\', '‾']) || is_log(text) {
            return None;
        }
        let text = plain(&untagged(text));
        let text = text.trim_matches(|c: char| !c.is_alphanumeric());
        let words = text.split_whitespace().count();
        let short = text.chars().count() <= BARE_CHARS_MAX && (1..=BARE_WORDS_MAX).contains(&words);
        let timed = text.split_once(' ').is_some_and(|(kind, time)| {
            matches!(kind, "real" | "user" | "sys") && time.contains(|c: char| c.is_ascii_digit())
        });
        let clock = |triple: &[u8]| {
            triple[0].is_ascii_digit() && triple[1] == b':' && triple[2].is_ascii_digit()
        };
        let says =
            text.contains(char::is_alphabetic) && !timed && !text.as_bytes().windows(3).any(clock);
        (short && says).then(|| text.to_owned())
    }

    fn named(level: u8, text: &str) -> Option<Self> {
        let text = plain(text);
        // A rule around a title names nothing: `# =====`.
        text.contains(char::is_alphanumeric)
            .then_some(Self { level, text })
    }
}

fn words_of(text: &str) -> usize {
    text.split_whitespace().count()
}

/// A line of a log, which names nothing.
fn is_log(text: &str) -> bool {
    let lower = text.to_lowercase();
    let marks = [
        "level=", "msg=", "time=\"", "[info]", "[warn]", "[error]", "[debug]", " pid ",
    ];
    let levels = [
        "info ", "warn ", "warning ", "error ", "debug ", "info:", "warn:", "warning:", "error:",
        "debug:",
    ];
    // A value of a log record that was wrapped: `originalModuleSpecifier=/scripts/a.js`.
    let field =
        |name: &str| name.starts_with(char::is_lowercase) && name.contains(char::is_uppercase);
    let wrapped = text
        .split_once('=')
        .is_some_and(|(name, value)| field(name) && !name.contains(' ') && value.starts_with('/'));
    marks.iter().any(|mark| lower.contains(mark))
        || levels.iter().any(|level| lower.starts_with(level))
        || wrapped
}

/// A line of a script that says which run comes next: `Testing a cluster`, `Benchmarking mode=single...`.
fn is_announced(text: &str) -> bool {
    let verb = text.split(' ').next().unwrap_or_default();
    let announces = matches!(verb, "Testing" | "Benchmarking" | "Measuring" | "Benchmark");
    announces
        && (2..=COLON_WORDS_MAX).contains(&words_of(text))
        && !text.contains("(be patient)")
        && !text.contains("://")
}

/// The setting of a line that contains nothing else: `replicas=3`, `Workers: 4`.
pub fn setting(text: &str) -> Option<&str> {
    let (name, value) = text.split_once(['=', ':'])?;
    let (name, value) = (name.trim(), value.trim());
    let nouns = "workers threads replicas connections concurrency instances processes cores cpus nodes pool size clients \
        rate timeout duration users vus";
    let known = text.contains('=')
        || nouns.split(' ').any(|noun| {
            name.to_lowercase()
                .split([' ', '_', '-'])
                .any(|word| word == noun)
        });
    let plain =
        |text: &str, most: usize| !text.is_empty() && text.len() <= most && words_of(text) == 1;
    let worded = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= 40
        && words_of(name) <= 3;
    let setting = worded && known && plain(value, 30) && !is_log(text) && !text.contains("://");
    setting.then_some(text)
}

/// The level and the words of a heading or of bold text in HTML.
fn html(text: &str) -> Option<(u8, String)> {
    let tag = text.strip_prefix('<')?;
    let name = tag.split(['>', ' ']).next()?.to_ascii_lowercase();
    let level = match name.as_str() {
        "b" | "strong" | "summary" => LEVEL_BOLD,
        name => name
            .strip_prefix('h')?
            .parse()
            .ok()
            .filter(|level| (1..=LEVEL_SECTION_MAX).contains(level))?,
    };
    let words = untagged(text);
    // Bold at the beginning of a sentence is no heading.
    (text.ends_with('>') && words_of(&words) <= COLON_WORDS_MAX).then_some((level, words))
}

/// The contents of a line that is entirely bold.
fn bold(text: &str) -> Option<&str> {
    let text = text
        .strip_prefix("- ")
        .or_else(|| text.strip_prefix("* "))
        .unwrap_or(text);
    let text = unnumbered(text).trim_end_matches(':');
    ["**", "__"].iter().find_map(|mark| {
        let inner = text.strip_prefix(mark)?.strip_suffix(mark)?;
        (!inner.is_empty() && !inner.contains(mark)).then_some(inner)
    })
}

/// Removes Markdown marks and leading numbers: `2. **fork**` becomes `fork`.
fn plain(text: &str) -> String {
    let text = unnumbered(
        text.trim()
            .trim_matches(['-', '*', '=', '~', '─', '#', ' ', ':', '`', '_']),
    );
    // `[words](address)` becomes its words.
    let text = match (text.strip_prefix('['), text.split_once("](")) {
        (Some(_), Some((words, _))) => words.trim_start_matches('['),
        _ => text,
    };
    let kept = text.split_whitespace().collect::<Vec<_>>().join(" ");
    kept.replace(['`', '\u{fffd}'], "")
        .replace("**", "")
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

/// Removes HTML tags.
fn untagged(text: &str) -> String {
    let mut parts = text.split('<');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| {
        kept + part.split_once('>').map_or("", |(_, rest)| rest)
    })
}

/// Removes a leading `2.` or `3.1)`.
fn unnumbered(text: &str) -> &str {
    text.split_once([' ', '\t'])
        .filter(|(number, _)| is_numbering(number))
        .map_or(text, |(_, rest)| rest)
}

fn is_numbering(word: &str) -> bool {
    let digits = word.trim_end_matches(['.', ')']);
    digits.len() < word.len()
        && !digits.is_empty()
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// The current headings, outermost first.
#[derive(Debug, Default)]
pub struct Headings {
    stack: Vec<Heading>,
}

impl Headings {
    /// Adds a heading, which ends headings of the same or a deeper level.
    pub fn set(&mut self, heading: Heading) {
        self.stack.retain(|above| above.level < heading.level);
        self.stack.push(heading);
    }

    /// Adds a typed command beside earlier ones, unless it is typed `afresh` after a run.
    pub fn set_typed(&mut self, text: &str, afresh: bool) {
        let Some(heading) = Heading::named(LEVEL_TYPED, text) else {
            return;
        };
        self.stack
            .retain(|above| above.level < LEVEL_TYPED || (above.level == LEVEL_TYPED && !afresh));
        if self.stack.len() < TYPED_MAX && !self.stack.contains(&heading) {
            self.stack.push(heading);
        }
    }

    /// Whether all headings are bare lines.
    pub fn has_only_bare(&self) -> bool {
        self.stack.iter().all(|heading| heading.level == LEVEL_BARE)
    }

    pub fn path(&self) -> Vec<String> {
        self.stack
            .iter()
            .map(|heading| heading.text.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_every_kind_nest() {
        let mut headings = Headings::default();
        let mut under = |text: &str| {
            headings.set(Heading::of(text, false).unwrap_or_else(|| panic!("{text}")));
            headings.path().join(" / ")
        };
        assert_eq!(under("# Study"), "Study");
        assert_eq!(under("## 2. `production`"), "Study / production");
        assert_eq!(under("**fork:**"), "Study / production / fork");
        assert_eq!(under("mit gzip:"), "Study / production / fork / mit gzip");
        assert_eq!(under("3. **one core:**"), "Study / production / one core");
        assert_eq!(under("- **cluster**"), "Study / production / cluster");
        assert_eq!(
            under("## [development](https://example.org)"),
            "Study / development"
        );
        assert_eq!(
            under("# ==== NODE_ENV=production ===="),
            "NODE_ENV=production"
        );
        let rules = ["# ==========", "## ---", "#!/bin/sh"];
        let prose = ["see https://example.org:", "**a** and **b**", "plain words"];
        for prose in rules.into_iter().chain(prose) {
            assert_eq!(Heading::of(prose, false), None, "{prose}");
        }
    }
}
