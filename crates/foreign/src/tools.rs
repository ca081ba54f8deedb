//! One reader for each tool: a line of its output goes into the run under way. Which lines are whose is told here, and only
//! here; what the figures are worth is not.

mod ab;
mod autocannon;
mod h2load;
mod hey;
mod k6;
mod oha;
mod vegeta;
mod wrk;

use serde_json::Value;

use crate::draft::{Draft, Taken};
use crate::run::{Run, Tool};

/// Whether this line can only be the first of a run.
pub fn is_first(text: &str) -> bool {
    (text.starts_with("Running ") && text.contains(" @ "))
        || text.starts_with("This is ApacheBench")
        || text == "starting benchmark..."
        || text == "Summary:"
        || text.starts_with("execution: local")
        || (text.starts_with("Requests") && text.contains("[total, rate"))
}

/// The tool whose output begins with this line, as far as can be told, and whether that is certain.
pub fn begins(text: &str) -> Option<(Tool, bool)> {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    Some(match text {
        _ if text.starts_with("Running ") && text.contains(" test @ ") => (Tool::Wrk, true),
        _ if text.starts_with("Running ") && text.contains(" @ ") => (Tool::Autocannon, true),
        _ if starts(&["This is ApacheBench", "Benchmarking "]) && is_ab(text) => (Tool::Ab, true),
        _ if starts(&["Server Software:", "Server Hostname:", "Document Path:", "Concurrency Level:"]) => {
            (Tool::Ab, false)
        }
        _ if starts(&["Requests per second:", "Time taken for tests:"]) => (Tool::Ab, false),
        "starting benchmark..." => (Tool::H2load, true),
        _ if text.starts_with("finished in ") && text.contains("req/s") => (Tool::H2load, false),
        _ if text.starts_with("execution: local") => (Tool::K6, true),
        _ if k6::is_metric(text) => (Tool::K6, false),
        _ if starts(&["Requests", "Duration", "Latencies"])
            && text.contains('[')
            && text.contains("total, ") =>
        {
            (Tool::Vegeta, false)
        }
        "Summary:" => (Tool::Hey, false),
        _ if text.starts_with("Success rate:") => (Tool::Oha, false),
        _ if autocannon::is_table(text) || autocannon::is_total(text) => (Tool::Autocannon, false),
        _ if starts(&["Thread Stats", "Requests/sec:"]) || wrk::is_total(text) => (Tool::Wrk, false),
        _ => return None,
    })
}

fn is_ab(text: &str) -> bool {
    text.starts_with("This is") || text.contains("(be patient)")
}

/// Puts a line into the run under way.
pub fn take(text: &str, draft: &mut Draft) -> Taken {
    match draft.run.tool {
        Tool::Wrk | Tool::Wrk2 => {
            if let Some(taken) = autocannon::instead_of_wrk(text, draft) {
                return taken;
            }
            wrk::take(text, draft)
        }
        Tool::Ab => ab::take(text, draft),
        Tool::Oha => oha::take(text, draft),
        Tool::Autocannon => autocannon::take(text, draft),
        Tool::Hey => {
            if oha::instead_of_hey(text, draft) {
                return oha::take(text, draft);
            }
            hey::take(text, draft)
        }
        Tool::H2load => h2load::take(text, draft),
        Tool::K6 => k6::take(text, draft),
        Tool::Vegeta => vegeta::take(text, draft),
    }
}

/// The run that a JSON value is, if a tool wrote it.
pub fn from_json(value: &Value) -> Option<Run> {
    let readers = [autocannon::from_json, oha::from_json, vegeta::from_json, k6::from_json];
    let mut run = readers.iter().find_map(|read| read(value))?;
    run.json = true;
    Some(run)
}

/// The tool that JSON which ends too early comes from, by its keys.
pub fn json_tool(text: &str) -> Option<Tool> {
    let has = |keys: &[&str]| keys.iter().all(|key| text.contains(key));
    match () {
        () if has(&["\"successRate\"", "\"summary\""]) => Some(Tool::Oha),
        () if has(&["\"bytes_in\"", "\"latencies\""]) => Some(Tool::Vegeta),
        () if has(&["\"p97_5\"", "\"latency\""]) => Some(Tool::Autocannon),
        () if has(&["\"http_req_duration\""]) => Some(Tool::K6),
        () => None,
    }
}

/// A figure of a JSON object by its path, finite and not negative.
fn at(value: &Value, path: &[&str]) -> Option<f64> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    found.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

/// The same as a count.
fn count_at(value: &Value, path: &[&str]) -> Option<u64> {
    at(value, path).filter(|number| *number <= 1e15).map(|number| number.round() as u64)
}

/// `words` between two others in a text: `between("a 5 b", "a", "b")` is `5`.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    let (found, _) = rest.split_once(after)?;
    Some(found.trim())
}

/// `50%` and `50.000%` and hey's `50%%`.
fn percent(word: &str) -> Option<f64> {
    let digits = word.strip_suffix('%')?.trim_end_matches('%');
    crate::number::figure(digits, crate::number::Lone::Decimal)
}
