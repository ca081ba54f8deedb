//! Counters of a service begin and end with the window of its load.

use crate::place::{Draft, Place};

/// The same work for each request, independent of other load on the processors.
const HASHES: &str = "const { pbkdf2Sync } = require(\"node:crypto\");
require(\"node:http\").createServer((request, response) => {
  if (request.url !== \"/healthz\") pbkdf2Sync(\"a\", \"b\", 1000, 64, \"sha512\");
  response.end(\"ok\");
}).listen(Number(process.env.PORT), process.env.HOST);
";

/// With 512 connections about as many requests wait at each edge of a slice as are responded to in it.
#[test]
fn a_planted_cost_does_not_depend_on_connections() {
    let place = Place::new();
    place.write("hashes.js", HASHES);
    let experiment = place.experiment(&Draft {
        service: "command = [\"node\", \"hashes.js\"]",
        more: "[factors.connections]\nfew = { load.connections = 2 }\nmany = { load.connections = 512 }",
        load: "timeout = \"20s\"",
        design: "metric = \"cpu_per_request\"\nslice = \"400ms\"\nblocks = 4\nexplain = false",
    });
    let said = place.run(&experiment);
    let json = place.report("json").json();
    let ratio = json["comparisons"][0]["estimate"]["ratio"].as_f64();
    assert!(
        ratio.is_some_and(|ratio| (0.85..1.18).contains(&ratio)),
        "{ratio:?}: {said}"
    );
    place.is_quiet();
}
