//! Time by place of a profile, within a window: the arithmetic of intervals, gaps and shares. It must not name anything.

use super::{COVERED_SHARE_MIN, GAP_INTERVALS, GAP_SHARE_NOTED, GAP_US_MIN, LINES_SHARE_MIN, Window};
use crate::CpuProfile;
use crate::doubt::Note;

/// As many intervals are looked at to find the usual one.
const LOOKED_AT_MAX: usize = 1 << 20;
/// Fewer samples than this tell nothing of what is usual.
const USUAL_SAMPLES_MIN: usize = 20;

/// Time by place.
pub(super) struct Spent {
    /// Of each place itself, in nanoseconds.
    pub self_ns: Vec<f64>,
    /// Of calls that the profile does not have.
    pub unknown_ns: f64,
    /// Samples of each place in the profile.
    pub whole: Vec<u32>,
    /// Those that lie in the window.
    inside: Vec<u32>,
    pub covered_ns: f64,
    pub capped_ns: f64,
    pub samples: u64,
}

impl Spent {
    pub fn within(profile: &CpuProfile, window: Option<Window>) -> Self {
        let nodes = profile.nodes.len();
        let longest = longest_us(profile);
        let mut spent = Self {
            self_ns: vec![0.0; nodes],
            unknown_ns: 0.0,
            whole: vec![0; nodes],
            inside: vec![0; nodes],
            covered_ns: 0.0,
            capped_ns: 0.0,
            samples: 0,
        };
        let window = window.map_or((i128::MIN, i128::MAX), |window| {
            (i128::from(window.start_ns), i128::from(window.end_ns))
        });
        each_interval(profile, |node, begin_us, end_us| {
            let counted_us = longest.map_or(end_us, |longest| end_us.min(begin_us.saturating_add(longest)));
            spent.add(node as usize, (begin_us, counted_us, end_us), window);
        });
        spent
    }

    fn add(&mut self, node: usize, (begin, counted, end): (i64, i64, i64), window: (i128, i128)) {
        let ns = |us: i64| i128::from(us) * 1000;
        let time = overlap((ns(begin), ns(counted)), window);
        let gap = overlap((ns(counted), ns(end)), window);
        self.covered_ns += time;
        self.capped_ns += gap;
        let touches = ns(begin) < window.1 && (ns(end) > window.0 || (begin == end && ns(end) >= window.0));
        self.samples += u64::from(touches);
        match (self.self_ns.get_mut(node), self.whole.get_mut(node), self.inside.get_mut(node)) {
            (Some(own), Some(whole), Some(inside)) => {
                *own += time;
                *whole = whole.saturating_add(1);
                *inside = inside.saturating_add(u32::from(touches));
            }
            _ => self.unknown_ns += time,
        }
    }

    /// Whether what the profile says of a place's lines may be said of the window.
    pub fn has_lines(&self, node: usize) -> bool {
        let (inside, whole) = (f64::from(self.inside[node]), f64::from(self.whole[node]));
        self.self_ns[node] > 0.0 && inside >= LINES_SHARE_MIN * whole
    }

    pub fn notes(&self, profile: &CpuProfile, window: Option<Window>) -> Vec<Note> {
        let mut notes = Vec::new();
        let had = self.covered_ns + self.capped_ns;
        if self.capped_ns > GAP_SHARE_NOTED * had {
            let (gaps, all) = (self.capped_ns / 1e6, had / 1e6);
            let text = format!(
                "{gaps:.1} ms of {all:.1} ms lie in gaps between samples, where the sampler or this machine was held up: no function has them"
            );
            notes.push(Note::remark(text));
        }
        if let Some(window) = window {
            let asked = window.end_ns.saturating_sub(window.start_ns) as f64;
            if had < COVERED_SHARE_MIN * asked {
                let (begin, end) = profile.span_ns();
                // An explanation judges by itself how much of a window is covered.
                notes.push(Note::aside(format!(
                    "the profile has {:.1} ms of the window of {:.1} ms: it spans {begin} to {end} ns, the window {} to {} ns",
                    had / 1e6,
                    asked / 1e6,
                    window.start_ns,
                    window.end_ns
                )));
            }
        }
        notes
    }
}

/// Place, begin and end of what each sample stands for, in microseconds.
fn each_interval(profile: &CpuProfile, mut visit: impl FnMut(u32, i64, i64)) {
    let mut at = profile.start_us;
    let mut last: Option<(u32, i64)> = None;
    for (node, delta) in profile.samples.iter().zip(&profile.deltas_us) {
        at = at.saturating_add(i64::from(*delta));
        if let Some((node, begin)) = last {
            visit(node, begin, at);
        }
        last = Some((*node, at));
    }
    if let Some((node, begin)) = last {
        visit(node, begin, profile.end_us.max(begin));
    }
}

/// The longest interval that counts in full; none where intervals say nothing about gaps.
fn longest_us(profile: &CpuProfile) -> Option<i64> {
    let deltas = profile.deltas_us.get(1..)?;
    let summed = profile.summed || profile.samples.windows(2).all(|pair| pair[0] != pair[1]);
    if summed || deltas.len() < USUAL_SAMPLES_MIN {
        return None;
    }
    let stride = deltas.len().div_ceil(LOOKED_AT_MAX);
    let mut looked_at: Vec<i32> = deltas.iter().step_by(stride).copied().filter(|delta| *delta > 0).collect();
    if looked_at.is_empty() {
        return None;
    }
    let middle = looked_at.len() / 2;
    let (_, usual, _) = looked_at.select_nth_unstable(middle);
    Some((i64::from(*usual) * GAP_INTERVALS).max(GAP_US_MIN))
}

/// What two spans have in common, in nanoseconds.
fn overlap(one: (i128, i128), other: (i128, i128)) -> f64 {
    (one.1.min(other.1) - one.0.max(other.0)).max(0) as f64
}
