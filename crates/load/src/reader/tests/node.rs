//! Our reader beside Node's: the same bytes through Node's own HTTP client over a loopback socket. Where the two differ,
//! `cases.txt` says so and why; a difference that it does not know fails, and so does one that is there no more.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/responses/node.js");

/// The version of Node's parser, and what it says of each case. The script ends by itself, stuck or not.
fn ask_node(cases: &[Case]) -> ((u32, u32), Vec<String>) {
    let mut node = Command::new("node")
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node does not start: the reader's tests need Node.js 20 or newer");
    let input: String = cases.iter().map(|case| format!("{} {}\n", case.method, hex(&case.bytes))).collect();
    node.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "node.js after {} cases: {complaint}", said.lines().count());
    let mut lines = said.lines().map(String::from);
    let version = lines.next().unwrap();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap());
    ((numbers.next().unwrap(), numbers.next().unwrap()), lines.collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is wrong with a case, seen what Node says of it; `code` is Node's name for its refusal.
fn problem(case: &Case, older: bool, said: &str, code: &str) -> Option<String> {
    let older_node = case.older_node.as_ref().filter(|_| older);
    let expected = older_node.or(case.node.as_ref()).unwrap_or(&case.reader);
    if said != expected {
        return Some(format!("node says {said} {code}, not {expected}"));
    }
    let listed = [&case.node, &case.older_node].into_iter().flatten();
    let differs = listed.clone().any(|node| *node != case.reader);
    let sourced = case.because.as_ref().is_some_and(|because| because.contains("RFC 9"));
    match (listed.count(), differs, sourced) {
        (0, _, false) | (1.., true, true) => None,
        (_, _, true) => Some("a difference is listed that is none".into()),
        (_, _, false) => Some("a difference needs its reason: `because: RFC 9...`".into()),
    }
}

#[test]
fn node_agrees_but_for_the_differences_listed() {
    let cases = all_cases();
    let (version, said) = ask_node(&cases);
    if version < (9, 0) {
        // Up to Node 20.19. That parser lets more through, and nothing is listed for it.
        eprintln!("llhttp {}.{} is not compared with: it takes Node 20.20 or newer", version.0, version.1);
        return;
    }
    assert_eq!(said.len(), cases.len(), "node.js leaves cases out");
    let mut problems = Vec::new();
    for (case, line) in cases.iter().zip(&said) {
        let (said, code) = line.split_at(line.find(" HPE_").unwrap_or(line.len()));
        if let Some(problem) = problem(case, version < (9, 4), said, code.trim()) {
            problems.push(format!("cases.txt:{}: {}: {problem}", case.line, case.name));
        }
    }
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), cases.len(), problems.join("\n"));
}
