//! Lines into runs: which tool a line belongs to, where a run begins and ends, and what stands above it.
//!
//! It knows no tool's figures; that is for `tools`. What it keeps beside the runs is one run, one JSON value and one stack of
//! headings.

use crate::command::{self, Command};
use crate::draft::{Draft, Taken};
use crate::heading::{Heading, Headings};
use crate::json::Collector;
use crate::line;
use crate::run::{Lines, Load, Run};
use crate::source::{RUNS_MAX, Transcript};
use crate::tools::{self, Pace, Tool};
use crate::words;

/// So many lines of something else end a run: a program may log in between.
const FOREIGN_MAX: u32 = 200;
/// Longer lines are not looked at for headings, commands and figures: no tool prints them.
const TEXT_BYTES_MAX: usize = 2000;

/// Makes runs of lines.
#[derive(Debug, Default)]
pub struct Assembler {
    /// What is known of the file.
    pub about: Transcript,
    runs: Vec<Run>,
    /// The run whose lines are coming in, and the command line above it.
    open: Option<(Draft, Option<Command>)>,
    json: Collector,
    headings: Headings,
    command: Option<Command>,
    /// A command line that goes on in the next line.
    unfinished: String,
    in_code: bool,
    /// Whether there are prompts; then lines between runs are what programs printed.
    typed: bool,
    /// The line above, which a rule below it makes a heading.
    above: String,
    /// The last line of few words since the run or the command before, which may name the next one.
    near: String,
    /// The same before the block of code that the lines are in.
    near_outside: String,
    /// Whether the lines are of a tool whose output is not read.
    in_unread: bool,
    /// Runs since a command that stands for several different ones.
    turn: Option<u32>,
    /// Whether there was a run, or a command for one, since the last command that names runs.
    loaded: bool,
}

impl Assembler {
    /// For the file of this name.
    pub fn new(file: &str) -> Self {
        let about = Transcript { file: file.to_owned(), ..Transcript::default() };
        Self { about, ..Self::default() }
    }

    /// Takes the line that [`about`](Self::about) says was read last.
    pub fn line(&mut self, raw: &str) {
        let (text, number) = (line::clean(raw), self.about.lines);
        if line::is_fence(&text) {
            self.end_json(number);
            self.close();
            self.in_unread = false;
            self.in_code = !self.in_code;
            // What a block without a run holds names none.
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

    /// What is known of the file and the runs in their order, once no more lines come.
    pub fn finish(mut self) -> (Transcript, Vec<Run>) {
        self.close();
        self.end_json(self.about.lines);
        self.runs.sort_by_key(|run| run.lines.first);
        (self.about, self.runs)
    }

    /// Whether the line is one that a tool printed, or the rest of a command line.
    fn text(&mut self, text: &str, number: u64) -> bool {
        if self.goes_on(text, number) || self.belongs(text, number) {
            return true;
        }
        let Some((tool, certain)) = tools::begins(text).or_else(|| Some((self.refused(text)?, true))) else {
            if !text.is_empty() && !self.json.is_open() {
                self.around(text, number);
            }
            return false;
        };
        // Some lines several tools print alike.
        let commanded = self.command.as_ref().map(|command| command.tool).filter(|_| !certain);
        let tool = commanded.filter(|tool| tools::prints(*tool, text)).unwrap_or(tool);
        self.open(tool, certain, number);
        self.belongs(text, number)
    }

    /// Whether the line belongs to the run under way.
    fn belongs(&mut self, text: &str, number: u64) -> bool {
        let Some((draft, _)) = self.open.as_mut() else { return false };
        let fresh = draft.run.lines.last == 0;
        if !fresh && tools::is_first(text) {
            self.close();
            return false;
        }
        match tools::take(text, draft) {
            Taken::Ours => {
                draft.run.lines.last = number;
                draft.foreign = 0;
                return true;
            }
            Taken::Again => self.close(),
            Taken::Foreign if text.is_empty() => {}
            Taken::Foreign => {
                draft.foreign += 1;
                if draft.foreign > FOREIGN_MAX || draft.whole {
                    self.close();
                }
            }
        }
        false
    }

    /// A line that belongs to no run: a command, a heading, or prose.
    fn around(&mut self, text: &str, number: u64) {
        self.note_setting(text, number);
        if let Some(tool) = tools::unread(text) {
            self.close();
            self.about.unread.insert(tool);
            self.in_unread = true;
        }
        if text.ends_with('\\') && (command::typed(text).is_some() || command::find(text).is_some()) {
            text.trim_end_matches('\\').clone_into(&mut self.unfinished);
            return;
        }
        if self.take_command(text) {
            return;
        }
        self.in_unread &= !text.starts_with('#');
        if self.in_unread {
            return;
        }
        let underlined = Heading::underlined(&self.above, text).filter(|_| !self.above.is_empty());
        // A run that is under way may print lines that look like headings.
        let prints = |draft: &Draft| !draft.whole && draft.run.tool.row().prints_headings;
        let running = self.open.as_ref().is_some_and(|(draft, _)| prints(draft));
        let bare = self.headings.has_only_bare() && !self.typed && !self.in_code;
        let heading = underlined.or_else(|| Heading::of(text, self.in_code));
        let heading = heading.or_else(|| Heading::bare(text).filter(|_| bare));
        if let Some(heading) = heading.filter(|_| !running) {
            self.close();
            self.headings.set(heading);
            self.near.clear();
            return;
        }
        // In the midst of a run it may be what the service prints.
        let rated = self.open.as_ref().is_some_and(|(draft, _)| draft.run.requests_per_s.is_some());
        let ends = (rated || !self.typed) && !running && Heading::bare(text).is_some();
        if let Some(near) = Heading::near(text).filter(|_| ends || self.open.is_none()) {
            self.close();
            self.near = words::without_repeat(&near);
        }
    }

    /// Whether the line is typed into a shell, or has a tool's command line in it.
    fn take_command(&mut self, text: &str) -> bool {
        let found = command::find(text);
        let typed = command::typed(text);
        self.typed |= typed.is_some();
        if let Some(typed) = typed {
            self.close();
            self.in_unread = false;
            self.near = words::without_repeat(command::comment(typed));
            self.turn = command::varies(typed).then_some(0);
            for label in command::labels(typed) {
                self.headings.set_typed(label, std::mem::take(&mut self.loaded));
            }
        }
        let Some(command) = found else { return typed.is_some() };
        if typed.is_some() || self.open.as_ref().is_none_or(|(draft, _)| draft.whole) {
            self.close();
            self.command = Some(command);
            self.loaded = true;
        }
        // Headings may carry a command line: `### wrk -t12 -c400`.
        !text.starts_with('#') || typed.is_some()
    }

    /// Whether the line goes on with a command line that a backslash cut.
    fn goes_on(&mut self, text: &str, number: u64) -> bool {
        if self.unfinished.is_empty() {
            return false;
        }
        let room = command::COMMAND_CHARS_MAX * 2;
        let whole = format!("{} {}", std::mem::take(&mut self.unfinished), text.trim_end_matches('\\'));
        if text.ends_with('\\') && whole.len() < room {
            self.unfinished = whole;
        } else {
            self.around(&whole, number);
        }
        true
    }

    /// A tool that could not even connect prints no more than that.
    fn refused(&self, text: &str) -> Option<Tool> {
        let commanded = self.command.as_ref().map(|command| command.tool);
        self.open.is_none().then(|| tools::fails_alone(text, commanded)).flatten()
    }

    fn open(&mut self, tool: Tool, certain: bool, number: u64) {
        self.close();
        self.in_unread = false;
        // No tool prints text inside of JSON: what was open is not whole, or no JSON.
        self.end_json(number);
        let mut draft = Draft::new(tool);
        draft.certain = certain;
        draft.run.lines.first = number;
        draft.run.headings = self.headings.path();
        self.open = Some((draft, self.command.clone()));
    }

    fn close(&mut self) {
        let Some((draft, command)) = self.open.take() else { return };
        if let Some(mut run) = draft.finish() {
            run.lines.last = run.lines.last.max(run.lines.first);
            self.keep(run, command);
        }
    }

    fn take_json(&mut self, text: &str, number: u64) {
        for (value, first) in self.json.line(text, number) {
            if let Some(mut run) = tools::from_json(&value) {
                run.lines = Lines { first, last: number };
                run.headings = self.headings.path();
                run.headings.extend(value.get("title").and_then(title));
                self.keep(run, self.command.clone());
            }
        }
    }

    /// JSON that ends too early still tells which tool wrote it.
    fn end_json(&mut self, number: u64) {
        let Some((text, first)) = self.json.drop_open() else { return };
        if let Some(tool) = tools::json_tool(&text) {
            let (lines, headings) = (Lines { first, last: number }, self.headings.path());
            let run = Run { json: true, truncated: true, lines, headings, ..Run::new(tool) };
            self.keep(run, self.command.clone());
        }
    }

    fn keep(&mut self, mut run: Run, command: Option<Command>) {
        if self.runs.len() >= RUNS_MAX {
            self.about.too_many_runs = true;
            return;
        }
        run.file.clone_from(&self.about.file);
        let mut near = vec![std::mem::take(&mut run.near), std::mem::take(&mut self.near)];
        near.retain(|near| !near.is_empty());
        run.near = near.join(", ");
        self.turn = self.turn.map(|turn| turn + 1);
        run.turn = self.turn;
        self.near_outside.clear();
        self.loaded = true;
        if let Some(command) = command.filter(|command| fits(&run, command)) {
            run.fill(command);
        }
        self.runs.push(run);
    }

    /// What text and code around runs say of how a service was set up.
    fn note_setting(&mut self, text: &str, number: u64) {
        self.about.pasted.note(text, number);
        let first = &mut self.about.speaks_of_compression;
        if first.is_none() && words::speaks_of_compression(&text.to_lowercase()) {
            *first = Some(number);
        }
    }
}

/// What a run was called when it was started (autocannon's --title).
fn title(value: &serde_json::Value) -> Option<String> {
    let title: String = value.as_str()?.chars().filter(|c| !c.is_control()).take(100).collect();
    (!title.trim().is_empty()).then(|| title.trim().to_owned())
}

/// How far the length that a tool prints may be from the one that it was asked for: vegeta prints how long it took to send.
const LENGTH_TOLERANCE: f64 = 0.05;

/// Whether a command line may be the one that made this run: what both tell must not differ.
fn fits(run: &Run, command: &Command) -> bool {
    let Command { tool, text: _, url, load: asked } = command;
    let same_tool = run.tool.prints_as(*tool);
    let Load {
        connections,
        threads,
        duration_s,
        requests,
        pipelining,
        // What is printed is the rate that came about, and of the others nothing.
        rate_per_s: _,
        keep_alive: _,
        accept_encoding: _,
    } = asked;
    let agrees =
        |one: Option<u64>, other: &Option<u64>| one.zip(*other).is_none_or(|(one, other)| one == other);
    let same_load = agrees(run.load.connections, connections)
        && agrees(run.load.threads, threads)
        && agrees(run.load.requests, requests)
        && agrees(run.load.pipelining, pipelining);
    let lengths = run.load.duration_s.zip(duration_s.filter(|seconds| *seconds > 0.0));
    let same_length = lengths.is_none_or(|(one, other)| (one / other - 1.0).abs() <= LENGTH_TOLERANCE);
    // Addresses in write-ups are often shortened; what stands behind the host must agree.
    let path =
        |url: &str| url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/').to_owned();
    let urls = run.url.as_ref().zip(url.as_ref());
    let same_url = urls.is_none_or(|(one, other)| path(one) == path(other));
    same_tool && same_load && same_length && same_url
}

impl Run {
    /// Fills in what only the command line tells.
    fn fill(&mut self, command: Command) {
        let Command { tool, text, url, load: asked } = command;
        let Load {
            connections,
            threads,
            duration_s,
            requests,
            rate_per_s,
            keep_alive,
            pipelining,
            accept_encoding,
        } = asked;
        let load = &mut self.load;
        load.connections = load.connections.or(connections);
        load.threads = load.threads.or(threads);
        load.duration_s = load.duration_s.or(duration_s);
        load.requests = load.requests.or(requests);
        // What prints the rate that it reached does not say what it was asked for.
        if let (Pace::Rate, Some(rate), Some(seconds)) = (self.tool.row().pace, rate_per_s, load.duration_s) {
            let short = rate * seconds - self.requests.unwrap_or(0) as f64;
            self.unsent = Some(short.max(0.0) as u64);
        }
        load.rate_per_s = load.rate_per_s.or(rate_per_s);
        load.keep_alive = load.keep_alive.or(keep_alive);
        load.pipelining = load.pipelining.or(pipelining);
        load.accept_encoding = load.accept_encoding.take().or(accept_encoding);
        self.url = self.url.take().or(url);
        if tool == Tool::Wrk2 && self.tool == Tool::Wrk {
            self.tool = Tool::Wrk2;
        }
        self.command = Some(text);
    }
}
