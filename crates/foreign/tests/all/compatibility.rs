//! Command lines of other tools, as people have them, and what they become.

use proofload_foreign::{Came, Tool, Translation};

fn words(line: &str) -> Vec<String> {
    // One level of quotes is enough here.
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// A command line as it would be typed; one level of quotes is enough here too.
fn shown(arguments: &[String]) -> String {
    let quoted =
        |argument: &String| if argument.contains(' ') { format!("'{argument}'") } else { argument.clone() };
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn translated(tool: Tool, line: &str) -> Translation {
    tool.translate(&words(line)).unwrap_or_else(|refusal| panic!("{line}: {refusal:?}"))
}

/// The differences that are told of a run without trouble.
fn told(tool: Tool, line: &str, came: &Came) -> String {
    let differences = translated(tool, line).differences;
    let told = differences.iter().filter(|difference| difference.when.met(came));
    told.map(|difference| difference.text.as_str()).collect::<Vec<_>>().join("\n")
}

fn refused(tool: Tool, line: &str) -> String {
    match tool.translate(&words(line)) {
        Ok(translation) => panic!("{line} became {}", shown(&translation.arguments)),
        Err(refusal) => format!("{}; {}", refusal.problem, refusal.hint.unwrap_or_default()),
    }
}

#[test]
fn command_lines_of_wrk_become_ours() {
    for (theirs, ours) in [
        ("u", "-t 2 -c 10 -d 10s --timeout 2s u"),
        ("-t12 -c400 -d30s --latency -H 'A: b' u", "-t 12 -c 400 -d 30s --timeout 2s --latency -H 'A: b' u"),
        ("u --connections=1k --threads 4 --duration 2m", "-t 4 -c 1000 -d 2m --timeout 2s u"),
        ("-Lt1 -c 8 -d1H -T5 -v u for a script", "-t 1 -c 8 -d 1h --timeout 5s --latency u"),
        ("--conn 4 --lat -d 90 --tim=1m -- u -t9", "-t 2 -c 4 -d 90s --timeout 1m --latency u"),
        ("-c4 -c8 -H 'A:b' -H none -H 'A: c' u", "-t 2 -c 8 -d 10s --timeout 2s -H A:b -H 'A: c' u"),
    ] {
        assert_eq!(shown(&translated(Tool::Wrk, theirs).arguments), ours, "{theirs}");
    }
    let wrk2 = translated(Tool::Wrk2, "-t2 -c100 -d30s -R2k -U -B u");
    assert_eq!(
        shown(&wrk2.arguments),
        "-t 2 -c 100 -d 30s --rate 2000 --arrivals constant --timeout 2s --latency u"
    );
}

#[test]
fn what_wrk_or_we_cannot_do_is_refused_by_name() {
    for (theirs, problem) in [
        ("-t2", "no URL"),
        ("--rate 10 u", "no option --rate; wrk's are"),
        ("-R10 u", "no option -R"),
        ("--t 3 u", "--threads or --timeout"),
        ("--latency=yes u", "takes no value"),
        ("u -c", "-c needs a value"),
        ("-d1.5s u", "-d \"1.5s\""),
        ("-d 100ms u", "-d \"100ms\""),
        ("--timeout x u", "--timeout \"x\""),
        ("-c 0 u", "-c \"0\""),
        ("-c -5 u", "-c \"-5\""),
        ("-c 99999999999999999999 u", "-c \"9999"),
        ("-c 99999999999P u", "-c \"9999"),
        ("-t3 -c2 u", "2 connections are too few for 3 threads"),
        ("-s post.lua u", "Lua scripts cannot be run; what scripts mostly set has a flag"),
        ("-h", "proofload load --help"),
    ] {
        let refused = refused(Tool::Wrk, theirs);
        assert!(refused.starts_with("wrk: ") && refused.contains(problem), "{theirs}: {refused}");
    }
    assert!(refused(Tool::Wrk2, "u").contains("-R"), "wrk2 does not run without a rate");
}

#[test]
fn a_difference_from_wrk_is_told_where_it_makes_one() {
    let fine = Came { answered: 1000, processors: 16, ..Came::default() };
    let plain = told(Tool::Wrk, "-t4 -c400 -H 'User-Agent: me' u", &fine);
    for silent in ["opens", "processors", "Requests/sec", "waits on", "User-Agent", "-H"] {
        assert!(!plain.contains(silent), "{silent}: {plain}");
    }
    for told in ["1024", "coordinated omission", "Stdev"] {
        assert!(plain.contains(told), "{told}: {plain}");
    }
    for (line, came, expected) in [
        ("-t12 -c400 u", fine, "Asked for 400 connections, wrk opens 396"),
        ("-t12 -c12 u", Came { processors: 2, ..fine }, "12 threads"),
        ("u", Came { not_good: 1, ..fine }, "whatever its status"),
        ("u", Came { timed_out: 1, ..fine }, "leaves such a response out of its percentiles"),
        ("u", fine, "User-Agent, which wrk does not send"),
        ("-H A:b u", fine, "-H \"A:b\" is sent"),
        ("-H none u", fine, "-H \"none\" has no colon"),
        ("-H 'A: b' -H 'A: c' u", fine, "All A headers are sent"),
    ] {
        let told = told(Tool::Wrk, line, &came);
        assert!(told.contains(expected), "{line}: {told}");
    }
    let wrk2 = |line| told(Tool::Wrk2, line, &fine);
    assert!(!wrk2("-R1 u").contains("coordinated omission") && wrk2("-R1 u").contains("\"response\""));
    assert!(!wrk2("-R1 -d10s u").contains("calibrates") && wrk2("-R1 -d11s u").contains("calibrates"));
}

#[test]
fn command_lines_of_ab_become_ours() {
    let accept = "-H 'Accept: */*'";
    for (theirs, ours) in [
        ("u", format!("-n 1 -c 1 --timeout 30s --no-keepalive --latency {accept} u")),
        ("-k -n 10000 -c 50 u", format!("-n 10000 -c 50 --timeout 30s --latency {accept} u")),
        ("-kdqSlrn5 -c2 -s 5 u", format!("-n 5 -c 2 --timeout 5s {accept} u")),
        ("-k -n 9 -t 60 -c 50 u", format!("-d 1m -c 50 --timeout 30s --latency {accept} u")),
        ("-kd -t0 u", format!("-n 50000 -c 1 --timeout 30s {accept} u")),
        ("-kdp f u", format!("-n 1 -c 1 --timeout 30s --body @f -H 'Content-Type: text/plain' {accept} u")),
        (
            "-kdu f -T a/b u",
            format!("-n 1 -c 1 --timeout 30s -X PUT --body @f -H 'Content-Type: a/b' {accept} u"),
        ),
        ("-kd -p f -m PATCH -H accept:x u", {
            "-n 1 -c 1 --timeout 30s -X PATCH --body @f -H 'Content-Type: text/plain' -H accept:x u".into()
        }),
        ("-kd https://h/", format!("-n 1 -c 1 --timeout 30s {accept} --insecure https://h/")),
        // Without a body there is no Content-Type.
        ("-kd -i -T a/b u", format!("-n 1 -c 1 --timeout 30s -X HEAD {accept} u")),
        ("-kd -A 'u:p' -C a=1 -C b=2 -B ::1 u", {
            let headers = "-H 'Cookie: a=1; b=2' -H 'Authorization: Basic dTpw'";
            format!("-n 1 -c 1 --timeout 30s --source ::1 {headers} {accept} u")
        }),
    ] {
        assert_eq!(shown(&translated(Tool::Ab, theirs).arguments), ours, "{theirs}");
    }
}

#[test]
fn what_ab_or_we_cannot_do_is_refused_by_name() {
    for (theirs, problem) in [
        ("-n 5", "no URL"),
        ("u -n 5", "\"-n\" comes after the URL, u; ab takes its options before"),
        ("--json u", "no option --json; ab -h lists its options; flags of proofload go before"),
        ("-J u", "no option -J"),
        ("-n 10k u", "-n \"10k\" is no whole number from 1"),
        ("-n 0 u", "-n \"0\""),
        ("-t 10s u", "-t \"10s\""),
        ("-c 5 u", "-c 5 is more than -n 1"),
        ("-i -p f u", "-p makes it a POST, but it is a HEAD already"),
        ("-m PATCH -p f u", "-m only after it"),
        ("-X proxy:80 u", "-X proxy:80: there is no going through a proxy"),
        ("-f TLS1 u", "TLS"),
        ("-b 4096 u", "buffers"),
        ("-e out.csv u", "--json"),
        ("-g out.dat u", "--json"),
        ("-V", "proofload --version"),
    ] {
        let refused = refused(Tool::Ab, if theirs == "-V" { "-V u" } else { theirs });
        assert!(refused.starts_with("ab: ") && refused.contains(problem), "{theirs}: {refused}");
    }
}

#[test]
fn a_difference_from_ab_is_told_where_it_makes_one() {
    let fine = Came { answered: 50_000, processors: 1, ..Came::default() };
    let plain = told(Tool::Ab, "-l -t 5 u", &fine);
    for silent in
        ["stopped", "Length", "whatever its status", "once nothing", "Without -r", "cookies", "-v", "-w"]
    {
        assert!(!plain.contains(silent), "{silent}: {plain}");
    }
    for (line, came, expected) in [
        ("u", fine, "HTTP/1.0"),
        ("u", fine, "(Length)"),
        ("-t 5 u", Came { answered: 50_001, ..fine }, "after 50,000 requests"),
        ("-t 5 -n 7 u", fine, "after 7 requests"),
        ("u", Came { not_good: 1, ..fine }, "whatever its status"),
        ("-s 7 u", Came { timed_out: 1, ..fine }, "has come for 7s"),
        ("u", Came { lost: 1, ..fine }, "Without -r"),
        ("-C a=1 -C b=2 u", fine, "the last -C only"),
        ("-w u", fine, "no HTML"),
        ("-v 2 u", fine, "curl -v"),
    ] {
        let told = told(Tool::Ab, line, &came);
        assert!(told.contains(expected), "{line}: {told}");
    }
    assert!(!told(Tool::Ab, "-r u", &Came { lost: 1, ..fine }).contains("Without -r"));
}
