//! Parses a command line of Node.js into node's own part and the program's part.
//!
//! Pure: it only looks at words, and does not check whether the script exists.

use std::path::Path;

/// `node [flags] script [arguments]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeCommand<'a> {
    /// The program: `node`, or a path that ends in it.
    pub node: &'a str,
    /// Flags between node and the script.
    pub flags: &'a [String],
    /// The script file.
    pub script: &'a str,
    /// Arguments of the program.
    pub arguments: &'a [String],
}

/// Why a command does not run a script on Node.js.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotNode {
    /// Index of the offending word, or of the last one if something is missing.
    pub word: usize,
    /// The problem.
    pub reason: String,
}

/// Flags whose value is a separate word. All other flags have their value after an `=`, or none.
const WITH_VALUE: &str = "-r --require --import --loader --experimental-loader -C --conditions \
    --env-file --env-file-if-exists --title --diagnostic-dir --report-dir --report-directory \
    --report-filename --redirect-warnings --disable-warning --dns-result-order --icu-data-dir \
    --max-http-header-size --openssl-config --secure-heap --tls-cipher-list --unhandled-rejections \
    --trace-event-categories";
/// Flags with which node does not run a script, or does not run it itself.
const WITHOUT_SCRIPT: &str = "-e --eval -p --print -pe -c --check -i --interactive --run --test --watch \
    --watch-path -";

/// Flags of Python whose value is a separate word.
const PYTHON_WITH_VALUE: [&str; 2] = ["-W", "-X"];

/// Whether the word after this flag of node is the flag's value.
fn takes_value(flag: &str) -> bool {
    WITH_VALUE.split(' ').any(|known| known == flag)
}

/// Whether node with this flag does not run a script.
pub(crate) fn runs_no_script(flag: &str) -> bool {
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    WITHOUT_SCRIPT.split(' ').any(|known| known == name)
}

/// Index of the script among the words after an interpreter: the first word that is neither a flag nor a
/// flag's value. The number of words if there is none.
pub fn script_at(rest: &[impl AsRef<str>]) -> usize {
    let mut at = 0;
    while let Some(word) = rest
        .get(at)
        .map(AsRef::as_ref)
        .filter(|word| word.starts_with('-'))
    {
        at += 1;
        if word == "--" {
            break;
        }
        at += usize::from(takes_value(word) || PYTHON_WITH_VALUE.contains(&word));
    }
    at.min(rest.len())
}

impl<'a> NodeCommand<'a> {
    /// Parses a command.
    ///
    /// # Errors
    /// The offending word, and the reason.
    pub fn parse(command: &'a [String]) -> Result<Self, NotNode> {
        let no = |word: usize, reason: String| Err(NotNode { word, reason });
        let Some((node, rest)) = command.split_first() else {
            return no(0, "it is empty".to_owned());
        };
        if Path::new(node)
            .file_name()
            .is_none_or(|name| name != "node")
        {
            return no(0, format!("`{node}` is not node"));
        }
        let at = script_at(rest);
        if let Some(flag) = rest[..at].iter().position(|word| runs_no_script(word)) {
            return no(
                flag + 1,
                format!("with `{}` node does not run a script itself", rest[flag]),
            );
        }
        let Some(script) = rest.get(at) else {
            return no(command.len() - 1, "it names no script".to_owned());
        };
        let flags = &rest[..at];
        let flags = flags.strip_suffix(&["--".to_owned()]).unwrap_or(flags);
        Ok(Self {
            node,
            flags,
            script,
            arguments: &rest[at + 1..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_apart(command: &str) -> Result<(Vec<String>, String, Vec<String>), usize> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let parsed = NodeCommand::parse(&words).map_err(|error| error.word)?;
        Ok((
            parsed.flags.to_vec(),
            parsed.script.to_owned(),
            parsed.arguments.to_vec(),
        ))
    }

    #[test]
    fn flags_of_node_and_arguments_of_the_program_are_told_apart() {
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        for (command, flags, script, arguments) in [
            ("node server.js", "", "server.js", ""),
            (
                "/opt/node20/bin/node server.js -r 3",
                "",
                "server.js",
                "-r 3",
            ),
            (
                "node -r ./a.js --no-warnings b.js x",
                "-r ./a.js --no-warnings",
                "b.js",
                "x",
            ),
            (
                "node --max-old-space-size=99 --import=./a.mjs b.mjs",
                "--max-old-space-size=99 --import=./a.mjs",
                "b.mjs",
                "",
            ),
            ("node --inspect -- b.js --", "--inspect", "b.js", "--"),
        ] {
            let expected = (words(flags), script.to_owned(), words(arguments));
            assert_eq!(taken_apart(command), Ok(expected), "{command}");
        }
    }

    #[test]
    fn what_runs_no_script_is_refused_at_the_word_that_says_so() {
        for (command, word) in [
            ("npm start", 0),
            ("nodemon server.js", 0),
            ("node", 0),
            ("node --inspect", 1),
            ("node -r a.js", 2),
            ("node --no-warnings -e 1", 2),
            ("node --watch server.js", 1),
            ("node -", 1),
        ] {
            assert_eq!(taken_apart(command), Err(word), "{command}");
        }
    }
}
