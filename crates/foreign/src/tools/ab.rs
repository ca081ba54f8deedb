//! ApacheBench 2. Its mean is connections × time / requests by definition, and it gives up at the first reset without `-r`.

use super::percent;
use crate::draft::{Draft, Part, Taken, keep};
use crate::number::{self, Lone};

pub fn take(text: &str, draft: &mut Draft) -> Taken {
    if is_abort(text, draft) {
        return Taken::Ours;
    }
    if draft.part == Part::Quantiles && quantile(text, draft) {
        return Taken::Ours;
    }
    let Some((name, value)) = text.split_once(':') else { return plain(text) };
    let value = value.trim();
    let first = value.split_whitespace().next().unwrap_or_default();
    let run = &mut draft.run;
    match name.trim() {
        "Server Software" if run.requests.is_some() => return Taken::Again,
        "Server Software" | "Document Length" | "HTML transferred" | "Transfer rate" => {}
        "Server Hostname" => run.url = Some(format!("http://{first}")),
        "Server Port" => port(run.url.as_mut(), first),
        "SSL/TLS Protocol" => run.url = run.url.take().map(|url| url.replacen("http://", "https://", 1)),
        "Document Path" => {
            if let Some(url) = run.url.as_mut() {
                url.push_str(value);
            }
        }
        "Concurrency Level" => run.load.connections = number::whole(first),
        "Time taken for tests" => run.duration_s = number::figure(first, Lone::Decimal),
        "Complete requests" => return draft.requests(first),
        "Failed requests" => run.failures.other = number::whole(first),
        "Keep-Alive requests" => run.keep_alive_requests = number::whole(first),
        "Non-2xx responses" => run.failures.status = number::whole(first),
        "Write errors" => run.failures.write = number::whole(first),
        "Total transferred" => run.bytes = number::figure(first, Lone::Thousands),
        "Requests per second" => return draft.rate(first, Lone::Decimal),
        "Time per request" => time(value, first, draft),
        "Total" => moments(value, draft),
        // Their columns are part of Total.
        "Connect" | "Processing" | "Waiting" => {}
        _ if text.starts_with("(Connect:") => causes(text, draft),
        _ => return plain(text),
    }
    Taken::Ours
}

/// Lines without a figure that is read.
fn plain(text: &str) -> Taken {
    let known = [
        "This is ApacheBench",
        "Copyright ",
        "Licensed to The Apache",
        "Benchmarking ",
        "Completed ",
        "Finished ",
        "Connection Times (ms)",
        "min mean",
        "min  mean",
        "Percentage of the requests served",
        "..done",
    ];
    let progress = text.split_whitespace().all(|word| word.trim_end_matches('%').parse::<u64>().is_ok());
    let ours = known.iter().any(|start| text.starts_with(start))
        || text.ends_with("(across all concurrent requests)");
    if ours || (progress && !text.is_empty()) { Taken::Ours } else { Taken::Foreign }
}

fn port(url: Option<&mut String>, port: &str) {
    if let Some(url) = url
        && !matches!(port, "80" | "443")
        && number::whole(port).is_some()
    {
        url.push_str(&format!(":{port}"));
    }
}

/// `Time per request: 1610.3 [ms] (mean)`; the second such line divides by the connections.
fn time(value: &str, first: &str, draft: &mut Draft) {
    if value.ends_with("(mean)") {
        let us = number::figure(first, Lone::Decimal).map(|ms| ms * 1e3);
        keep(&mut draft.run.latency.mean_us, us);
    }
    // Last of what is always there; the tables after it may be switched off.
    draft.whole = true;
}

/// `Total:  1 2 0.5 2 9` is min, mean, sd, median, max in milliseconds.
fn moments(value: &str, draft: &mut Draft) {
    let ms: Vec<Option<f64>> =
        value.split_whitespace().map(|word| number::figure(word, Lone::Decimal)).collect();
    if let [_, _, sd, _, max] = ms[..] {
        draft.run.latency.sd_us = sd.map(|ms| ms * 1e3);
        draft.run.latency.max_us = max.map(|ms| ms * 1e3);
        draft.part = Part::Quantiles;
    }
}

/// `  99%    298`, in milliseconds.
fn quantile(text: &str, draft: &mut Draft) -> bool {
    let mut words = text.split_whitespace();
    let (Some(share), Some(ms)) = (words.next(), words.next()) else { return false };
    let Some(percent) = percent(share) else { return false };
    draft.quantile(Some(percent), number::figure(ms, Lone::Decimal).map(|ms| ms * 1e3));
    true
}

/// `(Connect: 0, Receive: 0, Length: 12, Exceptions: 0)` divides the failed requests.
fn causes(text: &str, draft: &mut Draft) {
    let failures = &mut draft.run.failures;
    for part in text.trim_matches(['(', ')']).split(',') {
        if let Some((name, count)) = part.trim().split_once(':') {
            let count = number::whole(count.trim());
            match name {
                "Connect" => failures.connect = count,
                "Receive" => failures.read = count,
                "Length" => failures.length = count,
                "Exceptions" => failures.other = count,
                _ => {}
            }
        }
    }
}

/// `apr_socket_recv: Connection reset by peer (104)`, then `Total of 12 requests completed`.
fn is_abort(text: &str, draft: &mut Draft) -> bool {
    if text.starts_with("apr_") || text.starts_with("Test aborted") {
        let kept: String = text.chars().take(120).collect();
        draft.run.abort.get_or_insert(kept);
        draft.certain = true;
        return true;
    }
    let Some(count) =
        text.strip_prefix("Total of ").and_then(|rest| rest.strip_suffix(" requests completed"))
    else {
        return false;
    };
    draft.run.requests = number::whole(count);
    draft.run.abort.get_or_insert_with(|| "gave up".to_owned());
    draft.whole = true;
    true
}
