//! Unusable hosts. Each is reported with a hint, within seconds.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use remote::ssh::{self, Copied};
use remote::{Error, Program};

use super::{folder, generator, names, own};
use crate::hosts::{Hosts, program};

/// Asserts that a host without a generator is reported with these texts, including the hint, within seconds.
fn refused(hosts: &Hosts, host: &str, program: &Program, parts: &[&str]) {
    let begun = Instant::now();
    let error: Error = hosts.within(|| generator(host, program).expect_err("a generator was had"));
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{error} after {:?}",
        begun.elapsed()
    );
    says(
        &format!("{error}\n{}", error.hint().unwrap_or_default()),
        parts,
    );
}

fn says(text: &str, parts: &[&str]) {
    parts
        .iter()
        .for_each(|part| assert!(text.contains(part), "{part:?} is not in: {text}"));
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn who_does_not_get_in_is_told_why() {
    let Some(hosts) = Hosts::up(1) else { return };
    let key = hosts.path("other");
    let mut keygen = std::process::Command::new("ssh-keygen");
    let made = keygen
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    assert!(made.expect("ssh-keygen starts").success());
    let known = fs::read_to_string(hosts.path("other.pub")).expect("a key");
    fs::write(hosts.path("wrong_hosts"), format!("10.77.0.11 {known}"))
        .expect("a file of known hosts");
    hosts.configure(&format!(
        "Host hstranger hchanged hnokey hport\n  HostName 10.77.0.11\n\
         Host hstranger\n  UserKnownHostsFile /dev/null\n\
         Host hchanged\n  UserKnownHostsFile {}\n\
         Host hnokey\n  UserKnownHostsFile {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  IdentityAgent none\n\
         Host hport\n  Port 2222\n\
         Host hgone\n  HostName 10.77.0.99\n\
         Host hjump\n  HostName 10.77.0.11\n  ProxyJump hport",
        hosts.path("wrong_hosts").display(),
        hosts.path("known_hosts").display(),
        key.display(),
    ));
    // The key of the block for all hosts would be tried as well.
    let config = fs::read_to_string(hosts.path("ssh_config")).expect("there is a configuration");
    fs::write(
        hosts.path("ssh_config"),
        config.replace("\nHost h*\n", "\nHost h* !hnokey\n"),
    )
    .expect("it is ours");
    let program = own();
    for (host, parts) in [
        (
            "hstranger",
            &[
                "its host key is not in known_hosts",
                "Host key verification failed",
                "fingerprint: ssh",
            ][..],
        ),
        (
            "hchanged",
            &["its host key has changed", "wrong_hosts:1", "ssh-keygen -R"],
        ),
        (
            "root@hnokey",
            &[
                "authentication failed",
                "Permission denied (publickey",
                "ssh-add",
            ],
        ),
        (
            "hport",
            &["cannot connect: ssh: connect to host 10.77.0.11 port 2222: Connection refused"],
        ),
        (
            "hgone",
            &["cannot connect: ", "10.77.0.99 port 22: No route to host"],
        ),
        ("hjump", &["cannot connect: ", "Connection refused"]),
        ("no-such-host.invalid", &["no such host: ", "~/.ssh/config"]),
        (
            "closed@h1",
            &["no usable shell", "This account is currently not available"],
        ),
        ("-oProxyCommand=touch x", &["must not begin with `-`"]),
    ] {
        refused(&hosts, host, &program, parts);
    }
    hosts.is_quiet(1);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_disk_that_cannot_have_the_program_is_told_and_nothing_is_left_on_it() {
    let Some(hosts) = Hosts::up(1) else { return };
    let program = own();
    let refused = |host: &str, parts: &[&str]| refused(&hosts, host, &program, parts);
    hosts.on(
        1,
        "mkdir /root/.cache && mount -t tmpfs -o size=1m none /root/.cache",
    );
    let (no_room, size) = (
        "not enough space in /root/.cache/proofload/bin for the program",
        program.bytes.to_string(),
    );
    refused("h1", &[no_room, &size, "df: none 1024 ", "XDG_CACHE_HOME"]);

    // It only runs full while the program arrives, because other processes write there, too.
    let size = program.bytes / 1024 + 512;
    hosts.on(
        1,
        &format!("umount /root/.cache && mount -t tmpfs -o size={size}k none /root/.cache"),
    );
    let others_write = || {
        hosts.on(
            1,
            "dd if=/dev/zero of=/root/.cache/other bs=1M count=1 2>/dev/null",
        )
    };
    let error = hosts.within(|| {
        let begun = &mut |copied: Copied| {
            if copied.bytes < copied.of / 2 && !hosts.path("told").exists() {
                fs::write(hosts.path("told"), "").expect("it is ours");
                others_write();
            }
        };
        ssh::open("h1", &program, &["remote-agent"], begun).expect_err("there is no room")
    });
    says(&error.to_string(), &[no_room]);
    hosts.on(
        1,
        "test -z \"$(ls -A /root/.cache/proofload/bin)\" && umount /root/.cache",
    );

    hosts.on(1, "mount -t tmpfs -o noexec none /root/.cache");
    refused(
        "h1",
        &[
            "cannot run ",
            "Permission denied",
            "noexec",
            "XDG_CACHE_HOME",
        ],
    );
    hosts.on(
        1,
        "umount /root/.cache && mount -t tmpfs -o ro none /root/.cache",
    );
    refused(
        "h1",
        &[
            "cannot write the program to /root/.cache/proofload/bin as root: ",
            "Read-only file system",
        ],
    );
    hosts.on(1, "umount /root/.cache");
    let parts = [
        "cannot write the program to ",
        "h1/guest/.cache/proofload/bin as guest: ",
        "Permission denied",
    ];
    refused("guest@h1", &parts);

    // With free space there is no error, and other folders are used.
    fs::write(
        hosts.path("h1/root/.bashrc"),
        "export XDG_CACHE_HOME=/root/elsewhere\n",
    )
    .expect("a start file");
    let copied = hosts.within(|| generator("h1", &program).map(|(_, copied)| copied));
    assert!(copied.expect("h1 has room"));
    assert_eq!(
        names(&hosts.path("h1/root/elsewhere/proofload/bin")),
        [program.file_name()]
    );
}

/// A copy of our program with some bytes changed.
fn changed(hosts: &Hosts, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Program {
    let mut bytes = fs::read(program()).expect("the program is there");
    change(&mut bytes);
    let file: PathBuf = hosts.path(name);
    fs::write(&file, bytes).expect("the folder is ours");
    Program::at(&file).expect("it is still a program")
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let at = bytes.windows(from.len()).position(|window| window == from);
    let at =
        at.unwrap_or_else(|| panic!("{} is not in the program", String::from_utf8_lossy(from)));
    bytes[at..at + to.len()].copy_from_slice(to);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_program_that_does_not_run_there_is_told_with_what_helps() {
    let Some(hosts) = Hosts::up(1) else { return };
    // The field e_machine: another processor than this one.
    let other = if std::env::consts::ARCH == "x86_64" {
        [183, 0]
    } else {
        [62, 0]
    };
    let foreign = changed(&hosts, "foreign", |bytes| {
        bytes[18..20].copy_from_slice(&other)
    });
    let what = format!(
        "its processor is {}, but the program is built for ",
        std::env::consts::ARCH
    );
    refused(&hosts, "h1", &foreign, &[&what, "generators.program"]);
    assert_eq!(
        names(&folder(&hosts, 1)),
        Vec::<String>::new(),
        "it was copied for nothing"
    );

    let newer = changed(&hosts, "newer", |bytes| {
        replace(bytes, b"GLIBC_2.3", b"GLIBC_9.3")
    });
    refused(
        &hosts,
        "h1",
        &newer,
        &["cannot run ", "`GLIBC_9.3", "not found", "make dist"],
    );
    let interpreter = changed(&hosts, "musl", |bytes| {
        replace(bytes, b"/ld-linux", b"/ld-xxxxx")
    });
    refused(
        &hosts,
        "h1",
        &interpreter,
        &["cannot run ", "not found", "make dist"],
    );
}
