//! The command that was given, and the one that repeats it with the same seed.

use record::Header;

use crate::shell::shell_line;

/// Flags of `run` and `calibrate` that a repetition has its own values for.
const REPLACED: [&str; 2] = ["--seed", "--out"];

/// The command as it was given.
pub(super) fn given(header: &Header) -> String {
    shell_line(&header.command)
}

/// The same with the record's seed, and into a folder of its own.
pub(super) fn again(header: &Header) -> String {
    let runs = header.command.get(1).is_some_and(|word| word == "run" || word == "calibrate");
    let mut words: Vec<String> = if runs {
        kept(&header.command)
    } else {
        ["proofload", "run", &header.experiment].map(str::to_owned).into()
    };
    words.extend(["--seed".to_owned(), header.seed.to_string()]);
    shell_line(&words)
}

/// All words but those flags and their values.
fn kept(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
        if !REPLACED.contains(&flag) {
            kept.push(word.clone());
        } else if flag.len() == word.len() {
            words.next();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_has_the_seed_and_a_folder_of_its_own() {
        let words = "target/release/proofload run a.toml --out x --budget 3m --seed=7 --explain";
        let kept = kept(&words.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(kept.join(" "), "target/release/proofload run a.toml --budget 3m --explain");
    }
}
