//! The gathered contents as JSON: names once, trees as columns of numbers, texts no longer than can be read.
//!
//! The form is private to the page that it stands in; only `model.js` reads it. It must not write a name in a way that a browser
//! could take for markup.

use std::collections::HashMap;

use explain::{Comparison, Explanation, Interval, Kind};
use serde::{Serialize, Serializer};

use super::{Contents, Grove};
use crate::flame::colour::number;
use crate::flame::forest::{Name, Pruned};
use crate::html::in_script;
use crate::names::{cut, shown};

/// What is shown of a text, of a list of doubts, and of one of comparisons.
const TEXT_CHARACTERS_MAX: usize = 2_000;
const DOUBTS_MAX: usize = 40;
const COMPARISONS_MAX: usize = 100;

#[derive(Serialize)]
struct Page {
    unit: String,
    kinds: Vec<&'static str>,
    variants: Vec<String>,
    frames: Vec<FrameShown>,
    groves: Vec<GroveShown>,
    comparisons: Vec<ComparisonShown>,
    doubts: Vec<[String; 2]>,
}

/// Function, file, line, number of the kind, package with its version.
#[derive(Serialize)]
struct FrameShown(String, String, u32, usize, String);

#[derive(Serialize)]
struct GroveShown {
    service: String,
    measure: &'static str,
    unit: String,
    /// Of each call path: index of the function, and of the caller's path, −1 for none.
    frame: Vec<usize>,
    parent: Vec<i64>,
    members: Vec<MemberShown>,
    /// How many call paths were summed up, and below which share of the time; what they are is a function without a file.
    smaller: usize,
    share: f64,
}

#[derive(Serialize)]
struct MemberShown {
    variant: usize,
    requests: u64,
    cpu: Option<[Figure; 3]>,
    own: Vec<Figure>,
    /// Index of the function, line, time.
    lines: Vec<(usize, u32, Figure)>,
}

#[derive(Serialize)]
struct ComparisonShown {
    baseline: String,
    variant: String,
    measured: [Figure; 3],
    said: Vec<String>,
    /// Index of the function, difference and its interval, where they are of the one service that there is.
    functions: Vec<(usize, Figure, Figure, Figure)>,
}

/// A number with the digits that matter: they are most of the page.
struct Figure(f64);

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const WHOLE_MAX: f64 = 9e15;
        let value = if self.0.is_finite() { self.0 } else { 0.0 };
        let short: f64 = format!("{value:.5e}").parse().unwrap_or(value);
        if short.fract() == 0.0 && short.abs() < WHOLE_MAX {
            serializer.serialize_i64(short as i64)
        } else {
            serializer.serialize_f64(short)
        }
    }
}

/// The functions that are in the page, each once.
#[derive(Default)]
struct Functions<'a> {
    index: HashMap<Name<'a>, usize>,
    list: Vec<FrameShown>,
}

impl<'a> Functions<'a> {
    fn index(&mut self, name: Name<'a>) -> usize {
        *self.index.entry(name).or_insert_with(|| {
            self.list.push(frame_shown(name));
            self.list.len() - 1
        })
    }
}

/// The JSON, without the calls that are below `share` in every variant.
pub(super) fn json(contents: &Contents<'_>, share: f64) -> String {
    let mut functions = Functions::default();
    let groves: Vec<_> =
        contents.groves.iter().map(|grove| grove_shown(grove, share, &mut functions)).collect();
    let one_service = contents.groves.iter().all(|grove| grove.service == contents.groves[0].service);
    let said = |explanation: &Explanation| {
        let comparisons = explanation.comparisons.iter().take(COMPARISONS_MAX);
        comparisons.map(|one| comparison_shown(one, one_service, &functions)).collect()
    };
    let comparisons = contents.explanation.map(said).unwrap_or_default();
    let page = Page {
        unit: contents.unit.clone(),
        kinds: Kind::ALL.map(Kind::name).to_vec(),
        variants: contents.variants.iter().map(|name| shown(name)).collect(),
        groves,
        comparisons,
        doubts: contents.explanation.map(doubts_shown).unwrap_or_default(),
        frames: functions.list,
    };
    in_script(&serde_json::to_string(&page).unwrap_or_default())
}

fn grove_shown<'a>(grove: &Grove<'a>, share: f64, functions: &mut Functions<'a>) -> GroveShown {
    let Pruned { forest, smaller } = grove.forest.pruned(share);
    let member_shown = |(column, member): (usize, &super::Member<'a>)| MemberShown {
        variant: member.variant,
        requests: member.requests,
        cpu: member.cpu.map(figures),
        own: forest.places.iter().map(|place| Figure(place.own[column])).collect(),
        lines: (member.lines.iter())
            .map(|line| (functions.index(Name::Function(line.frame)), line.line, Figure(line.own)))
            .collect(),
    };
    let members = grove.members.iter().enumerate().map(member_shown).collect();
    GroveShown {
        service: shown(grove.service),
        measure: grove.measure,
        unit: grove.unit.clone(),
        frame: forest.places.iter().map(|place| functions.index(place.name)).collect(),
        parent: (forest.places.iter())
            .map(|place| place.parent.map_or(-1, |parent| i64::try_from(parent).unwrap_or(-1)))
            .collect(),
        members,
        smaller,
        share,
    }
}

fn frame_shown(name: Name<'_>) -> FrameShown {
    match name {
        Name::Smaller(kind) => FrameShown("(smaller)".into(), String::new(), 0, number(kind), String::new()),
        Name::Function(frame) => {
            let package = frame.package.as_ref().map(|package| match &package.version {
                Some(version) => shown(&format!("{}@{version}", package.name)),
                None => shown(&package.name),
            });
            let (function, file) = (shown(&frame.function), shown(&frame.file));
            FrameShown(function, file, frame.line, number(frame.kind), package.unwrap_or_default())
        }
    }
}

fn comparison_shown(one: &Comparison, one_service: bool, functions: &Functions<'_>) -> ComparisonShown {
    let said = [Some(&one.reconciliation), one.story.as_ref(), one.waiting.as_ref()];
    let changes = one.functions.iter().filter(|_| one_service).filter_map(|change| {
        let index = functions.index.get(&Name::Function(&change.what))?;
        let [value, low, high] = figures(change.difference);
        Some((*index, value, low, high))
    });
    ComparisonShown {
        baseline: shown(&one.baseline),
        variant: shown(&one.variant),
        measured: figures(one.measured_us),
        said: said.into_iter().flatten().map(|text| cut(text, TEXT_CHARACTERS_MAX)).collect(),
        functions: changes.collect(),
    }
}

fn doubts_shown(explanation: &Explanation) -> Vec<[String; 2]> {
    let doubts = explanation.doubts.iter().take(DOUBTS_MAX);
    let left_out = explanation.doubts.len().saturating_sub(DOUBTS_MAX);
    let last =
        (left_out > 0).then(|| [format!("{left_out} more are in the explanation itself"), String::new()]);
    let texts =
        doubts.map(|doubt| [&doubt.evidence, &doubt.remedy].map(|text| cut(text, TEXT_CHARACTERS_MAX)));
    texts.chain(last).collect()
}

fn figures(interval: Interval) -> [Figure; 3] {
    [interval.value, interval.low, interval.high].map(Figure)
}
