//! What makes an explanation doubtful: names, what they mean and what to do about them.
//!
//! A flaw is what one part saw, a doubt is what people read: flaws of the same name of the same service in the same variant become one,
//! with the first one's figures and how many there are.

use crate::Doubt;

/// What the lab says of a service without any process of Node.js, in lower case.
pub(crate) const NOT_NODE: &str = "does not run node.js";

/// Something that one part of an explanation saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Stable name.
    pub check: &'static str,
    /// What was seen, with its figures.
    pub evidence: String,
}

impl Flaw {
    pub fn new(check: &'static str, evidence: impl Into<String>) -> Flaw {
        Flaw { check, evidence: evidence.into() }
    }

    /// What a reader of profiles noted, or what could not be captured, filed under what it is about; else under `otherwise`.
    pub fn noted(note: &str, otherwise: &'static str) -> Flaw {
        let lower = note.to_ascii_lowercase();
        let about = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let check = if about(&["minified", "source map"]) {
            "minified"
        } else if about(&["native profile", "perf event", "perf_event"]) {
            "perf_not_allowed"
        } else if about(&["cut off"]) {
            "profile_cut_off"
        } else if about(&["has no agent", NOT_NODE]) {
            "agent_missing"
        } else if about(&["the agent in pid", "ended in the window"]) {
            "agent_lost"
        } else {
            otherwise
        };
        Flaw::new(check, note)
    }
}

/// All doubts of an explanation, in the order in which they came up.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    found: Vec<(Doubt, u32)>,
}

impl Doubts {
    /// Takes in a flaw. `whose` is what it is about, such as `api in production`; empty where it is about all.
    pub fn add(&mut self, whose: &str, flaw: Flaw) {
        let begin = if whose.is_empty() { String::new() } else { format!("{whose}: ") };
        let same =
            |(doubt, _): &&mut (Doubt, u32)| doubt.check == flaw.check && doubt.evidence.starts_with(&begin);
        match self.found.iter_mut().find(same).filter(|_| !whose.is_empty()) {
            Some((_, more)) => *more += 1,
            None => self.found.push((
                Doubt {
                    check: flaw.check.into(),
                    evidence: format!("{begin}{}", flaw.evidence),
                    remedy: remedy(flaw.check).into(),
                },
                0,
            )),
        }
    }

    /// As reports show them.
    pub fn finish(self) -> Vec<Doubt> {
        let told = |(doubt, more): (Doubt, u32)| match more {
            0 => doubt,
            more => Doubt { evidence: format!("{} (and {more} more like it)", doubt.evidence), ..doubt },
        };
        self.found.into_iter().map(told).collect()
    }
}

/// What each means and what to do.
fn remedy(check: &str) -> &'static str {
    match check {
        "agent_missing" => {
            "its functions of JavaScript are not seen, only its threads, and compiled code where native profiles are allowed: it is not \
             Node.js, its Node.js is older than 18, it sets NODE_OPTIONS itself or closes descriptors that it does not know; have it keep \
             the NODE_OPTIONS that it was given"
        }
        "agent_lost" => {
            "the process ended or closed the agent's socket while it was watched, and its CPU time is unexplained; see the service's logs \
             in the record"
        }
        "worker_unprofiled" => {
            "its JavaScript is not seen and its CPU time is unexplained; the others' profiles may still be like its own"
        }
        "node_too_old" => {
            "its functions of JavaScript are not seen, only its threads, and compiled code where native profiles are allowed: run it with \
             Node.js 18 or later; or profile it by hand with `node --cpu-prof`, which 12 has, and read that with `proofload profile FILE`"
        }
        "profile_cut_off" => {
            "a part of the window or the whole profile is missing: the process may have ended, or the disk may be full; run it again"
        }
        "samples_stretched" => {
            "the processor was shared or taken away while profiles were taken, so the costs of functions are shares of what the thread \
             really ran; give services processors of their own for finer figures"
        }
        "profiler_tax" => {
            "the profiler changed what it looked at; costs are of the service with it, and what is called often looks more expensive \
             than it is"
        }
        "not_steady" => {
            "the windows of a trial are not alike, so what they are held against each other for is doubtful: the service was still \
             warming up, or the machine changed; a longer `design.warmup` helps with the first"
        }
        "tax_unknown" => {
            "without a window that has no profiler in it its cost is not known; run the captures again"
        }
        "perf_not_allowed" => {
            "compiled code and the kernel are seen by thread only, not by function; allow it with \
             `sysctl kernel.perf_event_paranoid=1` or CAP_PERFMON, and run the captures again"
        }
        "minified" => {
            "names and lines are those of the minified file; put its source map beside it to have those of the source"
        }
        "profile_note" => "names or times are a little poorer than they could be; figures stand",
        "no_requests" => {
            "nothing was answered well while it was captured, so there is no cost per request; see the errors of the measured part first"
        }
        "too_few_samples" => {
            "shares of functions are uncertain by several per cent; capture longer, or load it with more connections"
        }
        "one_round" => {
            "there is nothing to see chance by, so differences have no interval; capture three rounds or more"
        }
        "unexplained" => {
            "a part of the CPU time is in no profile, such as that of processes that were not profiled or had ended; what is missing may \
             be what differs"
        }
        "explained_too_much" => {
            "profiles claim more CPU time than the kernel counted; their clocks or their windows do not fit, so do not rely on the amounts"
        }
        "versions_differ" => {
            "a different Node.js is a difference of its own, unless it is what the experiment varies"
        }
        "unpaired" => "the variants were not captured in the same rounds, so the difference has no interval",
        _ => "this part of the explanation is missing; the rest stands",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_of_the_same_is_told_once() {
        let mut doubts = Doubts::default();
        for round in 1..=3 {
            doubts.add("api in production", Flaw::new("profile_cut_off", format!("round {round}")));
        }
        doubts.add("api in development", Flaw::new("profile_cut_off", "another"));
        doubts.add("", Flaw::new("one_round", "1 round"));
        let found = doubts.finish();
        let evidence: Vec<&str> = found.iter().map(|doubt| doubt.evidence.as_str()).collect();
        let first = "api in production: round 1 (and 2 more like it)";
        assert_eq!(evidence, [first, "api in development: another", "1 round"]);
        assert!(found.iter().all(|doubt| !doubt.remedy.is_empty()));
    }

    #[test]
    fn a_note_is_filed_under_what_it_is_about() {
        let check = |note: &str| Flaw::noted(note, "not_captured").check;
        assert_eq!(
            check("the kernel does not allow native profiles: kernel.perf_event_paranoid is 4"),
            "perf_not_allowed"
        );
        assert_eq!(
            check("node server.js (pid 7) has no agent: the service sets NODE_OPTIONS itself"),
            "agent_missing"
        );
        assert_eq!(check("the agent in pid 7: it closed its socket"), "agent_lost");
        assert_eq!(
            check("it does not run Node.js: there is CPU by thread, and no profile of JavaScript"),
            "agent_missing"
        );
        assert_eq!(check("bundle.js looks minified and has no source map"), "minified");
        assert_eq!(check("profile-7.cpuprofile is cut off after 12 MB"), "profile_cut_off");
        assert_eq!(check("something else"), "not_captured");
    }
}
