//! The effects of factors, in words: which are shown, and what is said of the others.

use analysis::{Conclusion, Effect, Kind, Outcome};

use super::answer::{VOID, metric_name, verdict};
use super::{EffectLine, Effects};
use crate::figure::change;

/// Of more effects than this, interactions without an answer are only counted.
const SHOWN_MAX: usize = 8;

/// The section; `None` where the experiment has fewer than two factors.
pub(super) fn effects(conclusion: &Conclusion) -> Option<Effects> {
    let all = &conclusion.effects;
    let metric = metric_name(all.first()?.metric);
    let heading = format!("Effects of factors on {metric}, each averaged over the other factors");
    if all.iter().all(|effect| effect.outcome == Outcome::Void) {
        return Some(Effects { heading, lines: Vec::new(), note: Some(format!("void: {VOID}")) });
    }
    if all.iter().all(|effect| effect.estimate.is_none()) {
        let waits = conclusion.awaits_look;
        let lost = conclusion.variants.iter().any(|variant| variant.no_success.is_some());
        let reason = match (waits, lost) {
            (true, _) => "no interval before the end of the run",
            (false, true) => "no estimate: it takes a figure of every variant, and one had no success",
            (false, false) => "no estimate",
        };
        return Some(Effects { heading, lines: Vec::new(), note: Some(reason.to_owned()) });
    }
    let counted = |effect: &&Effect| {
        let open = effect.kind == Kind::Interaction && effect.outcome == Outcome::Inconclusive;
        all.len() > SHOWN_MAX && open
    };
    let hidden = all.iter().filter(counted).count();
    let note = match hidden {
        0 => None,
        1 => Some("1 more interaction is inconclusive; JSON has it".to_owned()),
        more => Some(format!("{more} more interactions are inconclusive; JSON has them")),
    };
    Some(Effects { heading, lines: all.iter().filter(|effect| !counted(effect)).map(line).collect(), note })
}

fn line(effect: &Effect) -> EffectLine {
    let word = match (effect.kind, effect.outcome) {
        (Kind::Interaction, Outcome::Better | Outcome::Worse) => "depends",
        (Kind::Interaction, Outcome::Equivalent) => "does not depend",
        (_, outcome) => verdict(outcome, effect.metric),
    };
    let detail =
        effect.estimate.as_ref().map(change).map(|(value, interval)| format!("{value} ({interval})"));
    EffectLine {
        label: effect.label.clone(),
        kind: effect.kind,
        outcome: effect.outcome,
        verdict: word.to_owned(),
        detail: detail.unwrap_or_else(|| "no estimate".to_owned()),
    }
}
