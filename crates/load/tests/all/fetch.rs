//! A look at one response, against servers that respond in every way: what is whole is told with its content decoded, what is not is an
//! error in time.

use std::time::{Duration, Instant};

use proofload_load::{Digest, FetchError, Fetched, Request, fetch};

use crate::server::{Response, Server};

const PATIENCE: Duration = Duration::from_secs(20);

fn asked(response: Response, method: &str) -> Result<Fetched, FetchError> {
    let server = Server::start(move |_| response.clone());
    fetch(server.address, &Request::new(method, "/", "test"), PATIENCE)
}

#[test]
fn a_coded_body_in_chunks_and_one_that_ends_with_the_connection_are_whole_and_decoded() {
    let vector = |name: &str| {
        let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let (page, coded) = (vector("page.txt"), vector("page.gz"));
    let mut chunked =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in coded.chunks(1000) {
        chunked.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        chunked.extend(piece);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let fetched = asked(Response::Keep(chunked), "GET").unwrap();
    assert_eq!((fetched.status, fetched.body_bytes), (200, coded.len() as u64));
    assert_eq!(fetched.decoded, Some((page.len() as u64, Digest::of(&page))));
    assert_eq!(fetched.headers[0], ("Content-Encoding".to_owned(), "gzip".to_owned()));

    let to_the_end = [b"HTTP/1.1 404 X\r\n\r\n".as_slice(), &page].concat();
    let fetched = asked(Response::Close(to_the_end), "GET").unwrap();
    assert_eq!((fetched.status, fetched.decoded), (404, Some((page.len() as u64, Digest::of(&page)))));

    let lying = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain".to_vec();
    let fetched = asked(Response::Keep(lying), "GET").unwrap();
    assert_eq!((fetched.body_bytes, fetched.decoded), (5, None));

    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec();
    assert_eq!(asked(Response::Keep(head), "HEAD").unwrap().body_bytes, 0);
}

#[test]
fn what_is_never_whole_is_an_error_and_does_not_outlast_its_time() {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort".to_vec();
    assert!(matches!(asked(Response::Close(cut.clone()), "GET"), Err(FetchError::CutOff)));
    assert!(matches!(asked(Response::Keep(b"garbage\r\n\r\n".to_vec()), "GET"), Err(FetchError::Malformed)));
    let server = Server::start(move |_| Response::Hang(cut.clone()));
    let began = Instant::now();
    let late = fetch(server.address, &Request::new("GET", "/", "test"), Duration::from_millis(50));
    assert!(matches!(late, Err(FetchError::Late)), "{late:?}");
    assert!(began.elapsed() < PATIENCE);
    let unsendable = Request { path: "no slash".into(), ..Request::default() };
    assert!(matches!(fetch(server.address, &unsendable, PATIENCE), Err(FetchError::Request(_))));
    let port = server.address;
    drop(server);
    let refused = fetch(port, &Request::new("GET", "/", "test"), PATIENCE);
    assert!(matches!(refused, Err(FetchError::Connection(_))), "{refused:?}");
}
