//! NODE_OPTIONS as Node.js reads it. Pure.
//!
//! Its rules (`ParseNodeOptionsEnvVar` of Node's src/node_options.cc): a blank ends an argument, nothing else does; double quotes keep
//! blanks; within them, and only there, a backslash takes the next character as it is.

/// The variable that has Node.js load `file` before all else, in front of what the service's `own` says, which is kept to the letter.
pub(super) fn with_require(file: &str, own: Option<&str>) -> String {
    let require = format!("--require {}", quoted(file));
    match own.filter(|own| !own.trim().is_empty()) {
        Some(own) => format!("{require} {own}"),
        None => require,
    }
}

/// One argument. Without need there are no quotes: some read the variable in their own, simpler way.
fn quoted(argument: &str) -> String {
    if !argument.contains([' ', '"']) {
        return argument.to_owned();
    }
    let escaped = argument.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_it_must_be_and_what_the_service_says_is_kept() {
        for (file, own, expected) in [
            ("/tmp/a.cjs", None, "--require /tmp/a.cjs"),
            ("/tmp/a.cjs", Some(" "), "--require /tmp/a.cjs"),
            ("/tmp/a.cjs", Some("--max-old-space-size=300"), "--require /tmp/a.cjs --max-old-space-size=300"),
            // What is wrong with it is the service's own business, as it would be without us.
            ("/tmp/a.cjs", Some("--x=\"a b"), "--require /tmp/a.cjs --x=\"a b"),
            ("/my tmp/a.cjs", None, "--require \"/my tmp/a.cjs\""),
            // Outside of quotes a backslash is a character like others, within them it is not.
            ("/a\\b/c", None, "--require /a\\b/c"),
            ("/a\\b c", None, "--require \"/a\\\\b c\""),
            ("/a\"b", None, "--require \"/a\\\"b\""),
        ] {
            assert_eq!(with_require(file, own), expected);
        }
    }

    #[test]
    fn node_itself_finds_the_file_whatever_its_folder_is_called() {
        for name in ["plain", "two words", "back\\slash", "quo\"te", "all \\ of\" them \\"] {
            let parent = tempfile::tempdir().unwrap();
            let folder = parent.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let file = folder.join("a.cjs");
            std::fs::write(&file, "process.stdout.write('loaded ')").unwrap();
            let options = with_require(file.to_str().unwrap(), Some("--no-deprecation"));
            let script = "process.stdout.write(process.env.NODE_OPTIONS.slice(-16))";
            let mut node = std::process::Command::new("node");
            let output = node.args(["-e", script]).env("NODE_OPTIONS", options).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(
                said,
                "loaded --no-deprecation",
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}
