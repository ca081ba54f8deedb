//! The recipes of docs/recipes.md: a small service in each language, once as it is and once with more work to do, which is found.
//!
//! Where a runtime is missing the test says that it tested nothing.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::place::{Place, Run, Running, free};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/recipes");
/// What the slower variant does, in rounds; the other does one.
const WORK: &str = "400";

/// Whether a program is there and works; says so where not.
fn is_there(words: &[&str]) -> bool {
    let asked = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let works = asked.is_ok_and(|output| output.status.success());
    if !works {
        // Not by a macro: the test runner would keep to itself what a passing test prints.
        let _ = writeln!(std::io::stderr(), "nothing was tested: `{}` does not work here", words.join(" "));
    }
    works
}

/// A place with the sources, after this command, which builds one.
fn built(words: &[&str]) -> Place {
    let place = Place::new();
    for source in fs::read_dir(SOURCES).expect("the sources").flatten() {
        fs::copy(source.path(), place.path(&source.file_name().display().to_string())).expect("a copy");
    }
    if let Some((program, arguments)) = words.split_first() {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(place.path("")).env("GO111MODULE", "off");
        command.said().ends(0);
    }
    place
}

/// Runs two levels with a design of a few seconds; everything else is as `compare` writes it.
fn finds_the_slower_one(place: &Place, services: &str, levels: [&str; 2]) {
    let [little, much] = levels;
    let text = format!(
        "name = \"recipe\"\n{services}\n[factors.work]\nlittle = {{ {little} }}\nmuch = {{ {much} }}\n\
         [load]\nconnections = 4\n[design]\ndrop_disturbed = false\nbudget = \"60s\"\nwarmup = \"200ms\"\n\
         slice = \"200ms\"\nslices = 1\nblocks = 6\n"
    );
    place.write("proofload.toml", text);
    // More work must be found slower.
    place.run_well_as(|| place.proofload(&["run", "--out", "record"]), "SLOWER  much vs little");
}

/// A recipe of a command line, in which only WORK differs.
fn command(place: &Place, words: &[&str]) {
    let services = format!("[services.app]\ncommand = {words:?}\nstop_timeout = \"1s\"\n");
    let much = format!("app.env.WORK = {WORK:?}");
    finds_the_slower_one(place, &services, ["app.env.WORK = \"1\"", &much]);
}

#[test]
fn node() {
    command(&built(&[]), &["node", "server.js"]);
}

#[test]
fn python() {
    if is_there(&["python3", "--version"]) {
        command(&built(&[]), &["python3", "server.py"]);
    }
}

#[test]
fn python_with_gunicorn() {
    if is_there(&["gunicorn", "--version"]) {
        let words = ["gunicorn", "application:wsgi", "--bind", "127.0.0.1:{port}", "--threads", "4"];
        command(&built(&[]), &words);
    }
}

#[test]
fn python_with_uvicorn() {
    if is_there(&["uvicorn", "--version"]) {
        command(&built(&[]), &["uvicorn", "application:asgi", "--port", "{port}", "--no-access-log"]);
    }
}

#[test]
fn go() {
    if is_there(&["go", "version"]) {
        command(&built(&["go", "build", "-o", "server", "server.go"]), &["./server"]);
    }
}

#[test]
fn java() {
    if is_there(&["javac", "-version"]) {
        command(
            &built(&["javac", "-d", ".", "Server.java"]),
            &["java", "-Dsun.net.httpserver.nodelay=true", "-cp", ".", "Server"],
        );
    }
}

#[test]
fn rust() {
    if is_there(&["rustc", "--version"]) {
        let place = built(&["rustc", "-O", "-o", "server", "server.rs"]);
        let services = "[services.app]\ncommand = [\"./server\"]\n";
        // Its hash is a cheap one.
        finds_the_slower_one(&place, services, ["app.env.WORK = \"1\"", "app.env.WORK = \"40000\""]);
    }
}

/// Makes an image of the binary of the Go recipe, which needs no other file, without a registry.
fn image(place: &Place, tag: &str) {
    let script = format!(
        "CGO_ENABLED=0 GO111MODULE=off go build -o server server.go && tar -c server | \
         docker import --change 'ENTRYPOINT [\"/server\"]' --change 'EXPOSE 3000' - {tag}"
    );
    Command::new("sh").args(["-ec", &script]).current_dir(place.path("")).said().ends(0);
}

#[test]
fn container() {
    if is_there(&["docker", "version"]) && is_there(&["go", "version"]) {
        let place = built(&[]);
        image(&place, "proofload-recipe:1");
        let services = "[services.app]\ncontainer = { image = \"proofload-recipe:1\" }\n\
                        env = { PORT = \"3000\", HOST = \"0.0.0.0\" }\n";
        let much = format!("app.env.WORK = {WORK:?}");
        finds_the_slower_one(&place, services, ["app.env.WORK = \"1\"", &much]);
    }
}

#[test]
fn compose_project() {
    if is_there(&["docker", "version"])
        && is_there(&["docker", "compose", "version"])
        && is_there(&["go", "version"])
    {
        let place = built(&[]);
        image(&place, "proofload-recipe:2");
        let project = "services:\n  web:\n    image: proofload-recipe:2\n    expose: [3000]\n    environment:\n\
                       \x20     PORT: 3000\n      HOST: 0.0.0.0\n      WORK: ${WORK:-1}\n";
        place.write("compose.yaml", project);
        let services = "[services.app]\ncompose = { service = \"web\", port = 3000 }\n";
        let much = format!("app.env.WORK = {WORK:?}");
        finds_the_slower_one(&place, services, ["app.env.WORK = \"1\"", &much]);
    }
}

#[test]
fn two_urls() {
    let place = built(&[]);
    let started = ["1", WORK].map(|work| {
        let address = free();
        let mut node = Command::new("node");
        node.arg("server.js").current_dir(place.path("")).env("WORK", work);
        node.env("PORT", address.port().to_string());
        (Running::start(&mut node, address), format!("app.url = \"http://{address}\""))
    });
    finds_the_slower_one(&place, "[services.app]", [&started[0].1, &started[1].1]);
}
