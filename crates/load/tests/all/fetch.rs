//! Fetching one response from servers that respond in different ways: complete ones are returned with their
//! content decoded, incomplete ones are abandoned in time.

use std::time::{Duration, Instant};

use proofload_load::{Digest, Fetched, RequestSpec, fetch};

use crate::server::{Response, Server};

const PATIENCE: Duration = Duration::from_secs(20);

fn asked(response: Response, method: &str) -> Option<Fetched> {
    let server = Server::start(move |_| response.clone());
    fetch(
        server.address,
        &RequestSpec::new(method, "/", "test"),
        PATIENCE,
    )
}

#[test]
fn a_coded_body_in_chunks_and_one_that_ends_with_the_connection_are_whole_and_decoded() {
    let (page, coded) = (
        include_bytes!("../vectors/page.txt"),
        include_bytes!("../vectors/page.gz"),
    );
    let mut chunked =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in coded.chunks(1000) {
        chunked.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        chunked.extend(piece);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let fetched = asked(Response::Keep(chunked), "GET").unwrap();
    assert_eq!(
        (fetched.status, fetched.body_bytes),
        (200, coded.len() as u64)
    );
    assert_eq!(fetched.decoded, Some((page.len() as u64, Digest::of(page))));
    assert_eq!(
        fetched.headers[0],
        ("Content-Encoding".to_owned(), "gzip".to_owned())
    );

    let to_the_end = [b"HTTP/1.1 404 X\r\n\r\n".as_slice(), page].concat();
    let fetched = asked(Response::Close(to_the_end), "GET").unwrap();
    assert_eq!(
        (fetched.status, fetched.decoded),
        (404, Some((page.len() as u64, Digest::of(page))))
    );

    let lying =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain".to_vec();
    let fetched = asked(Response::Keep(lying), "GET").unwrap();
    assert_eq!((fetched.body_bytes, fetched.decoded), (5, None));

    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec();
    assert_eq!(asked(Response::Keep(head), "HEAD").unwrap().body_bytes, 0);
}

#[test]
fn what_is_never_whole_is_none_and_does_not_outlast_its_time() {
    let began = Instant::now();
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort".to_vec();
    assert_eq!(asked(Response::Close(cut.clone()), "GET"), None);
    assert_eq!(
        asked(Response::Keep(b"garbage\r\n\r\n".to_vec()), "GET"),
        None
    );
    let server = Server::start(move |_| Response::Hang(cut.clone()));
    let get = RequestSpec::new("GET", "/", "test");
    assert_eq!(fetch(server.address, &get, Duration::from_millis(50)), None);
    let unsendable = RequestSpec {
        path: "no slash".into(),
        ..RequestSpec::default()
    };
    assert_eq!(fetch(server.address, &unsendable, PATIENCE), None);
    let address = server.address;
    drop(server);
    assert_eq!(fetch(address, &get, PATIENCE), None);
    assert!(
        began.elapsed() < PATIENCE,
        "nothing but the hung one is waited for"
    );
}
