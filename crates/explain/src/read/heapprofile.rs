//! V8's sampling of the heap, `.heapprofile`, as its inspector protocol defines `HeapProfiler.SamplingHeapProfile`: bytes that
//! were allocated and still lived at the end, by the stack that allocated them.
//!
//! The file is a tree in a tree in a tree, two levels of JSON for each call: deeper than a parser by recursion should follow. So
//! it is read event by event, with a list of what is open.

use json_event_parser::{JsonEvent, JsonSyntaxError, SliceJsonParser};

use super::call::Calls;
use super::{CallFrame, NODES_MAX, ReadError, bounded};

const FORMAT: &str = ".heapprofile";

/// A profile of the heap.
#[derive(Debug, Clone, PartialEq)]
pub struct HeapProfile {
    /// The functions, each once.
    pub(crate) calls: Vec<CallFrame>,
    /// The places; callers before what they call.
    pub(crate) nodes: Vec<HeapNode>,
}

/// A place in the tree of calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeapNode {
    /// Index of its function.
    pub call: u32,
    /// Its caller.
    pub parent: Option<u32>,
    /// Bytes allocated here.
    pub bytes: f64,
}

impl HeapProfile {
    /// Reads it.
    ///
    /// # Errors
    /// If it is cut off, not JSON, not a tree of calls, or beyond a limit: 4 000 000 calls, some 20 000 deep.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut file = Events::of(bounded(bytes)?);
        file.expect(&JsonEvent::StartObject, "an object")?;
        let mut profile = None;
        while let Some(key) = file.key()? {
            if key == "head" {
                profile = Some(read_tree(&mut file)?);
            } else {
                file.skip()?;
            }
        }
        file.expect(&JsonEvent::Eof, "the end")?;
        profile.ok_or_else(|| ReadError::unusable(FORMAT, "has no head: there is no tree in it"))
    }
}

/// What is open: a call, or the list of what it calls.
enum Level {
    Call(u32),
    List(u32),
}

/// Calls while they are read.
#[derive(Default)]
struct Growing {
    calls: Calls,
    /// Caller and bytes.
    nodes: Vec<(Option<u32>, f64)>,
    functions: Vec<Option<u32>>,
}

impl Growing {
    fn push(&mut self, parent: Option<u32>) -> Result<Level, ReadError> {
        if self.nodes.len() == NODES_MAX {
            let problem = format!("too many calls, at most {NODES_MAX} are read");
            return Err(ReadError::unusable(FORMAT, problem));
        }
        self.nodes.push((parent, 0.0));
        self.functions.push(None);
        Ok(Level::Call(self.nodes.len() as u32 - 1))
    }

    fn profile(mut self) -> HeapProfile {
        let nameless =
            self.functions.contains(&None).then(|| self.calls.number(CallFrame::named("(unknown)")));
        let nodes = self.nodes.into_iter().zip(self.functions);
        let nodes = nodes.map(|((parent, bytes), function)| HeapNode {
            call: function.or(nameless).unwrap_or_default(),
            parent,
            bytes,
        });
        HeapProfile { nodes: nodes.collect(), calls: self.calls.into_frames() }
    }
}

fn read_tree(file: &mut Events<'_>) -> Result<HeapProfile, ReadError> {
    let mut growing = Growing::default();
    file.expect(&JsonEvent::StartObject, "a call")?;
    let mut open = vec![growing.push(None)?];
    while let Some(level) = open.last() {
        match *level {
            Level::Call(node) => match file.key()? {
                None => {
                    open.pop();
                }
                Some(key) => match &*key {
                    "children" => {
                        file.expect(&JsonEvent::StartArray, "a list of calls")?;
                        open.push(Level::List(node));
                    }
                    "callFrame" => {
                        let frame = read_call(file)?;
                        growing.functions[node as usize] = Some(growing.calls.number(frame));
                    }
                    "selfSize" => {
                        let bytes = file.number()?.unwrap_or(0.0);
                        growing.nodes[node as usize].1 = if bytes.is_finite() { bytes.max(0.0) } else { 0.0 };
                    }
                    _ => file.skip()?,
                },
            },
            Level::List(node) => match file.next()? {
                JsonEvent::EndArray => {
                    open.pop();
                }
                JsonEvent::StartObject => open.push(growing.push(Some(node))?),
                _ => return Err(file.malformed("expected a call")),
            },
        }
    }
    Ok(growing.profile())
}

fn read_call(file: &mut Events<'_>) -> Result<CallFrame, ReadError> {
    file.expect(&JsonEvent::StartObject, "a function")?;
    let (mut function, mut url, mut script) = (String::new(), String::new(), String::new());
    let (mut line, mut column) = (-1.0, -1.0);
    while let Some(key) = file.key()? {
        match &*key {
            "functionName" => function = file.text()?,
            "url" => url = file.text()?,
            "scriptId" => script = file.text()?,
            "lineNumber" => line = file.number()?.unwrap_or(-1.0),
            "columnNumber" => column = file.number()?.unwrap_or(-1.0),
            _ => file.skip()?,
        }
    }
    // A cast of a float ends at the bounds of its type.
    let mut frame = CallFrame::at(&function, &url, (line + 1.0) as u32, column as u32);
    frame.scripted |= !matches!(&*script, "" | "0");
    Ok(frame)
}

/// The file as events, with the place of the last one.
struct Events<'a> {
    parser: SliceJsonParser<'a>,
    bytes: usize,
}

impl<'a> Events<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self { parser: SliceJsonParser::new(bytes), bytes: bytes.len() }
    }

    fn next(&mut self) -> Result<JsonEvent<'a>, ReadError> {
        self.parser.parse_next().map_err(|error| syntax(&error, self.bytes))
    }

    fn expect(&mut self, event: &JsonEvent<'_>, what: &str) -> Result<(), ReadError> {
        if self.next()? == *event { Ok(()) } else { Err(self.malformed(&format!("expected {what}"))) }
    }

    /// The next key of an object; none at its end.
    fn key(&mut self) -> Result<Option<std::borrow::Cow<'a, str>>, ReadError> {
        match self.next()? {
            JsonEvent::ObjectKey(key) => Ok(Some(key)),
            JsonEvent::EndObject => Ok(None),
            _ => Err(self.malformed("expected a key")),
        }
    }

    /// A number; nothing where there is none.
    fn number(&mut self) -> Result<Option<f64>, ReadError> {
        match self.next()? {
            JsonEvent::Number(text) => Ok(text.parse().ok()),
            JsonEvent::Null => Ok(None),
            _ => Err(self.malformed("expected a number")),
        }
    }

    /// Text, or a number as text.
    fn text(&mut self) -> Result<String, ReadError> {
        match self.next()? {
            JsonEvent::String(text) | JsonEvent::Number(text) => Ok(text.into_owned()),
            JsonEvent::Null => Ok(String::new()),
            _ => Err(self.malformed("expected text")),
        }
    }

    /// Goes over one value, however deep.
    fn skip(&mut self) -> Result<(), ReadError> {
        let mut depth = 0usize;
        loop {
            match self.next()? {
                JsonEvent::StartArray | JsonEvent::StartObject => depth += 1,
                JsonEvent::EndArray | JsonEvent::EndObject => depth = depth.saturating_sub(1),
                JsonEvent::Eof => return Err(self.malformed("expected a value")),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn malformed(&self, problem: &str) -> ReadError {
        ReadError::unusable(FORMAT, format!("not a tree of calls: {problem}"))
    }
}

fn syntax(error: &JsonSyntaxError, bytes: usize) -> ReadError {
    let at = error.location().start;
    let number = |from_zero: u64| usize::try_from(from_zero).unwrap_or(usize::MAX).saturating_add(1);
    let (line, column) = (number(at.line), number(at.column));
    // Text without its second quote is told of at its first.
    if error.location().end.offset >= bytes as u64 || error.message().contains("end of file") {
        return ReadError::CutOff { format: FORMAT, line, column };
    }
    ReadError::Malformed { format: FORMAT, line, column, problem: error.message().to_owned() }
}
