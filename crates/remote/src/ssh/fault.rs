//! Errors for machines that SSH cannot use, with hints. They include the messages of OpenSSH, so that users
//! can search for them.

use crate::Error;
use crate::channel::last;
use crate::ssh::Destination;

/// Error for an `ssh` that ended before the first answer. `came` is the output printed instead of an answer.
pub(super) fn of_login(to: &Destination, lines: &[String], came: &[String]) -> Error {
    let has = |parts: &[&str]| {
        lines
            .iter()
            .rev()
            .find(|line| parts.iter().any(|part| line.contains(part)))
    };
    let (words, typed) = (last(lines), to.typed());
    if has(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]).is_some() {
        let offending = has(&["Offending "]).unwrap_or(&words);
        return to.error(format!("its host key has changed: {offending}")).help(format!(
            "if the host was reinstalled, remove the old key (ssh-keygen -R HOST) and verify the new one: ssh {typed}"
        ));
    }
    if has(&["Host key verification failed", "host key is known for"]).is_some() {
        return to
            .error(format!("its host key is not in known_hosts: {words}"))
            .help(format!(
                "log in once by hand to verify its fingerprint: ssh {typed}"
            ));
    }
    if let Some(words) = has(&["Could not resolve hostname"]) {
        return to
            .error(format!("no such host: {words}"))
            .help("check the name; ssh looks it up in ~/.ssh/config first");
    }
    if has(&["Permission denied (", "Too many authentication failures"]).is_some() {
        return to.error(format!("authentication failed: {words}")).help(format!(
            "passwords are not supported during a run: use a key without a prompt (ssh-add, IdentityFile in ~/.ssh/config) and \
             check with: ssh -o BatchMode=yes {typed} true"
        ));
    }
    if has(&[
        "connect to host",
        "Connection timed out",
        "Connection refused",
        "No route to host",
    ])
    .is_some()
    {
        return to
            .error(format!("cannot connect: {words}"))
            .help(to.try_it());
    }
    if !came.is_empty() {
        return no_shell(to, &last(came));
    }
    ended(to, "during login", &words)
}

/// Error for output that does not come from a shell.
pub(super) fn no_shell(to: &Destination, words: &str) -> Error {
    to.error(format!("no usable shell; the output was {words:?}")).help(format!(
        "the account needs a login shell and no forced command; check the output of: ssh {} sh -c date",
        to.typed()
    ))
}

/// Error for a connection, or a remote command, that ended.
pub(super) fn ended(to: &Destination, at: &str, words: &str) -> Error {
    to.error(format!(
        "the connection closed {at}{}{words}",
        if words.is_empty() { "" } else { ": " }
    ))
}

/// Error for a failed trial run of the program: `status` is its exit status as reported by a shell, and
/// `lines` is its output.
pub(super) fn of_try(to: &Destination, file: &str, status: &str, lines: &[String]) -> Error {
    let said = |part: &str| lines.iter().any(|line| line.contains(part));
    let words = last(lines);
    let words = if words.is_empty() {
        format!("exit status {status}")
    } else {
        words
    };
    let error = to.error(format!("cannot run {file}: {words}"));
    if said("Permission denied") {
        error.help(
            "its file system may be mounted noexec: set XDG_CACHE_HOME to another folder for that account",
        )
    } else if said("GLIBC") || said("error while loading shared libraries") || status == "127" {
        error.help(
            "its system libraries are incompatible: use a statically linked program (`generators.program`), from a release or `make dist`",
        )
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn to(text: &str) -> Destination {
        Destination::new(text).unwrap()
    }

    #[test]
    fn the_words_of_openssh_are_understood() {
        let cases = [
            (
                "ssh: Could not resolve hostname nosuch: Name or service not known",
                "no such host: ssh: Could not",
            ),
            (
                "ssh: connect to host 10.0.0.9 port 22: Connection timed out",
                "cannot connect: ssh: connect",
            ),
            (
                "kex_exchange_identification: read: Connection reset by peer",
                "the connection closed during login: kex_",
            ),
            (
                "No ED25519 host key is known for h and you have requested strict checking.\nHost key verification failed.",
                "its host key is not in known_hosts: ",
            ),
            (
                "Authorised use only\nroot@h: Permission denied (publickey).",
                "authentication failed: Authorised use only; root@h",
            ),
            (
                "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\nConnection closed by UNKNOWN port 65535",
                "cannot connect: channel 0",
            ),
            (
                "@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@\nOffending ED25519 key in /root/.ssh/known_hosts:7\n\
                 Host key for h has changed and you have requested strict checking.\nHost key verification failed.",
                "its host key has changed: Offending ED25519 key in /root/.ssh/known_hosts:7",
            ),
        ];
        for (text, start) in cases {
            let error = of_login(&to("h"), &lines(text), &[]).to_string();
            assert!(
                error.strip_prefix("ssh://h: ").unwrap().starts_with(start),
                "{text}: {error}"
            );
        }
        let came = lines("This account is currently not available.");
        let error = of_login(&to("me@h:22"), &[], &came);
        assert!(
            error
                .to_string()
                .starts_with("ssh://me@h:22: no usable shell"),
            "{error}"
        );
        assert!(
            error
                .hint()
                .unwrap()
                .ends_with("ssh ssh://me@h:22 sh -c date"),
            "{error:?}"
        );
    }

    #[test]
    fn what_a_loader_says_leads_to_what_helps() {
        let help = |status: &str, text: &str| {
            let error = of_try(&to("h"), "/f", status, &lines(text));
            error.hint().map(str::to_owned).unwrap_or_default()
        };
        let old =
            "/f: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.39' not found (required by /f)";
        assert!(help("1", old).contains("make dist"));
        assert!(help("127", "sh: 63: /f: not found").contains("make dist"));
        assert!(help("126", "sh: 63: /f: Permission denied").contains("noexec"));
        assert_eq!(help("132", "Illegal instruction"), "");
        let silent = of_try(&to("h"), "/f", "139", &[]).to_string();
        assert_eq!(silent, "ssh://h: cannot run /f: exit status 139");
    }
}
