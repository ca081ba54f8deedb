//! Command lines of load generators, in a shell or in prose: `$ wrk -t12 …`, "I ran `ab -k -c 20 …`", and the
//! meaning of their flags.
//!
//! It parses the flags relevant to an audit, as listed in each tool's table, and skips all others.

use crate::number;
use crate::run::ToolLoad;
use crate::tool::Tool;
use crate::tools::{self, Meaning, ToolPace};

/// Longer command lines are truncated.
pub const COMMAND_CHARS_MAX: usize = 400;
/// A tool's name is searched for within this number of words.
const WORDS_MAX: usize = 60;

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCommand {
    pub tool: Tool,
    /// The line, from the tool's name on.
    pub text: String,
    pub url: Option<String>,
    pub load: ToolLoad,
    /// Whether a heading stands between it and the lines after it, so that it may be that of other runs.
    pub elsewhere: bool,
    /// User and host of the prompt.
    pub prompt: Option<String>,
}

/// Finds the command line in a line of text.
pub fn find(text: &str) -> Option<ToolCommand> {
    let prompted = typed(text);
    // As root. A heading would not continue with a tool and its flags.
    let line = prompted.or_else(|| text.strip_prefix("# ")).unwrap_or(text);
    let mut end = 0;
    // Prose in other scripts has no blank before a command: `执行`ab -n 100 …``.
    let between = |c: char| c == ' ' || c == '`' || !c.is_ascii();
    let placed = line.split_inclusive(between).take(WORDS_MAX).map(|word| {
        end += word.len();
        (end - word.len(), word.trim_end_matches(between))
    });
    let words: Vec<(usize, &str)> = placed.filter(|(_, word)| !word.is_empty()).collect();
    let (at, tool) = words.windows(2).find_map(|pair| {
        let tool = tool_named(pair[0].1)?;
        is_argument(tool, pair[1].1).then_some((pair[0].0, tool))
    })?;
    let start = if tool.row().reads_pipe && prompted.is_some() {
        0
    } else {
        at
    };
    let found = line
        .get(start..)?
        .trim_start_matches(['`', '(', '"', '\'', '*']);
    let mut command = read(tool, ended(found, tool));
    command.prompt = prompted.and(prompt_host(text));
    if tool == Tool::Wrk && command.load.rate_per_s.is_some() {
        command.tool = Tool::Wrk2;
    }
    Some(command)
}

/// The tool named by a word, with any path before it.
fn tool_named(word: &str) -> Option<Tool> {
    let bare = word.trim_matches(['`', '(', ')', '"', '\'', '*', ':']);
    let name = bare.rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    // Downloads are called `bombardier-linux-amd64`.
    let name = name.split_once("-linux").map_or(name, |(name, _)| name);
    let name = name.split_once("-windows").map_or(name, |(name, _)| name);
    let name = name.split_once("-darwin").map_or(name, |(name, _)| name);
    // hey was called boom.
    let name = if name == "boom" { "hey" } else { name };
    Tool::all().find(|tool| tool.name() == name)
}

fn is_argument(tool: Tool, word: &str) -> bool {
    let option = word
        .strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-'));
    let address = word
        .trim_start_matches(['"', '\'', '<'])
        .starts_with("http");
    option || address || tool.row().verbs.contains(&word)
}

/// The text up to the end of the command: a closing quote of prose, a pipe, a redirection.
fn ended(text: &str, tool: Tool) -> String {
    let mut end = text.find('`').unwrap_or(text.len());
    if !tool.row().reads_pipe {
        let stops = [" |", " >", " 2>", " &&", " ;", "; ", " #"];
        end = stops
            .iter()
            .filter_map(|stop| text.find(stop))
            .fold(end, usize::min);
    }
    let kept = text
        .get(..end)
        .unwrap_or(text)
        .trim_end_matches(['&', ' ', '.', ',', '*', '_', '\\']);
    kept.chars()
        .filter(|c| !c.is_control())
        .take(COMMAND_CHARS_MAX)
        .collect()
}

/// Parses a command line that begins with the tool's name.
fn read(tool: Tool, text: String) -> ToolCommand {
    let words = words(&text);
    let mut load = ToolLoad::default();
    let (mut at, mut each) = (0, false);
    while let Some(word) = words.get(at) {
        at += 1;
        // The remaining words are arguments of scripts.
        if word == "--" {
            break;
        }
        // Brackets contain another load: autocannon's warm-up.
        if word == "[" {
            at += words[at..]
                .iter()
                .position(|word| word == "]")
                .map_or(words.len(), |end| end + 1);
            continue;
        }
        let Some((name, attached)) = flag(tool, word) else {
            continue;
        };
        let Some((_, meaning)) = tool
            .row()
            .flags
            .iter()
            .find(|(known, _)| known.contains(&name.as_str()))
        else {
            continue;
        };
        let takes_value = !matches!(
            meaning,
            Meaning::Keep | Meaning::Close | Meaning::NoCompression
        );
        let value = match attached {
            Some(value) => value,
            None if takes_value => {
                at += 1;
                words.get(at - 1).cloned().unwrap_or_default()
            }
            None => String::new(),
        };
        load.set(*meaning, &value);
        if matches!(meaning, Meaning::Rate | Meaning::RateEach) {
            each = *meaning == Meaning::RateEach;
        }
    }
    // Given per connection. Multiplied by the connections, it is an ordinary rate.
    if each {
        let connections = load.connections.unwrap_or(tool.row().connections) as f64;
        load.rate_per_s = load.rate_per_s.map(|rate| rate * connections);
    }
    // Scripts name their own addresses. Those among their flags are of other services.
    let is_address = |word: &&String| word.contains("://") && tool.row().pace != ToolPace::Script;
    let url = words.iter().rev().find(is_address);
    // vegeta's targets have a method: `GET http://…`.
    let url = url.map(|word| word.rsplit(' ').next().unwrap_or(word));
    let url = url.map(|word| word.trim_matches(['<', '>', ',', ')']).to_owned());
    ToolCommand {
        tool,
        text,
        url,
        load,
        elsewhere: false,
        prompt: None,
    }
}

/// Splits words as a shell does. In a line that was truncated within quotes, or is followed by prose with an
/// apostrophe, the words end with the line.
fn words(text: &str) -> Vec<String> {
    let closed = ["", "'", "\""]
        .iter()
        .find_map(|quote| shlex::split(&format!("{text}{quote}")));
    closed.unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
}

impl ToolLoad {
    fn set(&mut self, meaning: Meaning, value: &str) {
        let count = || number::count(value).map(|(value, _)| value);
        match meaning {
            Meaning::Connections => self.connections = count(),
            Meaning::Threads => self.threads = count(),
            Meaning::Requests => self.requests = count(),
            Meaning::Pipelining => self.pipelining = count(),
            // A bare number is seconds in every one of these tools.
            Meaning::Duration => {
                self.duration_s = number::seconds(value).or_else(|| number::decimal(value))
            }
            Meaning::Timeout => {
                self.timeout_s = number::seconds(value).or_else(|| number::decimal(value));
            }
            Meaning::Rate | Meaning::RateEach => self.rate_per_s = rate(value),
            Meaning::Keep => self.keep_alive = Some(value != "false"),
            Meaning::Close => self.keep_alive = Some(false),
            Meaning::NoCompression => self.accept_encoding = Some(String::new()),
            Meaning::Header => {
                if let Some((name, value)) = value.split_once([':', '='])
                    && model::header::is_same(name.trim(), "accept-encoding")
                {
                    self.accept_encoding = Some(value.trim().to_owned());
                }
            }
        }
    }
}

/// Requests per second: `2000`, `2k`, `100/1s`, `50/m`.
fn rate(value: &str) -> Option<f64> {
    let (number, per) = value.split_once('/').unwrap_or((value, "1s"));
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
        per.to_owned()
    } else {
        format!("1{per}")
    };
    let (count, _) = number::count(number)?;
    let per_s = number::seconds(&per)?;
    (count > 0 && per_s > 0.0).then_some(count as f64 / per_s)
}

/// The name of a flag and its attached value.
fn flag(tool: Tool, word: &str) -> Option<(String, Option<String>)> {
    let short = word.strip_prefix('-')?;
    let is_letter = short.starts_with(|c: char| c.is_ascii_alphabetic());
    // Go's tools accept long names with one dash.
    let is_long = is_letter && tool.row().long_behind_one_dash && short.len() > 1;
    if let Some(long) = short.strip_prefix('-').or(is_long.then_some(short)) {
        let (name, value) = long
            .split_once('=')
            .map_or((long, None), |(name, value)| (name, Some(value)));
        return Some((name.to_owned(), value.map(str::to_owned)));
    }
    let mut chars = short.chars();
    let letter = chars.next().filter(|_| is_letter)?.to_string();
    let rest = chars.as_str().trim_start_matches('=');
    Some((letter, (!rest.is_empty()).then(|| rest.to_owned())))
}

/// Prompts are short, so a `$` further to the right is not one.
const PROMPT_CHARS_MAX: usize = 80;

/// Commands that do not change the measured service, so they do not name a run, and keywords of loops.
const TRIVIAL: &str = "ls ll cat less more head tail sleep curl wget http clear kill killall pkill echo ps top htop exit history man which \
    sudo watch jq grep vim vi nano code mkdir rm cp mv tee date uname nproc lscpu \
    for done while until if then else fi wait seq";
/// These programs only with such a verb.
const TRIVIAL_VERBS: [(&str, &str); 6] = [
    ("pm2", "delete stop kill list ls logs monit status"),
    ("npm", "i ci install add"),
    ("yarn", "install add"),
    ("pnpm", "i install add"),
    (
        "git",
        "status log diff show fetch branch remote add commit push clone",
    ),
    (
        "docker",
        "ps logs images stats inspect pull build stop kill rm",
    ),
];

/// The input typed into a shell, if the line begins with a prompt.
pub fn typed(text: &str) -> Option<&str> {
    // The signs of simple prompts. `#` is not included: in Markdown it makes a heading, and the caller has
    // the context.
    for sign in ["$ ", "% ", "❯ ", "➜ ", "λ ", "└─$ ", "└─# "] {
        if let Some(rest) = text.strip_prefix(sign) {
            let place = sign == "➜ " && rest.starts_with(' ');
            return Some(if place {
                behind_place(rest)
            } else {
                rest.trim_start()
            });
        }
    }
    let start: String = text.chars().take(PROMPT_CHARS_MAX).collect();
    let host = start.starts_with("PS ")
        || start
            .split_whitespace()
            .next()
            .is_some_and(|word| word.contains('@'));
    let place = start.starts_with(['~', '/', '(', '[']);
    if !(host || place) {
        return None;
    }
    let signs = match (host, text.starts_with('~')) {
        (true, _) => ["$ ", "# ", "% ", "> "].as_slice(),
        (false, true) => ["$ ", "% ", "> "].as_slice(),
        (false, false) => ["$ ", "% "].as_slice(),
    };
    let end = signs
        .iter()
        .filter_map(|sign| start.find(sign).map(|at| at + sign.len()))
        .min()?;
    text.get(end..).map(str::trim_start)
}

/// User and host of a prompt: `root@web1` of `root@web1:~# ls`.
fn prompt_host(text: &str) -> Option<String> {
    let first = text.trim_start_matches('[').split_whitespace().next()?;
    let (user, host) = first.split_once('@')?;
    let host = host.split([':', ']', '$', '#', '%', '>']).next()?;
    (!user.is_empty() && !host.is_empty()).then(|| format!("{user}@{host}"))
}

/// The unsupported load generator whose command line this is.
pub fn unread(line: &str) -> Option<&str> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.contains('=') || *word == "sudo");
    let program = words.next().filter(|program| tools::is_unread(program))?;
    let option = |word: &str| word.len() > 1 && word.starts_with('-');
    words
        .next()
        .is_some_and(|word| option(word) || word.contains("://"))
        .then_some(program)
}

/// The rest after the folder and the branch that the default prompt of Oh My Zsh shows: `➜  app git:(main) ✗
/// npm start`.
fn behind_place(text: &str) -> &str {
    let rest = text
        .trim_start()
        .split_once(' ')
        .map_or("", |(_, rest)| rest.trim_start());
    let rest = rest
        .strip_prefix("git:(")
        .and_then(|branch| branch.split_once(") "))
        .map_or(rest, |(_, rest)| rest);
    rest.trim_start().trim_start_matches("✗ ")
}

/// The commands of a typed line that describe the measured service, without load generators.
pub fn labels(typed: &str) -> impl Iterator<Item = &str> {
    let (mut quote, mut before) = (None, ' ');
    let ends = move |c: char| {
        // Neither `2>&1` nor `a\&b` ends a command.
        let redirects = matches!(std::mem::replace(&mut before, c), '>' | '\\');
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        quote.is_none() && !redirects && matches!(c, ';' | '&')
    };
    typed
        .split(ends)
        .filter(|part| find(part).is_none())
        .filter_map(label)
}

/// Whether a line in a loop stands for several runs: its service or load contains a variable.
pub fn varies(typed: &str) -> bool {
    let variable = |text: &str| {
        text.split('$')
            .skip(1)
            .any(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '{'))
    };
    labels(typed).any(variable) || find(typed).is_some_and(|command| variable(&command.text))
}

/// The comment after `#` in a typed line.
pub fn comment(typed: &str) -> &str {
    typed.split_once(" # ").map_or("", |(_, comment)| comment)
}

/// A command as a label: `NODE_ENV=production node server.js`. None if it does not change the service.
fn label(typed: &str) -> Option<&str> {
    let typed = typed.trim().trim_start_matches("do ").trim_start();
    let mut words = typed
        .split_whitespace()
        .skip_while(|word| word.contains('=') || *word == "sudo");
    let Some(first) = words.next() else {
        // Only environment settings, which apply to what follows.
        return (!typed.is_empty() && typed.contains('=')).then_some(typed);
    };
    let program = first.rsplit('/').next().unwrap_or(first);
    let is_in = |list: &str, word: &str| list.split(' ').any(|one| one == word);
    let verbs = TRIVIAL_VERBS.iter().find(|(of, _)| *of == program);
    let idle = verbs.is_some_and(|(_, verbs)| words.next().is_some_and(|verb| is_in(verbs, verb)));
    (!idle && !is_in(TRIVIAL, program) && !tools::is_unread(program)).then_some(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_where_people_write_them() {
        let (wrk, ab) = (
            "wrk -t12 -c400 http://127.0.0.1:3000/",
            "ab -k -c 20 -n 250 http://127.0.0.1/",
        );
        let autocannon = "autocannon -d 5 http://127.0.0.1/";
        let table = [
            (format!("$ {wrk} | tee out"), Tool::Wrk, wrk),
            (format!("Ich habe `{ab}` benutzt."), Tool::Ab, ab),
            (
                "# /usr/local/bin/wrk -c 5 http://127.0.0.1/".into(),
                Tool::Wrk,
                "wrk -c 5 http://127.0.0.1/",
            ),
            (
                format!("ann@b:~$ npx {autocannon}"),
                Tool::Autocannon,
                autocannon,
            ),
            (
                "wrk -R2000 http://127.0.0.1/".into(),
                Tool::Wrk2,
                "wrk -R2000 http://127.0.0.1/",
            ),
            ("k6 run script.js".into(), Tool::K6, "k6 run script.js"),
        ];
        for (line, tool, text) in table {
            let command = find(&line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (
                    command.tool,
                    command.text.trim_start_matches("/usr/local/bin/")
                ),
                (tool, text)
            );
        }
        let prose = [
            "wrk is a tool",
            "we compared wrk and ab - slowly",
            "Running 30s test @ http://a/",
            "oha",
        ];
        assert_eq!(prose.map(find), [None, None, None, None]);
    }

    #[test]
    fn flags_are_read_as_each_tool_means_them() {
        let load = |tool, line: &str| read(tool, line.to_owned()).load;
        let line = "wrk -t12 -c 400 -d2m -H 'Accept-Encoding: gzip' http://127.0.0.1:3000/a";
        let wrk = read(Tool::Wrk, line.to_owned());
        assert_eq!(
            (wrk.load.threads, wrk.load.connections),
            (Some(12), Some(400))
        );
        assert_eq!(
            (wrk.load.duration_s, wrk.load.accept_encoding.as_deref()),
            (Some(120.0), Some("gzip"))
        );
        assert_eq!(wrk.url.as_deref(), Some("http://127.0.0.1:3000/a"));
        let ab = load(Tool::Ab, "ab -k -c 20 -n 250 http://127.0.0.1/");
        assert_eq!(
            (ab.keep_alive, ab.connections, ab.requests),
            (Some(true), Some(20), Some(250))
        );
        let h2load = load(
            Tool::H2load,
            "h2load --h1 -c10 --rps=50 -D 5 http://127.0.0.1/",
        );
        assert_eq!(
            (h2load.rate_per_s, h2load.duration_s),
            (Some(500.0), Some(5.0))
        );
        let warmed = load(
            Tool::Autocannon,
            "autocannon -c 9 -d 20 -W [ -c 1 -d 3 ] http://127.0.0.1/",
        );
        assert_eq!(
            (warmed.connections, warmed.duration_s),
            (Some(9), Some(20.0))
        );
        // Multiplied by the tool's default number of connections.
        assert_eq!(
            load(Tool::Autocannon, "autocannon -r 100 http://127.0.0.1/").rate_per_s,
            Some(1000.0)
        );
        assert_eq!(
            load(Tool::Hey, "hey -q 10 http://127.0.0.1/").rate_per_s,
            Some(500.0)
        );
        let vegeta = load(
            Tool::Vegeta,
            "echo GET http://127.0.0.1/ | vegeta attack -rate=100/1s -duration=5s",
        );
        assert_eq!(
            (vegeta.rate_per_s, vegeta.duration_s),
            (Some(100.0), Some(5.0))
        );
        let cut =
            find("$ wrk -c 20 -H 'Accept-Encoding: br' -H 'Cookie: a=1; b=2' http://127.0.0.1/")
                .unwrap();
        assert_eq!(
            (cut.load.connections, cut.load.accept_encoding.as_deref()),
            (Some(20), Some("br"))
        );
        let wild = load(Tool::Wrk, "wrk -c -t nan -d '1e999 -R");
        assert_eq!(
            (wild.threads, wild.duration_s, wild.rate_per_s),
            (None, None, None)
        );
    }

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
            "➜  app git:(main) ✗ wrk -t2",
            "➜  ~ wrk -t2",
            "~/app (main)> wrk -t2",
            r"PS C:\app> wrk -t2",
        ] {
            assert_eq!(typed(line), Some("wrk -t2"), "{line}");
        }
        let none = [
            "# A heading",
            "it costs $ 5",
            "Requests/sec: 5",
            "a@b.example wrote",
        ];
        assert_eq!(none.map(typed), [None; 4]);
    }

    #[test]
    fn what_starts_a_service_names_the_runs_after_it() {
        let told = |typed| labels(typed).collect::<Vec<_>>();
        assert_eq!(
            told("NODE_ENV=production node server.js &"),
            ["NODE_ENV=production node server.js"]
        );
        assert_eq!(told("pm2 start app.js -i 4"), ["pm2 start app.js -i 4"]);
        let line =
            "kill %1; cd ../new && MODE='a;b' node app.js & sleep 2; wrk -t2 http://127.0.0.1/";
        assert_eq!(told(line), ["cd ../new", "MODE='a;b' node app.js"]);
        assert_eq!(told("git checkout main && git log"), ["git checkout main"]);
        assert_eq!(
            told("for c in 5 50; do wrk -c $c http://127.0.0.1/ 2>&1 | grep req; done"),
            [""; 0]
        );
        let trivial = [
            "pm2 delete all",
            "npm install",
            "sleep 5",
            "/usr/bin/curl -s localhost",
            "for m in a b; do echo $m",
            "",
        ];
        for typed in trivial {
            assert_eq!(told(typed), [""; 0], "{typed}");
        }
    }
}
