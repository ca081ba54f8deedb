//! The request whose latencies are judged: whether every variant sends it, and how often.
//!
//! Looks at variants as they are resolved; of the file it only needs the place of the key.

use crate::check::clipped;
use crate::file;
use crate::model::{Design, Endpoint, Variant};
use crate::problem::{Problem, did_you_mean};
use crate::site::Site;

const KEY: [&str; 2] = ["design", "endpoint"];

/// The chosen request; `None` where the file chooses none, or one that there is not.
pub(crate) fn endpoint(
    site: &mut Site<'_>,
    written: &file::Design,
    design: &Design,
    variants: &[Variant],
) -> Option<Endpoint> {
    let name = written.endpoint.as_ref()?;
    // A metric or a request that could not be read is told elsewhere.
    if !site.source.complete {
        return None;
    }
    if design.metrics().all(|metric| metric.quantile().is_none()) {
        let metrics: Vec<&str> = design.metrics().map(|metric| metric.name()).collect();
        let message =
            format!("`design.endpoint` is for latencies, and `{}` counts all requests", metrics.join("`, `"));
        let problem = Problem::new(site.tree.key_place(&KEY), message, "without effect");
        site.report(problem.hint("leave it out, or choose a metric such as \"p99\""));
        return None;
    }
    if let Some(without) = variants.iter().find(|variant| variant.load.share_of(name).is_none()) {
        site.report(unknown(site, name, without, variants.len()));
        return None;
    }
    let shares = variants.iter().filter_map(|variant| variant.load.share_of(name));
    shares.reduce(f64::min).map(|share| Endpoint { name: name.clone(), share })
}

fn unknown(site: &Site<'_>, name: &str, without: &Variant, variants: usize) -> Problem {
    let place = site.tree.place(&KEY);
    let of = if variants > 1 { format!(" in variant `{}`", without.name) } else { String::new() };
    let message = format!("`design.endpoint`: there is no request `{}`{of}", clipped(name));
    let hint = if without.load.requests.is_empty() {
        "it sends one request only; leave this out, or name several in `load.requests`".to_owned()
    } else {
        did_you_mean(name, "requests", without.load.requests.iter().map(|request| request.name.as_str()))
    };
    Problem::new(place, message, "unknown request").hint(hint)
}
