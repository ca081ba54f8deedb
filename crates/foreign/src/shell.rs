//! Lines that a person typed into a shell: the prompt before them, and whether they say what is being measured.

/// Prompts are short; a `$` further to the right is not one.
const PROMPT_CHARS_MAX: usize = 80;

/// Commands that change nothing about what is measured, so that they name no run.
const TRIVIAL: [&str; 42] = [
    "cd", "ls", "ll", "cat", "less", "more", "head", "tail", "sleep", "curl", "wget", "http", "clear",
    "kill", "killall", "pkill", "echo", "git", "ps", "top", "htop", "exit", "history", "man", "which",
    "sudo", "watch", "jq", "grep", "vim", "vi", "nano", "code", "mkdir", "rm", "cp", "mv", "tee", "date",
    "uname", "nproc", "lscpu",
];
const PM2_TRIVIAL: [&str; 8] = ["delete", "stop", "kill", "list", "ls", "logs", "monit", "status"];

/// What was typed, where the line begins with a prompt.
pub fn typed(text: &str) -> Option<&str> {
    // The signs of plain prompts. `#` is not among them: in Markdown it makes a heading, and the caller knows more.
    for sign in ["$ ", "% ", "❯ ", "➜ ", "λ "] {
        if let Some(rest) = text.strip_prefix(sign) {
            return Some(rest.trim_start());
        }
    }
    let start: String = text.chars().take(PROMPT_CHARS_MAX).collect();
    let host =
        start.starts_with("PS ") || start.split_whitespace().next().is_some_and(|word| word.contains('@'));
    let place = start.starts_with(['~', '/', '(', '[']);
    if !(host || place) {
        return None;
    }
    let signs = if host { ["$ ", "# ", "% ", "> "].as_slice() } else { ["$ ", "% "].as_slice() };
    let end = signs.iter().filter_map(|sign| start.find(sign).map(|at| at + sign.len())).min()?;
    text.get(end..).map(str::trim_start)
}

/// What a typed command tells of what is measured, as a label: `NODE_ENV=production node server.js`.
pub fn label(typed: &str) -> Option<&str> {
    let typed = typed.trim().trim_end_matches('&').trim_end();
    let mut words = typed.split_whitespace().skip_while(|word| word.contains('=') || *word == "sudo");
    let Some(first) = words.next() else {
        // Nothing but settings of the environment: they hold for what comes.
        return (!typed.is_empty() && typed.contains('=')).then_some(typed);
    };
    let program = first.rsplit('/').next().unwrap_or(first);
    let trivial = match program {
        "pm2" => words.next().is_some_and(|verb| PM2_TRIVIAL.contains(&verb)),
        "npm" | "yarn" | "pnpm" => {
            words.next().is_some_and(|verb| matches!(verb, "i" | "ci" | "install" | "add"))
        }
        program => TRIVIAL.contains(&program),
    };
    (!trivial).then_some(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_seen() {
        for line in [
            "$ wrk -t2",
            "ann@host:~/app$ wrk -t2",
            "[ann@host app]$ wrk -t2",
            "root@a1b2:/# wrk -t2",
            "~/app $ wrk -t2",
            "(venv) $ wrk -t2",
            "❯ wrk -t2",
            r"PS C:\app> wrk -t2",
        ] {
            assert_eq!(typed(line), Some("wrk -t2"), "{line}");
        }
        for line in ["# A heading", "it costs $ 5", "Requests/sec: 5", "a@b.example wrote"] {
            assert_eq!(typed(line), None, "{line}");
        }
    }

    #[test]
    fn what_starts_a_service_names_the_runs_after_it() {
        assert_eq!(label("NODE_ENV=production node server.js &"), Some("NODE_ENV=production node server.js"));
        assert_eq!(label("pm2 start app.js -i 4"), Some("pm2 start app.js -i 4"));
        for trivial in
            ["cd app", "pm2 delete all", "npm install", "sleep 5", "/usr/bin/curl -s localhost", ""]
        {
            assert_eq!(label(trivial), None, "{trivial}");
        }
    }
}
