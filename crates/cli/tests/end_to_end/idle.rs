//! `proofload run` where trials rest long enough between their turns for a server to close their connections.

use std::fs;

use crate::place::{Place, SERVICE, stderr, stdout};

#[test]
#[ignore = "slow: make check-slow"]
fn connections_that_rested_while_others_had_their_turn_are_opened_anew() {
    let place = Place::new();
    // Answers take 0.4 s, and turns five times as long: whoever waits for the other's turn is idle for two seconds.
    let text = format!(
        r#"name = "idle"
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
env = {{ PORT = "{{port}}", MODE = "delay", DELAY_MS = "400" }}
[factors.level]
one = {{ api.env.UNREAD = "1" }}
other = {{ api.env.UNREAD = "2" }}
[load]
connections = 3
[design]
drop_disturbed = false
budget = "120s"
warmup = "500ms"
slices = 1
blocks = 6
"#
    );
    let experiment = place.path("idle.toml");
    fs::write(&experiment, text).expect("the experiment is written");
    let Some(output) = place.run_well(&experiment, "") else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let record = record::open(&place.record()).expect("the record opens");
    let trials = record.complete_blocks().flat_map(|block| &block.trials);
    for slice in trials.flat_map(|trial| trial.measured()) {
        // The turn that begins a block may follow the warm-up at once.
        let (turns, opened) = (u64::from(slice.turns), slice.counts.connections_opened);
        assert!(opened >= 3 * (turns - 1) && opened % 3 == 0, "{turns} turns, {opened} connections");
        assert!(slice.counts.errors.is_empty() && slice.counts.failed() == 0, "{:?}", slice.counts.errors);
    }
}
