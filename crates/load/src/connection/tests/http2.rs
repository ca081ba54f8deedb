//! HTTP/2 against servers that speak it frame by frame, correctly and incorrectly.

use super::frames::{
    ACK, DATA, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, data,
    frame, goaway, head, read, reset, settings, trailers,
};
use super::tls::{Server, client};
use super::*;

const TEN: Protocol = Protocol::Http2 { streams: 10 };
const NO_ERROR: u32 = 0;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// A complete response without a body, and one of known length.
fn empty(stream: u32) -> Vec<u8> {
    head(stream, "200", &[], END_STREAM)
}

fn hello(stream: u32) -> Vec<u8> {
    [
        head(stream, "200", &[("content-length", "5")], 0),
        data(stream, b"hello", END_STREAM),
    ]
    .concat()
}

/// A bench with at most ten streams and `count` requests begun in its window.
fn ten(count: u64) -> Bench {
    bench(&get(), TEN, &settings(None), (Cut::Whole, count))
}

fn bench(
    request: &RequestSpec,
    protocol: Protocol,
    settings: &[u8],
    (cut, count): (Cut, u64),
) -> Bench {
    let mut bench = Bench::new(request, protocol, None, (cut, count));
    assert!(bench.said.starts_with(PREFACE), "it speaks first");
    bench.hear(settings);
    bench.load();
    bench
}

/// The tally after `count` requests are sent on streams 1, 3, 5 and so on, and then `bytes` are received.
#[track_caller]
fn effect(count: u64, bytes: &[&[u8]]) -> String {
    heard_for(
        &RequestSpec {
            contract: anything(),
            ..get()
        },
        count,
        bytes,
    )
}

#[track_caller]
fn heard_for(request: &RequestSpec, count: u64, bytes: &[&[u8]]) -> String {
    for_all_cuts(|cut| {
        let mut bench = bench(request, TEN, &settings(None), (cut, count));
        bench.hear(&bytes.concat());
        bench.books()
    })
}

/// Streams that the client has opened or reset since the last call.
fn streams(bench: &mut Bench, kind: u8) -> Vec<u32> {
    read(&bench.said())
        .into_iter()
        .filter(|frame| frame.0 == kind)
        .map(|frame| frame.2)
        .collect()
}

#[test]
fn responses_are_whole_however_frames_are_cut() {
    let good = hello(1);
    assert_eq!(effect(1, &[&good]), "opened 1, 200 x 1, bytes 5, decoded 5");
    let ended = [
        head(3, "200", &[], 0),
        data(3, b"he", 0),
        data(3, b"llo", 0),
        data(3, b"", END_STREAM),
    ]
    .concat();
    assert_eq!(
        effect(2, &[&ended, &good]),
        "opened 1, 200 x 2, bytes 10, decoded 10"
    );
    let trailing = [
        head(1, "200", &[], 0),
        data(1, b"hello", 0),
        trailers(1, &[("x", "y")]),
    ]
    .concat();
    assert_eq!(
        effect(1, &[&trailing]),
        "opened 1, 200 x 1, bytes 5, decoded 5"
    );
    let early = [
        head(1, "103", &[("link", "x")], 0),
        head(1, "103", &[], 0),
        good.clone(),
    ]
    .concat();
    assert_eq!(
        effect(1, &[&early]),
        "opened 1, 200 x 1, bytes 5, decoded 5"
    );
    let posted = RequestSpec {
        body: vec![b'y'; 300],
        ..RequestSpec::new("POST", "/", "a")
    };
    assert_eq!(
        heard_for(&posted, 1, &[&early]),
        "opened 1, 200 x 1, bytes 5, decoded 5"
    );
    for status in ["204", "304"] {
        let bare = head(1, status, &[("content-length", "5")], END_STREAM);
        assert_eq!(effect(1, &[&bare]), format!("opened 1, {status} x 1"));
    }
    let to_head = RequestSpec {
        method: "HEAD".into(),
        ..get()
    };
    let bare = head(1, "200", &[("content-length", "5")], END_STREAM);
    assert_eq!(heard_for(&to_head, 1, &[&bare]), "opened 1, 200 x 1");
    let squeezed = include_bytes!("../../../tests/vectors/page.gz");
    let squeezed = [
        head(1, "200", &[("content-encoding", "gzip")], 0),
        data(1, squeezed, END_STREAM),
    ]
    .concat();
    let page = include_bytes!("../../../tests/vectors/page.txt").len();
    let books = effect(1, &[&squeezed]);
    assert!(books.ends_with(&format!("decoded {page}")), "{books}");
}

#[test]
fn an_interim_response_is_the_first_byte() {
    let mut bench = ten(1);
    bench.hear(&head(1, "103", &[], 0));
    bench.now_ns += 50 * MS;
    bench.hear(&empty(1));
    let slice = bench.slice();
    assert_eq!(slice.successful, 1);
    let most = |latencies: &stats::Latencies| latencies.quantile(1.0).unwrap().ns();
    assert!(most(&slice.first_byte) < MS && most(&slice.latency) >= 49 * MS);
}

#[test]
fn lengths_that_disagree_are_malformed() {
    let response = |length: &str, bytes: &[u8]| {
        effect(
            1,
            &[
                &head(1, "200", &[("content-length", length)], 0),
                &data(1, bytes, END_STREAM),
            ],
        )
    };
    assert_eq!(response("6", b"hello"), "opened 1, body malformed x 1");
    assert_eq!(response("4", b"hello"), "opened 1, body malformed x 1");
    assert_eq!(response("four", b"hello"), "opened 1, head malformed x 1");
    // Other streams are not affected.
    let other = empty(3);
    for (length, pieces) in [
        ("2", [&b"no"[..], b"more"]),
        ("9", [b"no", b"more"]),
        ("4", [b"", b"longer"]),
    ] {
        let [one, two] = [data(1, pieces[0], 0), data(1, pieces[1], END_STREAM)];
        let wrong = [head(1, "200", &[("content-length", length)], 0), one, two].concat();
        assert_eq!(
            effect(2, &[&wrong, &other]),
            "opened 1, 200 x 1, body malformed x 1",
            "{length}"
        );
    }
}

#[test]
fn a_head_that_is_too_large_costs_its_stream_alone() {
    let many: Vec<_> = (0..200).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "y")).collect();
    let lines = head(1, "200", &many, END_STREAM);
    let other = empty(3);
    assert_eq!(
        effect(2, &[&lines, &other]),
        "opened 1, 200 x 1, head too-large x 1"
    );
    let value = "v".repeat(8000);
    // The block is longer than a frame. Continuation frames carry the rest, and a flag marks the last one.
    let long = head(1, "200", &[("a", value.as_str()); 9], END_STREAM)[9..].to_vec();
    let mut pieces: Vec<_> = long
        .chunks(16_000)
        .map(|piece| frame(9, 0, 1, piece))
        .collect();
    (pieces[0][3], pieces[0][4]) = (HEADERS, END_STREAM);
    pieces.last_mut().unwrap()[4] = 4;
    assert_eq!(
        effect(2, &[&pieces.concat(), &other]),
        "opened 1, 200 x 1, head too-large x 1"
    );
}

#[test]
fn what_the_standard_allows_is_taken() {
    // Padding, priorities, unknown frames and settings, an empty continuation, and a reset of a finished
    // stream.
    let block = &head(1, "200", &[("content-length", "5")], 0)[9..];
    let padded = frame(
        HEADERS,
        8 | 0x20,
        1,
        &[&[3], &[0; 5][..], block, &[0; 3]].concat(),
    );
    let said = [
        frame(99, 255, 77, b"extension"),
        frame(SETTINGS, 0, 0, &[0, 99, 1, 2, 3, 4]),
        frame(2, 0, 1, &[0; 5]),
        padded,
        frame(9, 4, 1, &[]),
        frame(DATA, 8, 1, b"\x04hel\0\0\0\0"),
        frame(DATA, 8, 1, b"\0"),
        frame(DATA, 8 | END_STREAM, 1, b"\x01lo\0"),
        reset(1, CANCEL),
        empty(3),
    ];
    assert_eq!(
        effect(2, &[&said.concat()]),
        "opened 1, 200 x 2, bytes 5, decoded 5"
    );
}

#[test]
fn what_breaks_the_protocol_costs_the_connection() {
    let open = frame(HEADERS, 0, 1, &[0x88]);
    let set = |name: u8, value: u32| {
        frame(
            SETTINGS,
            0,
            0,
            &[&[0, name], &value.to_be_bytes()[..]].concat(),
        )
    };
    let cases: [(&str, &[u8]); 27] = [
        ("a pushed stream", &frame(5, 4, 1, &[0, 0, 0, 2, 0x88])),
        (
            "a frame that is too long",
            &frame(DATA, 0, 1, &[0; 16_385])[..40],
        ),
        ("data of no stream", &data(0, b"x", 0)),
        ("a stream that the server began", &empty(2)),
        ("a stream that nobody began", &reset(99, CANCEL)),
        (
            "a window of a stream that nobody began",
            &frame(WINDOW_UPDATE, 0, 99, &[0, 0, 0, 1]),
        ),
        ("a continuation of nothing", &frame(9, 4, 1, &[0x88])),
        (
            "a block with something between",
            &[&open[..], &frame(PING, 0, 0, &[0; 8])].concat(),
        ),
        (
            "a block that goes on elsewhere",
            &[&open[..], &frame(9, 4, 3, &[])].concat(),
        ),
        ("a block that means nothing", &frame(HEADERS, 4, 1, &[0x80])),
        (
            "padding beyond a head",
            &frame(HEADERS, 4 | 8, 1, &[2, 0x88]),
        ),
        (
            "padding beyond data",
            &[head(1, "200", &[], 0), frame(DATA, 8, 1, &[2, 0])].concat(),
        ),
        (
            "padding without its length",
            &[head(1, "200", &[], 0), frame(DATA, 8, 1, &[])].concat(),
        ),
        ("settings of a stream", &frame(SETTINGS, 0, 1, &[])),
        ("half a setting", &frame(SETTINGS, 0, 0, &[0; 5])),
        (
            "an acknowledgement with settings",
            &frame(SETTINGS, ACK, 0, &[0; 6]),
        ),
        ("a server to which we may push", &set(2, 1)),
        ("a window that is too wide", &set(4, 1 << 31)),
        ("frames that are too short", &set(5, 16_383)),
        ("frames that are too long", &set(5, 1 << 24)),
        ("half a ping", &frame(PING, 0, 0, &[0; 7])),
        ("a ping of a stream", &frame(PING, 0, 1, &[0; 8])),
        ("half a goaway", &frame(7, 0, 0, &[0; 7])),
        (
            "a window that grows by nothing",
            &frame(WINDOW_UPDATE, 0, 0, &[0; 4]),
        ),
        (
            "a window that grows too wide",
            &frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        ),
        ("half a reset", &frame(RST_STREAM, 0, 1, &[0; 3])),
        ("half a priority", &frame(2, 0, 1, &[0; 4])),
    ];
    for (what, bytes) in cases {
        let books = effect(1, &[bytes]);
        assert!(
            matches!(
                &*books,
                "opened 1, head malformed x 1" | "opened 1, body malformed x 1"
            ),
            "{what}: {books}"
        );
    }
}

#[test]
fn a_response_that_is_none_costs_its_stream_alone() {
    let cases: [(&str, &[u8]); 14] = [
        ("no status", &trailers(1, &[("a", "b")])),
        ("no number", &head(1, "2x0", &[], END_STREAM)),
        ("a number of four digits", &head(1, "0200", &[], END_STREAM)),
        ("a protocol that changes", &head(1, "101", &[], 0)),
        (
            "an interim response that ends",
            &head(1, "103", &[], END_STREAM),
        ),
        (
            "two statuses",
            &head(1, "200", &[(":status", "200")], END_STREAM),
        ),
        (
            "a request's field",
            &head(1, "200", &[(":path", "/")], END_STREAM),
        ),
        (
            "capital letters",
            &head(1, "200", &[("Etag", "x")], END_STREAM),
        ),
        (
            "a line break in a value",
            &head(1, "200", &[("etag", "x\r\ny")], END_STREAM),
        ),
        (
            "a zero byte in a value",
            &head(1, "200", &[("etag", "x\0")], END_STREAM),
        ),
        (
            "a field of a connection",
            &head(1, "200", &[("connection", "close")], END_STREAM),
        ),
        (
            "two lengths",
            &head(
                1,
                "200",
                &[("content-length", "1"), ("content-length", "2")],
                0,
            ),
        ),
        ("data before the head", &data(1, b"x", 0)),
        (
            "a window that grows by nothing",
            &frame(WINDOW_UPDATE, 0, 1, &[0; 4]),
        ),
    ];
    let other = empty(3);
    for (what, bytes) in cases {
        assert_eq!(
            effect(2, &[bytes, &other]),
            "opened 1, 200 x 1, head malformed x 1",
            "{what}"
        );
    }
    let begun = head(1, "200", &[], 0);
    for bytes in [
        &begun,
        &frame(HEADERS, 4, 1, &[]),
        &trailers(1, &[(":status", "200")]),
    ] {
        assert_eq!(
            effect(2, &[&begun, bytes, &other]),
            "opened 1, 200 x 1, body malformed x 1"
        );
    }
    let mut bench = ten(1);
    bench.said();
    bench.hear(&trailers(1, &[]));
    assert_eq!(streams(&mut bench, RST_STREAM), [1], "the server is told");
}

#[test]
fn windows_are_opened_again_before_they_are_shut() {
    let mut bench = ten(1);
    bench.said();
    bench.hear(&head(1, "200", &[], 0));
    let frame = data(1, &[b'x'; 1 << 14], 0);
    let mut opened = [0, 0];
    for _ in 0..3000 {
        bench.hear(&frame);
        for (kind, _, stream, payload) in read(&bench.said()) {
            assert_eq!(kind, WINDOW_UPDATE);
            opened[stream as usize] += u32::from_be_bytes(payload.try_into().unwrap());
        }
    }
    let sent = 3000 << 14;
    assert!(
        opened
            .iter()
            .all(|&bytes| bytes <= sent && sent - bytes <= 1 << 23),
        "{opened:?} of {sent}"
    );
    bench.hear(&data(1, b"", END_STREAM));
    assert_eq!(
        bench.books(),
        format!("opened 1, 200 x 1, bytes {sent}, decoded {sent}")
    );
}

#[test]
fn a_reset_costs_its_stream_in_the_phase_it_was_in() {
    let other = empty(3);
    let begun = |lines: &[(&str, &str)]| [head(1, "200", lines, 0), data(1, b"no", 0)].concat();
    assert_eq!(
        effect(2, &[&reset(1, CANCEL), &other]),
        "opened 1, 200 x 1, head stream-reset x 1"
    );
    assert_eq!(
        effect(2, &[&begun(&[]), &reset(1, CANCEL), &other]),
        "opened 1, 200 x 1, body stream-reset x 1"
    );
    assert_eq!(
        effect(2, &[&reset(1, REFUSED_STREAM), &other]),
        "opened 1, 200 x 1, head stream-refused x 1"
    );
    // The initial window is 64 KiB, so the rest of the request is still to be sent.
    let request = RequestSpec {
        body: vec![b'x'; 100_000],
        ..RequestSpec::new("POST", "/", "a")
    };
    let heard = |bytes: &[&[u8]]| heard_for(&request, 1, bytes);
    assert_eq!(
        heard(&[&reset(1, CANCEL)]),
        "opened 1, send stream-reset x 1"
    );
    // The response is complete, and the server does not need the rest of the request.
    let said = [head(1, "200", &[], 0), data(1, b"no", END_STREAM)].concat();
    for whole in [said, begun(&[("content-length", "2")])] {
        assert_eq!(
            heard(&[&whole, &reset(1, NO_ERROR)]),
            "opened 1, 200 x 1, bytes 2, decoded 2"
        );
    }
    // The response has no known length and no end, so it is unclear how much is missing.
    for half in [begun(&[]), begun(&[("content-length", "3")])] {
        assert_eq!(
            heard(&[&half, &reset(1, NO_ERROR)]),
            "opened 1, body stream-reset x 1"
        );
    }
}

#[test]
fn a_peer_that_asks_for_acknowledgements_and_reads_none_is_given_up() {
    let mut bench = ten(1);
    bench.room = 0;
    for _ in 0..1100 {
        bench.hear(&frame(PING, 0, 0, &[7; 8]));
    }
    assert_eq!(bench.books(), "opened 1, head malformed x 1");
}

#[test]
fn a_goaway_is_heard_out() {
    let responses = [empty(1), empty(3)].concat();
    // Orderly shutdown: requests already processed complete, the rest are refused, and the connection ends.
    assert_eq!(
        effect(3, &[&goaway(3, NO_ERROR), &responses]),
        "opened 1, 200 x 2, head stream-refused x 1"
    );
    let books = effect(3, &[&goaway(3, ENHANCE_YOUR_CALM), &responses]);
    assert_eq!(
        books,
        "opened 1, 200 x 2, head stream-refused x 1, idle closed x 1"
    );
    assert_eq!(
        effect(2, &[&goaway(i32::MAX as u32, NO_ERROR), &responses]),
        "opened 1, 200 x 2"
    );
    assert_eq!(
        effect(2, &[&goaway(3, NO_ERROR), &responses, b"And nothing."]),
        "opened 1, 200 x 2"
    );
    for_all_cuts(|cut| {
        let mut bench = bench(&get(), TEN, &settings(None), (cut, 13));
        bench.hear(&goaway(5, NO_ERROR));
        assert_eq!(
            streams(&mut bench, HEADERS).len(),
            10,
            "nothing more is sent into it"
        );
        bench.hear(&[empty(1), empty(3)].concat());
        assert!(streams(&mut bench, HEADERS).is_empty());
        bench.hear(&empty(5));
        // The remaining three are sent on a new connection.
        assert!(bench.said.starts_with(PREFACE), "it comes again by itself");
        bench.hear(&settings(None));
        assert_eq!(streams(&mut bench, HEADERS).len(), 3);
        bench.end();
        bench.books()
    });
}

#[test]
fn the_end_of_a_connection_is_booked_by_what_was_owed() {
    let end = |count: u64, bytes: &[u8]| {
        for_all_cuts(|cut| {
            let mut bench = bench(&get(), TEN, &settings(None), (cut, count));
            bench.hear(bytes);
            bench.end();
            bench.books()
        })
    };
    let good = hello(1);
    assert_eq!(
        end(1, &good),
        "opened 1, 200 x 1, bytes 5, idle closed x 1, decoded 5"
    );
    assert_eq!(
        end(2, &good),
        "opened 1, 200 x 1, bytes 5, head closed-early x 1, decoded 5"
    );
    assert_eq!(
        end(1, &good[..good.len() - 1]),
        "opened 1, body closed-early x 1"
    );
    // The bytes are not a frame. Only the responses before them count.
    let garbage = [&good[..], b"HTTP/1.1 200 OK\r\n\r\n"].concat();
    assert_eq!(
        end(2, &garbage),
        "opened 1, 200 x 1, bytes 5, head malformed x 1, decoded 5"
    );
    assert_eq!(
        end(1, &garbage),
        "opened 1, 200 x 1, bytes 5, idle malformed x 1, decoded 5"
    );
}

#[test]
fn a_server_decides_how_many_streams_there_are() {
    let mut bench = bench(&get(), TEN, &settings(Some(1)), (Cut::Bytes, 30));
    assert_eq!(streams(&mut bench, HEADERS), [1]);
    bench.hear(&empty(1));
    assert_eq!(streams(&mut bench, HEADERS), [3]);
    bench.hear(&settings(Some(5)));
    assert_eq!(streams(&mut bench, HEADERS), [5, 7, 9, 11]);
    bench.hear(&settings(None));
    assert!(
        streams(&mut bench, HEADERS).is_empty(),
        "what is not named stays"
    );
    bench.hear(&settings(Some(50)));
    assert_eq!(
        streams(&mut bench, HEADERS).len(),
        5,
        "no more than are asked for"
    );
    // No streams allowed for a while, initially or later.
    bench.hear(&settings(Some(0)));
    bench.hear(
        &(0..11)
            .flat_map(|number| empty(number * 2 + 1))
            .collect::<Vec<_>>(),
    );
    assert!(streams(&mut bench, HEADERS).is_empty());
    bench.pass(CONNECT_TIMEOUT_NS / 2);
    bench.hear(&settings(Some(5)));
    assert_eq!(streams(&mut bench, HEADERS).len(), 5);
    assert_eq!(bench.books(), "opened 1, 200 x 11, unfinished 5");
}

#[test]
fn a_server_that_takes_none_for_long_is_given_up() {
    let mut bench = ten(2);
    bench.hear(&[settings(Some(0)), reset(1, CANCEL), reset(3, CANCEL)].concat());
    assert_eq!(bench.books(), "opened 1, head stream-reset x 2");

    let mut late = Bench::new(&get(), TEN, None, (Cut::Whole, 1));
    late.hear(&settings(Some(0)));
    assert!(!late.is_open(), "nothing can be sent yet");
    late.hear(&settings(Some(1)));
    assert!(late.is_open());
    late.hear(&settings(Some(0)));
    late.load();
    late.pass(CONNECT_TIMEOUT_NS - 1);
    assert!(late.is_open());
    late.pass(1);
    assert_eq!(late.books(), "opened 1, idle timeout x 1");
}

/// The server allows a request and revokes that before one is sent, on every connection.
#[test]
fn a_server_that_never_takes_any_does_not_keep_a_load_for_ever() {
    let mut bench = Bench::new(&get(), TEN, None, (Cut::Whole, 1));
    let take_back = |bench: &mut Bench| {
        for mut said in [settings(Some(1)), settings(Some(0))] {
            let _ = bench.worker.received(0, bench.now_ns, &mut said);
        }
        assert!(bench.is_open());
    };
    take_back(&mut bench);
    bench.load();
    bench.pass(CONNECT_TIMEOUT_NS);
    take_back(&mut bench);
    assert!(
        !bench.worker.is_window_over(bench.now_ns),
        "it has a second chance"
    );
    bench.pass(CONNECT_TIMEOUT_NS);
    assert!(!bench.has_socket, "and waits before it comes again");
    bench.pass(CONNECT_TIMEOUT_NS);
    take_back(&mut bench);
    assert!(bench.worker.is_window_over(bench.now_ns));
    assert_eq!(bench.books(), "opened 3, idle timeout x 2");
}

#[test]
fn who_never_says_settings_never_opens() {
    let greeted = |bytes: &[u8]| {
        for_all_cuts(|cut| {
            let mut bench = Bench::new(&get(), TEN, None, (cut, 1));
            bench.hear(bytes);
            bench.end();
            assert!(!bench.has_socket);
            bench.books()
        })
    };
    assert_eq!(
        greeted(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "opened 0, connect speaks-http1 x 1"
    );
    assert_eq!(
        greeted(&frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1])),
        "opened 0, connect malformed x 1"
    );
    assert_eq!(greeted(b""), "opened 0, connect closed-early x 1");
    assert_eq!(
        greeted(&goaway(0, ENHANCE_YOUR_CALM)),
        "opened 0, connect closed-early x 1"
    );
    let none = [settings(Some(0)), goaway(0, NO_ERROR)].concat();
    assert_eq!(greeted(&none), "opened 0, connect closed-early x 1");
}

#[test]
fn a_ping_is_answered_and_settings_are() {
    let mut bench = bench(&get(), TEN, &settings(None), (Cut::Bytes, 1));
    bench.hear(&frame(PING, 0, 0, b"12345678"));
    let said = read(&bench.said());
    assert!(said.contains(&(SETTINGS, ACK, 0, Vec::new())), "{said:?}");
    assert!(
        said.contains(&(PING, ACK, 0, b"12345678".to_vec())),
        "{said:?}"
    );
}

#[test]
fn a_stream_that_stalls_is_given_up_alone() {
    let mut bench = ten(3);
    bench.said();
    bench.hear(&[head(1, "200", &[], 0), data(1, b"he", 0)].concat());
    bench.pass(TIMEOUT_NS / 2);
    bench.hear(&empty(3));
    bench.pass(TIMEOUT_NS / 2);
    assert!(bench.is_open());
    assert_eq!(
        streams(&mut bench, RST_STREAM),
        [1, 5],
        "the server is told"
    );
    bench.hear(&data(1, b"llo", END_STREAM));
    assert!(bench.is_open());
    assert_eq!(
        bench.books(),
        "opened 1, 200 x 1, head timeout x 1, body timeout x 1"
    );
}

/// The scan for expired requests runs again when the next request expires, not a full timeout later.
#[test]
fn a_request_beside_one_that_was_given_up_has_its_own_time_and_no_more() {
    let mut bench = bench(&get(), TEN, &settings(Some(1)), (Cut::Whole, 2));
    bench.pass(100 * MS);
    bench.hear(&settings(Some(2)));
    bench.pass(TIMEOUT_NS - 100 * MS);
    assert!(bench.is_open());
    assert_eq!(bench.worker.next_due_ns, bench.now_ns + 100 * MS);
    assert_eq!(bench.books(), "opened 1, head timeout x 1, unfinished 1");
}

#[test]
fn a_silent_connection_is_given_up_with_all_its_streams() {
    let mut bench = bench(
        &get(),
        Protocol::Http2 { streams: 2 },
        &settings(None),
        (Cut::Whole, 4),
    );
    // The second of these begins at the same time as the first completes, which is the last thing received.
    bench.pass(MS);
    bench.hear(&empty(1));
    bench.pass(MS);
    bench.hear(&empty(3));
    bench.pass(TIMEOUT_NS - MS);
    assert!(bench.is_open(), "something was received since");
    bench.pass(MS);
    assert!(!bench.is_open(), "nothing was received since");
    assert_eq!(bench.books(), "opened 1, 200 x 2, head timeout x 2");
}

#[test]
fn a_long_request_waits_for_the_windows_and_is_sent_whole() {
    const BYTES: usize = 1 << 20;
    let request = RequestSpec {
        body: vec![b'x'; BYTES],
        ..RequestSpec::new("POST", "/", "a")
    };
    for_all_cuts(|cut| {
        let mut bench = bench(&request, TEN, &settings(None), (cut, 1));
        let (mut got, mut rounds, mut ended) = (0, 0, false);
        while !ended {
            let frames = read(&bench.said());
            let sent: Vec<_> = frames.iter().filter(|frame| frame.0 == DATA).collect();
            let count: usize = sent.iter().map(|frame| frame.3.len()).sum();
            assert!(count > 0 || rounds > 0, "stuck after {got} bytes");
            ended = sent.last().is_some_and(|frame| frame.1 & END_STREAM != 0);
            got += count;
            rounds += 1;
            let more = (count as u32).max(1).to_be_bytes();
            bench.hear(
                &[
                    frame(WINDOW_UPDATE, 0, 0, &more),
                    frame(WINDOW_UPDATE, 0, 1, &more),
                ]
                .concat(),
            );
        }
        assert!(
            got == BYTES && rounds > 10,
            "{got} bytes in {rounds} rounds"
        );
        bench.hear(&empty(1));
        bench.books()
    });
    // A server that opens its windows wide at once never updates them. Its socket takes everything, or only
    // pieces.
    let wide = frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    let wide = [wide, frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0])].concat();
    for pieces in [0, 20] {
        let mut bench = Bench::new(&request, TEN, None, (Cut::Whole, 1));
        bench.hear(&wide);
        bench.room = if pieces == 0 { usize::MAX } else { 0 };
        bench.load();
        for _ in 0..pieces {
            bench.room = 100_000;
            bench.perform(Action::Send);
            bench.hear(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]));
        }
        let sent = read(&bench.said())
            .into_iter()
            .filter(|frame| frame.0 == DATA);
        assert_eq!(sent.map(|frame| frame.3.len()).sum::<usize>(), BYTES);
    }
}

#[test]
fn a_server_without_http2_is_said() {
    let mut bench = Bench::new(&get(), TEN, Some(client(TEN)), (Cut::Whole, 1));
    let provider = Server::config(&rustls::version::TLS13, b"http/1.1");
    let mut server = rustls::ServerConnection::new(provider).unwrap();
    let said = bench.said();
    server.read_tls(&mut &said[..]).unwrap();
    assert!(server.process_new_packets().is_err());
    let mut alert = Vec::new();
    server.write_tls(&mut alert).unwrap();
    bench.hear(&alert);
    let slice = bench.slice();
    assert_eq!((slice.sent, slice.errors.len()), (0, 1));
    assert!(
        slice.tls_error.as_ref().unwrap().contains("HTTP/2"),
        "{:?}",
        slice.tls_error
    );
}
