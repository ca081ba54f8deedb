//! `proofload init`: an experiment file for the service of this folder, which was started once to see that it responds and where.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use model::Found;
use plan::{Draft, DraftSource, DraftVariant, SERVICE, Setting};
use services::{Placement, Ports, Running, Warden};

use crate::exit::{self, Failed};
use crate::{WARDEN, experiment, print, run};

mod look;

use look::Service;

/// How long the first response may take.
const PATIENCE: Duration = Duration::from_secs(10);

const TEMPLATE: &str = r#"# An experiment: what is started, what is varied, what is asked. `proofload run --dry-run` says what it would do, `proofload run` does it.

name = "first"
question = "Is the candidate faster?"

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
    /// Do not start what is found
    #[arg(long)]
    no_start: bool,
}

/// What a start showed.
struct Seen {
    /// Status of the response to GET /.
    status: Option<u16>,
    port: u16,
    found: Option<Found>,
}

/// Writes the file.
///
/// # Errors
/// If there is one already, it cannot be written, or what was found does not start.
pub fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let path = args.folder.join(experiment::FILE);
    if path.exists() {
        let message = format!("{}: it is there already", path.display());
        return Err(Failed::usage(message).hint("`proofload run --dry-run` says what it would do").into());
    }
    let service = match look::look(&args.folder) {
        Ok(service) => service,
        Err(lines) => {
            write(&path, TEMPLATE)?;
            let (folder, lines) = (args.folder.display(), lines.join("\n  "));
            print::tell!("no service was found in {folder}; looked for:\n  {lines}");
            print::tell!("written: {}, a template: say in it what is started", path.display());
            return Ok(ExitCode::SUCCESS);
        }
    };
    print::tell!("found in {}", service.from);
    let start = (!args.no_start).then(|| started(&args.folder, &service)).transpose()?;
    let (seen, failure) = start.map_or((None, None), |start| match start {
        Ok(seen) => (Some(seen), None),
        Err(error) => (None, Some(error)),
    });
    let written = draft(&args.folder, &service, seen.as_ref()).write();
    if let Err(found) = written.plan(&args.folder, None) {
        return Err(experiment::shown_made(&written, &found).into());
    }
    write(&path, &written.text)?;
    print::tell!("written: {}", path.display());
    if let Some(error) = failure {
        let message = format!("what was found does not start: {error}{}", last_lines(&error));
        let hint = format!("put it right in {}, then `proofload run --dry-run`", path.display());
        return Err(Failed::new(exit::SERVICE, message).hint(hint).into());
    }
    tell_next(&service, seen.as_ref());
    Ok(ExitCode::SUCCESS)
}

fn last_lines(error: &services::Error) -> String {
    let lines = error.tail().unwrap_or_default().lines().map(|line| format!("\n    {line}"));
    lines.collect()
}

fn tell_next(service: &Service, seen: Option<&Seen>) {
    if let Some(Seen { status, port, found }) = seen {
        let heeds = if found.is_some() { ", whatever PORT says" } else { ", as PORT said" };
        let status = status.map_or("nothing that is HTTP".to_owned(), |status| format!("status {status}"));
        print::tell!("started once: it listens on {port}{heeds}, and GET / gets {status}");
        if status != "status 200" {
            print::talk(
                "name a path that responds with 200 as load.path, or the status you expect as expect.status",
            );
        }
    }
    print::talk(
        "next: `proofload run --quick` for a first answer; `proofload run --dry-run` for what it will do",
    );
    if service.variants.len() < 2 {
        print::talk("      `proofload run --against main` compares the code here with that of main");
    }
}

/// The file's content.
fn draft(folder: &Path, service: &Service, seen: Option<&Seen>) -> Draft {
    let mut settings = Vec::new();
    if let Some(Seen { port, found: Some(found), .. }) = seen {
        if *port != found.given {
            settings.push(Setting::new(&["services", SERVICE, "port"], i64::from(*port), ""));
        }
        if let Some(address) = found.address {
            settings.push(Setting::new(&["services", SERVICE, "address"], address.to_string(), ""));
        }
    }
    settings.extend([
        Setting::new(&["load", "path"], "/", ""),
        Setting::new(&["load", "connections"], 64, ""),
        Setting::new(&["design", "margin"], "3%", ""),
        Setting::new(&["design", "budget"], "5m", ""),
    ]);
    let variant = |(name, source): &(&str, DraftSource)| DraftVariant {
        name: Some((*name).to_owned()),
        source: source.clone(),
        from: service.from.clone(),
    };
    Draft {
        made_by: format!("proofload init, from {}", service.from),
        again: "proofload run".to_owned(),
        name: run::slug(folder).unwrap_or_else(|| "first".to_owned()),
        question: Some(service.question.to_owned()),
        variants: service.variants.iter().map(variant).collect(),
        settings,
    }
}

/// Starts the first variant once, asks it for `/`, and stops it. What keeps it from starting is given; what keeps us from trying is an error.
fn started(folder: &Path, service: &Service) -> anyhow::Result<Result<Seen, services::Error>> {
    let written = draft(folder, service, None).write();
    let plan = written.plan(folder, None).map_err(|found| experiment::shown_made(&written, &found))?;
    let app = &plan.variants[0].services[0];
    let command = app.command().map(|started| started.command.join(" ")).unwrap_or_default();
    print::tell!("starting once: {command}");
    let log = std::env::temp_dir().join(format!("proofload-init-{}.log", std::process::id()));
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let start = || {
        services::check_command(app)?;
        let ports = Ports::choose(std::slice::from_ref(app), local, u64::from(std::process::id()))?;
        let warden = Warden::of_this_program(WARDEN);
        services::start(&warden, app, &ports, &Placement::new(log.clone()), &|| false)
    };
    let seen = start().map(|running: Running| {
        let seen = Seen {
            status: status(running.address()),
            port: running.address().port(),
            found: running.found().cloned(),
        };
        running.stop();
        seen
    });
    // Where it is not there, nothing was started.
    let _ = fs::remove_file(&log);
    Ok(seen)
}

/// The status of the response to GET /.
fn status(address: SocketAddr) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head).ok()?.rsplit(' ').next()?.parse().ok()
}

fn write(path: &Path, text: &str) -> Result<(), Failed> {
    let made = fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    made.map_err(|error| {
        Failed::new(exit::SELF, format!("{}: cannot be written: {error}", path.display()))
            .hinted((error.kind() == ErrorKind::NotFound).then_some("is the folder there?"))
    })
}
