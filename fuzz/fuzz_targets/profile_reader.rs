//! Any bytes as a profile of any format that is read, with any bytes as the source map of all of its scripts: every cut and every form
//! of its tree. An input is `PROFILE 0 MAP`.

#![no_main]

use explain::{
    CpuProfile, Cut, Naming, Profile, Source, Unit, Window, cpu_tree, cpuprofile, folded, read_any,
    speedscope,
};
use libfuzzer_sys::fuzz_target;
use proofload_fuzz::parts;

struct Map<'m>(&'m [u8]);

impl Source for Map<'_> {
    fn source_map(&self, script: &str) -> Option<(Vec<u8>, String)> {
        Some((self.0.to_vec(), script.to_owned()))
    }
}

fuzz_target!(|input: &[u8]| {
    let [profile, map] = parts(input);
    let Ok(profile) = read_any("input", profile) else {
        return;
    };
    let naming = Naming {
        directory: "/srv",
        source: &Map(map),
    };
    let windows = [
        Window {
            start_ns: 5000,
            end_ns: 40_000,
        },
        Window {
            start_ns: 9,
            end_ns: 3,
        },
    ];
    let mut cuts = vec![profile.cut(&naming)];
    if let Profile::Cpu(profile) = &profile {
        cuts.extend(windows.map(|window| cpu_tree(profile, Some(window), &naming)));
    }
    for Cut { tree, .. } in cuts {
        let above = |(index, node): (usize, &explain::Node)| {
            node.parent.is_none_or(|parent| parent < index)
        };
        assert!(tree.nodes.iter().enumerate().all(above));
        let trees = [("input".to_owned(), &tree)];
        folded(&tree, Unit::Nanoseconds);
        speedscope(&trees, Unit::Nanoseconds);
        tree.bottom_up(50);
        let again = cpuprofile(&tree, Unit::Nanoseconds).to_string();
        CpuProfile::read(again.as_bytes()).expect("ours can be read");
    }
});
