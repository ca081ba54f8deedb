//! Our reader compared with others: the same bytes through the HTTP clients of Node, over a loopback socket,
//! and of Python. `cases.txt` lists and explains the differences. An unlisted difference fails, and so does a
//! listed one that no longer exists.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/responses");

/// The version that a script prints first, and its outcome of each case. The scripts terminate even if stuck.
fn ask(program: &str, script: &str, cases: &[Case]) -> ((u32, u32), Vec<String>) {
    let mut process = Command::new(program)
        .arg(format!("{FOLDER}/{script}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{program} does not start, which the reader's tests need: {error}")
        });
    let input: String = cases
        .iter()
        .map(|case| format!("{} {}\n", case.method, hex(&case.bytes)))
        .collect();
    process
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = process.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{script} after {} cases: {complaint}",
        said.lines().count()
    );
    let mut lines = said.lines().map(String::from);
    let version = lines.next().unwrap();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap());
    let said: Vec<String> = lines.collect();
    assert_eq!(said.len(), cases.len(), "{script} leaves cases out");
    ((numbers.next().unwrap(), numbers.next().unwrap()), said)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn node_agrees_but_for_the_differences_listed() {
    let cases = all_cases();
    let (version, said) = ask("node", "node.js", &cases);
    if version < (9, 0) {
        // Up to Node 20.19. That parser accepts more, and its differences are not listed.
        eprintln!(
            "llhttp {}.{} is not compared with: it takes Node 20.20 or newer",
            version.0, version.1
        );
        return;
    }
    let mut problems = Vec::new();
    for (case, line) in cases.iter().zip(&said) {
        // It is followed by Node's name for the error.
        let said = &line[..line.find(" HPE_").unwrap_or(line.len())];
        let older_node = case.older_node.as_ref().filter(|_| version < (9, 4));
        let expected = older_node.or(case.node.as_ref()).unwrap_or(&case.reader);
        if said != expected {
            let place = format!("cases.txt:{}: {}", case.line, case.name);
            problems.push(format!("{place}: node says {line}, not {expected}"));
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {}:\n{}",
        problems.len(),
        cases.len(),
        problems.join("\n")
    );
}

#[test]
fn python_agrees_but_for_the_differences_listed() {
    let cases = all_cases();
    let (version, said) = ask("python3", "python.py", &cases);
    if version < (3, 10) {
        eprintln!(
            "Python {}.{} is not compared with: it takes 3.10 or newer",
            version.0, version.1
        );
        return;
    }
    let mut problems = Vec::new();
    for (case, said) in cases.iter().zip(&said) {
        // It is followed by the name of the reason.
        let listed = case
            .python
            .as_ref()
            .map(|listed| &listed[..listed.find(" [").unwrap_or(listed.len())]);
        let expected = listed.unwrap_or(&case.reader);
        if said != expected {
            let place = format!("cases.txt:{}: {}", case.line, case.name);
            problems.push(format!("{place}: python says {said}, not {expected}"));
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {}:\n{}",
        problems.len(),
        cases.len(),
        problems.join("\n")
    );
}
