//! Hazards of processors: too few, rationed, shared between threads of a core, or of a speed that changes.

use crate::Facts;
use crate::hazards::Hazard;
use crate::wording::{count, many, short};

/// Processors from which generator and services no longer press each other: one for the generator, one for a service, one for
/// what else the machine does.
pub const PLENTY: f64 = 3.0;
/// Processors below which generator and services have to share one.
pub const APART: f64 = 2.0;
/// Cores from which a sibling of the generator's processor is left idle.
pub const CORES_APART: usize = 3;

/// Enough of them, for a generator and services that do not press each other.
pub fn processors(facts: &Facts) -> Option<Hazard> {
    let usable = facts.usable()?;
    let told = &facts.processors;
    let online = told.online.map(|online| count(online as u64)).unwrap_or_default();
    let allowed = told.allowed.filter(|allowed| Some(*allowed) != told.online);
    let allowed = allowed.map(|allowed| format!(", {} of them allowed to us", count(allowed as u64)));
    let quota = told.group.quota.as_ref().map(|quota| format!(", a quota of {}", short(quota.processors)));
    let evidence = format!("{online} online{}{}", allowed.unwrap_or_default(), quota.unwrap_or_default());
    Some(match usable {
        usable if usable < APART => Hazard::bad(
            "processors",
            evidence,
            "the load generator and the service take time from each other; use a machine with three or more",
        ),
        usable if usable < PLENTY => Hazard::know(
            "processors",
            evidence,
            "one for the generator and one for the services: what else runs takes from either, and workers cannot be told apart; \
             four or more are better",
        ),
        _ => Hazard::fine("processors", evidence),
    })
}

/// A quota of CPU time: who has used it up stands still for the rest of the period.
pub fn quota(facts: &Facts) -> Option<Hazard> {
    let Some(quota) = &facts.processors.group.quota else {
        // Only where the processors were read is their silence an answer.
        return facts.processors.allowed.map(|_| Hazard::fine("quota", "none on CPU time"));
    };
    let period = quota.period_us as f64 / 1e3;
    let mut evidence = format!("{} processors' time in each {} ms", short(quota.processors), short(period));
    if quota.throttled > 0 {
        evidence += &format!(
            ", held back {} so far, {:.1} s in all",
            many(quota.throttled, "time"),
            quota.throttled_ns as f64 / 1e9
        );
    }
    let remedy = "whoever has used it up stands still for the rest of the period: stalls of tens of milliseconds that are not the \
                  service's; give whole processors by a cpuset instead, or lift it";
    let lift = if quota.file.ends_with("cpu.max") { "max" } else { "-1" };
    Some(Hazard::bad("quota", evidence, remedy).run(format!("echo {lift} > {}", quota.file)))
}

/// Threads of one core that work for both sides.
pub fn siblings(facts: &Facts) -> Option<Hazard> {
    let (cores, allowed) = (facts.processors.cores?, facts.processors.allowed?);
    let name = "siblings";
    if cores >= allowed {
        // A guest sees what its host makes it see.
        let told = facts.host.hypervisor.as_ref().map_or("", |_| ", as the hypervisor tells");
        let evidence = format!("{}, each a core of its own{told}", many(allowed as u64, "processor"));
        return Some(Hazard::fine(name, evidence));
    }
    let are = if cores == 1 { "one core".to_owned() } else { format!("{cores} cores") };
    let evidence = format!("{} are threads of {are}", many(allowed as u64, "processor"));
    Some(match cores {
        1 => Hazard::know(
            name,
            evidence,
            "generator and services slow each other through what a core shares, and no switch helps with one core; \
             all variants suffer alike, so compare, and do not quote the figures alone",
        ),
        cores if cores < CORES_APART => Hazard::know(
            name,
            evidence,
            "generator and services may end up on one core and slow each other; switch the second threads off",
        )
        .run("echo off > /sys/devices/system/cpu/smt/control"),
        _ => Hazard::fine(name, format!("{evidence}; the generator's sibling is left idle")),
    })
}

/// What decides the frequency.
pub fn governor(facts: &Facts) -> Option<Hazard> {
    let told = &facts.frequency;
    let name = "governor";
    if told.governors.is_empty() {
        let host = facts.host.hypervisor.as_ref()?;
        return Some(Hazard::know(
            name,
            format!("none to be seen from inside of {host}"),
            "the host decides about frequency, and may change its mind during a run; blocks spread that over all variants",
        ));
    }
    let names = told.governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let ghz = |khz: u64| format!("{:.1}", khz as f64 / 1e6);
    let range =
        told.min_khz.zip(told.max_khz).map(|(min, max)| format!(", {} to {} GHz", ghz(min), ghz(max)));
    let driver = told.driver.as_ref().map(|driver| format!(" ({driver})")).unwrap_or_default();
    let evidence = format!("{names}{driver}{}", range.unwrap_or_default());
    if names == "performance" {
        return Some(Hazard::fine(name, evidence));
    }
    Some(
        Hazard::bad(
            name,
            evidence,
            "the frequency follows the load, so that a service that has less to do gets a slower processor: latencies at a rate \
             and CPU per request depend on it",
        )
        .run("cpupower frequency-set -g performance"),
    )
}

/// Frequencies that hold only as long as the processor is cool and few cores work.
pub fn turbo(facts: &Facts) -> Option<Hazard> {
    let on = facts.frequency.turbo?;
    if !on {
        return Some(Hazard::fine("turbo", "off"));
    }
    let file = facts.frequency.turbo_file.as_deref().unwrap_or_default();
    let off = if file.ends_with("no_turbo") { 1 } else { 0 };
    let remedy = "the frequency depends on heat and on how many cores work, so that a service alone runs faster than next to a \
                  generator; switch it off while you measure";
    Some(Hazard::know("turbo", "on", remedy).run(format!("echo {off} > {file}")))
}

/// Slowed down by heat before.
pub fn heat(facts: &Facts) -> Option<Hazard> {
    let throttled = facts.frequency.throttled?;
    let evidence = format!("cores were slowed {} since boot", many(throttled, "time"));
    Some(match throttled {
        0 => Hazard::fine("heat", "no core was slowed since boot"),
        _ => Hazard::know(
            "heat",
            evidence,
            "a long run heats up and what comes late in it is slower; see to the cooling, or forbid turbo",
        ),
    })
}

/// A battery saves where it can.
pub fn battery(facts: &Facts) -> Option<Hazard> {
    Some(match facts.frequency.on_battery? {
        false => Hazard::fine("battery", "on mains"),
        true => Hazard::bad("battery", "on battery", "processors are slowed to save it; plug it in"),
    })
}
