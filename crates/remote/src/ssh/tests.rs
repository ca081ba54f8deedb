//! Tests which destinations are accepted, and how facts about a machine are parsed.

use super::*;

#[test]
fn what_ssh_takes_is_taken() {
    for text in [
        "bench-1",
        "root@10.0.0.7",
        "me@fe80::1%eth0",
        "CORP\\me@bench",
        "a@b@bastion",
        "ssh://bench",
        "ssh://me@bench:2222",
        "ssh://me@[fe80::1]:22",
        "ssh://[::1]",
        "::1",
    ] {
        assert_eq!(Destination::new(text).unwrap().0, text);
    }
    assert_eq!(Destination::new("bench").unwrap().name(), "ssh://bench");
    assert_eq!(
        Destination::new("ssh://bench:22").unwrap().name(),
        "ssh://bench:22"
    );
}

#[test]
fn what_could_be_an_option_or_a_command_is_refused() {
    for (text, why) in [
        ("-oProxyCommand=touch /tmp/x", "must not begin with `-`"),
        ("me@-oProxyCommand=x", "must not begin with `-`"),
        ("ssh://-oProxyCommand=x", "must not begin with `-`"),
        ("-l@bench", "must not begin with `-`"),
        ("", "expected user@host"),
        ("ssh://", "expected ssh://user@host:port"),
        ("@bench", "the user before the @ is missing"),
        ("me@", "expected user@host"),
        ("bench rm", "' ' is not allowed in a user or host name"),
        ("bench\n", "'\\n' is not allowed in a user or host name"),
        ("`id`", "'`' is not allowed in a user or host name"),
        ("$(id)@bench", "'$' is not allowed in a user or host name"),
        ("bench;id", "';' is not allowed in a user or host name"),
        ("ssh://bench:0", "invalid port \"0\": must be 1 to 65535"),
        ("ssh://bench:99999", "invalid port \"99999\""),
        ("ssh://bench:22/etc", "expected ssh://user@host:port"),
    ] {
        let problem = Destination::new(text).unwrap_err().to_string();
        assert!(problem.contains(why), "{text:?}: {problem}");
    }
    assert!(
        Destination::new(&"x".repeat(600))
            .unwrap_err()
            .to_string()
            .contains("600 bytes: must be at most 512")
    );
    assert_eq!(Destination("a\nb".into()).name(), "ssh://a\\nb");
}

fn of(lines: &[(&str, &str)]) -> RemoteFacts {
    let mut facts = RemoteFacts::default();
    for (what, text) in lines {
        facts.learn(MarkedLine {
            what: (*what).to_owned(),
            text: (*text).to_owned(),
        });
    }
    facts
}

#[test]
fn what_is_told_is_understood_also_from_odd_systems() {
    let facts = of(&[
        ("system", "Linux"),
        ("machine", std::env::consts::ARCH),
        (
            "room",
            "Filesystem 1024-blocks Used Available Capacity Mounted on",
        ),
        ("room", "tmpfs 1024 1000 24 98% /mnt/a 5% b"),
        ("program", "absent"),
        ("something", "from a later version"),
    ]);
    assert!(!facts.is_program_there && of(&[("program", "there")]).is_program_there);
    let (own, to) = (Program::own().unwrap(), Destination("h".into()));
    assert!(facts.fits(&to, &own).is_ok());
    let unknown = of(&[("room", "overlay - - - - /")]);
    assert!(
        unknown.has_room(&own),
        "where df knows nothing, only a try tells"
    );
    let said = unknown.fits(&to, &own).unwrap_err().to_string();
    assert_eq!(
        said,
        "ssh://h: its system is , but Proofload requires Linux"
    );
}

#[test]
fn a_full_disk_is_told_with_what_df_says() {
    let facts = of(&[
        ("folder", "/a/.cache"),
        ("room", "tmpfs  1024 1024 0 100% /root"),
    ]);
    let own = Program::own().unwrap();
    assert!(!facts.has_room(&own));
    let said = facts.full(&Destination("h".into()), &own).to_string();
    assert!(
        said.contains("not enough space in /a/.cache ")
            && said.contains("df: tmpfs 1024 1024 0 100% /root"),
        "{said}"
    );
}
