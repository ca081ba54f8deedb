//! Typical command lines of other tools, and their translations.

use proofload_foreign::{Came, Tool, Translation};

fn words(line: &str) -> Vec<String> {
    shlex::split(line).unwrap()
}

/// A command line as it would be typed.
fn shown(arguments: &[String]) -> String {
    shlex::try_join(arguments.iter().map(String::as_str)).unwrap()
}

fn translated(tool: Tool, line: &str) -> Translation {
    tool.translate(&words(line))
        .unwrap_or_else(|refusal| panic!("{line}: {refusal:?}"))
}

/// The differences that are reported for a run without failures.
fn told(tool: Tool, line: &str, came: &Came) -> String {
    let differences = translated(tool, line).differences;
    let told = differences
        .iter()
        .filter(|difference| difference.when.met(came));
    told.map(|difference| difference.text.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

fn refused(tool: Tool, line: &str) -> String {
    match tool.translate(&words(line)) {
        Ok(translation) => panic!("{line} became {}", shown(&translation.arguments)),
        Err(refusal) => format!("{}; {}", refusal.problem, refusal.hint.unwrap_or_default()),
    }
}

#[test]
fn command_lines_become_ours() {
    for (theirs, ours) in [
        ("u", "-t 2 -c 10 -d 10s --timeout 2s u"),
        (
            "-t12 -c400 -d30s --latency -H 'A: b' u",
            "-t 12 -c 400 -d 30s --timeout 2s --latency -H 'A: b' u",
        ),
        (
            "u --connections=1k --threads 4 --duration 2m",
            "-t 4 -c 1000 -d 2m --timeout 2s u",
        ),
        (
            "-Lt1 -c 8 -d1H -T5 -v u for a script",
            "-t 1 -c 8 -d 1h --timeout 5s --latency u",
        ),
        (
            "--conn 4 --lat -d 90 --tim=1m -- u -t9",
            "-t 2 -c 4 -d 90s --timeout 1m --latency u",
        ),
        (
            "-c4 -c8 -H 'A:b' -H none -H 'A: c' u",
            "-t 2 -c 8 -d 10s --timeout 2s -H A:b -H 'A: c' u",
        ),
    ] {
        assert_eq!(
            shown(&translated(Tool::Wrk, theirs).arguments),
            ours,
            "{theirs}"
        );
    }
    let wrk2 = shown(&translated(Tool::Wrk2, "-t2 -c100 -d30s -R2k -U -B u").arguments);
    assert_eq!(
        wrk2,
        "-t 2 -c 100 -d 30s --rate 2000 --arrivals constant --timeout 2s --latency u"
    );
    // For ab: the part before the header that each has, and the part after it if that is not only the URL.
    for (theirs, before, behind) in [
        ("u", "-n 1 -c 1 --timeout 30s --no-keepalive --latency", ""),
        (
            "-k -n 10000 -c 50 u",
            "-n 10000 -c 50 --timeout 30s --latency",
            "",
        ),
        ("-kdqSlrn5 -c2 -s 5 u", "-n 5 -c 2 --timeout 5s", ""),
        (
            "-k -n 9 -t 60 -c 50 u",
            "-d 1m -c 50 --timeout 30s --latency",
            "",
        ),
        ("-kd -t0 u", "-n 50000 -c 1 --timeout 30s", ""),
        (
            "-kdp f u",
            "-n 1 -c 1 --timeout 30s --body @f -H 'Content-Type: text/plain'",
            "",
        ),
        (
            "-kdu f -T a/b u",
            "-n 1 -c 1 --timeout 30s -X PUT --body @f -H 'Content-Type: a/b'",
            "",
        ),
        (
            "-kd https://h/",
            "-n 1 -c 1 --timeout 30s",
            "--insecure https://h/",
        ),
        (
            "-d https://h/",
            "-n 1 -c 1 --timeout 30s --no-keepalive",
            "--insecure --no-resume https://h/",
        ),
        // Without a body there is no Content-Type.
        ("-kd -i -T a/b u", "-n 1 -c 1 --timeout 30s -X HEAD", ""),
        (
            "-kd -A 'u:p' -C a=1 -C b=2 -B ::1 u",
            "-n 1 -c 1 --timeout 30s --source ::1 -H 'Cookie: a=1; b=2' -H 'Authorization: Basic dTpw'",
            "",
        ),
    ] {
        let behind = if behind.is_empty() { "u" } else { behind };
        let ours = format!("{before} -H 'Accept: */*' {behind}");
        assert_eq!(
            shown(&translated(Tool::Ab, theirs).arguments),
            ours,
            "{theirs}"
        );
    }
    let patch = shown(&translated(Tool::Ab, "-kd -p f -m PATCH -H accept:x u").arguments);
    let plain = "-X PATCH --body @f -H 'Content-Type: text/plain' -H accept:x u";
    assert_eq!(patch, format!("-n 1 -c 1 --timeout 30s {plain}"));
}

#[test]
fn what_a_tool_or_we_cannot_do_is_refused_by_name() {
    let wrk = [
        ("-t2", "no URL"),
        ("--rate 10 u", "no option --rate; wrk's are"),
        ("-R10 u", "no option -R"),
        ("--t 3 u", "--threads or --timeout"),
        ("--latency=yes u", "takes no value"),
        ("u -c", "-c needs a value"),
        ("-d1.5s u", "-d \"1.5s\""),
        ("--timeout x u", "--timeout \"x\""),
        ("-c 0 u", "-c \"0\""),
        ("-c 99999999999999999999 u", "-c \"9999"),
        ("-c 99999999999P u", "-c \"9999"),
        ("-t3 -c2 u", "-c 2 is too few for 3 threads"),
        (
            "-s post.lua u",
            "Lua scripts cannot be run; what scripts mostly set has a flag",
        ),
        ("-h", "proofload load --help"),
    ];
    let ab = [
        ("-n 5", "no URL"),
        (
            "u -n 5",
            "\"-n\" comes after the URL, u; ab takes its options before",
        ),
        (
            "--json u",
            "no option --json; ab -h lists its options; flags of proofload go before",
        ),
        ("-J u", "no option -J"),
        ("-n 10k u", "-n \"10k\" is no whole number from 1"),
        ("-n 0 u", "-n \"0\""),
        ("-t 10s u", "-t \"10s\""),
        ("-c 5 u", "-c 5 is more than 1 request in all"),
        ("-i -p f u", "-p makes it a POST, but it is a HEAD already"),
        ("-m PATCH -p f u", "-m only after it"),
        (
            "-X proxy:80 u",
            "-X proxy:80: there is no going through a proxy",
        ),
        ("-f TLS1 u", "TLS"),
        ("-b 4096 u", "buffers"),
        ("-e out.csv u", "--json"),
        ("-V u", "proofload --version"),
    ];
    // wrk2 requires a rate.
    for (tool, table) in [
        (Tool::Wrk, wrk.as_slice()),
        (Tool::Ab, ab.as_slice()),
        (Tool::Wrk2, [("u", "-R")].as_slice()),
    ] {
        for (theirs, problem) in table {
            let refused = refused(tool, theirs);
            let begins = refused.starts_with(&format!("{}: ", tool.name()));
            assert!(begins && refused.contains(problem), "{theirs}: {refused}");
        }
    }
}

#[test]
fn a_difference_is_told_where_it_makes_one() {
    let fine = Came {
        answered: 1000,
        processors: 16,
        ..Came::default()
    };
    let many = Came {
        answered: 50_000,
        ..fine
    };
    let (not_good, timed_out) = (
        Came {
            not_good: 1,
            ..fine
        },
        Came {
            timed_out: 1,
            ..fine
        },
    );
    let lost = Came { lost: 1, ..fine };
    let (wrk, wrk2, ab) = (Tool::Wrk, Tool::Wrk2, Tool::Ab);
    for (tool, line, came, expected) in [
        (wrk, "u", fine, "1024"),
        (wrk, "u", fine, "coordinated omission"),
        (wrk, "u", fine, "Stdev"),
        (
            wrk,
            "-t12 -c400 u",
            fine,
            "Asked for 400 connections, wrk opens 396",
        ),
        (
            wrk,
            "-t12 -c12 u",
            Came {
                processors: 2,
                ..fine
            },
            "12 threads",
        ),
        (wrk, "u", not_good, "whatever its status"),
        (
            wrk,
            "u",
            timed_out,
            "leaves such a response out of its percentiles",
        ),
        (wrk, "u", fine, "User-Agent, which wrk does not send"),
        (wrk, "-H A:b u", fine, "-H \"A:b\" is sent"),
        (wrk, "-H none u", fine, "-H \"none\" has no colon"),
        (wrk, "-H 'A: b' -H 'A: c' u", fine, "All A headers are sent"),
        (wrk2, "-R1 u", fine, "\"response\""),
        (wrk2, "-R1 -d11s u", fine, "calibrates"),
        (ab, "u", fine, "HTTP/1.0"),
        (ab, "u", fine, "(Length)"),
        (
            ab,
            "-t 5 u",
            Came {
                answered: 50_001,
                ..fine
            },
            "after 50,000 requests",
        ),
        (ab, "-t 5 -n 7 u", many, "after 7 requests"),
        (ab, "u", not_good, "whatever its status"),
        (ab, "-s 7 u", timed_out, "has come for 7s"),
        (ab, "u", lost, "Without -r"),
        (ab, "-C a=1 -C b=2 u", fine, "the last -C only"),
        (ab, "-w u", fine, "no HTML"),
        (ab, "-v 2 u", fine, "curl -v"),
    ] {
        let told = told(tool, line, &came);
        assert!(told.contains(expected), "{line}: {told}");
    }
    let ab_silent = [
        "stopped",
        "Length",
        "whatever its status",
        "once nothing",
        "Without -r",
        "cookies",
        "-v",
        "-w",
    ];
    for (tool, line, came, silent) in [
        (
            wrk,
            "-t4 -c400 -H 'User-Agent: me' u",
            fine,
            WRK_SILENT.as_slice(),
        ),
        (
            wrk2,
            "-R1 -d10s u",
            fine,
            ["coordinated omission", "calibrates"].as_slice(),
        ),
        (ab, "-l -t 5 u", many, ab_silent.as_slice()),
        (ab, "-r u", lost, ["Without -r"].as_slice()),
    ] {
        let told = told(tool, line, &came);
        assert!(
            silent.iter().all(|words| !told.contains(words)),
            "{line}: {told}"
        );
    }
}

const WRK_SILENT: [&str; 6] = [
    "opens",
    "processors",
    "Requests/sec",
    "waits on",
    "User-Agent",
    "-H",
];
