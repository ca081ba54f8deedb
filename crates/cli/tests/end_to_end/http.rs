//! HTTP problems of new users: a redirect, another protocol than expected, a body without its type,
//! compression without a request for it, an error with status 200. The tests use their own Node.js services
//! on loopback.

use std::process::Stdio;

use crate::place::{Place, Run, Said, node, proofload};

const REDIRECTS: &str = "require('node:http').createServer((_, response) => {
    response.writeHead(302, { Location: '/en/' });
    response.end();
}).listen(process.env.PORT, '127.0.0.1');";

const HTTP2: &str = "const server = require('node:http2').createServer();
server.on('stream', (stream) => { stream.respond({ ':status': 200 }); stream.end('ok'); });
server.listen(process.env.PORT, '127.0.0.1');";

/// With ERRORS the response is an error of GraphQL, with COMPRESS it is compressed for clients that accept
/// it.
const SERVICE: &str = "const { gzipSync } = require('node:zlib');
require('node:http').createServer((request, response) => {
    request.resume();
    request.on('end', () => {
        const text = process.env.ERRORS ? '{\"errors\":[{}]}' : JSON.stringify({ data: 'x'.repeat(600) });
        if (!process.env.COMPRESS || !/gzip/.test(request.headers['accept-encoding'])) return response.end(text);
        response.setHeader('Content-Encoding', 'gzip');
        response.end(gzipSync(text));
    });
}).listen(process.env.PORT, '127.0.0.1');";

fn load(url: &str, flags: &[&str]) -> Said {
    proofload()
        .args(["load", url, "-n", "3", "-c", "1"])
        .args(flags)
        .said()
}

fn compare(place: &Place, words: &[&str]) -> Said {
    place
        .proofload(
            &[
                &["compare", "--out", "record", "-c", "4", "--budget", "20s"],
                words,
            ]
            .concat(),
        )
        .stdin(Stdio::null())
        .said()
}

#[test]
fn names_the_protocol_that_the_server_speaks() {
    let place = Place::new();
    let (_http2, address) = node(place.write("http2.js", HTTP2), &[]);
    let url = format!("http://{address}/");
    load(&url, &[])
        .ends(4)
        .prints(&["the server speaks HTTP/2: --http2"]);
    load(&url, &["--http2"]).ends(0).prints(&["3 successful"]);
    let (_http1, address) = node(place.write("http1.js", SERVICE), &[]);
    load(&format!("http://{address}/"), &["--http2"])
        .ends(4)
        .prints(&["the server speaks HTTP/1.1"]);
}

#[test]
fn names_where_a_redirect_leads() {
    let place = Place::new();
    let (_redirects, address) = node(place.write("redirects.js", REDIRECTS), &[]);
    load(&format!("http://{address}/"), &[])
        .ends(4)
        .prints(&["status 302 to /en/", "by --path or the URL"]);
    let said = compare(&place, &["node redirects.js", "A=1 node redirects.js"]);
    said.ends(4).prints(&["status 302 to /en/"]);
    assert!(!said.out.contains("0 of 0 requests"), "{said}");
}

#[test]
fn notes_a_body_without_its_type() {
    let place = Place::new();
    let (_service, address) = node(place.write("service.js", SERVICE), &[]);
    let url = format!("http://{address}/");
    let note = "has no Content-Type";
    load(&url, &["-b", "{\"a\":1}"])
        .ends(0)
        .tells(&[note, "-H 'content-type: application/json'"]);
    let typed = load(
        &url,
        &["-b", "{\"a\":1}", "-H", "Content-Type: application/json"],
    );
    assert!(!typed.ends(0).err.contains(note), "{typed}");
}

#[test]
fn refuses_to_compare_errors_with_status_200() {
    let place = Place::new();
    place.write("service.js", SERVICE);
    let said = compare(
        &place,
        &["node service.js", "ERRORS=1 node service.js", "-b", "{}"],
    );
    said.ends(4).prints(&["the content of POST /"]);
}

#[test]
fn tells_of_compression_that_no_request_asked_for() {
    let place = Place::new();
    place.write("service.js", SERVICE);
    let said = compare(&place, &["node service.js", "COMPRESS=1 node service.js"]);
    said.tells(&["-H 'accept-encoding: gzip' measures compression"]);
    said.prints(&["Compression that no request asked for (V58)"]);
}
