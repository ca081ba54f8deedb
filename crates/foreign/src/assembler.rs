//! Lines into runs: which tool a line belongs to, where a run begins and ends, and what stands above it.
//!
//! It knows no tool's figures; that is for `tools`. What it keeps beside the runs is one run, one JSON value and one stack of
//! headings.

use crate::command::{self, Command};
use crate::draft::{Draft, Taken};
use crate::heading::{Heading, Headings};
use crate::json::Collector;
use crate::line::{self, Line};
use crate::run::{Lines, Run};
use crate::source::RUNS_MAX;
use crate::tools::{self, Beginning, Tool};
use crate::{shell, words};

/// So many lines of something else end a run: a program may log in between.
const FOREIGN_MAX: u32 = 200;
/// Longer lines are not looked at for headings, commands and figures: no tool prints them.
const TEXT_BYTES_MAX: usize = 2000;

/// What is known once all lines were seen.
#[derive(Debug)]
pub struct End {
    /// The runs, in their order.
    pub runs: Vec<Run>,
    /// Whether there were more than are kept.
    pub too_many: bool,
    /// The first line that speaks of compression.
    pub compression_line: Option<u64>,
}

/// Makes runs of lines.
#[derive(Debug)]
pub struct Assembler {
    file: String,
    runs: Vec<Run>,
    too_many: bool,
    compression_line: Option<u64>,
    open: Option<Open>,
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
}

/// A run whose lines are coming in.
#[derive(Debug)]
struct Open {
    draft: Draft,
    lines: Lines,
    foreign: u32,
    headings: Vec<String>,
    command: Option<Command>,
}

impl Assembler {
    /// For the file of this name.
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            runs: Vec::new(),
            too_many: false,
            compression_line: None,
            open: None,
            json: Collector::default(),
            headings: Headings::default(),
            command: None,
            unfinished: String::new(),
            in_code: false,
            typed: false,
            above: String::new(),
        }
    }

    /// Takes the next line.
    pub fn line(&mut self, raw: &str, number: u64) {
        let line = line::clean(raw);
        self.take_json(&line, number);
        if line.text.len() > TEXT_BYTES_MAX {
            return self.note_compression(&line.text, number);
        }
        if line.fence {
            self.in_code = !self.in_code;
            self.close();
            return;
        }
        self.text(&line.text, number);
        self.above = line.text;
    }

    /// The runs, once no more lines come.
    pub fn finish(mut self, lines: u64) -> End {
        self.close();
        self.end_json(lines);
        self.runs.sort_by_key(|run| run.lines.first);
        End { runs: self.runs, too_many: self.too_many, compression_line: self.compression_line }
    }

    fn text(&mut self, text: &str, number: u64) {
        if self.goes_on(text, number) || self.belongs(text, number) {
            return;
        }
        if let Some((tool, beginning)) = tools::begins(text).or_else(|| self.refused(text)) {
            self.open(tool, beginning.certain, number);
            self.belongs(text, number);
        } else if !text.is_empty() && !self.json.is_open() {
            self.around(text, number);
        }
    }

    /// Whether the line belongs to the run under way.
    fn belongs(&mut self, text: &str, number: u64) -> bool {
        let Some(open) = self.open.as_mut() else { return false };
        let fresh = open.lines.last == 0;
        if !fresh && tools::is_first(text) {
            self.close();
            return false;
        }
        match tools::take(text, &mut open.draft) {
            Taken::Ours => {
                open.lines.last = number;
                open.foreign = 0;
                true
            }
            Taken::Again => {
                self.close();
                false
            }
            Taken::Foreign => {
                open.foreign += u32::from(!text.is_empty());
                let over = open.foreign > FOREIGN_MAX || (open.draft.whole && !text.is_empty());
                if over {
                    self.close();
                }
                false
            }
        }
    }

    /// A line that belongs to no run: a command, a heading, or prose.
    fn around(&mut self, text: &str, number: u64) {
        self.note_compression(text, number);
        if text.ends_with('\\') && (shell::typed(text).is_some() || command::find(text).is_some()) {
            text.trim_end_matches('\\').clone_into(&mut self.unfinished);
            return;
        }
        if self.take_command(text) {
            return;
        }
        let underlined = Heading::underlined(&self.above, text).filter(|_| !self.above.is_empty());
        let bare = self.headings.has_only_bare() && !self.typed && !self.in_code && self.open.is_none();
        let heading = underlined.or_else(|| Heading::of(text, self.in_code));
        let heading = heading.or_else(|| Heading::bare(text).filter(|_| bare));
        // A run that is under way may print lines that look like headings.
        let running = self
            .open
            .as_ref()
            .is_some_and(|open| !open.draft.whole && open.draft.run.tool.facts().prints_headings);
        if let Some(heading) = heading.filter(|_| !running) {
            self.close();
            self.headings.set(heading);
        }
    }

    /// Whether the line is typed into a shell, or has a tool's command line in it.
    fn take_command(&mut self, text: &str) -> bool {
        let found = command::find(text);
        let typed = shell::typed(text);
        self.typed |= typed.is_some();
        if let Some(command) = found {
            if typed.is_some() || self.open.as_ref().is_none_or(|open| open.draft.whole) {
                self.close();
                self.command = Some(command);
            }
            // Headings may carry a command line: `### wrk -t12 -c400`.
            return !text.starts_with('#') || typed.is_some();
        }
        let Some(typed) = typed else { return false };
        self.close();
        if let Some(heading) = shell::label(typed).and_then(Heading::typed) {
            self.headings.set(heading);
        }
        true
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
    fn refused(&self, text: &str) -> Option<(Tool, Beginning)> {
        let commanded = self.command.as_ref().map(|command| command.tool);
        let tool = self.open.is_none().then(|| tools::fails_alone(text, commanded)).flatten()?;
        Some((tool, Beginning { certain: true, first: true }))
    }

    fn open(&mut self, tool: Tool, certain: bool, number: u64) {
        self.close();
        // No tool prints text inside of JSON: what was open is not whole, or no JSON.
        self.end_json(number);
        let mut draft = Draft::new(tool);
        draft.certain = certain;
        let lines = Lines { first: number, last: 0 };
        let (headings, command) = (self.headings.path(), self.command.clone());
        self.open = Some(Open { draft, lines, foreign: 0, headings, command });
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Open { draft, lines, headings, command, .. } = open;
        if let Some(run) = draft.finish() {
            let lines = Lines { first: lines.first, last: lines.last.max(lines.first) };
            self.keep(run, lines, headings, command);
        }
    }

    fn take_json(&mut self, line: &Line, number: u64) {
        if line.fence {
            self.end_json(number);
            return;
        }
        for found in self.json.line(&line.text, number) {
            if let Some(run) = tools::from_json(&found.value) {
                let lines = Lines { first: found.first_line, last: number };
                let (mut headings, command) = (self.headings.path(), self.command.clone());
                headings.extend(found.value.get("title").and_then(title));
                self.keep(run, lines, headings, command);
            }
        }
    }

    /// JSON that ends too early still tells which tool wrote it.
    fn end_json(&mut self, number: u64) {
        let Some((text, first)) = self.json.drop_open() else { return };
        if let Some(tool) = tools::json_tool(&text) {
            let mut run = Run::new(tool);
            run.json = true;
            run.truncated = true;
            let (headings, command) = (self.headings.path(), self.command.clone());
            self.keep(run, Lines { first, last: number }, headings, command);
        }
    }

    fn keep(&mut self, mut run: Run, lines: Lines, headings: Vec<String>, command: Option<Command>) {
        if self.runs.len() >= RUNS_MAX {
            self.too_many = true;
            return;
        }
        run.lines = lines;
        run.headings = headings;
        run.file.clone_from(&self.file);
        if let Some(command) = command.filter(|command| fits(&run, command)) {
            run.fill(command);
        }
        self.runs.push(run);
    }

    fn note_compression(&mut self, text: &str, number: u64) {
        if self.compression_line.is_none() && words::speaks_of_compression(&text.to_lowercase()) {
            self.compression_line = Some(number);
        }
    }
}

/// What a run was called when it was started (autocannon's --title).
fn title(value: &serde_json::Value) -> Option<String> {
    let title: String = value.as_str()?.chars().filter(|c| !c.is_control()).take(100).collect();
    (!title.trim().is_empty()).then(|| title.trim().to_owned())
}

/// Whether a command line may be the one that made this run: what both tell must not differ.
fn fits(run: &Run, command: &Command) -> bool {
    let same_tool = run.tool == command.tool || run.tool.prints_as(command.tool);
    let asked = &command.options.load;
    let agrees =
        |one: Option<u64>, other: Option<u64>| one.zip(other).is_none_or(|(one, other)| one == other);
    let same_load =
        agrees(run.load.connections, asked.connections) && agrees(run.load.threads, asked.threads);
    // Addresses in write-ups are often shortened; what stands behind the host must agree.
    let path =
        |url: &str| url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/').to_owned();
    let same_url = match (&run.url, &command.options.url) {
        (Some(one), Some(other)) => path(one) == path(other),
        _ => true,
    };
    same_tool && same_load && same_url
}

impl Run {
    /// Fills in what only the command line tells.
    fn fill(&mut self, command: Command) {
        let asked = command.options.load;
        let load = &mut self.load;
        load.connections = load.connections.or(asked.connections);
        load.threads = load.threads.or(asked.threads);
        load.duration_s = load.duration_s.or(asked.duration_s);
        load.requests = load.requests.or(asked.requests);
        load.rate_per_s = load.rate_per_s.or(asked.rate_per_s);
        load.keep_alive = load.keep_alive.or(asked.keep_alive);
        load.pipelining = load.pipelining.or(asked.pipelining);
        load.accept_encoding = load.accept_encoding.take().or(asked.accept_encoding);
        self.url = self.url.take().or(command.options.url);
        if command.tool == Tool::Wrk2 && self.tool == Tool::Wrk {
            self.tool = Tool::Wrk2;
        }
        self.command = Some(command.text);
    }
}
