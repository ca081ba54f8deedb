//! The Firefox Profiler's processed format, version [`PROCESSED_VERSION`]: tables by column, shared by all threads.
//!
//! Written here and not by the crate `fxprof-processed-profile`: that one records samples as they come, with whole numbers as
//! their weight, and a finished tree has fractions of microseconds. The profiler brings older versions up to its own, so this one
//! stays readable. A tree has no times: samples stand one after the other, each as long as its value, and of bytes a millisecond each.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::path;
use crate::{Frame, Kind, Package, Tree, Unit};

/// Version of the format that is written.
pub const PROCESSED_VERSION: u32 = 62;
/// Version of the format of Firefox that it is based on.
const GECKO_VERSION: u32 = 24;
const NS_PER_MS: f64 = 1e6;

/// Trees as threads of one profile, each under its name.
pub fn firefox(trees: &[(String, &Tree)], unit: Unit) -> Value {
    let mut tables = Tables::default();
    let threads = trees.iter().enumerate();
    let threads: Vec<Value> =
        threads.map(|(index, (name, tree))| tables.thread(index, name, (tree, unit))).collect();
    let categories: Vec<Value> = Kind::ALL
        .iter()
        .map(|kind| json!({ "name": kind.name(), "color": kind.look().2, "subcategories": ["Other"] }))
        .collect();
    json!({
        "meta": {
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": PROCESSED_VERSION,
            "product": "proofload",
            "interval": 1,
            "startTime": 0,
            "processType": 0,
            "stackwalk": 1,
            "debug": false,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "categories": categories,
            "markerSchema": [],
            "pausedRanges": [],
            "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
        },
        "libs": [],
        "pages": [],
        "counters": [],
        "profilerOverhead": [],
        "shared": tables.shared(),
        "threads": threads,
    })
}

/// What threads share: texts, files, functions and stacks.
#[derive(Default)]
struct Tables {
    texts: Vec<String>,
    text_numbers: HashMap<String, usize>,
    files: Vec<usize>,
    file_numbers: HashMap<usize, usize>,
    functions: Vec<Function>,
    function_numbers: HashMap<Frame, usize>,
    /// Caller and function.
    stacks: Vec<(Option<usize>, usize)>,
}

struct Function {
    name: usize,
    file: Option<usize>,
    line: Option<u32>,
    kind: Kind,
}

impl Tables {
    fn text(&mut self, text: &str) -> usize {
        if let Some(known) = self.text_numbers.get(text) {
            return *known;
        }
        self.texts.push(text.to_owned());
        self.text_numbers.insert(text.to_owned(), self.texts.len() - 1);
        self.texts.len() - 1
    }

    fn file(&mut self, path: &str) -> usize {
        let text = self.text(path);
        *self.file_numbers.entry(text).or_insert_with(|| {
            self.files.push(text);
            self.files.len() - 1
        })
    }

    fn function(&mut self, frame: &Frame) -> usize {
        if let Some(known) = self.function_numbers.get(frame) {
            return *known;
        }
        let path = match &frame.package {
            Some(Package { name, version: Some(version) }) if !frame.file.is_empty() => {
                format!("{name}@{version}/{}", frame.file)
            }
            _ => path(frame),
        };
        let function = Function {
            name: self.text(&frame.function),
            file: (!path.is_empty()).then(|| self.file(&path)),
            line: (frame.line > 0).then_some(frame.line),
            kind: frame.kind,
        };
        self.functions.push(function);
        self.function_numbers.insert(frame.clone(), self.functions.len() - 1);
        self.functions.len() - 1
    }

    fn thread(&mut self, index: usize, name: &str, (tree, unit): (&Tree, Unit)) -> Value {
        let (one, weight_type) = match unit.is_time() {
            true => (unit.nanoseconds() / NS_PER_MS, "tracing-ms"),
            false => (1.0, "bytes"),
        };
        let functions: Vec<usize> = tree.frames.iter().map(|frame| self.function(frame)).collect();
        let first = self.stacks.len();
        let (mut stacks, mut weights) = (Vec::new(), Vec::new());
        for (place, node) in tree.nodes.iter().enumerate() {
            let Some(function) = functions.get(node.frame) else {
                // A stack must be there for what comes after it: that of its caller stands in.
                let stand_in = functions.first().copied().unwrap_or_default();
                self.stacks.push((tree.caller(place).map(|caller| first + caller), stand_in));
                continue;
            };
            self.stacks.push((tree.caller(place).map(|caller| first + caller), *function));
            if node.self_value > 0.0 && node.self_value.is_finite() {
                stacks.push(first + place);
                weights.push(node.self_value * one);
            }
        }
        let length = |weight: &f64| if unit.is_time() { *weight } else { 1.0 };
        let mut times = vec![0.0];
        times.extend(weights.iter().map(length));
        times.truncate(weights.len());
        json!({
            "name": name,
            "isMainThread": true,
            "processType": "default",
            "processName": name,
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pausedRanges": [],
            "showMarkersInTimeline": false,
            "pid": (index + 1).to_string(),
            "tid": (index + 1).to_string(),
            "samples": {
                "length": stacks.len(),
                "weightType": weight_type,
                "stack": stacks,
                "timeDeltas": times,
                "weight": weights,
            },
            "markers": {
                "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [],
            },
        })
    }

    fn shared(&self) -> Value {
        let functions = &self.functions;
        let none = || vec![Value::Null; functions.len()];
        let each = |value: i64| vec![value; functions.len()];
        let category = |function: &Function| {
            Kind::ALL.iter().position(|kind| *kind == function.kind).unwrap_or_default()
        };
        let scripted = |function: &Function| {
            !matches!(function.kind, Kind::Native | Kind::Kernel | Kind::Gc | Kind::Jit)
        };
        json!({
            "stringArray": self.texts,
            "sources": {
                "length": self.files.len(),
                "id": vec![Value::Null; self.files.len()],
                "filename": self.files,
                "startLine": vec![1; self.files.len()],
                "startColumn": vec![1; self.files.len()],
                "sourceMapURL": vec![Value::Null; self.files.len()],
            },
            "funcTable": {
                "length": functions.len(),
                "name": functions.iter().map(|it| it.name).collect::<Vec<_>>(),
                "isJS": functions.iter().map(scripted).collect::<Vec<_>>(),
                "relevantForJS": vec![false; functions.len()],
                "resource": each(-1),
                "source": functions.iter().map(|it| it.file).collect::<Vec<_>>(),
                "lineNumber": functions.iter().map(|it| it.line).collect::<Vec<_>>(),
                "columnNumber": none(),
            },
            "frameTable": {
                "length": functions.len(),
                "address": each(-1),
                "inlineDepth": each(0),
                "category": functions.iter().map(category).collect::<Vec<_>>(),
                "subcategory": each(0),
                "func": (0..functions.len()).collect::<Vec<_>>(),
                "nativeSymbol": none(),
                "innerWindowID": each(0),
                "line": functions.iter().map(|it| it.line).collect::<Vec<_>>(),
                "column": none(),
            },
            "stackTable": {
                "length": self.stacks.len(),
                "prefix": self.stacks.iter().map(|(caller, _)| *caller).collect::<Vec<_>>(),
                "frame": self.stacks.iter().map(|(_, function)| *function).collect::<Vec<_>>(),
            },
            "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
            "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
        })
    }
}
