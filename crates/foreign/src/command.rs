//! Command lines of load generators, in a shell or in prose: `$ wrk -t12 …`, "I ran `ab -k -c 20 …`".

use crate::options::{self, Options};
use crate::run::Tool;
use crate::shell;

/// Longer command lines are cut.
pub const COMMAND_CHARS_MAX: usize = 400;
/// A tool's name further back in a line is not looked for.
const WORDS_MAX: usize = 60;

/// A command line that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The tool.
    pub tool: Tool,
    /// The line, from the tool's name on.
    pub text: String,
    /// What it asks for.
    pub options: Options,
}

/// The command line in a line of text.
pub fn find(text: &str) -> Option<Command> {
    let prompted = shell::typed(text);
    // As root; a heading would not go on with a tool and its flags.
    let line = prompted.or_else(|| text.strip_prefix("# ")).unwrap_or(text);
    let mut offset = 0;
    let mut words = Vec::new();
    for word in line.split(' ').take(WORDS_MAX) {
        words.push((offset, word));
        offset += word.len() + 1;
    }
    words.retain(|(_, word)| !word.is_empty());
    let mut pairs = words.iter().enumerate();
    let (at, tool) = pairs.find_map(|(place, (at, word))| {
        let tool = tool_named(word)?;
        let next = words.get(place + 1).map(|(_, next)| *next)?;
        is_argument(tool, next).then_some((*at, tool))
    })?;
    let start = if tool == Tool::Vegeta && prompted.is_some() { 0 } else { at };
    let found = line.get(start..)?.trim_start_matches(['`', '(', '"', '\'', '*']);
    let text = ended(found, tool);
    let options = options::read(tool, &text);
    let tool = if tool == Tool::Wrk && options.load.rate_per_s.is_some() { Tool::Wrk2 } else { tool };
    Some(Command { tool, options, text })
}

/// The tool that a word names, whatever path stands before it.
fn tool_named(word: &str) -> Option<Tool> {
    let bare = word.trim_matches(['`', '(', ')', '"', '\'', '*', ':']);
    let name = bare.rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

fn is_argument(tool: Tool, word: &str) -> bool {
    let option = word
        .strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-'));
    let address = word.trim_start_matches(['"', '\'', '<']).starts_with("http");
    let verb = match tool {
        Tool::Vegeta => matches!(word, "attack" | "report"),
        Tool::K6 => word == "run",
        _ => false,
    };
    option || address || verb
}

/// Up to where the command ends: a closing quote of prose, a pipe, a redirection.
fn ended(text: &str, tool: Tool) -> String {
    let mut end = text.find('`').unwrap_or(text.len());
    if tool != Tool::Vegeta {
        let stops = [" |", " >", " 2>", " &&", " ;", "; "];
        end = stops.iter().filter_map(|stop| text.find(stop)).fold(end, usize::min);
    }
    let kept = text.get(..end).unwrap_or(text).trim_end_matches(['&', ' ', '.', ',', '*', '_', '\\']);
    kept.chars().filter(|c| !c.is_control()).take(COMMAND_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_where_people_write_them() {
        let table = [
            (
                "$ wrk -t12 -c400 http://127.0.0.1:3000/ | tee out",
                Tool::Wrk,
                "wrk -t12 -c400 http://127.0.0.1:3000/",
            ),
            (
                "Ich habe `ab -k -c 20 -n 250 http://127.0.0.1/` benutzt.",
                Tool::Ab,
                "ab -k -c 20 -n 250 http://127.0.0.1/",
            ),
            ("# /usr/local/bin/wrk -c 5 http://127.0.0.1/", Tool::Wrk, "wrk -c 5 http://127.0.0.1/"),
            (
                "ann@b:~$ npx autocannon -d 5 http://127.0.0.1/",
                Tool::Autocannon,
                "autocannon -d 5 http://127.0.0.1/",
            ),
            ("wrk -R2000 http://127.0.0.1/", Tool::Wrk2, "wrk -R2000 http://127.0.0.1/"),
            ("k6 run script.js", Tool::K6, "k6 run script.js"),
        ];
        for (line, tool, text) in table {
            let command = find(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((command.tool, command.text.trim_start_matches("/usr/local/bin/")), (tool, text));
        }
        for prose in
            ["wrk is a tool", "we compared wrk and ab - slowly", "Running 30s test @ http://a/", "oha"]
        {
            assert_eq!(find(prose), None, "{prose}");
        }
    }
}
