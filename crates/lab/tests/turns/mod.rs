//! Windows of turns count what a service gives, also where all its responses come at once.

use proofload_lab::Turn;
use record::SliceKind;

/// Responses of one connection per second, as turns count them: they come every `period_s` from a turn's begin on.
fn counted_per_s(turn: Turn, period_s: f64) -> f64 {
    let turns = 0..1000;
    let ends = |number: usize| {
        let lead_s = turn.lead_ns(number) as f64 / 1e9;
        (lead_s, lead_s + turn.seconds)
    };
    let until = |s: f64| (s / period_s).floor();
    let counted: f64 = turns.clone().map(ends).map(|(from, to)| until(to) - until(from)).sum();
    counted / (turns.len() as f64 * turn.seconds)
}

#[test]
fn what_comes_in_step_is_counted_as_often_as_it_comes() {
    for period_s in [0.031, 0.43, 0.27, 0.4001] {
        let turn = Turn { kind: SliceKind::Measured, seconds: 1.29, lead_s: 0.43 };
        let ratio = counted_per_s(turn, period_s) * period_s;
        assert!((0.95..1.05).contains(&ratio), "{period_s} s: {ratio}");
    }
}
