//! Stored machines of several kinds, and single changes to a sound one: each hazard is reported at its limit,
//! and nowhere else.

use model::Grade;
use proofload_machine::{
    Facts, Granted, Hazard, MachineWatched, Probed, Spin, Storage, Texts, hazards,
};

const BARE_METAL: &str = include_str!("kept/bare-metal.txt");
const VIRTUAL: &str = include_str!("kept/virtual.txt");
const CONTAINER_V1: &str = include_str!("kept/container-v1.txt");
const CONTAINER_V2: &str = include_str!("kept/container-v2.txt");

const CPU: &str = "/sys/devices/system/cpu";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Facts that come from watching and trying, all good.
fn sound(texts: &Texts) -> Facts {
    let mut facts = Facts::of(texts);
    facts.watched = Some(MachineWatched {
        seconds: 1.8,
        steal_share: 0.0,
        others: 0.01,
        busiest: vec![],
        spin: Some(Spin {
            pieces: 300,
            median_us: 2100.0,
            cv: 0.004,
        }),
    });
    facts.asked = Probed {
        io_uring: Some(Granted {
            granted: true,
            reason: None,
        }),
        link: Some(Granted {
            granted: true,
            reason: None,
        }),
        stacks: Some(Granted {
            granted: true,
            reason: None,
        }),
        group_writable: Some(true),
        storage: Some(Storage {
            folder: "records".into(),
            free_bytes: 80 << 30,
        }),
        programs: vec![("node".into(), Some("v22.21.1".into()))],
    };
    facts
}

fn of(facts: &Facts, name: &str) -> Hazard {
    hazards(facts)
        .into_iter()
        .find(|hazard| hazard.check == name)
        .unwrap_or_else(|| panic!("{name} is not told"))
}

#[test]
fn a_sound_machine_is_fine_in_all_respects() {
    let all = hazards(&sound(&Texts::kept(BARE_METAL)));
    for hazard in &all {
        assert_eq!(hazard.grade, Grade::Fine, "{hazard:?}");
        assert!(
            hazard.remedy.is_empty() && hazard.remedy.command.is_none(),
            "{hazard:?}"
        );
    }
    // Only connection tracking is off, and the only battery is that of a mouse.
    assert_eq!(
        all.len(),
        28,
        "{:?}",
        all.iter().map(|hazard| hazard.check).collect::<Vec<_>>()
    );
}

#[test]
fn nothing_is_said_of_what_is_not_known() {
    let all = hazards(&Facts::of(&Texts::kept("")));
    assert!(all.is_empty(), "{all:?}");
}

/// The grade of the sound machine after changing a file.
#[test]
fn each_hazard_of_a_file_is_told_where_it_is_and_not_just_below() {
    use Grade::{Fine, Note, Warning};
    let governor = format!("{CPU}/cpu1/cpufreq/scaling_governor");
    let status = "/proc/self/status";
    let meminfo = "/proc/meminfo";
    let stat = |steal: u64| {
        format!(
            "cpu  0 0 0 {} 0 0 0 {steal} 0 0\ncpu0 0 0 0 0\n",
            10_000 - steal
        )
    };
    let memory = |mb: u64| format!("MemTotal: 65618132 kB\nMemAvailable: {} kB\n", mb * 1024);
    let swapped = |mb: u64| {
        format!(
            "SwapTotal: 8388608 kB\nSwapFree: {} kB\n",
            8_388_608 - mb * 1024
        )
    };
    let limits = |soft: u64, hard: u64| format!("Max open files {soft} {hard} files\n");
    let ports = "/proc/sys/net/ipv4/ip_local_port_range";
    let cases: Vec<(&str, Grade, &str, String)> = vec![
        (
            "processors",
            Warning,
            status,
            "Cpus_allowed_list:\t4\n".into(),
        ),
        (
            "processors",
            Note,
            status,
            "Cpus_allowed_list:\t0-1\n".into(),
        ),
        (
            "processors",
            Fine,
            status,
            "Cpus_allowed_list:\t0-2\n".into(),
        ),
        (
            "quota",
            Warning,
            "/sys/fs/cgroup/user.slice/cpu.max",
            "400000 100000\n".into(),
        ),
        (
            "quota",
            Fine,
            "/sys/fs/cgroup/user.slice/cpu.max",
            "max 100000\n".into(),
        ),
        (
            "processors",
            Warning,
            "/sys/fs/cgroup/user.slice/cpu.max",
            "150000 100000\n".into(),
        ),
        (
            "siblings",
            Note,
            status,
            "Cpus_allowed_list:\t3,11\n".into(),
        ),
        (
            "siblings",
            Note,
            status,
            "Cpus_allowed_list:\t0-1,8-9\n".into(),
        ),
        (
            "siblings",
            Fine,
            status,
            "Cpus_allowed_list:\t0-2,8-10\n".into(),
        ),
        ("governor", Warning, governor.as_str(), "powersave\n".into()),
        (
            "turbo",
            Note,
            "/sys/devices/system/cpu/cpufreq/boost",
            "1\n".into(),
        ),
        (
            "turbo",
            Note,
            "/sys/devices/system/cpu/intel_pstate/no_turbo",
            "0\n".into(),
        ),
        (
            "turbo",
            Fine,
            "/sys/devices/system/cpu/intel_pstate/no_turbo",
            "1\n".into(),
        ),
        (
            "heat",
            Note,
            "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
            "3\n".into(),
        ),
        ("steal", Warning, "/proc/stat", stat(201)),
        ("steal", Note, "/proc/stat", stat(200)),
        ("steal", Note, "/proc/stat", stat(51)),
        ("steal", Fine, "/proc/stat", stat(50)),
        (
            "hypervisor",
            Note,
            "/proc/cpuinfo",
            "model name : X\nflags : fpu hypervisor\n".into(),
        ),
        (
            "container",
            Note,
            "/proc/self/cgroup",
            "0::/docker/4d2a\n".into(),
        ),
        (
            "container",
            Fine,
            "/proc/self/cgroup",
            "0::/system.slice/docker.service\n".into(),
        ),
        ("clock", Warning, CLOCK, "hpet\n".into()),
        ("clock", Note, CLOCK, "xen\n".into()),
        ("clock", Fine, CLOCK, "kvm-clock\n".into()),
        (
            "numa",
            Note,
            "/sys/devices/system/node/online",
            "0-1\n".into(),
        ),
        (
            "address_layout",
            Note,
            "/proc/sys/kernel/randomize_va_space",
            "0\n".into(),
        ),
        (
            "kernel",
            Warning,
            "/proc/sys/kernel/osrelease",
            "5.10.0-36-amd64\n".into(),
        ),
        (
            "kernel",
            Fine,
            "/proc/sys/kernel/osrelease",
            "5.11.0\n".into(),
        ),
        ("memory", Warning, meminfo, memory(511)),
        ("memory", Note, meminfo, memory(512)),
        ("memory", Fine, meminfo, memory(2048)),
        (
            "memory",
            Warning,
            "/sys/fs/cgroup/user.slice/memory.max",
            "268435456\n".into(),
        ),
        ("swap", Note, meminfo, swapped(65)),
        ("swap", Fine, meminfo, swapped(64)),
        (
            "huge_pages",
            Note,
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never\n".into(),
        ),
        (
            "open_files",
            Warning,
            "/proc/self/limits",
            limits(1024, 4095),
        ),
        ("open_files", Note, "/proc/self/limits", limits(1024, 4096)),
        ("open_files", Fine, "/proc/self/limits", limits(4096, 4096)),
        (
            "accept_queue",
            Note,
            "/proc/sys/net/core/somaxconn",
            "128\n".into(),
        ),
        (
            "accept_queue",
            Fine,
            "/proc/sys/net/core/somaxconn",
            "1024\n".into(),
        ),
        ("ports", Note, ports, "45000\t60999\n".into()),
        ("ports", Fine, ports, "40000\t60999\n".into()),
        (
            "ports",
            Note,
            "/proc/sys/net/ipv4/tcp_tw_reuse",
            "0\n".into(),
        ),
        (
            "profiles",
            Note,
            "/proc/sys/kernel/perf_event_paranoid",
            "2\n".into(),
        ),
        (
            "profiles",
            Note,
            "/proc/sys/kernel/kptr_restrict",
            "1\n".into(),
        ),
    ];
    for (name, grade, path, text) in cases {
        let hazard = of(&sound(&Texts::kept(BARE_METAL).with(path, &text)), name);
        assert_eq!(hazard.grade, grade, "{path} is {text:?}: {hazard:?}");
        assert_eq!(hazard.remedy.is_empty(), grade == Fine, "{hazard:?}");
    }
    let power = "/sys/class/power_supply/BAT0";
    for (online, grade) in [("0", Warning), ("1", Fine)] {
        let texts = Texts::kept(BARE_METAL)
            .with(&format!("{power}/type"), "Battery\n")
            .with(&format!("{power}/status"), "Discharging\n")
            .with("/sys/class/power_supply/AC/type", "Mains\n")
            .with("/sys/class/power_supply/AC/online", online);
        assert_eq!(of(&sound(&texts), "battery").grade, grade);
    }
    for (count, grade) in [("0", Fine), ("80", Note), ("81", Warning)] {
        let netfilter = "/proc/sys/net/netfilter";
        let texts = Texts::kept(BARE_METAL)
            .with(&format!("{netfilter}/nf_conntrack_count"), count)
            .with(&format!("{netfilter}/nf_conntrack_max"), "100\n");
        assert_eq!(of(&sound(&texts), "conntrack").grade, grade);
    }
}

/// The grade of the sound machine after changing watched or tried facts.
#[test]
fn each_hazard_that_was_watched_or_asked_for_is_told_where_it_is_and_not_just_below() {
    use Grade::{Fine, Note, Warning};
    type Change = fn(&mut Facts);
    fn watched(facts: &mut Facts) -> &mut MachineWatched {
        facts.watched.get_or_insert_default()
    }
    fn spread(facts: &mut Facts, cv: f64) {
        watched(facts).spin = Some(Spin {
            pieces: 300,
            median_us: 2100.0,
            cv,
        });
    }
    fn free(facts: &mut Facts, bytes: u64) {
        facts.asked.storage = Some(Storage {
            folder: ".".into(),
            free_bytes: bytes,
        });
    }
    fn refused(reason: &str) -> Option<Granted> {
        Some(Granted {
            granted: false,
            reason: Some(reason.into()),
        })
    }
    let cases: &[(&str, Grade, Change)] = &[
        ("others", Warning, |facts| watched(facts).others = 0.81),
        ("others", Note, |facts| watched(facts).others = 0.80),
        ("others", Note, |facts| watched(facts).others = 0.33),
        ("others", Fine, |facts| watched(facts).others = 0.32),
        ("others", Note, |facts| facts.host.load_average = Some(8.1)),
        ("others", Fine, |facts| facts.host.load_average = Some(8.0)),
        ("steal", Warning, |facts| watched(facts).steal_share = 0.021),
        ("spin", Warning, |facts| spread(facts, 0.11)),
        ("spin", Note, |facts| spread(facts, 0.03)),
        ("spin", Fine, |facts| spread(facts, 0.02)),
        ("storage", Warning, |facts| free(facts, 255 << 20)),
        ("storage", Note, |facts| free(facts, 1 << 30)),
        ("storage", Fine, |facts| free(facts, 4 << 30)),
        ("link", Note, |facts| facts.asked.link = refused("not root")),
        ("profiles", Note, |facts| {
            facts.asked.stacks = refused("a filter of system calls refuses it; allow it")
        }),
        ("io_uring", Note, |facts| {
            facts.asked.io_uring = refused("Operation not permitted")
        }),
        ("accounts", Note, |facts| {
            facts.asked.group_writable = Some(false)
        }),
        ("programs", Note, |facts| {
            facts.asked.programs.push(("nginx".into(), None))
        }),
        ("governor", Note, |facts| {
            facts.frequency.governors.clear();
            facts.host.hypervisor = Some("KVM".into());
        }),
    ];
    for (index, (name, grade, change)) in cases.iter().enumerate() {
        let mut facts = sound(&Texts::kept(BARE_METAL));
        change(&mut facts);
        let hazard = of(&facts, name);
        assert_eq!(hazard.grade, *grade, "case {index}: {hazard:?}");
    }
}

/// The texts for the other stored machines are in the snapshots of `report`.
#[test]
fn quotas_and_accounts_of_both_versions_are_found() {
    let one = sound(&Texts::kept(CONTAINER_V1));
    let quota = one.processors.group.quota.as_ref().expect("it has one");
    assert_eq!(
        (quota.processors, quota.throttled, quota.throttled_ns),
        (4.0, 17, 912_000_000)
    );
    assert_eq!(
        (
            one.host.container.as_deref(),
            one.host.hypervisor.as_deref()
        ),
        (Some("Kubernetes"), None)
    );
    assert_eq!(of(&one, "kernel").grade, Grade::Warning, "4.18 is too old");
    // `cpu,cpuacct` together would divide time as well as count it.
    assert_eq!(one.processors.group.accounts, None);
    let both = Facts::of(&Texts::kept(VIRTUAL)).processors.group;
    assert_eq!(both.accounts.as_deref(), Some("/sys/fs/cgroup/unified"));
}

#[test]
fn texts_cut_anywhere_and_without_sense_break_nothing() {
    for kept in [BARE_METAL, VIRTUAL, CONTAINER_V1, CONTAINER_V2] {
        for end in (0..kept.len())
            .step_by(7)
            .filter(|end| kept.is_char_boundary(*end))
        {
            hazards(&Facts::of(&Texts::kept(&kept[..end])));
        }
        for nonsense in [
            "",
            "-1",
            "99999999999999999999",
            "0-99999999999999",
            ":",
            "[",
            "é",
            "1 0",
            "cpu  1",
        ] {
            let texts = kept.lines().filter_map(|line| line.strip_prefix("== "));
            texts.for_each(|path| {
                hazards(&Facts::of(&Texts::kept(kept).with(path, nonsense)));
            });
        }
    }
}
