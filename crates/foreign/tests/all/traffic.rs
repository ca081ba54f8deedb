//! Real logs of nginx and Chromium are parsed into the requests that were sent, and no input breaks the
//! readers.

use std::fs;
use std::io::BufReader;

use proofload_foreign::{LeftOut, Mix, MixChoice, RequestKind};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::written;

const CHOICE: MixChoice = MixChoice {
    with_unsafe: false,
    with_values: false,
    is_secret: |name| name == "token",
};

fn file(name: &str) -> Vec<u8> {
    fs::read(written("traffic").join(name)).unwrap()
}

fn read(name: &str, choice: MixChoice) -> (&'static str, Vec<RequestKind>, LeftOut) {
    let mut mix = Mix::new(choice);
    let form = mix.read(&mut file(name).as_slice()).unwrap();
    let kinds = mix.finish(20);
    (form, kinds, mix.left_out)
}

fn told(kinds: &[RequestKind]) -> Vec<(&str, u64, &[u16])> {
    kinds
        .iter()
        .map(|kind| (kind.path.as_str(), kind.count, kind.statuses.as_slice()))
        .collect()
}

#[test]
fn logs_of_nginx_are_the_requests_that_it_got() {
    let (form, kinds, left_out) = read("nginx-1.22-combined.log", CHOICE);
    assert_eq!(form, "access log");
    let expected: [(&str, u64, &[u16]); 6] = [
        ("/item/{id}", 3, &[200]),
        ("/", 2, &[200]),
        ("/search?q=x&page={page}&token=x", 2, &[200]),
        ("/%7Benv.HOME%7D/%C3%BC?a%5B%5D=1&x=x", 1, &[404]),
        ("/missing", 1, &[404]),
        ("/old", 1, &[301]),
    ];
    assert_eq!(told(&kinds), expected);
    assert_eq!(
        (left_out.bad, left_out.bad_first[0].0, left_out.with_token),
        (1, 4, 1)
    );
    assert_eq!(left_out.by_method, [("POST".to_owned(), 1)].into());
    // The same in other formats, with other escaping by nginx.
    for name in ["nginx-1.22-json.log", "nginx-1.22-json-variables.log"] {
        let (form, kinds, left_out) = read(
            name,
            MixChoice {
                with_unsafe: true,
                ..CHOICE
            },
        );
        assert_eq!(form, "access log of JSON lines");
        let paths: Vec<&str> = kinds
            .iter()
            .map(|kind| kind.path.split('?').next().unwrap())
            .collect();
        assert!(
            paths.starts_with(&["/%7Benv.HOME%7D/%C3%BC"]) && paths.ends_with(&["/login"]),
            "{paths:?}"
        );
        assert!(
            kinds
                .iter()
                .all(|kind| !kind.statuses.is_empty() || kind.method == "POST"),
            "{kinds:?}"
        );
        assert_eq!(left_out, LeftOut::default());
    }
}

#[test]
fn a_har_file_is_what_the_browser_asked_one_host() {
    let (form, kinds, left_out) = read("chromium-156.har", CHOICE);
    assert_eq!(form, "HAR file");
    let expected: [(&str, u64, &[u16]); 3] = [
        ("/item/{id}?q=x&page={page}", 3, &[200]),
        ("/shop.html", 2, &[200]),
        ("/style.css", 2, &[404]),
    ];
    assert_eq!(told(&kinds), expected);
    assert_eq!((left_out.elsewhere, left_out.by_method.len()), (2, 1));
}

#[test]
fn a_mark_of_the_encoding_and_a_pipe_in_pieces_change_nothing() {
    for (name, form) in [
        ("nginx-1.22-combined.log", "access log"),
        ("chromium-156.har", "HAR file"),
    ] {
        let marked = [b"\xEF\xBB\xBF".as_slice(), &file(name)].concat();
        let mut mix = Mix::new(CHOICE);
        let found = mix
            .read(&mut BufReader::with_capacity(7, marked.as_slice()))
            .unwrap();
        assert_eq!(
            (found, mix.finish(20)),
            (form, read(name, CHOICE).1),
            "{name}"
        );
    }
}

#[test]
fn fields_go_by_the_names_of_other_servers_too() {
    for line in [
        r#"{"ts":1.5,"request":{"method":"GET","uri":"/a?b=1","host":"x"},"status":200}"#, // Caddy
        r#"{"RequestMethod":"GET","RequestPath":"/a?b=1","DownstreamStatus":200,"StartUTC":"2026-11-25T13:00:00Z"}"#,
        r#"{"level":30,"time":1700000000000,"req":{"method":"GET","url":"/a?b=1"},"res":{"statusCode":200}}"#, // pino
        r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://h.test/a?b=1","status":"200"}}"#,
        r#"{"method":"GET","path":"/a","query":"b=1","response_code":"200"}"#,
        r#"h.test:80 ::1 - - [25/Nov/2026:13:00:00 +0100] "me" "GET /a?b=1 HTTP/2.0" 200 5"#,
    ] {
        let mut mix = Mix::new(CHOICE);
        mix.read(&mut line.as_bytes())
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(told(&mix.finish(5)), [("/a?b=1", 1, &[200][..])], "{line}");
    }
    // Two requests 99 s apart, in the units that loggers use.
    for unit in [1, 1_000, 1_000_000, 1_000_000_000_u64] {
        let line = |at_s: u64| {
            format!(
                "{{\"ts\":{},\"method\":\"GET\",\"path\":\"/a\"}}\n",
                at_s * unit
            )
        };
        let mut mix = Mix::new(CHOICE);
        mix.read(&mut (line(1_700_000_000) + &line(1_700_000_099)).as_bytes())
            .unwrap();
        assert_eq!(mix.span.per_s(), Some(0.02), "{unit}");
    }
    for text in [
        "",
        "hello\n",
        "{\"a\":1}\n",
        "{\"log\":{}}",
        "\x1f\u{8b}",
        "[1]",
    ] {
        assert!(
            Mix::new(CHOICE).read(&mut text.as_bytes()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn targets_of_too_many_values_are_left_out() {
    let request = |target: &str| {
        format!("::1 - - [25/Nov/2026:13:00:00 +0100] \"GET {target} HTTP/1.1\" 200 5\n")
    };
    let text =
        request(&"/1".repeat(33)) + &request(&"/1".repeat(4_000)) + &request(&"/1".repeat(32));
    let mut mix = Mix::new(CHOICE);
    mix.read(&mut text.as_bytes()).unwrap();
    assert_eq!((mix.left_out.bad, mix.finish(5).len()), (2, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_log_with_bytes_changed_gives_paths_that_can_be_sent(
        which in 0..4_usize, changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..30), values in any::<bool>()
    ) {
        let names = ["nginx-1.22-combined.log", "nginx-1.22-json.log", "nginx-1.22-json-variables.log", "chromium-156.har"];
        let mut bytes = file(names[which]);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let mut mix = Mix::new(MixChoice { with_unsafe: true, with_values: values, ..CHOICE });
        let _ = mix.read(&mut bytes.as_slice());
        for kind in mix.finish(100) {
            prop_assert!(kind.path.starts_with('/') && kind.path.bytes().all(|byte| byte.is_ascii_graphic()));
            // Braces contain only column names: {env.NAME} would be a variable of ours.
            let named = kind.path.matches(['{', '}']).count();
            prop_assert_eq!(named, if kind.rows.is_empty() { 0 } else { 2 * kind.columns.len() });
            prop_assert!(kind.rows.iter().all(|row| row.len() == kind.columns.len()));
        }
    }
}
