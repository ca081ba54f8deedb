//! Attribution of time: windows, gaps, lines, threads.

use super::*;

const NAMING: Naming<'static> = Naming {
    directory: "/srv",
    source: &(),
};

/// Functions a and b below the root, and the idle one: 2, 3 and 4.
fn profile(samples: &[u32], deltas: &[i64], end: i64) -> CpuProfile {
    let text = format!(
        r#"{{"nodes":[
        {{"id":1,"callFrame":{{"functionName":"(root)","scriptId":"0","url":""}},"children":[2,4]}},
        {{"id":2,"callFrame":{{"functionName":"a","scriptId":"5","url":"/srv/a.js","lineNumber":0,"columnNumber":0}},"children":[3],
          "positionTicks":[{{"line":2,"ticks":1}},{{"line":3,"ticks":1}}]}},
        {{"id":3,"callFrame":{{"functionName":"b","scriptId":"5","url":"/srv/a.js","lineNumber":9,"columnNumber":0}}}},
        {{"id":4,"callFrame":{{"functionName":"(idle)","scriptId":"0","url":""}}}}],
        "startTime":1000,"endTime":{end},"samples":{samples:?},"timeDeltas":{deltas:?}}}"#
    );
    CpuProfile::read(text.as_bytes()).expect("a profile")
}

fn window(start_us: u64, end_us: u64) -> Option<TimeWindow> {
    Some(TimeWindow {
        start_ns: start_us * 1000,
        end_ns: end_us * 1000,
    })
}

fn of(cut: &Cut, name: &str) -> f64 {
    let functions = cut.tree.functions();
    let value = functions
        .iter()
        .find(|it| cut.tree.frames[it.frame].function == name);
    value.map_or(0.0, |it| it.self_value)
}

#[test]
fn an_interval_belongs_to_the_sample_before_it_and_counts_by_its_part() {
    // a from 1010, b from 1110, idle from 1210, a from 1310 to 1400.
    let profile = profile(&[2, 3, 4, 2], &[10, 100, 100, 100], 1400);
    let all = cpu_tree(&profile, None, &NAMING);
    assert_eq!(
        (of(&all, "a"), of(&all, "b"), of(&all, "(idle)")),
        (190e3, 100e3, 100e3)
    );
    assert_eq!((all.covered_ns, all.samples), (390e3, 3));
    let part = cpu_tree(&profile, window(1060, 1250), &NAMING);
    assert_eq!(
        (of(&part, "a"), of(&part, "b"), of(&part, "(idle)")),
        (50e3, 100e3, 40e3)
    );
    assert_eq!((part.samples, part.notes.len()), (2, 0));
    let b = part
        .tree
        .nodes
        .iter()
        .find(|node| part.tree.frames[node.frame].function == "b")
        .expect("b");
    assert_eq!(
        part.tree.frames[part.tree.nodes[b.parent.expect("a caller")].frame].function,
        "a"
    );
    let beside = cpu_tree(&profile, window(5000, 6000), &NAMING);
    assert_eq!(
        (beside.covered_ns, beside.tree.nodes.len(), beside.samples),
        (0.0, 0, 0)
    );
}

#[test]
fn a_sampler_that_was_held_up_makes_no_function_expensive() {
    // One sample per ms. After the 50th, which is b's, the machine is halted for 80 ms.
    let mut samples = vec![2; 100];
    let mut deltas = vec![1000; 100];
    samples[50] = 3;
    deltas[51] = 80_000;
    let end = 1000 + 99 * 1000 + 80_000 + 1000;
    let cut = cpu_tree(&profile(&samples, &deltas, end), None, &NAMING);
    assert_eq!(of(&cut, "b"), 3e6, "three intervals of it count");
    assert_eq!(cut.capped_ns, 77e6);
    assert_eq!(cut.covered_ns + cut.capped_ns, (end - 2000) as f64 * 1e3);
    assert!(
        cut.notes
            .iter()
            .any(|note| note.text.starts_with("77.0 ms of 179 ms lie in gaps")),
        "{:?}",
        cut.notes
    );

    // Samples in which equal ones were merged have no gaps.
    for (index, sample) in samples.iter_mut().enumerate() {
        *sample = 2 + index as u32 % 3;
    }
    let summed = cpu_tree(&profile(&samples, &deltas, end), None, &NAMING);
    assert_eq!((summed.capped_ns, summed.notes.len()), (0.0, 0));
}

#[test]
fn lines_are_told_where_the_window_has_nearly_all_of_them() {
    let profile = profile(&[2, 2, 4, 4], &[10, 100, 100, 100], 1400);
    let whole = cpu_tree(&profile, window(1050, 1300), &NAMING);
    let a = whole
        .tree
        .nodes
        .iter()
        .find(|node| !node.lines.is_empty())
        .expect("lines");
    assert_eq!(
        a.lines
            .iter()
            .map(|(line, ns)| (*line, *ns))
            .collect::<Vec<_>>(),
        [(2, 80e3), (3, 80e3)]
    );
    let half = cpu_tree(&profile, window(1120, 1300), &NAMING);
    assert_eq!(of(&half, "a"), 90e3);
    assert!(half.tree.nodes.iter().all(|node| node.lines.is_empty()));
}

#[test]
fn threads_that_run_no_javascript_are_told_apart() {
    let text = r#"{"version":1,"pid":10,"start_ns":0,"end_ns":9,"period_ns":1000,"lost":2,
      "frames":[{"name":"start_thread","module":"libc.so.6"},{"name":"worker","module":"node"},{"name":"PKCS5_PBKDF2_HMAC","module":"node"},
       {"name":"node::(anonymous namespace)::PlatformWorkerThread","module":"node"},{"name":"v8::internal::ScavengerCollector::JobTask::Run","module":"node"},
       {"name":"v8::internal::OptimizingCompileDispatcher::CompileNext","module":"node"},{"name":"main","module":"node"},
       {"name":"JS:*handle file:///srv/server.js:12:3","module":"[jit]"},{"name":"v8::internal::Heap::CollectGarbage","module":"node"},
       {"name":"tcp_sendmsg","module":"[kernel]"},{"name":"uv__fs_work","module":"node"},{"name":"[unknown]","module":"[jit]"}],
      "stacks":[{"thread":11,"thread_name":"node","frames":[0,1,2],"samples":5},
       {"thread":12,"thread_name":"node","frames":[0,3,4],"samples":3},{"thread":12,"thread_name":"node","frames":[0,3,5],"samples":2},
       {"thread":13,"thread_name":"libuv-worker","frames":[0,9],"samples":4},
       {"thread":10,"thread_name":"node","frames":[6,7],"samples":20},{"thread":10,"thread_name":"node","frames":[6,7,8],"samples":6},
       {"thread":10,"thread_name":"node","frames":[6,7,10],"samples":7},{"thread":10,"thread_name":"node","frames":[6,11],"samples":1},
       {"thread":14,"thread_name":"nginx","frames":[],"samples":8}]}"#;
    let cut = native_tree(
        &NativeProfile::read(text.as_bytes()).expect("a profile"),
        &NAMING,
    );
    let kinds = cut.tree.sums(|frame| Some(frame.kind));
    let of = |kind: CodeKind| kinds.get(&kind).copied().unwrap_or(0.0) / 1000.0;
    assert_eq!(
        [
            of(CodeKind::ThreadPool),
            of(CodeKind::Gc),
            of(CodeKind::Jit),
            of(CodeKind::Kernel)
        ],
        [5.0, 9.0, 2.0, 4.0]
    );
    assert_eq!(
        [of(CodeKind::Application), of(CodeKind::Native)],
        [20.0, 16.0]
    );
    assert_eq!((cut.covered_ns, cut.notes.len()), (56_000.0, 1));
    let handle = Frame::new("handle", "server.js", 12, CodeKind::Application);
    assert!(cut.tree.frames.contains(&handle), "{:?}", cut.tree.frames);
    let (roots, _) = cut.tree.children();
    let roots: Vec<&str> = roots
        .iter()
        .map(|root| &*cut.tree.frames[cut.tree.nodes[*root].frame].function)
        .collect();
    assert_eq!(
        roots,
        [
            "(thread pool)",
            "(garbage collector threads)",
            "(compiler threads)",
            "main",
            "(unknown)"
        ]
    );
}

#[test]
fn heap_leaves_out_what_the_agent_allocates() {
    let call = |name: &str, url: &str, bytes: u32, children: &str| {
        let frame =
            format!(r#"{{"functionName":"{name}","url":"{url}","lineNumber":1,"columnNumber":0}}"#);
        format!(r#"{{"callFrame":{frame},"selfSize":{bytes},"children":[{children}]}}"#)
    };
    let below_agent = call("writeUtf8String", "node:net", 40, "");
    let agent = call(
        "received",
        "/tmp/proofload-1-2-3/agent.cjs",
        20,
        &below_agent,
    );
    let socket = call("onStreamRead", "node:net", 5, &agent);
    let calls = [
        socket,
        call("handle", "/srv/a.js", 7, ""),
        call("own", "/srv/agent.cjs", 9, ""),
    ]
    .join(",");
    let text = format!(r#"{{"head":{}}}"#, call("(root)", "", 0, &calls));
    let cut = heap_tree(
        &HeapProfile::read(text.as_bytes()).expect("a profile"),
        &NAMING,
    );
    assert_eq!(
        (
            of(&cut, "onStreamRead"),
            of(&cut, "handle"),
            of(&cut, "own")
        ),
        (5.0, 7.0, 9.0)
    );
    assert_eq!(cut.covered_ns, 21.0);
}
