//! Hazards of what goes on here just now: others at work, and a processor that does not do the same work in the same time.

use crate::Facts;
use crate::hazards::Hazard;
use crate::wording::{count, percent, short};

/// Processors' worth of other work above which it presses on a measurement: a fifth of what one service uses.
pub const OTHERS_BAD: f64 = 0.20;
/// Below this it is what an idle machine does anyway.
pub const OTHERS_KNOW: f64 = 0.05;
/// Load average for each processor above which the machine was not quiet within the last minute.
pub const LOAD_QUIET: f64 = 0.5;
/// Spread of one and the same work above which the processor's speed is not one figure.
pub const SPIN_CV_KNOW: f64 = 0.02;
/// And above which it is noise that a comparison will feel.
pub const SPIN_CV_BAD: f64 = 0.10;

/// Who else works.
pub fn others(facts: &Facts) -> Option<Hazard> {
    let watched = facts.watched.as_ref()?;
    let named =
        watched.busiest.iter().map(|busy| format!("{} ({}) {}", busy.name, busy.pid, percent(busy.share)));
    let named: Vec<String> = named.collect();
    let named = match named.is_empty() {
        true => String::new(),
        false => format!(": {}", named.join(", ")),
    };
    let load = facts.host.load_average;
    let average = load.map(|load| format!("; load average {load:.2}")).unwrap_or_default();
    let used = match watched.others {
        others if others < 0.995 => format!("{} of a processor", percent(others)),
        others => format!("{} processors", short(others)),
    };
    let evidence = format!("others used {used} in the second watched{named}{average}");
    let processors = facts.processors.online.unwrap_or(1) as f64;
    let was_busy = load.is_some_and(|load| load > processors * LOAD_QUIET);
    let remedy = "it takes time and caches from generator and services, and comes and goes as it likes; end it, or wait until the \
                  machine is quiet";
    Some(match watched.others {
        others if others > OTHERS_BAD => Hazard::bad("others", evidence, remedy),
        others if others > OTHERS_KNOW => Hazard::know("others", evidence, remedy),
        _ if was_busy => Hazard::know(
            "others",
            evidence,
            "quiet now, but not within the last minute: see whether something comes back by and by (a timer, a build, a backup)",
        ),
        _ => Hazard::fine("others", evidence),
    })
}

/// The same work, time and again.
pub fn spin(facts: &Facts) -> Option<Hazard> {
    let spin = facts.watched.as_ref()?.spin?;
    let evidence = format!(
        "the same work {} times: {} ms each, spread (CV) {}",
        count(spin.pieces as u64),
        short(spin.median_us / 1e3),
        percent(spin.cv)
    );
    let remedy = "the processor's speed changes from moment to moment: frequency, heat, or neighbours on its core. Blocks spread that \
                  over all variants; `proofload calibrate` tells how small a difference can be found all the same";
    Some(match spin.cv {
        cv if cv > SPIN_CV_BAD => Hazard::bad("spin", evidence, remedy),
        cv if cv > SPIN_CV_KNOW => Hazard::know("spin", evidence, remedy),
        _ => Hazard::fine("spin", evidence),
    })
}
