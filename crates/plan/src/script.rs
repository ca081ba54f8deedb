//! Finds the script that an interpreter's command runs.
//!
//! Pure: it does not check whether the file exists. A word that may be no script must not be returned,
//! because a run with a missing script is rejected.

use std::path::Path;

use crate::node_command::{NodeCommand, runs_no_script, script_at};

/// File extensions of scripts, with the names of their interpreters.
const SCRIPTS: [(&str, &[&str]); 7] = [
    ("js", &["node", "bun", "nodejs"]),
    ("mjs", &["node", "bun", "nodejs"]),
    ("cjs", &["node", "bun", "nodejs"]),
    ("py", &["python", "pypy"]),
    ("rb", &["ruby"]),
    ("php", &["php"]),
    ("sh", &["sh", "bash", "dash", "zsh", "ksh"]),
];
/// Letters of short flags with which an interpreter does not run the next word, or runs it in another folder:
/// `python -m`, `sh -c`, `ruby -C`. They may be combined with others: `bash -lc`.
const OTHERWISE: [char; 6] = ['c', 'e', 'm', 'r', 's', 'C'];

/// The script of a command as it is written: `app.py` of `python3.12 -u app.py`. `None` if that is not
/// certain: the service's own program may create the file that its argument names.
pub fn script(command: &[String]) -> Option<&str> {
    if let Ok(node) = NodeCommand::parse(command) {
        return interpreters(node.script).map(|_| node.script);
    }
    let (program, rest) = command.split_first()?;
    let at = script_at(rest);
    let script = rest.get(at).filter(|script| is_run_by(program, script))?;
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let is_otherwise =
        |word: &String| runs_no_script(word) || is_short(word) && word.contains(OTHERWISE);
    (!rest[..at].iter().any(is_otherwise)).then_some(script)
}

/// The interpreters of a script, by its extension.
fn interpreters(script: &str) -> Option<&'static [&'static str]> {
    let ending = Path::new(script).extension()?;
    SCRIPTS
        .iter()
        .find(|(known, _)| ending == *known)
        .map(|(_, names)| *names)
}

/// Whether the program is an interpreter of this script: `python3.12 app.py`.
fn is_run_by(program: &str, script: &str) -> bool {
    let name = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
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
