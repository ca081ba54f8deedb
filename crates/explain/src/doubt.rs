//! Doubts about an explanation: names, meanings and remedies.
//!
//! A note is an observation of one part. A doubt is shown to people: notes of one kind about the same service
//! and variant become one doubt, with the figures of the first and a count.

use model::{Absence, Finding, FindingCode};
use serde::Deserialize;

/// Defines the kinds of doubts: each with its stable name, and with its meaning and remedy.
macro_rules! kinds {
    ($($(#[$about:meta])+ $kind:ident $code:literal $remedy:literal)+) => {
        /// The kinds of doubts about an explanation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        pub enum DoubtKind {
            $($(#[$about])+ #[serde(rename = $code)] $kind,)+
        }

        /// In the order of the kinds.
        const TABLE: &[(&str, &str)] = &[$(($code, $remedy)),+];
    };
}

kinds! {
    /// A process has no agent.
    AgentMissing "agent_missing"
    "functions of JavaScript are unknown; threads are known, and compiled code where native profiles are allowed. Either it \
     is not Node.js, or its Node.js is older than 18, or it sets NODE_OPTIONS itself or closes descriptors that it does not \
     know: have it keep the NODE_OPTIONS that it was given"
    /// An agent disappeared.
    AgentLost "agent_lost"
    "the process ended or closed the agent's socket while it was watched, and its CPU time is unexplained; see the \
     service's logs in the record"
    /// A worker has no profile while others have one.
    WorkerUnprofiled "worker_unprofiled"
    "its JavaScript is unknown and its CPU time is unexplained; the profiles of the others may still be like its own"
    /// A Node.js that cannot be profiled.
    NodeTooOld "node_too_old"
    "functions of JavaScript are unknown; threads are known, and compiled code where native profiles are allowed. Run it \
     with Node.js 18 or later; or profile it by hand with `node --cpu-prof`, which 12 has, and read that with `proofload \
     profile FILE`"
    /// A profile lacks its end, or covers little of its window.
    ProfileCutOff "profile_cut_off"
    "a part of the window or the whole profile is missing: the process may have ended, or the disk may be full; run it \
     again"
    /// Samples exceed the CPU time counted by the kernel.
    SamplesStretched "samples_stretched"
    "other work shared the processor while profiles were taken, so the costs of functions are shares of what the thread \
     really ran; give services processors of their own for finer figures"
    /// The profiler had a high overhead.
    ProfilerTax "profiler_tax"
    "the profiler changed what it observed; costs are of the service with it, and functions that are called often look more \
     expensive than they are"
    /// Windows of one trial are not comparable.
    NotSteady "not_steady"
    "the windows of a trial are not alike, so comparing them is doubtful: the service was still warming up, or the machine \
     changed; a longer `design.warmup` helps with the first"
    /// There is no window without a profiler.
    TaxUnknown "tax_unknown"
    "without a window that has no profiler in it its cost is not known; run the captures again"
    /// The kernel refuses native stacks.
    PerfNotAllowed "perf_not_allowed"
    "compiled code and the kernel are known by thread only, not by function; allow it with `sysctl \
     kernel.perf_event_paranoid=1` or CAP_PERFMON, and run the captures again"
    /// Names and lines come from minified code.
    Minified "minified"
    "names and lines are those of the minified file; put its source map beside it to have those of the source"
    /// A remark on a profile.
    ProfileNote "profile_note"
    "names or times are a little less exact than they could be; figures stand"
    /// A window without a successful response.
    NoRequests "no_requests"
    "there was no successful response during the capture, so there is no cost per request; see the errors of the measured \
     part first"
    /// Few samples.
    TooFewSamples "too_few_samples"
    "shares of functions are uncertain by several per cent; capture longer, or load it with more connections"
    /// One round of captures.
    OneRound "one_round"
    "one round cannot show chance, so differences have no interval; capture three rounds or more"
    /// Profiles cover too little of the CPU time.
    Unexplained "unexplained"
    "a part of the CPU time is in no profile, such as that of processes that were not profiled or had ended; what is \
     missing may be what differs"
    /// Profiles cover more than the measured CPU time.
    ExplainedTooMuch "explained_too_much"
    "profiles claim more CPU time than the kernel counted; their clocks or their windows do not fit, so do not rely on the \
     amounts"
    /// Variants ran on different versions of Node.js.
    VersionsDiffer "versions_differ"
    "a different Node.js is a difference of its own, unless it is what the experiment varies"
    /// Variants without a common round.
    Unpaired "unpaired"
    "the variants were not captured in the same rounds, so the difference has no interval"
    /// Anything else that could not be captured, and kinds added by later versions.
    #[serde(other)]
    NotCaptured "not_captured"
    "this part of the explanation is missing; the rest stands"
}

impl FindingCode for DoubtKind {
    fn code(&self) -> &str {
        TABLE[*self as usize].0
    }
}

impl DoubtKind {
    /// The kind of doubt for an absence in a capture.
    pub(crate) fn of(absence: Absence) -> DoubtKind {
        match absence {
            Absence::Agent | Absence::NotNode => DoubtKind::AgentMissing,
            Absence::Gone => DoubtKind::AgentLost,
            Absence::NativeStacks => DoubtKind::PerfNotAllowed,
            Absence::Other => DoubtKind::NotCaptured,
        }
    }
}

/// An observation of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The resulting doubt. `None` if it matters only to readers of the single profile.
    pub doubt: Option<DoubtKind>,
    /// The observation with its figures.
    pub text: String,
}

impl Note {
    /// A reason to doubt.
    pub(crate) fn new(doubt: DoubtKind, text: impl Into<String>) -> Note {
        Note {
            doubt: Some(doubt),
            text: text.into(),
        }
    }

    /// A remark on a profile.
    pub(crate) fn remark(text: impl Into<String>) -> Note {
        Note::new(DoubtKind::ProfileNote, text)
    }

    /// A note that matters only to readers of the single profile.
    pub(crate) fn aside(text: impl Into<String>) -> Note {
        Note {
            doubt: None,
            text: text.into(),
        }
    }
}

/// A doubt about an explanation, or a missing part of it.
pub type Doubt = Finding<DoubtKind>;

/// All doubts of an explanation in order: subject, kind, observation, and the number of further ones like it.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Vec<(String, DoubtKind, String, u32)>);

impl Doubts {
    /// Adds a note. `whose` is its subject, such as `api in production`. Empty if it concerns everything.
    pub fn add(&mut self, whose: &str, note: Note) {
        let Some(kind) = note.doubt else { return };
        match self
            .0
            .iter_mut()
            .find(|(of, one, ..)| *one == kind && of == whose && !whose.is_empty())
        {
            Some((.., more)) => *more += 1,
            None => self.0.push((whose.to_owned(), kind, note.text, 0)),
        }
    }

    /// Returns the doubts as shown in reports.
    pub fn finish(self) -> Vec<Doubt> {
        let doubt = |(whose, kind, text, more): (String, DoubtKind, String, u32)| {
            let begin = if whose.is_empty() {
                String::new()
            } else {
                format!("{whose}: ")
            };
            let end = if more == 0 {
                String::new()
            } else {
                format!(" (and {more} more like it)")
            };
            Finding::note(kind, format!("{begin}{text}{end}"), TABLE[kind as usize].1)
        };
        self.0.into_iter().map(doubt).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_of_the_same_is_told_once() {
        let mut doubts = Doubts::default();
        for round in 1..=3 {
            let note = Note::new(DoubtKind::ProfileCutOff, format!("round {round}"));
            doubts.add("api in production", note);
        }
        doubts.add(
            "api in development",
            Note::new(DoubtKind::ProfileCutOff, "another"),
        );
        doubts.add("api in development", Note::aside("of no concern here"));
        doubts.add("", Note::new(DoubtKind::OneRound, "1 round"));
        let found = doubts.finish();
        let evidence: Vec<&str> = found.iter().map(|doubt| doubt.evidence.as_str()).collect();
        let first = "api in production: round 1 (and 2 more like it)";
        assert_eq!(evidence, [first, "api in development: another", "1 round"]);
    }

    #[test]
    fn an_explanation_of_another_version_opens_whatever_it_doubts() {
        let doubt = |check: &str| {
            let json = serde_json::json!({ "check": check, "grade": "note", "evidence": "e", "remedy": "r" });
            serde_json::from_value::<Doubt>(json)
                .map(|doubt| doubt.check)
                .ok()
        };
        assert!(
            TABLE
                .iter()
                .all(|(code, _)| doubt(code).is_some_and(|kind| kind.code() == *code))
        );
        assert_eq!(doubt("of_tomorrow"), Some(DoubtKind::NotCaptured));
    }
}
