//! What GitHub's runner makes annotations of: a line for each limit that fails or is inconclusive, at its line of the experiment file.
//!
//! Names come from an experiment file, perhaps a stranger's: nothing of them may end the line, or the property that it stands in.

use analysis::{Judgement, Ruling};

use super::{Gated, figures, word_of};

/// The runner shows so many of each kind for a step.
const SHOWN_MAX: usize = 10;

impl Gated<'_> {
    /// Workflow commands, a line each; none where all passes. `file` is the experiment file as the repository has it.
    pub fn annotations(&self, file: Option<&str>) -> String {
        if let Some((_, reason)) = &self.gate.unfit {
            return command("error", &place(file, None), "the gate judged nothing", reason);
        }
        let of = |ruling, kind: &'static str| {
            let found = self.gate.judgements.iter().filter(move |judgement| judgement.ruling == ruling);
            found.take(SHOWN_MAX).map(move |judgement| annotation(kind, file, judgement))
        };
        of(Ruling::Broken, "error").chain(of(Ruling::Open, "warning")).collect()
    }
}

fn annotation(kind: &str, file: Option<&str>, judgement: &Judgement) -> String {
    let title = format!("{}: {}", judgement.limit, word_of(judgement.ruling));
    let said = match (&judgement.measured, &judgement.reason) {
        (Some(measured), _) => {
            let (value, interval) = figures(judgement, measured);
            format!("{}: {value} ({interval})", judgement.name)
        }
        (None, Some(reason)) => format!("{}: {reason}", judgement.name),
        (None, None) => judgement.name.clone(),
    };
    // A limit from a flag stands in no file.
    command(kind, &place(file.filter(|_| judgement.line.is_some()), judgement.line), &title, &said)
}

fn place(file: Option<&str>, line: Option<u32>) -> String {
    let file = file.map(|file| format!("file={},", property(file))).unwrap_or_default();
    let line = line.map(|line| format!("line={line},")).unwrap_or_default();
    format!("{file}{line}")
}

fn command(kind: &str, place: &str, title: &str, said: &str) -> String {
    format!("::{kind} {place}title={}::{}\n", property(title), data(said))
}

/// As the runner's own toolkit escapes it (`escapeData` in actions/toolkit).
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The same for a property (`escapeProperty`).
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_a_line_or_a_property() {
        let hostile = "a\r\n::error::b, 100 %: c";
        assert_eq!(data(hostile), "a%0D%0A::error::b, 100 %25: c");
        assert_eq!(property(hostile), "a%0D%0A%3A%3Aerror%3A%3Ab%2C 100 %25%3A c");
        let line = command("error", &place(Some("x:y,z.toml"), Some(3)), hostile, hostile);
        assert_eq!(line.lines().count(), 1);
        assert!(line.starts_with("::error file=x%3Ay%2Cz.toml,line=3,title=a%0D%0A%3A%3A"), "{line}");
    }
}
