//! Our own command line: what of it was typed before another tool's began, and how one is shown so that it can be typed again.

/// The flags that stand before `--` but for `--as` and its value: they stay in force. `typed` is all that follows `load`.
pub fn given_before(typed: impl Iterator<Item = String>) -> Vec<String> {
    let mut given = Vec::new();
    let mut typed = typed.take_while(|argument| argument != "--");
    while let Some(argument) = typed.next() {
        if argument == "--as" {
            typed.next();
        } else if !argument.starts_with("--as=") {
            given.push(argument);
        }
    }
    given
}

/// A command line for a shell: what a shell would take apart is quoted.
pub fn shown(arguments: &[String]) -> String {
    report::shell_line(arguments)
}
