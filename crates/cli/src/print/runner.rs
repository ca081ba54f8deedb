//! Commands of CI runners in printed text. Names, messages and output of services are untrusted, and only our
//! annotations are meant as commands. Pure.
//!
//! The runner of GitHub Actions executes a line whose first characters after white space are `::`, and
//! `##[command]` anywhere in a line (`ActionCommand.cs` in actions/runner). Other runners read the same
//! output, and Gitea's runner sets the same variable.

use std::borrow::Cow;

/// The older form of a command.
const BRACKET: &str = "##[";

/// Defuses all commands in the text: `| ` is put before `::`, and a space inside of `##[`.
pub fn defused(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains(BRACKET) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    // The runner ends a line at either.
    for line in text.split_inclusive(['\n', '\r']) {
        // Its comparison may ignore zero-width characters, so everything except plain ASCII counts as white
        // space.
        let rest = line.trim_start_matches(|c: char| !c.is_ascii_graphic());
        let (blank, rest) = line.split_at(line.len() - rest.len());
        out += blank;
        if rest.starts_with("::") {
            out += "| ";
        }
        out += &rest.replace(BRACKET, "## [");
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_are_no_commands() {
        for (text, shown) in [
            ("a\n    ::error::x\n", "a\n    | ::error::x\n"),
            ("\u{a0}\t::stop-commands::x", "\u{a0}\t| ::stop-commands::x"),
            (
                "\u{fffd}::add-mask::e\r::error::y",
                "\u{fffd}| ::add-mask::e\r| ::error::y",
            ),
            (
                "x ##[error]y ##[set-env name=A]",
                "x ## [error]y ## [set-env name=A]",
            ),
            ("a::b [::1]:80\nstd::mem", "a::b [::1]:80\nstd::mem"),
        ] {
            assert_eq!(defused(text), shown);
        }
    }
}
