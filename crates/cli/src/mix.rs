//! `proofload mix`: writes a mix file from the requests in access logs and HAR files. It reads and writes
//! files. `foreign` groups the requests and masks secrets.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use foreign::{LeftOut, Mix, MixChoice, RequestKind, TimeSpan};
use model::quantity::{many as nouns, rate, small_share};
use model::text::line;
use plan::{NAME_CHARS_MAX, is_secret_name};
use report::count;

use crate::exit::CliError;
use crate::{experiment, print};

const EXAMPLES: &str = "\
Examples:
  What an nginx was asked for, as a load of the same requests:
    proofload mix /var/log/nginx/access.log
    proofload load http://127.0.0.1:3000 --mix mix.toml --rate 200
  Older logs too:
    zcat -f access.log* | proofload mix -";

/// Bytes read at a time. The first ones determine the format.
const PIECE: usize = 64 << 10;
/// Maximum weight of a request in an experiment.
const WEIGHT_MAX: f64 = 1e6;

/// Flags of `mix`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MixArgs {
    /// Access logs (combined, or one JSON object per line) or HAR files. - is stdin
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The mix file to create. Files with rows of values are put beside it
    #[arg(short, long, default_value = "mix.toml")]
    out: PathBuf,
    /// Number of the most frequent requests to include. Requests that differ only in IDs count as one
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=32), value_name = "N")]
    top: u8,
    /// Include requests that may change something, such as POST. Logs have no bodies
    #[arg(long = "unsafe")]
    with_unsafe: bool,
    /// Keep values of queries, and paths that seem to contain a token. Without it, only numbers of up to four
    /// digits, and IDs in paths, are kept
    #[arg(long = "values")]
    with_values: bool,
}

pub fn run(args: &MixArgs) -> anyhow::Result<u8> {
    print::absent(&args.out)?;
    let choice = MixChoice {
        with_unsafe: args.with_unsafe,
        with_values: args.with_values,
        is_secret: is_secret_name,
    };
    let mut mix = Mix::new(choice);
    for path in &args.files {
        let name = path.display();
        let form =
            read(&mut mix, path).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
        print::tell!("read: {name} ({form})");
    }
    let kinds = mix.finish(args.top.into());
    left_out(&mix.left_out)
        .iter()
        .for_each(|text| print::tell!("{text}"));
    if kinds.is_empty() {
        return Err(CliError::usage("no request is left").into());
    }
    write(args, &mix, &kinds)?;
    tell(args, &mix, &kinds);
    Ok(0)
}

fn read(mix: &mut Mix, path: &Path) -> io::Result<&'static str> {
    match path == Path::new("-") {
        true => mix.read(&mut BufReader::with_capacity(PIECE, io::stdin().lock())),
        false => mix.read(&mut BufReader::with_capacity(PIECE, File::open(path)?)),
    }
}

/// Requests that are not in the mix, with hints.
fn left_out(of: &LeftOut) -> Vec<String> {
    let mut told = Vec::new();
    if of.bad > 0 {
        let first = of
            .bad_first
            .iter()
            .map(|(number, text)| format!("\n  {number}: {}", plan::quotable(text)));
        let first: String = first.collect();
        told.push(format!(
            "no requests: {}, the first of them{first}",
            nouns(of.bad, "entry")
        ));
    }
    let unsafe_ones = of
        .by_method
        .iter()
        .map(|(method, many)| format!("{} {method}", count(*many)));
    let unsafe_ones: Vec<String> = unsafe_ones.collect();
    if !unsafe_ones.is_empty() {
        told.push(format!(
            "left out, as they may change something: {} (--unsafe)",
            unsafe_ones.join(", ")
        ));
    }
    for (many, what) in [
        (
            of.with_token,
            "with what looks like a token or an address in their path (--values)",
        ),
        (of.elsewhere, "of other hosts than the first"),
        (of.rare, "that came more rarely than the others (--top)"),
    ] {
        told.extend((many > 0).then(|| format!("left out: {} {what}", nouns(many, "request"))));
    }
    told
}

fn tell(args: &MixArgs, mix: &Mix, kinds: &[RequestKind]) {
    if !mix.masked.is_empty() {
        let names: Vec<&str> = mix.masked.keys().map(String::as_str).collect();
        print::tell!(
            "masked in queries, as x: {} (--values)",
            line(&names.join(", "))
        );
    }
    let taken: u64 = kinds.iter().map(|kind| kind.count).sum();
    let all = taken + mix.left_out.rare;
    let (file, share) = (args.out.display(), small_share(taken as f64 / all as f64));
    let requests = nouns(kinds.len() as u64, "request");
    let stand = if kinds.len() == 1 { "stands" } else { "stand" };
    print::tell!(
        "written: {file}, {requests} that {stand} for {share} of {}",
        count(all)
    );
    let rate = mix
        .span
        .per_s()
        .map_or(String::new(), |per_s| format!(" --rate {}", per_s.ceil()));
    print::tell!("next: `proofload load http://127.0.0.1:PORT --mix {file}{rate}`");
}

/// Writes rows, and then the mix file, which is parsed as `load` will do.
fn write(args: &MixArgs, mix: &Mix, kinds: &[RequestKind]) -> anyhow::Result<()> {
    let folder = args.out.parent().unwrap_or(Path::new(""));
    let stem = args.out.file_stem().unwrap_or_default().to_string_lossy();
    let mut text = format!("# Made by: {}\n", line(&print::shown_command()));
    times(&mix.span)
        .iter()
        .for_each(|told| text += &format!("# {told}\n"));
    let most = kinds.first().map_or(0, |kind| kind.count);
    let scale = (WEIGHT_MAX / most as f64).min(1.0);
    let mut files = Vec::new();
    for (number, kind) in (1..).zip(kinds) {
        let file = (!kind.rows.is_empty()).then(|| format!("{stem}-{number}.csv"));
        files.extend(file.as_ref().map(|file| (folder.join(file), kind)));
        text += &entry((number, kind), file.as_deref(), scale);
    }
    // Nothing is written if one of the files cannot be.
    files.iter().try_for_each(|(path, _)| print::absent(path))?;
    let mut made = Vec::new();
    let written = write_all(args, &text, &files, &mut made);
    // Files of rows without a mix would block the next attempt.
    made.iter()
        .filter(|_| written.is_err())
        .for_each(|path| _ = fs::remove_file(path));
    written
}

/// Writes all rows and then the mix file. `made` receives the created files.
fn write_all<'a>(
    args: &MixArgs,
    text: &str,
    files: &'a [(PathBuf, &RequestKind)],
    made: &mut Vec<&'a Path>,
) -> anyhow::Result<()> {
    for (path, kind) in files {
        print::create(path, &rows(kind), print::PRIVATE)?;
        made.push(path);
    }
    if let Err(found) = plan::mix(text, args.out.parent().unwrap_or(Path::new(""))) {
        return Err(experiment::shown(&args.out, text, &found).into());
    }
    Ok(print::create(&args.out, text.as_bytes(), print::PRIVATE)?)
}

/// Time range and rate of the requests.
fn times(span: &TimeSpan) -> Option<String> {
    let ((first, last), per_s) = (span.ends_s?, span.per_s()?);
    let time = |at_s: f64| {
        jiff::Timestamp::from_second(at_s as i64)
            .map(|at| at.to_string())
            .unwrap_or_default()
    };
    let (mean, most) = (rate(per_s), rate(span.busiest as f64));
    Some(format!(
        "{} to {}: {mean} in the mean, {most} in the busiest second",
        time(first),
        time(last)
    ))
}

fn entry((number, kind): (usize, &RequestKind), file: Option<&str>, scale: f64) -> String {
    let weight = (kind.count as f64 * scale).round().max(1.0);
    let mut text = format!("\n[[request]]\nweight = {weight}\n");
    // Writing to a string cannot fail.
    let mut set =
        |key: &str, value: &str| _ = writeln!(text, "{key} = {}", toml::Value::from(value));
    if kind.method != "GET" {
        set("method", &kind.method);
    }
    let name = format!("{} {}", kind.method, kind.path);
    if name.chars().count() > NAME_CHARS_MAX {
        let number = format!("{number} ");
        let cut = model::text::cut(&name, NAME_CHARS_MAX - number.len() - 1);
        set("name", &(number + &cut));
    }
    set("path", &kind.path);
    file.iter().for_each(|file| set("values", file));
    if kind.statuses.iter().any(|status| *status >= 300) {
        text += &format!("expect = {{ status = {:?} }}\n", kind.statuses);
    }
    text
}

fn rows(kind: &RequestKind) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Neither writing to memory nor rows of equal length can fail.
    let _ = out.write_record(&kind.columns);
    for row in &kind.rows {
        let _ = out.write_record(row);
    }
    out.into_inner().unwrap_or_default()
}
