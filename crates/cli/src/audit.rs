//! `proofload report`: what other load generators printed, and what may be concluded of it. It reads files and prints; the
//! judgement is `foreign`'s, the layout `report`'s.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use foreign::{Audit, Comparison, Pick, Reader, Run, Tool, Transcript};
use report::{Audited, Form};

use crate::exit::{self, Failed};
use crate::print;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// Whether a file is what another tool printed: no record's folder, and no file in one.
pub fn is_foreign(path: &Path) -> bool {
    path == Path::new("-") || path.is_file() && !path.with_file_name("record.json").is_file()
}

/// Reads the files, and prints what they are worth: all of them, or two labels against each other.
///
/// # Errors
/// If a file cannot be read, none has a known tool's output, a label is not there, or stdout cannot be written.
pub fn run(
    files: &[PathBuf],
    labels: Option<&[String]>,
    form: &Form,
    out: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let files = files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if files.iter().all(|(_, runs)| runs.is_empty()) {
        return Err(unknown(&files).into());
    }
    for (file, _) in files.iter().filter(|(_, runs)| runs.is_empty()) {
        print::tell!("{}: nothing that a known load generator prints", file.file);
    }
    let audit = Audit::of(files);
    let comparison = match labels {
        Some([baseline, candidate]) => Some(compare(&audit, baseline, candidate)?),
        _ => None,
    };
    let void = comparison.as_ref().map_or_else(|| audit.is_void(), |comparison| comparison.answer.is_void());
    let audited = Audited { audit: &audit, comparison };
    print::report(&audited, form, out)?;
    Ok(ExitCode::from(if void { exit::VOID } else { 0 }))
}

fn read(path: &Path) -> Result<(Transcript, Vec<Run>), Failed> {
    let name = path.display().to_string();
    let failed = |error: io::Error| Failed::usage(format!("{name}: {error}"));
    let mut source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(failed)?)
    };
    let mut reader = Reader::new(&name);
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(reader.finish()),
            Ok(read) => reader.feed(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

fn unknown(files: &[(Transcript, Vec<Run>)]) -> Failed {
    let said = files.iter().map(|(file, _)| {
        let what = match file {
            Transcript { bytes: 0, .. } => "empty".to_owned(),
            Transcript { binary: true, .. } => format!("{} bytes, and not text", report::count(file.bytes)),
            Transcript { lines: 1, .. } => "1 line, none of a load generator that is known".to_owned(),
            _ => format!("{} lines, none of a load generator that is known", report::count(file.lines)),
        };
        format!("{}: {what}", file.file)
    });
    let known: Vec<&str> = Tool::all().map(Tool::name).collect();
    Failed::usage(said.collect::<Vec<_>>().join("\n")).hint(format!("known are {}", known.join(", ")))
}

fn compare(audit: &Audit, baseline: &str, candidate: &str) -> Result<Comparison, Failed> {
    let (one, other) = (pick(audit, baseline)?, pick(audit, candidate)?);
    foreign::compare(audit, one, other)
        .ok_or_else(|| Failed::usage(format!("--compare: `{baseline}` and `{candidate}` are not both there")))
}

fn pick(audit: &Audit, name: &str) -> Result<usize, Failed> {
    let list = |places: &mut dyn Iterator<Item = usize>| {
        let named = places.filter_map(|at| Some(format!("#{} {}", at + 1, audit.groups.get(at)?.label)));
        named.take(20).collect::<Vec<_>>().join("; ")
    };
    match foreign::pick(&audit.groups, name) {
        Pick::One(at) => Ok(at),
        Pick::Several(places) => Err(Failed::usage(format!("--compare: `{name}` is in several labels"))
            .hint(format!("name one of {}", list(&mut places.into_iter())))),
        Pick::None => Err(Failed::usage(format!("--compare: no label is called `{name}`"))
            .hint(format!("there are {}", list(&mut (0..audit.groups.len()))))),
    }
}
