//! The recipes of docs/recipes.md: a small service in each language, compared with a variant that does more
//! work, which is detected.
//!
//! If a runtime is missing the test reports that it tested nothing.

use std::fs;
use std::process::{Command, Stdio};

use crate::place::{Place, Run, node, skip};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/recipes");
/// Rounds of work of the slower variant. The other does one.
const WORK: &str = "400";

/// The lines of a test's experiment after its services and factors. Everything else is as `compare` writes
/// it.
const DESIGN: &str = "[load]\nconnections = 4\n[design]\ndrop_disturbed = false\nbudget = \"60s\"\nwarmup = \"200ms\"\n\
                      slice = \"200ms\"\nslices = 1\nblocks = 6\n";
/// Builds an image of the binary of the Go recipe, which needs no other file, without a registry.
const IMAGE: &str = "CGO_ENABLED=0 GO111MODULE=off go build -o server server.go && tar -c server | \
                     docker import --change 'ENTRYPOINT [\"/server\"]' --change 'EXPOSE 3000' - proofload-recipe:1";
const COMPOSE: &str = "services:\n  web:\n    image: proofload-recipe:1\n    expose: [3000]\n    environment:\n\
                       \x20     PORT: 3000\n      HOST: 0.0.0.0\n      WORK: ${WORK:-1}\n";

const GUNICORN: &str =
    r#"command = ["gunicorn", "application:wsgi", "--bind", "127.0.0.1:{port}", "--threads", "4"]"#;
const UVICORN: &str =
    r#"command = ["uvicorn", "application:asgi", "--port", "{port}", "--no-access-log"]"#;
const JAVA: &str =
    r#"command = ["java", "-Dsun.net.httpserver.nodelay=true", "-cp", ".", "Server"]"#;
const CONTAINER: &str =
    "container = { image = \"proofload-recipe:1\" }\nenv = { PORT = \"3000\", HOST = \"0.0.0.0\" }";

/// Required program, build command, start command, and the work of the slower variant.
const RECIPES: [(&str, &str, &str, &str); 9] = [
    (
        "node --version",
        "",
        r#"command = ["node", "server.js"]"#,
        WORK,
    ),
    (
        "python3 --version",
        "",
        r#"command = ["python3", "server.py"]"#,
        WORK,
    ),
    ("gunicorn --version", "", GUNICORN, WORK),
    ("uvicorn --version", "", UVICORN, WORK),
    (
        "go version",
        "GO111MODULE=off go build -o server server.go",
        r#"command = ["./server"]"#,
        WORK,
    ),
    ("javac -version", "javac -d . Server.java", JAVA, WORK),
    // Its hash is a cheap one.
    (
        "rustc --version",
        "rustc -O -o server server.rs",
        r#"command = ["./server"]"#,
        "40000",
    ),
    ("docker version && go version", IMAGE, CONTAINER, WORK),
    (
        "docker version && docker compose version && go version",
        IMAGE,
        r#"compose = { service = "web", port = 3000 }"#,
        WORK,
    ),
];

/// Whether a shell command works. Prints a message if not.
fn works(command: &str) -> bool {
    let works = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        skip(&format!("`{command}` does not work here"));
    }
    works
}

/// A place with the sources.
fn sources() -> Place {
    let place = Place::new();
    for source in fs::read_dir(SOURCES).expect("the sources").flatten() {
        fs::copy(
            source.path(),
            place.path(&source.file_name().display().to_string()),
        )
        .expect("a copy");
    }
    place.write("compose.yaml", COMPOSE);
    place
}

/// Runs two levels, and asserts that the one with more work is slower.
fn finds_the_slower_one(place: &Place, service: &str, [little, much]: [&str; 2]) {
    let text = format!(
        "name = \"recipe\"\n[services.app]\n{service}\n[factors.work]\n\
         little = {{ {little} }}\nmuch = {{ {much} }}\n{DESIGN}"
    );
    place.write("proofload.toml", text);
    place.run_well_as(
        || place.proofload(&["run", "--out", "record"]),
        0,
        "SLOWER  much vs little",
    );
}

#[test]
fn each_recipe_that_can_be_followed_here_finds_the_service_with_more_work() {
    for (_, build, service, work) in RECIPES.iter().filter(|(needs, ..)| works(needs)) {
        let place = sources();
        Command::new("sh")
            .args(["-ec", build])
            .current_dir(place.path(""))
            .said()
            .ends(0);
        let service = format!("stop_timeout = \"1s\"\n{service}");
        finds_the_slower_one(
            &place,
            &service,
            ["app.env.WORK = \"1\"", &format!("app.env.WORK = {work:?}")],
        );
    }
}

#[test]
fn two_urls() {
    let place = sources();
    let started = ["1", WORK].map(|work| {
        let (running, address) = node(place.path("server.js"), &[("WORK", work)]);
        (running, format!("app.url = \"http://{address}\""))
    });
    finds_the_slower_one(&place, "", [&started[0].1, &started[1].1]);
}
