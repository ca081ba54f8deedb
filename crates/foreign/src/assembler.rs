//! Assembles lines into runs: the tool of each line, the start and end of each run, and the text above it.
//!
//! It knows no tool's figures, which `tools` does. In addition to the runs, it stores one run, one JSON value
//! and one stack of headings.

use crate::command::{self, ToolCommand};
use crate::draft::{LineTaken, RunDraft};
use crate::heading::{self, Heading, Headings};
use crate::json::Collector;
use crate::line;
use crate::run::{LineRange, ToolLoad, ToolRun};
use crate::tool::Tool;
use crate::tools::{self, ToolPace};
use crate::transcript::{RUNS_MAX, Transcript};
use crate::words;

/// Longer names before a line are prose.
const PREFIX_BYTES_MAX: usize = 24;
/// Settings of one run beyond this number are ignored.
const SETTINGS_MAX: usize = 6;
/// This number of foreign lines ends a run, because a program may log in between.
const FOREIGN_MAX: u32 = 200;
/// Longer lines are not searched for headings, commands and figures, because no tool prints them.
const TEXT_BYTES_MAX: usize = 2000;

/// Assembles lines into runs.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Information about the file.
    pub about: Transcript,
    runs: Vec<ToolRun>,
    /// The current run, and the command line above it.
    open: Option<(RunDraft, Option<ToolCommand>)>,
    json: Collector,
    headings: Headings,
    command: Option<ToolCommand>,
    /// A command line that continues in the next line.
    unfinished: String,
    in_code: bool,
    /// Whether there are prompts. Lines between runs are then program output.
    typed: bool,
    /// The previous line, which a following rule turns into a heading.
    above: String,
    /// The last short line since the previous run or command, which may name the next one.
    near: String,
    /// The same, from before the current block of code.
    near_outside: String,
    /// Settings since the previous run: `replicas=3`.
    settings: Vec<String>,
    /// Whether the current run is in comments or headings: `# Running 30s test @ …`.
    commented: bool,
    /// A prefix of all lines of a program, such as `builder: `.
    prefix: String,
    /// The unsupported tool whose output the lines probably are.
    unread: Option<String>,
    /// Number of runs since a command that stands for several different ones.
    turn: Option<u32>,
    /// Whether there was a run, or a command for one, since the last command that names runs.
    loaded: bool,
}

impl Assembler {
    /// Creates an assembler for the file with this name.
    pub fn new(file: &str) -> Self {
        let about = Transcript {
            file: file.to_owned(),
            ..Transcript::default()
        };
        Self {
            about,
            ..Self::default()
        }
    }

    /// Handles the last line counted by [`about`](Self::about).
    pub fn line(&mut self, raw: &str) {
        let (text, number) = (line::clean(raw), self.about.lines);
        // `~~~` underlines a title in reStructuredText, and begins code in Markdown.
        let rules = text.len() >= 3 && text.bytes().all(|byte| byte == b'~');
        let title = self.above.chars().count();
        let rules = rules && title > 0 && title.abs_diff(text.len()) <= 1;
        if line::is_fence(&text) && !rules {
            self.end_json(number);
            self.close();
            self.unread = None;
            self.in_code = !self.in_code;
            // A block without a run names none.
            if self.in_code {
                self.near_outside.clone_from(&self.near);
            } else {
                self.near = std::mem::take(&mut self.near_outside);
            }
            return;
        }
        self.take_json(&text, number);
        if text.len() > TEXT_BYTES_MAX {
            return self.note_setting(&text, number);
        }
        let ours = self.text(&text, number);
        self.above = if ours { String::new() } else { text };
    }

    /// Returns the information about the file and the runs in order, after the last line.
    pub fn finish(mut self) -> (Transcript, Vec<ToolRun>) {
        self.close();
        self.end_json(self.about.lines);
        self.runs.sort_by_key(|run| run.lines.first);
        (self.about, self.runs)
    }

    /// Whether the line was printed by a tool, or is the rest of a command line.
    fn text(&mut self, text: &str, number: u64) -> bool {
        if self.goes_on(text, number) {
            return true;
        }
        let text = self.without_prefix(text);
        let bare = line::undecorated(text);
        // A heading is a tool's line only if it is unique to the tool.
        let views = [bare.as_str(), text];
        let views = match text == bare || text.starts_with('#') && !self.commented {
            true => &views[1..],
            false => &views[..],
        };
        if self.belongs(views, number) {
            return true;
        }
        let begun = tools::begins(text).or_else(|| {
            let expected = |tool: Tool| {
                let commanded = self.command.as_ref().map(|command| command.tool);
                self.in_code && commanded.is_some_and(|commanded| commanded.prints_as(tool))
            };
            tools::begins(&bare)
                .filter(|(tool, sure)| *sure || !text.starts_with('#') || expected(*tool))
        });
        let begun = begun.or_else(|| Some((self.refused(text)?, true)));
        let Some((tool, certain)) = begun else {
            if !text.is_empty() && !self.json.is_open() {
                self.around(text, number);
            }
            return false;
        };
        if !certain && let Some(tool) = &self.unread {
            self.about.unread.insert(tool.clone());
            return false;
        }
        // Several tools print some identical lines.
        let commanded = self
            .command
            .as_ref()
            .map(|command| command.tool)
            .filter(|_| !certain);
        let tool = commanded
            .filter(|tool| tools::prints(*tool, &bare))
            .unwrap_or(tool);
        self.open(tool, certain, number);
        self.commented = text.starts_with('#');
        self.belongs(&[&bare, text], number)
    }

    /// The line without the prefix of its program. A prefix is learned from the first line of a tool behind it.
    fn without_prefix<'t>(&mut self, text: &'t str) -> &'t str {
        let found = [": ", " | ", "> ", "] "].iter().find_map(|end| {
            let (name, rest) = text.split_once(end)?;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./[ ".contains(c);
            let named =
                name.len() <= PREFIX_BYTES_MAX && name.chars().all(plain) && !name.contains("  ");
            let rest = rest.trim_start();
            let typed = || command::typed(rest).and_then(command::find).is_some();
            (named && (tools::is_certain(rest) || typed())).then(|| (format!("{name}{end}"), rest))
        });
        if let Some((prefix, rest)) = found {
            self.prefix = prefix;
            return rest;
        }
        match self.prefix.as_str() {
            "" => text,
            prefix => text
                .strip_prefix(prefix)
                .or_else(|| (text == prefix.trim_end()).then_some(""))
                .map_or(text, str::trim_start),
        }
    }

    /// Whether the line, in one of its views, belongs to the current run.
    fn belongs(&mut self, views: &[&str], number: u64) -> bool {
        let Some((draft, _)) = self.open.as_mut() else {
            return false;
        };
        let fresh = draft.run.lines.last == 0;
        if !fresh && views.iter().any(|text| tools::is_first(text)) {
            self.close();
            return false;
        }
        draft.line = number;
        let mut taken = LineTaken::Foreign;
        for text in views {
            (*text).clone_into(&mut draft.current);
            taken = tools::take(text, draft);
            if taken != LineTaken::Foreign {
                break;
            }
        }
        match taken {
            LineTaken::Ours => {
                draft.run.lines.last = number;
                draft.foreign = 0;
                return true;
            }
            LineTaken::Again => self.close(),
            LineTaken::Foreign if views.iter().all(|text| text.is_empty()) => {}
            LineTaken::Foreign => {
                draft.foreign += 1;
                if draft.foreign > FOREIGN_MAX || draft.whole {
                    self.close();
                }
            }
        }
        false
    }

    /// Handles a line outside of runs: a command, a heading, or prose.
    fn around(&mut self, text: &str, number: u64) {
        self.note_setting(text, number);
        if let Some(tool) = tools::unread(&line::undecorated(text)) {
            self.close();
            self.about.unread.insert(tool.to_owned());
            self.unread = Some(tool.to_owned());
        } else if let Some(program) = command::unread(text) {
            self.unread = Some(program.to_owned());
        }
        if text.ends_with('\\') && (command::typed(text).is_some() || command::find(text).is_some())
        {
            text.trim_end_matches('\\').clone_into(&mut self.unfinished);
            return;
        }
        if self.take_command(text) {
            return;
        }
        if text.starts_with('#') {
            self.unread = None;
        }
        if self.unread.is_some() {
            return;
        }
        let underlined = Heading::underlined(&self.above, text).filter(|_| !self.above.is_empty());
        // An unfinished run may print lines that look like headings.
        let prints = |draft: &RunDraft| !draft.whole && draft.run.tool.row().prints_headings;
        let running = self.open.as_ref().is_some_and(|(draft, _)| prints(draft));
        // Within a run it may be output of the service.
        let rated = self
            .open
            .as_ref()
            .is_some_and(|(draft, _)| draft.run.requests_per_s.is_some());
        let setting = heading::setting(text).filter(|_| !running);
        if let Some(setting) = setting {
            if rated {
                self.close();
            }
            self.settings.push(setting.to_owned());
            self.settings.truncate(SETTINGS_MAX);
        }
        let unnamed = self.headings.has_only_bare() && setting.is_none();
        let bare = unnamed && !self.typed && !self.in_code;
        let heading = underlined.or_else(|| Heading::of(text, self.in_code));
        // A remark between two lines of one output: `throughput: 40 / 12.75`.
        let within = |draft: &RunDraft| !draft.whole && text.contains(": ");
        let remark = self.open.as_ref().is_some_and(|(draft, _)| within(draft));
        let heading = heading.or_else(|| Heading::bare(text).filter(|_| bare && !remark));
        // A comment within an unfinished output explains its lines. It may also name the next output.
        let explains = self.in_code && text.starts_with('#') && self.open.is_some() && !rated;
        if let Some(heading) = heading.filter(|_| !running) {
            if !explains {
                self.close();
            }
            if heading.is_section() {
                self.settings.clear();
                // `### wrk -t12 -c400` is a heading and a command.
                if let Some(command) = &mut self.command
                    && command::find(text).is_none()
                {
                    command.elsewhere = true;
                }
            }
            self.headings.set(heading);
            self.near.clear();
            return;
        }
        if remark {
            return;
        }
        let unfinished = self.in_code && self.open.is_some() && !rated;
        let ends =
            (rated || !self.typed) && !running && !unfinished && Heading::bare(text).is_some();
        if let Some(near) = Heading::near(text).filter(|_| ends || self.open.is_none()) {
            self.close();
            self.near = words::without_repeat(&near);
        }
    }

    /// Whether the line is shell input, or contains a tool's command line.
    fn take_command(&mut self, text: &str) -> bool {
        let found = command::find(text);
        let typed = command::typed(text);
        self.typed |= typed.is_some();
        if let Some(typed) = typed {
            self.close();
            self.settings.clear();
            self.unread = command::unread(typed).map(str::to_owned);
            let comment = words::without_repeat(command::comment(typed));
            // A line before the block names its first run: `Before`, and then the command.
            self.near = match comment.is_empty() && self.in_code {
                true => self.near_outside.clone(),
                false => comment,
            };
            self.turn = command::varies(typed).then_some(0);
            for label in command::labels(typed) {
                self.headings
                    .set_typed(label, std::mem::take(&mut self.loaded));
            }
        }
        let Some(command) = found else {
            return typed.is_some();
        };
        let ended = |draft: &RunDraft| draft.whole || draft.run.requests_per_s.is_some();
        if typed.is_some() || self.open.as_ref().is_none_or(|(draft, _)| ended(draft)) {
            self.close();
            self.command = Some(command);
            self.loaded = true;
        }
        // Headings may contain a command line: `### wrk -t12 -c400`.
        !text.starts_with('#') || typed.is_some()
    }

    /// Whether the line continues a command line that ended with a backslash.
    fn goes_on(&mut self, text: &str, number: u64) -> bool {
        if self.unfinished.is_empty() {
            return false;
        }
        let room = command::COMMAND_CHARS_MAX * 2;
        let whole = format!(
            "{} {}",
            std::mem::take(&mut self.unfinished),
            text.trim_end_matches('\\')
        );
        if text.ends_with('\\') && whole.len() < room {
            self.unfinished = whole;
        } else {
            self.around(&whole, number);
        }
        true
    }

    /// The tool that printed only a connection error.
    fn refused(&self, text: &str) -> Option<Tool> {
        let commanded = self.command.as_ref().map(|command| command.tool);
        self.open
            .is_none()
            .then(|| tools::fails_alone(text, commanded))
            .flatten()
    }

    fn open(&mut self, tool: Tool, certain: bool, number: u64) {
        self.close();
        self.unread = None;
        // No tool prints text inside of JSON, so open JSON is incomplete, or not JSON.
        self.end_json(number);
        let mut draft = RunDraft::new(tool);
        draft.certain = certain;
        draft.run.lines.first = number;
        draft.run.headings = self.headings.path();
        self.open = Some((draft, self.command.clone()));
    }

    fn close(&mut self) {
        self.commented = false;
        let Some((draft, command)) = self.open.take() else {
            return;
        };
        if let Some(tool) = draft.refused {
            self.about.unread.insert(tool.to_owned());
            return;
        }
        if let Some(mut run) = draft.finish() {
            run.lines.last = run.lines.last.max(run.lines.first);
            self.keep(run, command);
        }
    }

    fn take_json(&mut self, text: &str, number: u64) {
        for (value, first) in self.json.line(text, number) {
            if let Some(mut run) = tools::from_json(&value) {
                run.lines = LineRange {
                    first,
                    last: number,
                };
                run.headings = self.headings.path();
                run.headings.extend(value.get("title").and_then(title));
                self.keep(run, self.command.clone());
            } else if let Some(tool) = tools::unread_json(&value) {
                self.about.unread.insert(tool.to_owned());
            }
        }
    }

    /// Truncated JSON still identifies its tool.
    fn end_json(&mut self, number: u64) {
        let Some((text, first)) = self.json.drop_open() else {
            return;
        };
        if let Some(tool) = tools::json_tool(&text) {
            let (lines, headings) = (
                LineRange {
                    first,
                    last: number,
                },
                self.headings.path(),
            );
            let run = ToolRun {
                json: true,
                truncated: true,
                lines,
                headings,
                ..ToolRun::new(tool)
            };
            self.keep(run, self.command.clone());
        }
    }

    fn keep(&mut self, mut run: ToolRun, command: Option<ToolCommand>) {
        if self.runs.len() >= RUNS_MAX {
            self.about.too_many_runs = true;
            return;
        }
        run.file.clone_from(&self.about.file);
        let mut near = std::mem::take(&mut self.settings);
        near.extend([
            std::mem::take(&mut run.near),
            std::mem::take(&mut self.near),
        ]);
        near.retain(|near| !near.is_empty());
        let mut near = model::distinct(near);
        near.truncate(SETTINGS_MAX);
        run.near = near.join(", ");
        self.turn = self.turn.map(|turn| turn + 1);
        run.turn = self.turn;
        self.near_outside.clear();
        self.loaded = true;
        if let Some(command) = command.filter(|command| fits(&run, command)) {
            run.fill(command);
        }
        if let Some(last) = self.runs.last() {
            if restates(&run, last) {
                return;
            }
            continue_run(&mut run, last);
        }
        self.runs.push(run);
    }

    /// Records details of the service's setup from text and code around runs.
    fn note_setting(&mut self, text: &str, number: u64) {
        self.about.pasted.note(text, number);
        let first = &mut self.about.speaks_of_compression;
        if first.is_none() && words::speaks_of_compression(&text.to_lowercase()) {
            *first = Some(number);
        }
    }
}

/// The title given to a run (autocannon's --title).
fn title(value: &serde_json::Value) -> Option<String> {
    let title: String = value
        .as_str()?
        .chars()
        .filter(|c| !c.is_control())
        .take(100)
        .collect();
    (!title.trim().is_empty()).then(|| title.trim().to_owned())
}

/// Tolerance between the printed and the requested duration: vegeta prints the time it took to send.
const LENGTH_TOLERANCE: f64 = 0.05;

/// Whether a command line may belong to this run: their common values must match.
fn fits(run: &ToolRun, command: &ToolCommand) -> bool {
    let ToolCommand {
        tool,
        text: _,
        url,
        load: asked,
        elsewhere,
        prompt: _,
    } = command;
    let same_tool = run.tool.prints_as(*tool);
    let ToolLoad {
        connections,
        threads,
        duration_s,
        requests,
        pipelining,
        // Tools print the achieved rate, and none of the other settings.
        rate_per_s: _,
        keep_alive: _,
        accept_encoding: _,
        timeout_s: _,
    } = asked;
    let agrees = |one: Option<u64>, other: &Option<u64>| {
        one.zip(*other).is_none_or(|(one, other)| one == other)
    };
    let same_load = agrees(run.load.connections, connections)
        && agrees(run.load.threads, threads)
        && agrees(run.load.requests, requests)
        && agrees(run.load.pipelining, pipelining);
    let lengths = run
        .load
        .duration_s
        .zip(duration_s.filter(|seconds| *seconds > 0.0));
    let same_length =
        lengths.is_none_or(|(one, other)| (one / other - 1.0).abs() <= LENGTH_TOLERANCE);
    // Addresses in write-ups are often shortened. The part after the host must match.
    let path = |url: &str| {
        url.split_once("://")
            .map_or(url, |(_, rest)| rest)
            .trim_end_matches('/')
            .to_owned()
    };
    let urls = run.url.as_ref().zip(url.as_ref());
    let same_url = urls.is_none_or(|(one, other)| path(one) == path(other));
    let common = [
        (run.load.connections, connections),
        (run.load.requests, requests),
    ];
    // Below another heading it needs a value in common, and a rate that was nearly kept.
    let rates = run.load.rate_per_s.zip(asked.rate_per_s);
    let same_rate = rates.is_none_or(|(one, other)| (one / other - 1.0).abs() <= LENGTH_TOLERANCE);
    let known = common
        .iter()
        .any(|(one, other)| one.is_some() && other.is_some())
        || lengths.is_some()
        || urls.is_some();
    let own = !elsewhere || known && same_rate;
    same_tool && same_load && same_length && same_url && own
}

/// Whether a fragment only repeats the rate of the output above it, as people do to point at a figure.
fn restates(run: &ToolRun, last: &ToolRun) -> bool {
    let quotes = run.requests.is_none() && run.latency.mean_us.is_none() && run.url.is_none();
    quotes
        && run.requests_per_s.is_some()
        && run.requests_per_s == last.requests_per_s
        && run.tool.prints_as(last.tool)
        && run.headings == last.headings
}

/// Fills a fragment that was pasted below a whole output of the same command: its figures without settings.
fn continue_run(run: &mut ToolRun, last: &ToolRun) {
    let bare =
        run.load == ToolLoad::default() || run.command.is_some() && run.command == last.command;
    let fragment = run.url.is_none() || run.command.is_some();
    let same =
        run.tool.prints_as(last.tool) && run.headings == last.headings && run.near.is_empty();
    let parts = run.latency.mean_us.is_none() && last.latency.mean_us.is_some()
        || last.command.is_some() && run.latency.mean_us.is_none();
    if parts && bare && fragment && same && run.load.threads.is_none() && run.turn.is_none() {
        run.tool = last.tool;
        run.load.clone_from(&last.load);
        run.url.clone_from(&last.url);
        run.command.clone_from(&last.command);
        run.prompt.clone_from(&last.prompt);
        run.near.clone_from(&last.near);
    }
}

impl ToolRun {
    /// Adds values known only from the command line.
    fn fill(&mut self, command: ToolCommand) {
        let ToolCommand {
            tool,
            text,
            url,
            load: asked,
            elsewhere: _,
            prompt,
        } = command;
        let ToolLoad {
            connections,
            threads,
            duration_s,
            requests,
            rate_per_s,
            keep_alive,
            pipelining,
            accept_encoding,
            timeout_s,
        } = asked;
        let load = &mut self.load;
        load.connections = load.connections.or(connections);
        load.threads = load.threads.or(threads);
        load.duration_s = load.duration_s.or(duration_s);
        load.requests = load.requests.or(requests);
        // A tool that prints the achieved rate does not print the requested one.
        if let (ToolPace::Rate, Some(rate), Some(seconds)) =
            (self.tool.row().pace, rate_per_s, load.duration_s)
        {
            let short = rate * seconds - self.requests.unwrap_or(0) as f64;
            self.unsent = Some(short.max(0.0) as u64);
        }
        load.rate_per_s = load.rate_per_s.or(rate_per_s);
        load.keep_alive = load.keep_alive.or(keep_alive);
        load.pipelining = load.pipelining.or(pipelining);
        load.accept_encoding = load.accept_encoding.take().or(accept_encoding);
        load.timeout_s = load.timeout_s.or(timeout_s);
        self.url = self.url.take().or(url);
        if tool == Tool::Wrk2 && self.tool == Tool::Wrk {
            self.tool = Tool::Wrk2;
        }
        self.command = Some(text);
        self.prompt = prompt;
    }
}
