//! Opens a complete or truncated record from disk and reports unreadable parts.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use model::{Event, quantity};
use plan::{Plan, Refused};
use rustix::fs::OFlags;
use serde::Deserialize;

use crate::seal::Seal;
use crate::{Header, Record, VERSION};

/// Maximum size of an experiment file, many times the largest useful size.
const EXPERIMENT_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of a header, which has the plan and little else.
pub const HEADER_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a line of events, and of all of them. A slice takes a kilobyte, and a day of slices less
/// than 200 MiB. In memory, events take about twice as much.
const LINE_BYTES_MAX: u64 = 4 << 20;
const EVENTS_BYTES_MAX: u64 = 2 << 30;
/// Maximum size of histograms in memory: this, and [`HISTOGRAM_TIMES_MAX`] times the bytes read so far. They
/// take two to four times the bytes of their text. A text made for it takes 500 times.
const HISTOGRAM_BYTES_MIN: u64 = 64 << 20;
const HISTOGRAM_TIMES_MAX: u64 = 8;
/// Maximum number of lines: a short one takes several times its size in memory. A day has fewer than a
/// hundred thousand.
const LINES_MAX: u64 = 4_000_000;
/// Maximum number of damaged lines. Reading stops after that.
const DAMAGE_MAX: usize = 1000;

/// The version of this Proofload.
const OWN: &str = env!("CARGO_PKG_VERSION");
/// Size limit of one name in a plan. Experiment files have much lower limits, and variants join several names.
const NAME_BYTES_MAX: usize = 10_000;
/// Maximum number of requests of a load in a plan, many times that of an experiment file.
const REQUESTS_MAX: usize = 1_000;
/// Maximum number of first responses in the start of a trial. A run records eight of each variant.
const WITNESSES_MAX: usize = 100;
/// Hint for a path that is not a record.
const A_RECORD_IS: &str = "a record is the folder that `proofload run` names at its end";

/// Opens the record in a folder, or the record that a file belongs to.
///
/// A line that is unreadable, changed or missing is reported in [`Record::damage`]. Its block is then
/// discarded, because the lost line may have reported that it was dropped.
///
/// # Errors
/// If there is no header, or if it has another format.
pub fn open(path: &Path) -> Result<Record, Refused> {
    let directory = if path.is_file() {
        path.parent().unwrap_or(path)
    } else {
        path
    };
    let (header, seal) = read_header(&directory.join("record.json"))?;
    let mut record = Record::new(directory.to_path_buf(), header);
    // A longer file is not an experiment file. No report depends on it, so its absence is not damage.
    let path = directory.join("experiment.toml");
    match read_file(&path, EXPERIMENT_BYTES_MAX) {
        Ok(text) => record.experiment_text = Some(String::from_utf8_lossy(&text).into_owned()),
        Err(error) if path.is_symlink() => return Err(at(&path)(error)),
        Err(_) => {}
    }
    let path = directory.join("events.jsonl");
    match open_file(&path) {
        Ok(file) => {
            let lines = BufReader::new(file.take(EVENTS_BYTES_MAX));
            read_events(lines, seal, &mut record).map_err(at(&path))?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            record
                .damage
                .push("events.jsonl is missing: nothing is known of the run itself".into());
        }
        Err(error) => return Err(at(&path)(error)),
    }
    Ok(record)
}

/// Whether a process is writing the record in a folder, which it shows by a lock on the events. Always false
/// if the file system has no locks.
pub fn is_being_written(directory: &Path) -> bool {
    let events = open_file(&directory.join("events.jsonl"));
    events.is_ok_and(|events| matches!(events.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Opens a file of a record.
///
/// # Errors
/// As [`plan::open_file`], and if it is a symbolic link: in somebody else's record it may lead to any file of
/// the reader.
fn open_file(path: &Path) -> io::Result<File> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        let message =
            "it is a symbolic link, and may lead out of the record: put the file itself there";
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    if !kind.is_file() {
        // Reports the kind of the file.
        return plan::open_file(path);
    }
    // The file may have been replaced since.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads a file of a record of at most this size.
///
/// # Errors
/// If it is a symbolic link, not a file, or larger, or cannot be read.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    plan::read_opened(open_file(path)?, bytes_max)
}

/// Reads the header and the seal that the first line of events continues.
fn read_header(path: &Path) -> Result<(Header, Seal), Refused> {
    /// Fields whose position never changes.
    #[derive(Deserialize)]
    struct RecordVersion {
        version: u32,
        #[serde(default)]
        proofload: String,
        #[serde(default)]
        created: String,
    }
    let text = read_file(path, HEADER_BYTES_MAX).map_err(at(path))?;
    let shown = path.display();
    let header = |error: serde_json::Error| {
        Refused::new(
            format!("{shown}: not a record's header: {error}"),
            A_RECORD_IS,
        )
    };
    let RecordVersion {
        version: found,
        proofload: by,
        created,
    } = serde_json::from_slice(&text).map_err(header)?;
    let day = created.get(..10).unwrap_or_default();
    let other = |why: String| {
        let hint = format!(
            "open it with the build of Proofload {by} that wrote it; its report.html needs no Proofload"
        );
        Refused::new(
            format!("{shown}: Proofload {by} wrote it on {day} in format {found}, {why}"),
            hint,
        )
    };
    if found != VERSION {
        return Err(other(format!(
            "and this Proofload {OWN} reads only format {VERSION}"
        )));
    }
    // Builds before the first release also had a format 1.
    let unread = |error: serde_json::Error| match by.is_empty() {
        true => header(error),
        false => other(format!("which this Proofload {OWN} cannot read: {error}")),
    };
    let header: Header = serde_json::from_slice(&text).map_err(unread)?;
    if let Some(problem) = excess(&header.plan).or_else(|| missing(&header.plan)) {
        return Err(Refused::new(format!("{shown}: {problem}"), A_RECORD_IS));
    }
    Ok((header, Seal::of(&text)))
}

/// Returns the first count of a plan that exceeds those of any run. Reports take time and space for each item, and
/// tables repeat the names in each row.
fn excess(plan: &Plan) -> Option<String> {
    let requests = plan
        .variants
        .iter()
        .map(|variant| variant.load.requests.len());
    let longest = plan.names().map(str::len);
    let counts = [
        (
            "its plan",
            plan.variants.len(),
            "variant",
            plan::VARIANTS_MAX + 1,
        ),
        (
            "its plan",
            plan.comparisons.len(),
            "comparison",
            plan::VERDICTS_MAX,
        ),
        (
            "a load of its plan",
            requests.max().unwrap_or(0),
            "request",
            REQUESTS_MAX,
        ),
        (
            "a name in its plan",
            longest.max().unwrap_or(0),
            "byte",
            NAME_BYTES_MAX,
        ),
    ];
    let (place, count, noun, most) = counts
        .into_iter()
        .find(|(_, count, _, most)| count > most)?;
    let count = quantity::many(count as u64, noun);
    Some(format!(
        "{place} has {count}, at most {}",
        quantity::count(most as u64)
    ))
}

/// Returns the first variant that a plan compares and does not have.
fn missing(plan: &Plan) -> Option<String> {
    let count = plan.variants.len();
    if count == 0 {
        return Some("its plan has no variants".to_owned());
    }
    let compared = plan.comparisons.iter().chain(&plan.aa);
    let index = compared
        .flat_map(|comparison| [comparison.baseline, comparison.candidate])
        .find(|index| *index >= count)?;
    let variants = quantity::many(count as u64, "variant");
    Some(format!(
        "its plan compares the variant with index {index}, and has {variants}"
    ))
}

fn read_events(mut lines: impl BufRead, mut seal: Seal, record: &mut Record) -> io::Result<()> {
    let (mut line, mut all, mut histograms) = (Vec::new(), 0, 0);
    for number in 1_u64.. {
        line.clear();
        let read = lines
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)? as u64;
        all += read;
        let has_end = line.last() == Some(&b'\n');
        let why = match () {
            () if all >= EVENTS_BYTES_MAX => Some("more than 2 GiB are no events of a run"),
            () if read == 0 => break,
            () if read == LINE_BYTES_MAX && !has_end => Some("it has no end within 4 MiB"),
            () if record.damage.len() >= DAMAGE_MAX => Some("too many lines are damaged"),
            () if number > LINES_MAX => Some("more than 4,000,000 lines are no events of a run"),
            () => None,
        };
        if let Some(why) = why {
            record.doubt(format!(
                "events.jsonl:{number}: {why}; nothing from here on is read"
            ));
            break;
        }
        let opened = seal.open(&line);
        if let Ok((Event::Slice(slice), _)) = &opened {
            histograms += slice.counts.histogram_bytes() as u64;
            if histograms > HISTOGRAM_BYTES_MIN + HISTOGRAM_TIMES_MAX * all {
                record.doubt(format!(
                    "events.jsonl:{number}: its histograms take more memory than those of any run; \
                     nothing from here on is read"
                ));
                break;
            }
        }
        if let Ok((Event::TrialStarted(trial), _)) = &opened
            && trial.witnesses.len() > WITNESSES_MAX
        {
            record.doubt(format!(
                "events.jsonl:{number}: it has {}, at most {WITNESSES_MAX}; nothing from here on is read",
                quantity::many(trial.witnesses.len() as u64, "first response")
            ));
            break;
        }
        match opened {
            Ok((event, None)) => record.apply(event),
            Ok((event, Some(why))) => {
                record.doubt(format!("events.jsonl:{number}: {why}"));
                record.apply(event);
                // The event may be the start of a block, or the end of the previous one.
                record.doubt_last_block();
            }
            Err(_) if !has_end => {
                record.damage.push(format!(
                    "events.jsonl:{number}: cut off; what stands before it counts"
                ));
            }
            Err(error) => record.doubt(format!("events.jsonl:{number}: left out: {error}")),
        }
    }
    Ok(())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Refused {
    |error| {
        Refused::new(
            format!("{}: not a readable record: {error}", path.display()),
            A_RECORD_IS,
        )
    }
}
