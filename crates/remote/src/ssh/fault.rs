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
        return to.error(format!("its host key is not the one that is known here: {offending}")).help(format!(
            "if it was set up anew, forget the old key (ssh-keygen -R HOST) and compare the new one: ssh {typed}"
        ));
    }
    if has(&["Host key verification failed", "host key is known for"]).is_some() {
        return to
            .error(format!(
                "its host key is not known here, so that anybody might be answering: {words}"
            ))
            .help(format!(
                "compare the key's fingerprint once, by hand: ssh {typed}"
            ));
    }
    if let Some(words) = has(&["Could not resolve hostname"]) {
        return to
            .error(format!("no such host: {words}"))
            .help("names are looked up as ssh does, in ~/.ssh/config first");
    }
    if has(&["Permission denied (", "Too many authentication failures"]).is_some() {
        return to.error(format!("it accepts none of our keys: {words}")).help(format!(
            "nobody is asked for a password in a run: have a key that works without (ssh-add, IdentityFile in ~/.ssh/config) \
             and try: ssh -o BatchMode=yes {typed} true"
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
        return to.error(format!("not reached: {words}")).help(to.try_it());
    }
    if !came.is_empty() {
        return no_shell(to, &last(came));
    }
    ended(to, "at the login", &words)
}

/// Error for output that does not come from a shell.
pub(super) fn no_shell(to: &Destination, words: &str) -> Error {
    to.error(format!("no shell that runs commands: it said {words:?}")).help(format!(
        "the account needs a login shell and no forced command; see what this prints: ssh {} sh -c date",
        to.typed()
    ))
}

/// Error for a connection, or a remote command, that ended.
pub(super) fn ended(to: &Destination, at: &str, words: &str) -> Error {
    to.error(format!(
        "ended {at}{}{words}",
        if words.is_empty() { "" } else { ": " }
    ))
}

/// Error for a failed trial run of the program: `status` is its exit status as reported by a shell, and
/// `lines` is its output.
pub(super) fn of_try(to: &Destination, file: &str, status: &str, lines: &[String]) -> Error {
    let said = |part: &str| lines.iter().any(|line| line.contains(part));
    let words = last(lines);
    let words = if words.is_empty() {
        format!("it ended with exit status {status}")
    } else {
        words
    };
    let error = to.error(format!("{file} does not run there: {words}"));
    if said("Permission denied") {
        error.help(
            "its file system may be mounted noexec: have XDG_CACHE_HOME, set for that account, name a folder elsewhere",
        )
    } else if said("GLIBC") || said("error while loading shared libraries") || status == "127" {
        error.help(
            "its libraries are too old or others: name a program that needs none (`generators.program`), from a release or `make dist`",
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
                "not reached: ssh: connect",
            ),
            (
                "kex_exchange_identification: read: Connection reset by peer",
                "ended at the login: kex_",
            ),
            (
                "No ED25519 host key is known for h and you have requested strict checking.\nHost key verification failed.",
                "its host key is not known here",
            ),
            (
                "Authorised use only\nroot@h: Permission denied (publickey).",
                "it accepts none of our keys: Authorised use only; root@h",
            ),
            (
                "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\nConnection closed by UNKNOWN port 65535",
                "not reached: channel 0",
            ),
            (
                "@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@\nOffending ED25519 key in /root/.ssh/known_hosts:7\n\
                 Host key for h has changed and you have requested strict checking.\nHost key verification failed.",
                "its host key is not the one that is known here: Offending ED25519 key in /root/.ssh/known_hosts:7",
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
                .starts_with("ssh://me@h:22: no shell that runs commands"),
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
        assert_eq!(
            silent,
            "ssh://h: /f does not run there: it ended with exit status 139"
        );
    }
}
