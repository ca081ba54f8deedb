//! `load.network` if no link can be created.

use std::fs;
use std::os::unix::process::CommandExt;

use crate::place::{Draft, Place, Said};

#[test]
fn who_may_not_make_a_link_is_told_before_anything_starts() {
    let place = Place::new();
    let file = place.experiment(&Draft {
        more: "[factors.link]\nnone = {}\nfar = { load.network = { rate = \"20mbit\", delay = \"40ms\" } }",
        ..Draft::default()
    });
    let dry = place.said(&["run", "--dry-run", "experiment.toml"]);
    dry.prints(&["over a link of 20 Mbit/s, 40 ms each way"]);
    let mut command = place.command(&file);
    if rustix::process::geteuid().is_root() {
        // A user without privileges, who nevertheless must reach the experiment and the binary, and may write
        // a record.
        fs::set_permissions(
            place.path(""),
            std::os::unix::fs::PermissionsExt::from_mode(0o777),
        )
        .expect("it is ours");
        command.uid(65534);
    }
    let Ok(output) = command.output() else {
        // The binary is in a private folder.
        return;
    };
    let said = Said::from(output);
    said.ends(6)
        .tells(&["`load.network` takes root", "leave `load.network` out"]);
    assert!(!place.record().exists());
}
