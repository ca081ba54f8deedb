//! Which word of a command is the script that an interpreter runs.
//!
//! Pure: whether there is such a file it does not know. Must not: name a word that may be no script, for a run is refused whose script is
//! missing.

use std::path::Path;

use crate::node_command::{NodeCommand, runs_no_script, takes_value};

/// Endings of files that an interpreter runs, with the names of interpreters.
const SCRIPTS: [(&str, &[&str]); 7] = [
    ("js", &["node", "bun", "nodejs"]),
    ("mjs", &["node", "bun", "nodejs"]),
    ("cjs", &["node", "bun", "nodejs"]),
    ("py", &["python", "pypy"]),
    ("rb", &["ruby"]),
    ("php", &["php"]),
    ("sh", &["sh", "bash", "dash", "zsh", "ksh"]),
];
/// Flags of Python that are followed by a value of their own.
const PYTHON_WITH_VALUE: [&str; 2] = ["-W", "-X"];
/// Letters of short flags with which one of the interpreters runs something else than the next word, or runs it in another folder:
/// `python -m`, `sh -c`, `ruby -C`. They may stand together with others: `bash -lc`.
const OTHERWISE: [char; 6] = ['c', 'e', 'm', 'r', 's', 'C'];

/// The script that a command runs, as it is written: `app.py` of `python3.12 -u app.py`. None where that is not certain: a program of the
/// service's own may make the file that its argument names.
pub fn script(command: &[String]) -> Option<&str> {
    if let Ok(node) = NodeCommand::parse(command) {
        return interpreters(node.script).map(|_| node.script);
    }
    let (program, rest) = command.split_first()?;
    let at = script_at(rest);
    let script = rest.get(at).filter(|script| is_run_by(program, script))?;
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let is_otherwise = |word: &String| runs_no_script(word) || is_short(word) && word.contains(OTHERWISE);
    (!rest[..at].iter().any(is_otherwise)).then_some(script)
}

/// Where the script stands in what follows an interpreter: the first word that is neither a flag nor the value of one. The number of words, if
/// there is none.
pub fn script_at(rest: &[impl AsRef<str>]) -> usize {
    let mut at = 0;
    while let Some(word) = rest.get(at).map(AsRef::as_ref).filter(|word| word.starts_with('-')) {
        at += 1;
        if word == "--" {
            break;
        }
        at += usize::from(takes_value(word) || PYTHON_WITH_VALUE.contains(&word));
    }
    at.min(rest.len())
}

/// The interpreters that run a script, by its ending.
fn interpreters(script: &str) -> Option<&'static [&'static str]> {
    let ending = Path::new(script).extension()?;
    SCRIPTS.iter().find(|(known, _)| ending == *known).map(|(_, names)| *names)
}

/// Whether the program is an interpreter that runs this script: `python3.12 app.py`.
fn is_run_by(program: &str, script: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    interpreters(script).is_some_and(|names| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_behind_flags() {
        for (command, expected) in [
            ("node -r ./a.js b.mjs c.js", Some("b.mjs")),
            ("/usr/bin/nodejs --inspect app.cjs", Some("app.cjs")),
            ("python3.12 -u -W ignore app.py", Some("app.py")),
            ("bash -x run.sh", Some("run.sh")),
            ("php -S 127.0.0.1:80 router.php", None),
            ("ruby -- app.rb", Some("app.rb")),
            ("bash -lc run.sh", None),
            ("python -m app.py", None),
            ("nodejs --eval a.js", None),
            ("ruby -C sub app.rb", None),
            ("make app.py", None),
            ("node server", None),
            ("python3", None),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(script(&words), expected, "{command}");
        }
    }
}
