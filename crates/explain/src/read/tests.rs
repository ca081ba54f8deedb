//! Accepted input of each reader, and errors for rejected input.

use super::*;

fn refused(bytes: &[u8]) -> String {
    read_any("x.json", bytes).expect_err("refused").to_string()
}

fn samples(profile: &CpuProfile) -> Vec<(i64, u32)> {
    profile
        .samples
        .iter()
        .map(|sample| (sample.at_us, sample.node))
        .collect()
}

const WHOLE: &str = r#"{"nodes":[
 {"id":1,"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"hitCount":0,"children":[2]},
 {"id":2,"callFrame":{"functionName":"a","scriptId":7,"url":"/a.js","lineNumber":4,"columnNumber":2},"positionTicks":[{"line":6,"ticks":2}]}],
 "startTime":100,"endTime":400,"samples":[2,1,2],"timeDeltas":[10,100.4,100]}"#;

#[test]
fn a_profile_is_known_by_what_is_in_it() {
    let cpu = read_any("x", WHOLE.as_bytes()).expect("whole");
    let Profile::Cpu(cpu) = cpu else {
        panic!("{cpu:?}")
    };
    assert_eq!(samples(&cpu), [(110, 1), (210, 0), (310, 1)]);
    assert_eq!(cpu.calls.functions[1], CallFrame::at("a", "/a.js", 5, 2));
    assert_eq!((cpu.ticks[0].node, cpu.ticks[0].line), (1, 6));
    assert!(cpu.notes.is_empty());
    let heap = br#"{"head":{"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"selfSize":0,"id":1,
        "children":[{"callFrame":{"functionName":"a","url":"/a.js","lineNumber":4,"columnNumber":0},"selfSize":12,"children":[]}]},"samples":[]}"#;
    let Ok(Profile::Heap(heap)) = read_any("x", heap) else {
        panic!("a heap's profile")
    };
    assert_eq!((heap.bytes[1], heap.calls.nodes[1].parent), (12.0, Some(0)));
    let native =
        br#"{"version":1,"pid":3,"start_ns":1,"end_ns":2,"period_ns":5,"lost":0,"frames":[],"stacks":[]}"#;
    assert!(matches!(read_any("x", native), Ok(Profile::Native(_))));
}

#[test]
fn what_node_prints_of_a_prof_log() {
    let text = br#"{ "code": [{"name":"/usr/bin/node","type":"SHARED_LIB"},{"name":"handle /srv/a.js:3:9","type":"JS","kind":"Opt","func":0,"tm":1},null],
        "functions": [], "ticks": [{"tm":3000,"vm":1,"s":[0,1]},{"tm":1000,"vm":0,"s":[1,4,-1,140000]},{"tm":2000,"vm":5,"s":[0,2,1,8]}], "scripts": []}"#;
    let Ok(Profile::Cpu(profile)) = read_any("x", text) else {
        panic!("a log")
    };
    let of = |sample: usize| {
        let node = profile.calls.nodes[profile.samples[sample].node as usize];
        (
            &*profile.calls.functions[node.call as usize].function,
            node.parent.is_some(),
        )
    };
    assert_eq!(
        [of(0), of(1), of(2)],
        [
            ("handle", false),
            ("node", true),
            ("(garbage collector)", false)
        ]
    );
    let times: Vec<i64> = samples(&profile).iter().map(|sample| sample.0).collect();
    assert_eq!((times, profile.end_us), (vec![1000, 2000, 3000], 4000));
    assert_eq!(profile.notes.len(), 2);
}

#[test]
fn cut_off_anywhere_it_is_refused_with_the_place() {
    for end in 1..WHOLE.len() {
        let problem = refused(&WHOLE.as_bytes()[..end]);
        assert!(problem.contains("cut off at line "), "{end}: {problem}");
    }
    let heap = r#"{"head":{"callFrame":{"functionName":"a"},"selfSize":1,"children":[]}}"#;
    for end in 1..heap.len() {
        let problem = HeapProfile::read(&heap.as_bytes()[..end])
            .expect_err("cut off")
            .to_string();
        assert!(problem.contains("cut off"), "{end}: {problem}");
    }
}

#[test]
fn what_is_no_profile_says_what_it_is() {
    for (bytes, says) in [
        (&b""[..], "no profile that is known"),
        (b"PNG", "no profile that is known"),
        (b"{}", "no profile that is known"),
        (b"[{\"ph\":\"P\"}]", "a trace of DevTools"),
        (b"{\"traceEvents\":[]}", "a trace of DevTools"),
        (b"v8-version,11,3\n", "--prof-process"),
        (b"{\"nodes\":[]}", "has no samples"),
        (b"{\"nodes\":7}", "line 1, column 10: invalid type"),
        (b"{\"stacks\":[],\"version\":2,\"pid\":3,\"start_ns\":1,\"end_ns\":2,\"period_ns\":5,\"lost\":0,\"frames\":[]}", "version 2"),
    ] {
        let problem = refused(bytes);
        assert!(problem.contains(says), "{problem}");
    }
    assert!(refused(&vec![b'{'; OBJECTS_MAX + 1]).contains("too many values"));
}

#[test]
fn contradictions_are_told_and_cost_nothing() {
    let call = |name: &str| {
        format!(r#""callFrame":{{"functionName":"{name}","scriptId":"1","url":"/{name}.js"}}"#)
    };
    let text = format!(
        r#"{{"nodes":[{{"id":1,{},"children":[2,9]}},{{"id":2,{},"children":[1]}},{{"id":2,{}}},{{"id":3,{},"parent":1}}],
            "startTime":0,"endTime":60,"samples":[1,2,3,77],"timeDeltas":[10,30,-20,10,5]}}"#,
        call("a"),
        call("b"),
        call("c"),
        call("d")
    );
    let profile = CpuProfile::read(text.as_bytes()).expect("can be read");
    assert_eq!(profile.calls.nodes.len(), 4);
    let times: Vec<i64> = samples(&profile).iter().map(|sample| sample.0).collect();
    assert_eq!(times, [10, 20, 30, 40], "in the order of time");
    assert_eq!(
        profile
            .samples
            .iter()
            .filter(|sample| sample.node == v8::NO_NODE)
            .count(),
        1
    );
    assert_eq!(profile.notes.len(), 6, "{:?}", profile.notes);
}

#[test]
fn a_hundred_thousand_calls_deep_is_no_depth_for_us() {
    let nodes: Vec<String> = (1..=100_000)
        .map(|id| {
            format!(
                r#"{{"id":{id},"callFrame":{{"functionName":"f","url":"/f.js"}},"children":[{}]}}"#,
                id + 1
            )
        })
        .collect();
    let text = format!(
        r#"{{"nodes":[{}],"samples":[100000],"timeDeltas":[1],"startTime":0,"endTime":9}}"#,
        nodes.join(",")
    );
    let profile = CpuProfile::read(text.as_bytes()).expect("flat");
    assert_eq!(profile.calls.nodes.len(), 100_000);
    let tree = crate::cpu_tree(
        &profile,
        None,
        &Naming {
            directory: "",
            source: &(),
        },
    )
    .tree;
    assert_eq!(
        (tree.nodes.len(), tree.functions()[0].total),
        (100_000, 8000.0)
    );
    assert_eq!(
        crate::folded(&tree, crate::TreeUnit::Nanoseconds)
            .lines()
            .count(),
        1
    );
    assert_eq!(
        crate::merge(&[(&tree, 1.0), (&tree, 1.0)]).total(),
        16_000.0
    );

    let open = r#"{"callFrame":{"functionName":"f"},"selfSize":1,"children":["#;
    let heap = |depth: usize| format!(r#"{{"head":{}{}}}"#, open.repeat(depth), "]}".repeat(depth));
    assert_eq!(
        HeapProfile::read(heap(190).as_bytes())
            .expect("read")
            .bytes
            .len(),
        190
    );
    let problem = HeapProfile::read(heap(100_000).as_bytes())
        .expect_err("there is a limit")
        .to_string();
    assert!(problem.contains("more than 400 levels deep"), "{problem}");
}
