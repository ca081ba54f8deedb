//! How fast the processors run: governor, range, turbo, and whether heat or a battery slows them. It reads texts and changes
//! nothing.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::texts::Texts;

const CPUS: &str = "/sys/devices/system/cpu";

/// What the kernel tells about frequency. A virtual machine is mostly told nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Frequency {
    /// The governors in use, each once.
    pub governors: BTreeSet<String>,
    /// The driver of the first processor, such as `intel_pstate`.
    pub driver: Option<String>,
    /// The lowest frequency of any processor, in kHz.
    pub min_khz: Option<u64>,
    /// The highest.
    pub max_khz: Option<u64>,
    /// Whether turbo frequencies are allowed.
    pub turbo: Option<bool>,
    /// The file that allows or forbids them.
    pub turbo_file: Option<String>,
    /// Times since boot that a core was slowed because it was too hot, of all cores.
    pub throttled: Option<u64>,
    /// Whether the machine runs on its battery.
    pub on_battery: Option<bool>,
}

impl Frequency {
    pub(super) fn of(texts: &Texts) -> Frequency {
        let number = |text: &str| text.parse::<u64>().ok();
        let numbers = |name: &'static str| texts.called(CPUS, name).filter_map(move |(_, text)| number(text));
        let turbo = turbo(texts);
        Frequency {
            governors: texts.called(CPUS, "scaling_governor").map(|(_, name)| name.to_owned()).collect(),
            driver: texts.called(CPUS, "scaling_driver").next().map(|(_, name)| name.to_owned()),
            min_khz: numbers("cpuinfo_min_freq").min(),
            max_khz: numbers("cpuinfo_max_freq").max(),
            turbo: turbo.map(|(on, _)| on),
            turbo_file: turbo.map(|(_, file)| file.to_owned()),
            throttled: numbers("core_throttle_count").reduce(u64::saturating_add),
            on_battery: on_battery(texts),
        }
    }
}

/// Whether turbo is on, and the file that says so. The two drivers say it the other way round.
fn turbo(texts: &Texts) -> Option<(bool, &'static str)> {
    let no_turbo = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    let boost = "/sys/devices/system/cpu/cpufreq/boost";
    let pstate = texts.number(no_turbo).map(|off| (off == 0, no_turbo));
    pstate.or_else(|| texts.number(boost).map(|on| (on != 0, boost)))
}

/// On its battery is a machine that has one which is discharging, and no mains online. A mouse has a battery, too, of the
/// scope `Device`.
fn on_battery(texts: &Texts) -> Option<bool> {
    let folder = "/sys/class/power_supply";
    let beside = |path: &str, file: &str| texts.line(&path.replace("/type", &format!("/{file}")));
    let own = |(path, _): &(&str, &str)| beside(path, "scope") != Some("Device");
    let kinds: Vec<(&str, &str)> = texts.called(folder, "type").filter(own).collect();
    let is = |wanted: &'static str| kinds.iter().filter(move |(_, kind)| *kind == wanted);
    let discharging = is("Battery").any(|(path, _)| beside(path, "status") == Some("Discharging"));
    let mains = is("Mains").any(|(path, _)| beside(path, "online") == Some("1"));
    is("Battery").next().map(|_| discharging && !mains)
}
