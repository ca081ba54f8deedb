//! Functions that stand elsewhere in a variant and are the same: of another commit, or of another version of their package.
//!
//! **Method.** A function that only one side has is the same as one that only the other side has where both have the same name, are of the
//! same kind of code and of the same package, and neither side has a second one of which that is true. Where there are several, such as
//! `handle` of three routers, nobody can tell which became which. Names of one or two letters are those of a minifier, which gives them
//! anew each time; functions without a name of their own are called after their place, and never join.

use std::collections::BTreeMap;

use crate::{Frame, Kind, Tree};

/// Names shorter than this say nothing.
const NAME_CHARS_MIN: usize = 3;

/// What a function is known by where its place has changed: its service where files carry that, its package, whose code it is, its name.
type Known<'a> = (Option<&'a str>, Option<&'a str>, Kind, &'a str);

/// Functions of the baseline that stand elsewhere in the variant, each with what it is there.
pub fn moved(baseline: &Tree, variant: &Tree) -> BTreeMap<Frame, Frame> {
    let (before, after) = (by_name(baseline), by_name(variant));
    let pair =
        |(known, frames): (&Known<'_>, &Vec<&Frame>)| match (frames.as_slice(), after.get(known)?.as_slice())
        {
            ([from], [to]) if from != to => Some(((*from).clone(), (*to).clone())),
            _ => None,
        };
    before.iter().filter_map(pair).collect()
}

fn by_name(tree: &Tree) -> BTreeMap<Known<'_>, Vec<&Frame>> {
    let mut frames: BTreeMap<Known<'_>, Vec<&Frame>> = BTreeMap::new();
    for frame in tree.frames.iter().filter(|frame| is_named(frame)) {
        frames.entry(known(frame)).or_default().push(frame);
    }
    frames
}

fn is_named(frame: &Frame) -> bool {
    let name = &frame.function;
    !frame.file.is_empty() && !name.starts_with('(') && name.chars().nth(NAME_CHARS_MIN - 1).is_some()
}

fn known(frame: &Frame) -> Known<'_> {
    // As `difference` puts it in front of a file of the service's own.
    let service =
        frame.file.split_once(": ").map(|(service, _)| service).filter(|_| frame.kind == Kind::Application);
    (service, frame.package.as_ref().map(|package| package.name.as_str()), frame.kind, &frame.function)
}
