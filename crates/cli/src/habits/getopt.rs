//! Options the way C programs read them: POSIX's rules for short ones, and GNU's long ones with their abbreviations.
//!
//! It knows which options there are and which take a value, not what they mean.

/// The options of a program.
pub struct Grammar {
    /// Short options, a colon after each that takes a value, as getopt(3) wants them: `c:L`.
    pub short: &'static str,
    /// Long options, each with the short one that it stands for. One that stands for none of `short` does not exist.
    pub long: &'static [(&'static str, char)],
    /// Whether options may come after what is none (GNU), or the first such ends them (POSIX).
    pub permutes: bool,
}

/// What a command line says, in its order.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    /// Each option with its value; an empty one where it takes none.
    pub options: Vec<(char, String)>,
    /// Everything that is no option.
    pub plain: Vec<String>,
}

/// Reads a command line.
///
/// # Errors
/// The first option that is unknown, ambiguous, or has no value where it needs one, or one where it takes none.
pub fn read(grammar: &Grammar, arguments: &[String]) -> Result<Given, String> {
    let mut given = Given { options: Vec::new(), plain: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            break;
        } else if let Some(long) = argument.strip_prefix("--") {
            given.options.push(grammar.long(long, &mut rest)?);
        } else if let Some(cluster) = argument.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            grammar.short(cluster, &mut rest, &mut given.options)?;
        } else {
            given.plain.push(argument.clone());
            if !grammar.permutes {
                break;
            }
        }
    }
    given.plain.extend(rest.cloned());
    Ok(given)
}

impl Grammar {
    /// `--name`, `--name=value`, `--name value`, or the beginning of a name that no other begins with.
    fn long<'a>(
        &self,
        text: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(char, String), String> {
        let (name, value) =
            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
        let known = self.long.iter().filter_map(|(long, key)| Some((*long, *key, self.takes_value(*key)?)));
        let begun: Vec<_> = known.filter(|(long, ..)| long.starts_with(name)).collect();
        let exact = begun.iter().find(|(long, ..)| *long == name);
        let &(long, key, takes_value) = match (exact, begun.as_slice()) {
            (Some(found), _) | (None, [found]) => found,
            (None, []) => return Err(format!("there is no option --{name}")),
            (None, several) => {
                let names: Vec<_> = several.iter().map(|(long, ..)| format!("--{long}")).collect();
                return Err(format!("--{name} could be {}", names.join(" or ")));
            }
        };
        let value = match (takes_value, value) {
            (true, Some(value)) => value,
            (true, None) => rest.next().cloned().ok_or_else(|| format!("--{long} needs a value"))?,
            (false, None) => String::new(),
            (false, Some(value)) => return Err(format!("--{long} takes no value, but has {value:?}")),
        };
        Ok((key, value))
    }

    /// What follows one dash: options without a value, and at the end perhaps one whose value is glued to it or comes next.
    fn short<'a>(
        &self,
        cluster: &str,
        rest: &mut impl Iterator<Item = &'a String>,
        options: &mut Vec<(char, String)>,
    ) -> Result<(), String> {
        let mut letters = cluster.chars();
        while let Some(key) = letters.next() {
            if !self.takes_value(key).ok_or_else(|| format!("there is no option -{key}"))? {
                options.push((key, String::new()));
                continue;
            }
            let glued = letters.as_str();
            let value = if glued.is_empty() { rest.next().cloned() } else { Some(glued.to_owned()) };
            options.push((key, value.ok_or_else(|| format!("-{key} needs a value"))?));
            break;
        }
        Ok(())
    }

    /// Whether a short option takes a value; `None` where there is no such option.
    fn takes_value(&self, key: char) -> Option<bool> {
        let at = self.short.find(key).filter(|_| key != ':')?;
        Some(self.short[at + key.len_utf8()..].starts_with(':'))
    }
}
