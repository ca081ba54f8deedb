//! Generators by SSH: files that are copied, access, failures of hosts and networks, and that nothing is
//! left.

mod bad;
mod fleet;

use std::fs;
use std::path::{Path, PathBuf};

use remote::{Channel, Error, Program, ssh};

use crate::hosts::{Hosts, program};

fn own() -> Program {
    Program::at(&program()).expect("the program is readable")
}

/// A generator on a host, and whether the program was copied there.
fn generator(host: &str, program: &Program) -> Result<(Channel, bool), Error> {
    let mut copied = false;
    let channel = ssh::open(host, program, &["remote-agent"], &mut |_| copied = true)?;
    Ok((channel, copied))
}

fn folder(hosts: &Hosts, host: u32) -> PathBuf {
    hosts.path(&format!("h{host}/root/.cache/proofload/bin"))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            entries
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn the_program_is_copied_once_and_again_where_it_is_another_or_damaged() {
    let Some(hosts) = Hosts::up(1) else { return };
    let program = own();
    let folder = folder(&hosts, 1);
    // Start files may print text, and there is an older version.
    fs::write(
        hosts.path("h1/root/.bashrc"),
        "echo 'Welcome to h1!'; printf 'no line end'\n",
    )
    .expect("a start file");
    fs::create_dir_all(&folder).expect("the folder of programs");
    fs::write(folder.join("proofload-0123456789abcdef"), "an older one").expect("an older one");
    let (first, second, third) = hosts.within(|| {
        let first = generator("h1", &program).map(|(_, copied)| copied);
        let second = generator("h1", &program).map(|(_, copied)| copied);
        let file = folder.join(program.file_name());
        let mut bytes = fs::read(&file).expect("it is there");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).expect("it is damaged");
        (
            first,
            second,
            generator("h1", &program).map(|(_, copied)| copied),
        )
    });
    assert!(first.expect("h1 is reached") && !second.expect("h1 is reached"));
    assert!(third.expect("h1 is reached"), "a damaged program was run");
    assert_eq!(
        fs::read(folder.join(program.file_name())).ok(),
        fs::read(crate::hosts::program()).ok()
    );
    assert_eq!(
        names(&folder),
        ["proofload-0123456789abcdef".to_owned(), program.file_name()]
    );
    hosts.is_quiet(1);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_host_without_any_command_for_hashes_has_the_program_tell_its_own() {
    let Some(hosts) = Hosts::up(1) else { return };
    hosts.on(1, "for command in sha256sum shasum openssl; do file=$(command -v $command) && mount --bind /dev/null $file; done; true");
    let program = own();
    let copied =
        hosts.within(|| [0; 2].map(|_| generator("h1", &program).map(|(_, copied)| copied)));
    let [first, second] = copied.map(|copied| copied.expect("h1 is reached"));
    assert!(first && !second);
}
