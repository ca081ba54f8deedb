//! Access logs with a JSON object per line, by the field names of servers and loggers: nginx's variables,
//! Caddy, Traefik, Envoy, pino and morgan in Node.js, Google's load balancers.

use serde_json::Value;

use super::{LoggedRequest, instant, is_method, parts, request_line};

/// Nested objects that may contain the fields.
const WITHIN: [&str; 5] = ["request", "req", "httpRequest", "response", "res"];
const METHOD: [&str; 5] = [
    "method",
    "request_method",
    "requestMethod",
    "RequestMethod",
    "verb",
];
/// Names with the query come before those that may lack it.
const TARGET: [&str; 7] = [
    "request_uri",
    "requestUrl",
    "RequestPath",
    "url",
    "uri",
    "path",
    "target",
];
const QUERY: [&str; 3] = ["args", "query_string", "query"];
const STATUS: [&str; 6] = [
    "status",
    "statusCode",
    "status_code",
    "response_code",
    "responseStatus",
    "DownstreamStatus",
];
const TIME: [&str; 8] = [
    "time",
    "ts",
    "timestamp",
    "@timestamp",
    "time_iso8601",
    "msec",
    "StartUTC",
    "start_time",
];
/// Seconds since 1970 stay below this for millennia. Milliseconds and shorter units have exceeded it since
/// 1973.
const SECONDS_MAX: f64 = 1e11;

pub(super) fn asked(line: &str) -> Option<LoggedRequest> {
    let object: Value = serde_json::from_str(line).ok()?;
    let objects =
        || std::iter::once(&object).chain(WITHIN.iter().filter_map(|name| object.get(name)));
    let field = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| objects().find_map(|object| object.get(name)))
    };
    let text = |names: &[&str]| field(names).and_then(Value::as_str);
    let whole = object
        .get("request")
        .and_then(Value::as_str)
        .and_then(request_line);
    let (method, target) = match whole {
        Some(whole) => whole,
        None => (
            text(&METHOD).filter(|method| is_method(method))?,
            text(&TARGET)?,
        ),
    };
    let mut target = parts(target).map_or(target, |(_, path)| path).to_owned();
    if let Some(query) = text(&QUERY).filter(|query| !query.is_empty() && !target.contains('?')) {
        target = target + "?" + query.trim_start_matches('?');
    }
    let at_s = field(&TIME).and_then(|time| {
        number(time)
            .map(seconds)
            .or_else(|| instant(time.as_str()?))
    });
    let status = field(&STATUS).and_then(number).map(|status| status as u16);
    Some(LoggedRequest {
        method: method.to_owned(),
        target,
        status,
        at_s,
        origin: None,
    })
}

/// Converts seconds, or milli-, micro- or nanoseconds, to seconds.
fn seconds(number: f64) -> f64 {
    (0..3).fold(number, |number, _| {
        if number > SECONDS_MAX {
            number / 1e3
        } else {
            number
        }
    })
}

/// A number, possibly in quotes.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    number.is_finite().then_some(number)
}
