//! Whom `ssh` is asked for. Nothing that could be taken for an option or for a piece of a shell's line gets there.

use super::Fault;

/// Longer than any user, host and port.
const BYTES_MAX: usize = 512;
const SCHEME: &str = "ssh://";
/// What has a meaning in a shell, to which `ssh` gives names in `ProxyCommand` and `Match exec`.
const SHELL: &str = "'`\"$;&<>|(){}*?!#~";

/// A destination as `ssh` takes it: `host`, `user@host`, a name of `~/.ssh/config`, or `ssh://user@host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination(String);

impl Destination {
    /// # Errors
    /// If it is none, or might be more than one.
    pub(super) fn new(text: &str) -> Result<Destination, Fault> {
        match problem(text) {
            Some(problem) => Err(Fault::Destination { problem }),
            None => Ok(Destination(text.to_owned())),
        }
    }

    /// As `ssh` takes it.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// As people know it, with `ssh://` before it.
    pub(super) fn name(&self) -> String {
        name(&self.0)
    }
}

/// As people know it, with `ssh://` before it, whether or not it is one.
pub(super) fn name(text: &str) -> String {
    let plain: String = text.chars().take(BYTES_MAX).flat_map(char::escape_debug).collect();
    if text.starts_with(SCHEME) { plain } else { format!("{SCHEME}{plain}") }
}

fn problem(text: &str) -> Option<String> {
    let is_uri = text.starts_with(SCHEME);
    let rest = text.strip_prefix(SCHEME).unwrap_or(text);
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, rest),
    };
    let unfit = |c: char| c.is_whitespace() || c.is_control() || SHELL.contains(c);
    if text.len() > BYTES_MAX {
        return Some(format!("{} bytes are no name of a host, at most {BYTES_MAX}", text.len()));
    }
    if text.starts_with('-') || host.starts_with('-') || user.is_some_and(|user| user.starts_with('-')) {
        return Some("it begins with - like an option".into());
    }
    if let Some(c) = rest.chars().find(|c| unfit(*c)) {
        return Some(format!("{c:?} is in no name of a user or a host"));
    }
    // Before the @ it may stand between a domain and a user.
    if host.contains('\\') || user.is_some_and(|user| user.ends_with('\\')) {
        return Some("'\\\\' is in no name of a host".into());
    }
    if user == Some("") {
        return Some("nobody stands before the @".into());
    }
    if host.is_empty() || is_uri && host.starts_with(':') || host.contains('/') {
        return Some(
            if is_uri { "ssh://user@host:port is the form" } else { "user@host is the form" }.into(),
        );
    }
    if is_uri { port_problem(host) } else { None }
}

/// What follows the colon, if that is not one of an address in brackets.
fn port_problem(host: &str) -> Option<String> {
    let port = match host.rsplit_once(']') {
        Some((_, "")) => return None,
        Some((_, after)) => after.strip_prefix(':')?,
        None => host.rsplit_once(':')?.1,
    };
    let fits = port.parse::<u16>().is_ok_and(|port| port > 0);
    (!fits).then(|| format!("{port:?} is no port, 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_takes_is_taken() {
        for text in [
            "bench-1",
            "root@10.0.0.7",
            "me@fe80::1%eth0",
            "CORP\\me@bench",
            "a@b@bastion",
            "ssh://bench",
            "ssh://me@bench:2222",
            "ssh://me@[fe80::1]:22",
            "ssh://[::1]",
            "::1",
        ] {
            assert_eq!(Destination::new(text).unwrap().as_str(), text);
        }
        assert_eq!(Destination::new("bench").unwrap().name(), "ssh://bench");
        assert_eq!(Destination::new("ssh://bench:22").unwrap().name(), "ssh://bench:22");
    }

    #[test]
    fn what_could_be_an_option_or_a_command_is_refused() {
        for (text, why) in [
            ("-oProxyCommand=touch /tmp/x", "like an option"),
            ("me@-oProxyCommand=x", "like an option"),
            ("ssh://-oProxyCommand=x", "like an option"),
            ("-l@bench", "like an option"),
            ("", "user@host is the form"),
            ("ssh://", "ssh://user@host:port is the form"),
            ("@bench", "nobody stands before the @"),
            ("me@", "user@host is the form"),
            ("bench rm", "' ' is in no name"),
            ("bench\n", "'\\n' is in no name"),
            ("`id`", "'`' is in no name"),
            ("$(id)@bench", "'$' is in no name"),
            ("bench;id", "';' is in no name"),
            ("ssh://bench:0", "\"0\" is no port"),
            ("ssh://bench:99999", "is no port"),
            ("ssh://bench:22/etc", "is the form"),
        ] {
            let problem = Destination::new(text).unwrap_err().to_string();
            assert!(problem.contains(why), "{text:?}: {problem}");
        }
        assert!(Destination::new(&"x".repeat(600)).unwrap_err().to_string().contains("600 bytes"));
        assert_eq!(name("a\nb"), "ssh://a\\nb");
    }
}
