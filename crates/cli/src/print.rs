//! Output that survives a closed terminal: stdout is data, stderr is messages, and errors of neither end the
//! program. If a CI runner reads the output, only [`annotations`] are commands for the runner.

mod runner;

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::text;
use plan::Secrets;
use report::plot::Ground;
use report::{Form, FormOptions, Report};
use rustix::fs::FileType;

use crate::exit::{self, CliError};

/// Width of text that goes to no terminal.
pub const WIDTH: usize = 100;

/// Width of the terminal on stdout, within a readable range. [`WIDTH`] without a terminal.
pub fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(WIDTH, |size| usize::from(size.ws_col).clamp(60, 140))
}

/// Width of text for this file, or for stdout.
pub fn width_of(file: Option<&Path>) -> usize {
    if file.is_some() { WIDTH } else { width() }
}

/// The command line as text. Bytes that are not UTF-8 are replaced, because it is only for display.
pub fn typed_command() -> Vec<String> {
    std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The command line without secrets, quoted for a shell.
pub fn shown_command() -> String {
    let typed = plan::masked_words(&typed_command()).into_iter().skip(1);
    plan::command_line(std::iter::once("proofload".to_owned()).chain(typed))
}

/// Prints data on stdout, with colours only on a terminal.
///
/// # Errors
/// If stdout cannot be written. A closed pipe, as with `| head`, is not an error.
pub fn data(data: &str) -> Result<(), CliError> {
    let mut out = AutoStream::auto(io::stdout().lock());
    // Other programs get every character unchanged.
    let text = if io::stdout().is_terminal() {
        Cow::Owned(text::coloured_lines(data))
    } else {
        data.into()
    };
    let text = for_runner(text, &io::stdout());
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Whether GitHub Actions reads the output, judged by the variable that it sets.
pub fn is_read_by_runner() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// Removes commands of a runner from the text, if a runner may read this stream. A regular file is not read
/// yet.
fn for_runner<'a>(text: Cow<'a, str>, stream: &(impl RawStream + AsFd)) -> Cow<'a, str> {
    let kind = || rustix::fs::fstat(stream).map(|of| FileType::from_raw_mode(of.st_mode));
    if !is_read_by_runner() || kind() == Ok(FileType::RegularFile) {
        return text;
    }
    // Without the colours that are dropped later, because a command may follow one.
    let text = match AutoStream::choice(stream) {
        ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => text.into_owned(),
    };
    runner::defused(&text).into_owned().into()
}

/// Prints commands of the runner, one per line, on stderr if stdout contains data for programs.
pub fn annotations(lines: &str, on_stdout: bool) -> Result<(), CliError> {
    let lines = text::lines(lines);
    if on_stdout {
        let mut out = io::stdout().lock();
        return written(out.write_all(lines.as_bytes()).and_then(|()| out.flush()));
    }
    let _ = io::stderr().lock().write_all(lines.as_bytes());
    Ok(())
}

/// Prints help or a usage error, and returns the exit code.
pub fn usage(told: &clap::Error) -> u8 {
    let text = told.render().ansi().to_string();
    if told.use_stderr() {
        coloured(text.trim_end());
    } else if let Err(failed) = data(&text) {
        failure(&failed);
        return failed.code;
    }
    u8::try_from(told.exit_code()).unwrap_or(exit::USAGE)
}

/// Writes data to a file, or to stdout. Colours are kept only if stdout is a terminal.
///
/// # Errors
/// If it cannot be written. A closed pipe on stdout is not an error.
pub fn put(file: Option<&Path>, text: &str) -> Result<(), CliError> {
    let Some(path) = file else {
        return data(text);
    };
    let opened = File::create(path).and_then(|mut file| {
        // Half a report could be mistaken for a complete one.
        file.write_all(plain(text).as_bytes())
            .inspect_err(|_| remove(path))
    });
    opened.map_err(|error| unwritable(&path.display().to_string(), &error))?;
    tell!("written: {}", path.display());
    Ok(())
}

/// Removes an incomplete file. A device, a pipe, and a link to one (`/dev/stdout`) stay.
fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|of| of.is_file()) {
        let _ = fs::remove_file(path);
    }
}

/// Rejects a file that cannot be written, before any work is done. An existing file keeps its content.
pub fn check_writable(path: &Path) -> Result<(), CliError> {
    let is_new = !path.exists();
    // The reader of a pipe would take its first writer for the only one.
    if !is_new && !path.is_file() && !path.is_dir() {
        return Ok(());
    }
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    opened.map_err(|error| unwritable(&path.display().to_string(), &error))?;
    if is_new {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Rejects a file that exists or cannot be created, before any work is done.
pub fn absent(path: &Path) -> Result<(), CliError> {
    if path.exists() {
        return Err(is_there(path));
    }
    match path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        Some(folder) => Err(CliError::usage(format!(
            "{}: there is no such folder",
            folder.display()
        ))
        .hint("make it first")),
        None => check_writable(path),
    }
}

fn is_there(path: &Path) -> CliError {
    CliError::usage(format!("{}: it is there already", path.display())).hint("name another file")
}

/// Warns that a file contains secrets, if its text does.
pub fn warn_of_secrets(path: &Path, text: &str) {
    if plan::has_secrets(text) {
        let path = path.display();
        tell!(
            "note: {path} has secrets as they were typed; write {{env.NAME}} or {{file.PATH}} in their place before you share it"
        );
    }
}

/// The mode of files that may contain secrets.
pub const PRIVATE: u32 = 0o600;

/// Creates a new file with this content and mode.
pub fn create(path: &Path, content: &[u8], mode: u32) -> Result<(), CliError> {
    let file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(mode)
        .open(path);
    // An incomplete file would block the next attempt.
    let write = |mut file: File| {
        file.write_all(content)
            .inspect_err(|_| _ = fs::remove_file(path))
    };
    file.and_then(write).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path),
        _ => unwritable(&path.display().to_string(), &error),
    })
}

/// Forms that a report without limits does not have.
pub static UNLIMITED: [&Form; 1] = [&report::JUNIT];

/// Rejects a form that the report does not have, before any work is done.
pub fn fits(form: &Form, lacking: &[&Form]) -> Result<(), CliError> {
    if lacking.contains(&form) {
        Err(lacks(form).hint(HAD_BY_ALL))
    } else {
        Ok(())
    }
}

fn lacks(form: &Form) -> CliError {
    CliError::usage(format!(
        "--format {}: there is no such form of it",
        form.name
    ))
}

/// Prints a report in a form: to a file without colours, or on stdout.
pub fn report(report: &dyn Report, form: &Form, file: Option<&Path>) -> anyhow::Result<()> {
    Ok(put(
        file,
        &drawn(
            report,
            form,
            FormOptions {
                width: width_of(file),
                ground: Ground::Light,
            },
        )?,
    )?)
}

/// Writes a report in a form to a file, without colours and without a message.
pub fn write(report: &dyn Report, form: &Form, file: &Path) -> anyhow::Result<()> {
    let page = drawn(
        report,
        form,
        FormOptions {
            width: WIDTH,
            ground: Ground::Light,
        },
    )?;
    Ok(record::write_whole(file, plain(&page).as_bytes())?)
}

/// Writes a report to a folder in each form that is stored. The page comes first, because the others contain
/// its path.
pub fn keep(folder: &Path, stem: &str, write: impl Fn(&Form, &Path) -> anyhow::Result<()>) {
    let forms = [
        ("html", &report::HTML),
        ("txt", &report::TEXT),
        ("md", &report::MARKDOWN),
        ("json", &report::JSON),
    ];
    for (end, form) in forms {
        let path = folder.join(stem).with_extension(end);
        if let Err(error) = write(form, &path) {
            tell!("{}: not written: {error}", path.display());
        }
    }
}

/// Prints a new result: with text only the first screen, unless everything is requested.
pub fn result(report: &dyn Report, form: &Form, amount: AmountArgs) -> anyhow::Result<()> {
    if *form != report::TEXT || amount.verbose {
        return self::report(report, form, None);
    }
    brief(report)
}

/// Prints the brief text of a report.
pub fn brief(report: &dyn Report) -> anyhow::Result<()> {
    Ok(data(&report::text(&report.brief(), width()))?)
}

const HAD_BY_ALL: &str =
    "--format text, md, html and json are there for every report; junit where there are limits";

/// Renders a report in a form. Text contains colours.
pub fn drawn(report: &dyn Report, form: &Form, look: FormOptions) -> Result<String, CliError> {
    report::render(report, form, look).ok_or_else(|| lacks(form).hint(HAD_BY_ALL))
}

/// Flags for the form of a result, the same for all commands.
#[derive(Debug, Clone, Copy, Args)]
pub struct FormArgs {
    /// Format of the output on stdout
    #[arg(long, value_name = "FORMAT", value_parser = forms(), default_value = "text")]
    format: &'static Form,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl FormArgs {
    pub fn form(&self) -> &'static Form {
        if self.json {
            &report::JSON
        } else {
            self.format
        }
    }

    /// Whether the form is JSON, if only JSON and text are available.
    pub fn is_json(&self) -> Result<bool, CliError> {
        match self.form() {
            form if *form == report::JSON => Ok(true),
            form if *form == report::TEXT => Ok(false),
            form => Err(lacks(form).hint("there are text and json")),
        }
    }
}

/// Amount of output.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct AmountArgs {
    /// Print only the result: no progress and no notes
    #[arg(short, long)]
    quiet: bool,
    /// Print the whole report instead of the summary
    #[arg(short, long)]
    pub verbose: bool,
}

impl AmountArgs {
    /// Applies the flag for messages.
    pub fn settle(self) {
        QUIET.store(self.quiet, Ordering::Relaxed);
    }
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether only results and errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Values of `--format`: the names of all forms.
fn forms() -> impl TypedValueParser<Value = &'static Form> {
    forms_without(&[])
}

/// Values of `--format` if some forms do not exist.
pub fn forms_without(lacking: &[&Form]) -> impl TypedValueParser<Value = &'static Form> {
    let all = report::FORMS.into_iter();
    let names = all.filter(|form| !lacking.contains(form)).map(|form| {
        PossibleValue::new(form.name)
            .aliases(form.aliases.iter().copied())
            .help(form.about)
    });
    PossibleValuesParser::new(names).try_map(|name| Form::named(&name).ok_or("no such form"))
}

/// Text without colours.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn written(result: io::Result<()>) -> Result<(), CliError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| unwritable("stdout", &error)),
    }
}

fn unwritable(what: &str, error: &io::Error) -> CliError {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => Some("make its folder first"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("make room on that disk, or write elsewhere")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("write where you may")
        }
        io::ErrorKind::IsADirectory => Some("name a file in it"),
        _ => None,
    };
    CliError::new(exit::SELF, format!("{what}: cannot be written: {error}")).hinted(hint)
}

/// Formats its arguments and passes the text to [`talk`].
macro_rules! tell {
    ($($text:tt)*) => { $crate::print::talk(&format!($($text)*)) };
}
pub(crate) use tell;

/// Prints a message on stderr, unless --quiet is set. A closed stderr does not stop a measurement. Control
/// sequences in the text are removed.
pub fn talk(text: &str) {
    if !is_quiet() {
        coloured(&text::lines(text));
    }
}

/// Prints a message with our own colours.
pub fn coloured(text: &str) {
    let mut err = AutoStream::auto(io::stderr().lock());
    let text = for_runner(
        Cow::Owned(text::coloured_lines(&without_secrets(text))),
        &io::stderr(),
    );
    let _ = writeln!(err, "{text}");
}

/// Secrets of all plans created so far.
static SECRETS: Mutex<Option<Secrets>> = Mutex::new(None);

/// Hides the secrets of a plan in all later output.
pub fn keep_secrets(secrets: &Secrets) {
    let mut known = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().join(secrets);
}

/// A text without known secrets.
pub fn without_secrets(text: &str) -> String {
    let known = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    known
        .as_ref()
        .map_or_else(|| text.to_owned(), |secrets| secrets.hide(text))
}

pub fn error(message: &str) {
    coloured(&format!("\x1b[1;31merror\x1b[0m: {}", text::lines(message)));
}

pub fn hint(message: &str) {
    coloured(&format!("\x1b[1;36m hint\x1b[0m: {}", text::lines(message)));
}

/// Prints an error with its hint.
fn failure(error: &CliError) {
    self::error(&error.message);
    error.hint.iter().for_each(|text| hint(text));
}

/// Prints an error on stderr and returns its exit code. An error without a code is an error of Proofload
/// itself.
pub fn fail(error: anyhow::Error) -> u8 {
    let failed = error
        .downcast()
        .or_else(|error| error.downcast::<services::Error>().map(CliError::from));
    let failed = failed.unwrap_or_else(|error| CliError::new(exit::SELF, format!("{error:#}")));
    failure(&failed);
    failed.code
}
