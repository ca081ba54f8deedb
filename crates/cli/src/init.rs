//! `proofload init`: writes an experiment file for the service in this folder, after starting it once to
//! check that it responds and where.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use lab::Stop;
use model::PortFound;
use plan::{
    DraftSource, DraftVariant, ExperimentDraft, FlagSetting, LoadSettings, Overrides, SERVICE,
};
use serde_json::Value;
use services::{Placement, Ports, Running, Warden};

use crate::exit::{self, CliError};
use crate::{WARDEN, experiment, print, signals};

/// The mode of an experiment file without secrets.
const PUBLIC: u32 = 0o666;
/// Timeout of the first response.
const PATIENCE: Duration = Duration::from_secs(10);

const TEMPLATE: &str = r#"# An experiment: what is started, what is varied, what is asked. `proofload run --dry-run` says what it would do, `proofload run` does it.

name = "first"
question = "Is the candidate faster than the baseline?"

[services.app]
# Program and arguments. PORT is set to a free port, and {port} stands for it.
command = ["./server", "--port", "{port}"]

[factors.setting]
# A variant each; the others are compared with the first.
baseline = {}
candidate = { app.env.SETTING = "on" }

[load]
path = "/"
connections = 64

[design]
margin = "3%"  # a smaller difference does not matter
budget = "5m"  # the run ends earlier if it knows earlier
"#;

/// Flags of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The folder to look at
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Do not start the service
    #[arg(long)]
    no_start: bool,
}

/// Result of the start.
struct FirstStart {
    /// Status of the response to GET /.
    status: Option<u16>,
    port: u16,
    found: Option<PortFound>,
}

pub fn run(args: &InitArgs) -> anyhow::Result<u8> {
    let path = args.folder.join(experiment::FILE);
    if !args.folder.is_dir() {
        let message = format!("{}: there is no such folder", args.folder.display());
        let hint = "init takes the folder of a service; `proofload compare` takes commands";
        return Err(CliError::usage(message).hint(hint).into());
    }
    if path.exists() {
        let message = format!("{}: it is there already", path.display());
        let hint = format!(
            "`{} --dry-run` says what it would do",
            running(&args.folder)
        );
        return Err(CliError::usage(message).hint(hint).into());
    }
    let service = match look(&args.folder) {
        Ok(service) => service,
        Err(lines) => {
            print::create(&path, TEMPLATE.as_bytes(), PUBLIC)?;
            let (folder, lines) = (args.folder.display(), lines.join("\n  "));
            print::tell!("no service was found in {folder}; looked for:\n  {lines}");
            print::tell!(
                "written: {}, a template: say in it what is started",
                path.display()
            );
            return Ok(0);
        }
    };
    print::tell!("found in {}", plan::masked(None, &service.from));
    let start = (!args.no_start)
        .then(|| started(&args.folder, &service))
        .transpose()?;
    let (seen, failure) = match start {
        None => (None, None),
        Some(Ok(seen)) => (Some(seen), None),
        Some(Err(error)) => (None, Some(error)),
    };
    let (written, _) = experiment::drafted(
        &draft(&args.folder, &service, seen.as_ref()),
        &args.folder,
        &Overrides::default(),
    )?;
    let has_secrets = plan::has_secrets(&written.text);
    print::create(
        &path,
        written.text.as_bytes(),
        if has_secrets { print::PRIVATE } else { PUBLIC },
    )?;
    print::tell!("written: {}", path.display());
    print::warn_of_secrets(&path, &written.text);
    if let Some(error) = failure {
        let last = error
            .tail()
            .unwrap_or_default()
            .lines()
            .map(|line| format!("\n    {line}"));
        let message = format!(
            "what was found does not start: {error}{}",
            last.collect::<String>()
        );
        let hint = format!(
            "put it right in {}, then `{} --dry-run`",
            path.display(),
            running(&args.folder)
        );
        return Err(CliError::new(exit::SERVICE, message).hint(hint).into());
    }
    tell_next(&running(&args.folder), &service, seen.as_ref());
    Ok(0)
}

/// The command that runs the file of a folder.
fn running(folder: &Path) -> String {
    let mut words = vec!["proofload".to_owned(), "run".to_owned()];
    if folder != Path::new(".") {
        words.push(folder.join(experiment::FILE).display().to_string());
    }
    plan::command_line(words)
}

fn tell_next(run: &str, service: &FirstService, seen: Option<&FirstStart>) {
    if let Some(FirstStart {
        status,
        port,
        found,
    }) = seen
    {
        let heeds = if found.is_some() {
            ", whatever PORT says"
        } else {
            ", as PORT said"
        };
        let gets = status.map_or("nothing that is HTTP".to_owned(), |status| {
            format!("status {status}")
        });
        print::tell!("started once: it listens on {port}{heeds}, and GET / gets {gets}");
        if *status != Some(200) {
            print::talk(
                "name a path that responds with 200 as load.path, or the status you expect as expect.status",
            );
        }
    }
    let asks = if service.variants.len() < 2 {
        "how fast is it?"
    } else {
        service.question
    };
    print::tell!(
        "next:\n  {run} --quick           {asks}\n  {run} --dry-run         what it would do"
    );
    print::tell!("  {run} --against main    is the code here faster than that of main?");
}

fn draft(folder: &Path, service: &FirstService, seen: Option<&FirstStart>) -> ExperimentDraft {
    let own = |path: &[&str], value: &str| FlagSetting::new(path, value, "");
    let mut settings = vec![
        own(&["load", "path"], "/"),
        FlagSetting::new(
            &["load", "connections"],
            i64::from(LoadSettings::default().connections),
            "",
        ),
        own(&["design", "margin"], "3%"),
        own(&["design", "budget"], "5m"),
    ];
    if let Some(FirstStart {
        port,
        found: Some(found),
        ..
    }) = seen
    {
        let moved = *port != found.given;
        let port =
            moved.then(|| FlagSetting::new(&["services", SERVICE, "port"], i64::from(*port), ""));
        let address = found
            .address
            .map(|address| own(&["services", SERVICE, "address"], &address.to_string()));
        settings.extend(port.into_iter().chain(address));
    }
    let variant = |(name, source): &(&str, DraftSource)| DraftVariant {
        name: Some((*name).to_owned()),
        source: source.clone(),
        from: service.from.clone(),
    };
    ExperimentDraft {
        made_by: format!("proofload init, from {}", plan::masked(None, &service.from)),
        again: running(folder),
        name: experiment::folder_slug(folder).unwrap_or_else(|| "first".to_owned()),
        question: Some(service.question.to_owned()),
        variants: service.variants.iter().map(variant).collect(),
        settings,
    }
}

/// Starts the first variant once, sends a request for `/`, and stops it. The inner error is a failed start.
/// The outer error prevented the attempt.
fn started(
    folder: &Path,
    service: &FirstService,
) -> anyhow::Result<Result<FirstStart, services::Error>> {
    let (_, plan) =
        experiment::drafted(&draft(folder, service, None), folder, &Overrides::default())?;
    let app = &plan.variants[0].services[0];
    let command = app
        .command()
        .map(|started| started.command.join(" "))
        .unwrap_or_default();
    print::tell!("starting once: {}", plan::masked(None, &command));
    // From here on Ctrl-C would leave the folder with logs.
    let stop = Stop::default();
    signals::stop_on_first(stop.clone(), "stopping; once more to leave at once")?;
    let logs = machine::temporary_folder()?;
    let (local, own) = (IpAddr::V4(Ipv4Addr::LOCALHOST), std::process::id());
    let start = || {
        services::check_command(app)?;
        let ports = Ports::choose(std::slice::from_ref(app), local, u64::from(own))?;
        let warden = Warden::of_this_program(WARDEN);
        let placement = Placement::new(logs.path().join("log"));
        services::start(&warden, app, &ports, &placement, &|| stop.is_requested())
    };
    let seen = start().map(|running: Running| {
        let (address, found) = (running.address, running.found.clone());
        let seen = FirstStart {
            status: status(address),
            port: address.port(),
            found,
        };
        running.stop();
        seen
    });
    if stop.is_requested() {
        return Err(CliError::new(exit::INTERRUPTED, "interrupted, and nothing is written").into());
    }
    Ok(seen)
}

/// The status of the response to GET /.
fn status(address: SocketAddr) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head)
        .ok()?
        .rsplit(' ')
        .next()?
        .parse()
        .ok()
}

// Finds the service of a folder from the files that describe its start, in order. It reads files and starts
// nothing.

/// A service, and a first question about it.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstService {
    /// The file that describes it, and the place in the file.
    pub from: String,
    pub question: &'static str,
    /// Names and commands. The first one is started once.
    pub variants: Vec<(&'static str, DraftSource)>,
}

type Finder = fn(&Path, &str) -> Result<FirstService, String>;

/// Larger than any hand-written file.
const FILE_BYTES_MAX: u64 = 4 << 20;
const COMPOSE_PATIENCE: Duration = Duration::from_secs(60);

/// Files in order of precedence, each with its parser.
const FILES: [(&str, Finder); 12] = [
    ("Procfile", procfile),
    ("package.json", package_json),
    ("pyproject.toml", python),
    ("requirements.txt", python),
    ("go.mod", go),
    ("Cargo.toml", cargo),
    ("server.js", |_, _| {
        node("server.js", &["node", "server.js"], &[])
    }),
    ("server.mjs", |_, _| {
        node("server.mjs", &["node", "server.mjs"], &[])
    }),
    ("Dockerfile", dockerfile),
    ("compose.yaml", |folder, _| compose(folder, "compose.yaml")),
    ("compose.yml", |folder, _| compose(folder, "compose.yml")),
    ("docker-compose.yml", |folder, _| {
        compose(folder, "docker-compose.yml")
    }),
];

/// Examines a folder. Returns the first service found, or one line for each file with the reason.
pub fn look(folder: &Path) -> Result<FirstService, Vec<String>> {
    let mut lines = Vec::new();
    for (name, finder) in FILES {
        let text = plan::read_text(&folder.join(name), FILE_BYTES_MAX);
        let why = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => "not there".to_owned(),
            _ => error.to_string(),
        };
        match text.map_err(why).and_then(|text| finder(folder, &text)) {
            Ok(service) => return Ok(service),
            Err(why) => lines.push(format!("{name}: {why}")),
        }
    }
    Err(lines)
}

fn source(env: Vec<(String, String)>, words: &[impl ToString]) -> DraftSource {
    DraftSource::Command {
        env,
        words: words.iter().map(ToString::to_string).collect(),
    }
}

/// A Node.js service, with a question about the setting that is forgotten most often.
fn node(
    from: &str,
    words: &[impl ToString],
    env: &[(String, String)],
) -> Result<FirstService, String> {
    let others = env.iter().filter(|(name, _)| name != "NODE_ENV").cloned();
    let variant = |mode: &'static str| {
        let env = std::iter::once(("NODE_ENV".to_owned(), mode.to_owned())).chain(others.clone());
        (mode, source(env.collect(), words))
    };
    let question = "Is NODE_ENV=production faster than development?";
    let variants = ["development", "production"].map(variant).to_vec();
    Ok(FirstService {
        from: from.to_owned(),
        question,
        variants,
    })
}

/// A service without a known important setting: the first question is about its code.
fn alone(from: &str, source: DraftSource) -> FirstService {
    let question = "How fast is it?";
    FirstService {
        from: from.to_owned(),
        question,
        variants: vec![("as it is", source)],
    }
}

fn package_json(folder: &Path, text: &str) -> Result<FirstService, String> {
    let package: Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    if let Some(start) = package["scripts"]["start"].as_str() {
        let from = format!("package.json, scripts.start: {start}");
        // Variables set in the script would override the variants' values.
        let setters = ["cross-env ", "env "];
        let behind = setters
            .iter()
            .find_map(|setter| start.trim_start().strip_prefix(setter));
        let plain = behind
            .filter(|rest| !rest.starts_with('-'))
            .unwrap_or(start);
        let Ok(DraftSource::Command { env, mut words }) = DraftSource::command(&doubled(plain))
        else {
            return node(&from, &["npm", "start"], &[]);
        };
        // Only a shell can expand these.
        if plain.contains(['$', '`']) {
            return node(&from, &["npm", "start"], &[]);
        }
        // Starting through npm would measure npm's own processes along with the service.
        let own = Path::new("node_modules/.bin").join(&words[0]);
        if folder.join(&own).exists() {
            words[0] = own.display().to_string();
        }
        return node(&from, &words, &env);
    }
    let main = package["main"].as_str().into_iter();
    let mut scripts = main.chain(["server.js", "app.js", "index.js"]);
    match scripts.find(|script| folder.join(script).is_file()) {
        Some(script) => node("package.json, main", &["node", script], &[]),
        None => Err("no scripts.start, and main is not there".to_owned()),
    }
}

fn procfile(_: &Path, text: &str) -> Result<FirstService, String> {
    let web = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("web:"));
    let line = web.ok_or("no line `web:`")?.trim();
    let line = with_port(line);
    let source = match DraftSource::command(&line) {
        Ok(source) if !line.contains(['$', '`']) => source,
        Err(error) if shell_words(&line).is_none() => return Err(format!("web: {error}")),
        // Only a shell can expand these, and Procfiles are written for one.
        _ => in_shell(&line),
    };
    let from = format!("Procfile, web: {line}");
    match &source {
        DraftSource::Command { env, words } if env.is_empty() && words[0] == "node" => {
            node(&from, words, &[])
        }
        _ => Ok(alone(&from, source)),
    }
}

fn shell_words(line: &str) -> Option<Vec<String>> {
    plan::words(line).filter(|words| !words.is_empty())
}

/// A command line for a shell. A single command is run with `exec`, so that the shell is not measured along
/// with the service.
fn in_shell(line: &str) -> DraftSource {
    let is_one = !line.contains(['&', '|', ';', '`', '<', '>']) && !line.contains("$(");
    let is_set = line
        .split_whitespace()
        .next()
        .is_some_and(|word| word.contains('='));
    let has_exec = line.starts_with("exec ");
    let line = if is_one && !is_set && !has_exec {
        format!("exec {line}")
    } else {
        line.to_owned()
    };
    source(Vec::new(), &["sh".to_owned(), "-c".to_owned(), line])
}

/// A command with its braces escaped for an experiment file.
fn doubled(command: &str) -> String {
    command.replace('{', "{{")
}

/// Replaces the port variables of a shell: `$PORT`, `${PORT}`, `${PORT:-3000}`.
fn with_port(command: &str) -> String {
    let mut parts = command.split("${PORT");
    let first = doubled(parts.next().unwrap_or_default());
    let filled = parts.fold(first, |filled, part| match part.split_once('}') {
        Some((default, rest)) if default.is_empty() || default.starts_with([':', '-']) => {
            filled + "{port}" + &doubled(rest)
        }
        _ => filled + "${{PORT" + &doubled(part),
    });
    let mut parts = filled.split("$PORT");
    let first = parts.next().unwrap_or_default().to_owned();
    // `$PORTAL` is another variable.
    let is_longer = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    parts.fold(first, |filled, part| {
        filled + if is_longer(part) { "$PORT" } else { "{port}" } + part
    })
}

/// Init programs of containers, which are followed by the actual command.
const INITS: [&str; 3] = ["tini", "dumb-init", "catatonit"];

/// The command of the last stage: its ENTRYPOINT followed by CMD. The shell form of ENTRYPOINT ignores CMD.
fn dockerfile(_: &Path, text: &str) -> Result<FirstService, String> {
    let text = text.replace('\r', "").replace("\\\n", " ");
    let mut stage: BTreeMap<String, &str> = BTreeMap::new();
    for (word, rest) in text
        .lines()
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
    {
        let word = word.to_ascii_uppercase();
        if word == "FROM" {
            stage.clear();
        }
        stage.insert(word, rest.trim());
    }
    let of = |word: &str| stage.get(word).copied();
    let entry = of("ENTRYPOINT");
    let command = of("CMD").filter(|_| entry.is_none_or(|entry| entry.starts_with('[')));
    let (mut env, mut words) = (Vec::new(), Vec::new());
    for part in entry.into_iter().chain(command) {
        match (
            serde_json::from_str::<Vec<String>>(part),
            DraftSource::command(&doubled(part)),
        ) {
            (Ok(list), _) => words.extend(list.iter().map(|word| doubled(word))),
            (
                Err(_),
                Ok(DraftSource::Command {
                    env: own,
                    words: own_words,
                }),
            ) => {
                env.extend(own);
                words.extend(own_words);
            }
            (Err(_), _) => return Err(format!("its command is for a shell: {part}")),
        }
    }
    let first = words.first().and_then(|first| Path::new(first).file_name());
    if first.is_some_and(|first| INITS.iter().any(|init| first == *init)) {
        words = words
            .into_iter()
            .skip(1)
            .skip_while(|word| word.starts_with('-'))
            .collect();
    }
    if words.is_empty() {
        return Err("neither ENTRYPOINT nor CMD in its last stage".to_owned());
    }
    let exposed = of("EXPOSE")
        .map(|port| format!(", EXPOSE {port}"))
        .unwrap_or_default();
    let from = format!(
        "Dockerfile, {}{exposed}",
        plan::command_line(words.iter().cloned())
    );
    Ok(alone(&from, source(env, &words)))
}

/// The project's first service with a published port. Compose reads its file itself, because it merges files
/// and expands variables.
fn compose(folder: &Path, file: &str) -> Result<FirstService, String> {
    let mut command = machine::command("docker");
    command
        .args(["compose", "--file", file, "config", "--format", "json"])
        .current_dir(folder);
    let read = machine::answer_of(&mut command, COMPOSE_PATIENCE).map_err(|why| {
        format!("`docker compose` does not read it (is Compose 2 installed?): {why}")
    })?;
    let project: Value = serde_json::from_str(&read).map_err(|error| error.to_string())?;
    let services = project["services"].as_object().ok_or("no services")?;
    let of = |key: &str| {
        services
            .iter()
            .find(|(_, service)| service[key].get(0).is_some())
    };
    let (name, service) = of("ports")
        .or_else(|| of("expose"))
        .ok_or("no service with `ports` or `expose`")?;
    let port = service["ports"][0]["target"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok());
    let source = DraftSource::Compose {
        file: file.to_owned(),
        service: name.clone(),
        port,
    };
    Ok(alone(&format!("{file}, services.{name}"), source))
}

fn go(folder: &Path, _: &str) -> Result<FirstService, String> {
    let is_main = |path: &PathBuf| {
        plan::read_text(path, FILE_BYTES_MAX).is_ok_and(|text| text.contains("package main"))
    };
    let has_main =
        |folder: &Path| entries(folder).any(|path| has_end(&path, "go") && is_main(&path));
    if has_main(folder) {
        return Ok(alone("go.mod", source(Vec::new(), &["go", "run", "."])));
    }
    let commands = entries(&folder.join("cmd")).filter(|folder| has_main(folder));
    let first = commands
        .map(|path| format!("./cmd/{}", path.file_name().unwrap_or_default().display()))
        .min();
    let first = first.ok_or("no package main here or in cmd/")?;
    Ok(alone(
        &format!("go.mod, {first}"),
        source(Vec::new(), &["go", "run", &first]),
    ))
}

/// Entries of a folder, in no order.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

fn has_end(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|is| is == end)
}

fn cargo(folder: &Path, text: &str) -> Result<FirstService, String> {
    let manifest: toml::Table = text.parse().map_err(|error| format!("not TOML: {error}"))?;
    if !manifest.contains_key("package") || !folder.join("src/main.rs").exists() {
        return Err("no package with a src/main.rs".to_owned());
    }
    Ok(alone(
        "Cargo.toml",
        source(Vec::new(), &["cargo", "run", "--release", "--quiet"]),
    ))
}

fn python(folder: &Path, text: &str) -> Result<FirstService, String> {
    let (app, is_wsgi) = application(folder).ok_or("no .py file here that makes an application")?;
    let [uvicorn, gunicorn] = ["uvicorn", "gunicorn"].map(|server| text.contains(server));
    // gunicorn's own workers only speak WSGI.
    let (from, listens): (&str, &[&str]) = if uvicorn && !(gunicorn && is_wsgi) {
        ("uvicorn", &["--port", "{port}"])
    } else if gunicorn {
        ("gunicorn", &["--bind", "127.0.0.1:{port}"])
    } else {
        return Err("neither uvicorn nor gunicorn is in it".to_owned());
    };
    let workers = |count| {
        source(
            Vec::new(),
            &[&[from, &app], listens, &["--workers", count]].concat(),
        )
    };
    Ok(FirstService {
        from: format!("its dependencies ({from}) and {app}"),
        question: "Are two workers faster than one?",
        variants: vec![("one worker", workers("1")), ("two workers", workers("2"))],
    })
}

/// `main:app`: a file in the folder and the variable with the framework's application, and whether that uses
/// WSGI instead of ASGI.
fn application(folder: &Path) -> Option<(String, bool)> {
    const WSGI: [&str; 2] = ["Flask(", "get_wsgi_application("];
    const ASGI: [&str; 5] = ["FastAPI(", "Starlette(", "Quart(", "Litestar(", "Sanic("];
    let files: BTreeSet<PathBuf> = entries(folder).filter(|path| has_end(path, "py")).collect();
    files.iter().find_map(|path| {
        let text = plan::read_text(path, FILE_BYTES_MAX).ok()?;
        let (variable, is_wsgi) = text.lines().find_map(|line| {
            let (name, made) = line.split_once('=')?;
            // Its type may follow a colon.
            let name = name.split(':').next().unwrap_or(name);
            let is_name = !name.starts_with(char::is_whitespace);
            let is_made =
                |makers: &[&str]| makers.iter().any(|maker| made.trim().starts_with(maker));
            let is_wsgi = is_made(&WSGI);
            (is_name && (is_wsgi || is_made(&ASGI))).then(|| (name.trim().to_owned(), is_wsgi))
        })?;
        Some((
            format!("{}:{variable}", path.file_stem()?.to_str()?),
            is_wsgi,
        ))
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Result for a folder with these files.
    fn found(files: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), text).unwrap();
        }
        match look(folder.path()) {
            Ok(FirstService { variants, .. }) => variants
                .iter()
                .map(|(name, source)| match source {
                    DraftSource::Command { env, words } => {
                        format!("{name}: {env:?} {}", words.join(" "))
                    }
                    other => format!("{other:?}"),
                })
                .collect::<Vec<_>>()
                .join("\n"),
            Err(_) => "nothing".to_owned(),
        }
    }

    #[test]
    fn services_are_found_by_the_files_of_their_kind() {
        let start = r#"{ "scripts": { "start": "NODE_ENV=x A=1 node --expose-gc app.js" } }"#;
        let node = "development: [(\"NODE_ENV\", \"development\"), (\"A\", \"1\")] node --expose-gc app.js\n\
                    production: [(\"NODE_ENV\", \"production\"), (\"A\", \"1\")] node --expose-gc app.js";
        let crossed: &str = &start.replace("NODE_ENV=x", "cross-env NODE_ENV=x");
        let main = r#"{ "main": "lib.js" }"#;
        let shell = r#"{ "scripts": { "start": "a && b" } }"#;
        let filled = r#"{ "scripts": { "start": "PORT=${PORT:-3000} node app.js" } }"#;
        let staged = "FROM x AS dev\nCMD [\"./dev\"]\nFROM x\nENTRYPOINT [\"/sbin/tini\", \"--\", \\\n \"node\"]\n\
                      cmd [\"server.js\", \"--fast\"]\n";
        for (files, said) in [
            (&[("package.json", start)][..], node),
            (&[("package.json", crossed)], node),
            (&[("package.json", main), ("index.js", "")], "node index.js"),
            (&[("package.json", shell)], "npm start"),
            (
                &[("Procfile", "web: ./serve -p $PORT\n")],
                "as it is: [] ./serve -p {port}",
            ),
            (
                &[(
                    "Procfile",
                    "web: gunicorn app:app --workers $WEB_CONCURRENCY -b 0.0.0.0:$PORT\n",
                )],
                "as it is: [] sh -c exec gunicorn app:app --workers $WEB_CONCURRENCY -b 0.0.0.0:{port}",
            ),
            (
                &[("Procfile", "web: ./serve --portal $PORTAL -p $PORT\n")],
                "as it is: [] sh -c exec ./serve --portal $PORTAL -p {port}",
            ),
            (
                &[("Procfile", "web: A=1 ./serve -p $PORT\n")],
                "as it is: [(\"A\", \"1\")] ./serve -p {port}",
            ),
            (
                &[("Procfile", "web: sh -c \"./serve ${PORT:-80} '{}'\"\n")],
                "sh -c ./serve {port} '{{}'",
            ),
            (&[("package.json", filled)], "npm start"),
            (
                &[("Dockerfile", "FROM x\nEXPOSE 80\nCMD [\"./a\", \"-b\"]\n")],
                "as it is: [] ./a -b",
            ),
            (
                &[("Dockerfile", staged)],
                "as it is: [] node server.js --fast",
            ),
            (
                &[("Dockerfile", "CMD -b\nENTRYPOINT A=1 ./a\n")],
                "as it is: [(\"A\", \"1\")] ./a",
            ),
            (
                &[
                    ("requirements.txt", "fastapi\ngunicorn\nuvicorn\n"),
                    ("api.py", "x = 1\napp: FastAPI = FastAPI()\n"),
                ],
                "one worker: [] uvicorn api:app --port {port} --workers 1\n",
            ),
            (
                &[("go.mod", "module x"), ("cmd/web/a.go", "package main")],
                "as it is: [] go run ./cmd/web",
            ),
            (
                &[("Cargo.toml", "[workspace]"), ("compose.yaml", "")],
                "nothing",
            ),
        ] {
            assert!(found(files).contains(said), "{said}: {}", found(files));
        }
    }
}
