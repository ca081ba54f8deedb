//! The headings that a line stands under: Markdown's, bold lines, lines that end with a colon, and typed commands.
//!
//! It must not know tools.

/// Longer lines are prose.
const HEADING_CHARS_MAX: usize = 100;
const COLON_CHARS_MAX: usize = 60;
const COLON_WORDS_MAX: usize = 8;
const LEVEL_BOLD: u8 = 7;
const LEVEL_COLON: u8 = 8;
const LEVEL_TYPED: u8 = 9;
const LEVEL_BARE: u8 = 10;
/// Commands beyond so many, headings included, name nothing more.
const TYPED_MAX: usize = 20;
const BARE_CHARS_MAX: usize = 50;
const BARE_WORDS_MAX: usize = 6;

/// A heading and how deep it stands; 1 is the outermost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    level: u8,
    text: String,
}

impl Heading {
    /// The heading that a line is, if it is one. Within a block of code `#` begins a comment, which names what follows it.
    pub fn of(text: &str, in_code: bool) -> Option<Self> {
        if text.chars().count() > HEADING_CHARS_MAX {
            return None;
        }
        let hashes = text.chars().take_while(|c| *c == '#').count();
        if (1..=6).contains(&hashes) {
            let name = text.trim_start_matches('#');
            let level = if in_code { LEVEL_COLON } else { u8::try_from(hashes).unwrap_or(1) };
            return if name.starts_with(' ') { Self::named(level, name) } else { None };
        }
        if let Some(name) = bold(text) {
            return Self::named(LEVEL_BOLD, name);
        }
        let name = text.strip_suffix([':', '：'])?;
        let words = name.split_whitespace().count();
        let short = name.chars().count() <= COLON_CHARS_MAX && (1..=COLON_WORDS_MAX).contains(&words);
        let prose = name.starts_with(['{', '<', '"', '|']) || name.contains("://");
        if short && !prose { Self::named(LEVEL_COLON, name) } else { None }
    }

    /// A line that the next one underlines.
    pub fn underlined(text: &str, rule: &str) -> Option<Self> {
        let is_of = |sign: char| rule.len() >= 3 && rule.chars().all(|c| c == sign);
        let (_, level) = [('=', 1), ('-', 2)].into_iter().find(|(sign, _)| is_of(*sign))?;
        if text.chars().count() > HEADING_CHARS_MAX { None } else { Self::named(level, text) }
    }

    /// A line of few words, for texts without any other heading: `Before`. Taking what is no heading for one keeps two runs
    /// apart that may be repeats; missing one would put together what was compared.
    pub fn bare(text: &str) -> Option<Self> {
        let words = text.split_whitespace().count();
        let short = text.chars().count() <= BARE_CHARS_MAX && (1..=BARE_WORDS_MAX).contains(&words);
        let named = text.starts_with(char::is_alphabetic)
            && text.ends_with(|c: char| c.is_alphanumeric() || c == ')');
        if short && named { Self::named(LEVEL_BARE, text) } else { None }
    }

    /// What a short line before a run may say of it, whatever its form: `<h3>Before</h3>`, `== 2 workers ==`, `[single]`. Times and what
    /// holds no word say nothing.
    pub fn near(text: &str) -> Option<String> {
        // Marks of GitHub around a group, and letters made of strokes.
        let text = text.strip_prefix("##[group]").or_else(|| text.strip_prefix("::group::")).unwrap_or(text);
        if text.contains(['\\', '‾']) {
            return None;
        }
        let text = plain(&untagged(text));
        let text = text.trim_matches(|c: char| !c.is_alphanumeric());
        let words = text.split_whitespace().count();
        let short = text.chars().count() <= BARE_CHARS_MAX && (1..=BARE_WORDS_MAX).contains(&words);
        let timed = text.split_once(' ').is_some_and(|(kind, time)| {
            matches!(kind, "real" | "user" | "sys") && time.contains(|c: char| c.is_ascii_digit())
        });
        let clock =
            |triple: &[u8]| triple[0].is_ascii_digit() && triple[1] == b':' && triple[2].is_ascii_digit();
        let says = text.contains(char::is_alphabetic) && !timed && !text.as_bytes().windows(3).any(clock);
        (short && says).then(|| text.to_owned())
    }

    fn named(level: u8, text: &str) -> Option<Self> {
        let text = plain(text);
        // A rule around a title names nothing: `# =====`.
        text.contains(char::is_alphanumeric).then_some(Self { level, text })
    }
}

/// The inside of a line that is bold as a whole.
fn bold(text: &str) -> Option<&str> {
    let text = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).unwrap_or(text);
    let text = unnumbered(text).trim_end_matches(':');
    ["**", "__"].iter().find_map(|mark| {
        let inner = text.strip_prefix(mark)?.strip_suffix(mark)?;
        (!inner.is_empty() && !inner.contains(mark)).then_some(inner)
    })
}

/// Without the marks of Markdown and without numbers before it: `2. **fork**` is `fork`.
fn plain(text: &str) -> String {
    let text = unnumbered(text.trim().trim_matches(['-', '*', '=', '~', '─', '#', ' ', ':', '`', '_']));
    // `[words](address)` is its words.
    let text = match (text.strip_prefix('['), text.split_once("](")) {
        (Some(_), Some((words, _))) => words.trim_start_matches('['),
        _ => text,
    };
    let kept = text.split_whitespace().collect::<Vec<_>>().join(" ");
    kept.replace(['`', '\u{fffd}'], "").replace("**", "").chars().filter(|c| !c.is_control()).collect()
}

/// Without the tags of HTML.
fn untagged(text: &str) -> String {
    let mut parts = text.split('<');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once('>').map_or("", |(_, rest)| rest))
}

/// Without `2.` or `3.1)` before it.
fn unnumbered(text: &str) -> &str {
    text.split_once([' ', '\t']).filter(|(number, _)| is_numbering(number)).map_or(text, |(_, rest)| rest)
}

fn is_numbering(word: &str) -> bool {
    let digits = word.trim_end_matches(['.', ')']);
    digits.len() < word.len() && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// The headings in force, the outermost first.
#[derive(Debug, Default)]
pub struct Headings {
    stack: Vec<Heading>,
}

impl Headings {
    /// Takes a heading, which ends those as deep as it and deeper.
    pub fn set(&mut self, heading: Heading) {
        self.stack.retain(|above| above.level < heading.level);
        self.stack.push(heading);
    }

    /// Takes a typed command, which stands beside those typed before it, unless it is typed `afresh`: after a run.
    pub fn set_typed(&mut self, text: &str, afresh: bool) {
        let Some(heading) = Heading::named(LEVEL_TYPED, text) else { return };
        self.stack.retain(|above| above.level < LEVEL_TYPED || (above.level == LEVEL_TYPED && !afresh));
        if self.stack.len() < TYPED_MAX && !self.stack.contains(&heading) {
            self.stack.push(heading);
        }
    }

    /// Whether there is none but bare lines.
    pub fn has_only_bare(&self) -> bool {
        self.stack.iter().all(|heading| heading.level == LEVEL_BARE)
    }

    pub fn path(&self) -> Vec<String> {
        self.stack.iter().map(|heading| heading.text.clone()).collect()
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
        assert_eq!(under("## [development](https://example.org)"), "Study / development");
        assert_eq!(under("# ==== NODE_ENV=production ===="), "NODE_ENV=production");
        let rules = ["# ==========", "## ---", "#!/bin/sh"];
        let prose = ["see https://example.org:", "**a** and **b**", "plain words"];
        for prose in rules.into_iter().chain(prose) {
            assert_eq!(Heading::of(prose, false), None, "{prose}");
        }
    }
}
