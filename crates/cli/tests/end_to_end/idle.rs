//! `proofload run` if trials are idle between their turns long enough for a server to close their
//! connections.

use crate::place::{Draft, Place};

#[test]
#[ignore = "slow: make check-slow"]
fn connections_that_rested_while_others_had_their_turn_are_opened_anew() {
    let place = Place::new();
    // Responses take 0.4 s, and turns five times as long: a trial that waits for the other's turn is idle for
    // two seconds.
    let experiment = place.experiment(&Draft {
        service: "env = { PORT = \"{port}\", MODE = \"delay\", DELAY_MS = \"400\" }",
        more: "[factors.level]\none = { api.env.UNREAD = \"1\" }\nother = { api.env.UNREAD = \"2\" }",
        load: "connections = 3\ntimeout = \"5s\"",
        design: "budget = \"120s\"\nwarmup = \"500ms\"\nslice = \"500ms\"",
    });
    let Some(_) = place.run_well(&experiment, "") else {
        return;
    };
    for slice in place
        .opened()
        .complete_trials()
        .flat_map(|trial| trial.measured())
    {
        // The turn that begins a block may follow the warm-up at once.
        let (turns, opened) = (u64::from(slice.turns), slice.counts.connections_opened);
        assert!(
            opened >= 3 * (turns - 1) && opened % 3 == 0,
            "{turns} turns, {opened} connections"
        );
        assert!(
            slice.counts.errors.is_empty() && slice.counts.failed() == 0,
            "{:?}",
            slice.counts.errors
        );
    }
}
