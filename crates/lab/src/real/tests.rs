//! Faults of machines, put into the texts that the kernel would show, become the figures of a slice and then the findings of a record.

use std::path::Path;

use analysis::{Grade, conclude};
use record::{MachineUse, Record, Slice};

use machine::{CounterTexts as Texts, MachineCounters, TcpCounters, clock};

mod network;

/// What a machine with two processors shows after so many seconds in which the first ran a service and little else happened.
fn texts(seconds: u64) -> Texts {
    let ticks = 100 * seconds;
    let (half, idle) = (ticks / 2, ticks);
    Texts {
        stat: format!(
            "cpu  {half} 0 {half} {idle} 0 7 9 0 0 0\n\
             cpu0 {half} 0 {half} 0 0 7 9 0 0 0\n\
             cpu1 0 0 0 {idle} 0 0 0 0 0 0\n\
             intr 123456 0 9\nctxt 11\n"
        ),
        pressure: format!(
            "some avg10=3.68 avg60=3.28 avg300=7.26 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            seconds * 1000
        ),
        vmstat: "nr_free_pages 7\npgpgin 9\npswpin 100\npswpout 4\n".into(),
        quotas: vec!["nr_periods 0\nnr_throttled 0\nthrottled_time 0\n".into()],
    }
}

fn look(seconds: u64, texts: &Texts, ours_ns: u64) -> MachineCounters {
    MachineCounters::of(texts, &[0, 1], seconds * 1_000_000_000, ours_ns)
}

/// What a second gives in which the generator used 0.2 s and the services 0.8 s, with a fault planted into its end.
fn second(plant: impl FnOnce(&mut Texts)) -> MachineUse {
    let mut later = texts(11);
    plant(&mut later);
    look(10, &texts(10), 5_000_000_000).until(&look(11, &later, 5_200_000_000), 800_000_000)
}

fn put(text: &mut String, from: &str, to: &str) {
    assert!(text.contains(from), "{from} in {text}");
    *text = text.replace(from, to);
}

#[test]
fn an_undisturbed_second_has_nothing_to_tell() {
    let quiet = second(|_| {});
    let expected = MachineUse {
        cpu_pressure_share: Some(0.001),
        ..MachineUse::default()
    };
    assert_eq!(quiet, expected);
}

#[test]
fn a_kernel_that_shows_nothing_is_no_fault() {
    let nothing = Texts::default();
    let told = look(0, &nothing, 0).until(&look(1, &nothing, 1), 1);
    assert_eq!(told, MachineUse::default());
    let garbage = |text: &str| Texts {
        stat: text.into(),
        pressure: text.into(),
        vmstat: text.into(),
        quotas: vec![text.into()],
    };
    for text in [
        "cpu",
        "cpu x y z\nsome total=\npswpin\nthrottled_usec",
        "\u{0}\n\n some total=9 pswpin 7",
    ] {
        let told = look(0, &garbage(text), 0).until(&look(1, &garbage(text), 0), 0);
        assert_eq!(
            (
                told.steal_share,
                told.strangers_cpu_ns,
                told.swapped_in_pages
            ),
            (0.0, 0, 0),
            "{text:?}"
        );
        assert_eq!(TcpCounters::of(text, text, text, text), None, "{text:?}");
    }
}

#[test]
fn what_services_and_generator_use_is_not_a_strangers_and_never_less_than_nothing() {
    let busy = |texts: &mut Texts| put(&mut texts.stat, "cpu1 0 0 0 ", "cpu1 20 5 5 ");
    assert_eq!(second(busy).strangers_cpu_ns, 300_000_000);
    // Packets on their way are interrupts, and of nobody.
    let packets = |texts: &mut Texts| put(&mut texts.stat, "0 7 9 0 0 0\n", "0 57 59 0 0 0\n");
    assert_eq!(second(packets).strangers_cpu_ns, 0);
    // Processors that the run may not use are somebody else's.
    let elsewhere = |seconds| MachineCounters::of(&texts(seconds), &[1], 0, 0);
    assert_eq!(elsewhere(10).until(&elsewhere(11), 0).strangers_cpu_ns, 0);
    // Clocks of processes are finer than ticks.
    let later = texts(11);
    let told = look(10, &texts(10), 0).until(&look(11, &later, 900_000_000), 900_000_000);
    assert_eq!(told.strangers_cpu_ns, 0);
}

#[test]
fn quotas_of_both_kinds_of_groups_are_understood() {
    let v1 = second(|texts| {
        put(
            &mut texts.quotas[0],
            "throttled_time 0",
            "throttled_time 70000000",
        )
    });
    let v2 = "usage_usec 1\nuser_usec 1\nsystem_usec 0\nnr_periods 9\nnr_throttled 2\nthrottled_usec 70000\n";
    let v2 = second(|texts| texts.quotas.push(v2.into()));
    assert_eq!((v1.throttled_ns, v2.throttled_ns), (70_000_000, 70_000_000));
}

#[test]
fn counters_of_tcp_are_found_by_their_names() {
    let counted = |opened: u64, trouble: u64| {
        let snmp = format!(
            "Ip: Forwarding\nIp: 1\nTcp: MaxConn ActiveOpens PassiveOpens\nTcp: -1 {opened} 7\nUdp: A\nUdp: 1\n"
        );
        let netstat = format!(
            "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPHPHits TCPSynRetrans\n\
             TcpExt: 0 {trouble} {} 9 {}\nIpExt: InNoRoutes\nIpExt: 4\n",
            trouble + 1,
            trouble + 2
        );
        let sockstat =
            format!("sockets: used 26\nTCP: inuse 9 orphan 0 tw {opened} alloc 9 mem 6\n");
        TcpCounters::of(&snmp, &netstat, &sockstat, "32768\t60999\n").expect("the kernel tells")
    };
    let (before, after) = (counted(100, 0), counted(350, 30));
    let expected = record::TcpUse {
        opened: 250,
        listen_overflows: 30,
        listen_drops: 30,
        syn_retransmits: 30,
        time_wait_before: 100,
        time_wait: 350,
        local_ports: 28_232,
    };
    assert_eq!(before.until(&after), expected);
}

#[test]
fn the_same_arithmetic_takes_a_fraction_of_a_millisecond_and_some_time() {
    let ns = clock::spin_ns().expect("this kernel has the clock");
    assert!((20_000..20_000_000).contains(&ns), "{ns} ns");
}

#[test]
fn variants_whose_names_differ_in_signs_alone_have_logs_of_their_own() {
    let text = "name = \"x\"\n[services.api]\ncommand = [\"x\"]\n[factors.node]\n\"<20\" = { api.env.A = \"1\" }\n\
                \">20\" = { api.env.A = \"2\" }\n";
    let plan = plan::parse(text, Path::new("/")).expect("a plan");
    let names: Vec<String> = (0..2)
        .map(|index| super::file_name_of(&plan.variants, index))
        .collect();
    assert_eq!(names, ["20", "20.1"]);
}

/// A sound record with what a slice has of machine and errors planted into all measured slices of a variant.
fn findings(variant: usize, plant: impl Fn(&mut Slice)) -> Vec<(&'static str, Grade)> {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");
    let mut record: Record = record::open(Path::new(kept)).expect("the kept record opens");
    let trials = record.blocks.iter_mut().flat_map(|block| &mut block.trials);
    let slices = trials
        .flat_map(|trial| &mut trial.slices)
        .filter(|slice| slice.variant == variant);
    slices.for_each(plant);
    conclude(&record)
        .findings
        .iter()
        .map(|finding| (finding.check.name(), finding.grade))
        .collect()
}

#[test]
fn what_the_kernel_shows_of_a_disturbed_machine_becomes_a_finding() {
    type Fault = fn(&mut Texts);
    let faults: [(&str, Fault); 4] = [
        // A tenth of both processors' time went to other guests.
        ("steal", |texts| {
            put(&mut texts.stat, "0 7 9 0 0 0\ncpu0", "0 7 9 20 0 0\ncpu0")
        }),
        ("throttled", |texts| {
            put(
                &mut texts.quotas[0],
                "throttled_time 0",
                "throttled_time 100000000",
            )
        }),
        ("other_processes", |texts| {
            put(&mut texts.stat, "cpu1 0 0 0 ", "cpu1 30 0 0 ")
        }),
        ("paging", |texts| {
            put(&mut texts.vmstat, "pswpin 100", "pswpin 200")
        }),
    ];
    for (check, fault) in faults {
        let machine = second(fault);
        let found = findings(0, |slice| slice.machine = machine.clone());
        assert_eq!(found, [(check, Grade::Warning)], "{machine:?}");
    }
    assert_eq!(findings(0, |slice| slice.machine = second(|_| {})), []);
}
