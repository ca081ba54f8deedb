//! Whether what the experiment expects to be varied is there at all: a variant nearly all of whose answers lack an expected header,
//! with a fine status, is another one than was asked for. Pure.
//!
//! That needs no second trial to be seen: to go on would measure something else for as long as the budget lasts.

use plan::{Load, Variant};
use record::{FailureKind, Record, Slice};

/// Fewer answers than this may be those of a cache that is not filled yet.
const ANSWERS_MIN: u64 = 20;
/// Share of a variant's answers that lack the header where it is missing by rule and not now and then.
const MISSING_SHARE_MIN: f64 = 0.99;

/// What is missing in this variant's answers so far, what came instead, and what to do; `None` where nothing is, or it cannot be told
/// yet.
pub(super) fn not_applied(record: &Record, index: usize) -> Option<String> {
    let variant = record.header.plan.variants.get(index)?;
    let blocks = record.blocks.iter().filter(|block| block.dropped.is_none());
    let trials = blocks.flat_map(|block| &block.trials).filter(|trial| trial.variant() == index);
    let slices: Vec<&Slice> = trials.flat_map(|trial| &trial.slices).collect();
    let answered: u64 = slices.iter().map(|slice| slice.counts.responses).sum();
    let missing = variant.expect.headers.keys().filter_map(|name| Missing::of(&slices, name));
    let most = missing.max_by_key(|missing| missing.count)?;
    let by_rule = most.count as f64 >= MISSING_SHARE_MIN * answered as f64;
    (answered >= ANSWERS_MIN && by_rule).then(|| most.told(variant, &slices, answered))
}

/// A header that answers do not have as expected. Their status was, or it would not have been looked at.
struct Missing<'a> {
    name: &'a str,
    count: u64,
    came: &'a str,
}

impl<'a> Missing<'a> {
    fn of(slices: &[&'a Slice], name: &'a str) -> Option<Missing<'a>> {
        let failures = slices.iter().flat_map(|slice| &slice.counts.contract_failures);
        let of_it = failures.filter(
            |failure| matches!(&failure.kind, FailureKind::Header(of) if of.eq_ignore_ascii_case(name)),
        );
        let mut of_it = of_it.peekable();
        let came = of_it.peek()?.example.as_str();
        Some(Missing { name, count: of_it.map(|failure| failure.count).sum(), came })
    }

    fn told(&self, variant: &Variant, slices: &[&Slice], answered: u64) -> String {
        let Missing { name, count, came } = self;
        // The engine's word for no such header.
        let came = if *came == "absent" { "it is absent".to_owned() } else { format!("came {came}") };
        let wanted = variant.expect.headers.get(*name).map(Vec::as_slice).unwrap_or_default();
        let of_all =
            if *count == answered { format!("all {count}") } else { format!("{count} of {answered}") };
        let cause = if *name == "content-encoding" {
            let body_bytes =
                slices.iter().map(|slice| slice.counts.body_bytes).sum::<u64>() / answered.max(1);
            coding(wanted, &offers(&variant.load), body_bytes)
        } else {
            "see whether what the level sets reaches the service; its output lies in the record's logs"
                .to_owned()
        };
        format!(
            "{}: {of_all} answers have the status that is expected and not the header {name}: expected {}, {came}. So this \
             is not the variant that was asked for; {cause}",
            variant.name,
            expected(wanted)
        )
    }
}

/// What a header should have been.
fn expected(wanted: &[String]) -> String {
    let word = |value: &String| if value.is_empty() { "none".to_owned() } else { value.clone() };
    if wanted.is_empty() {
        "any value".into()
    } else {
        wanted.iter().map(word).collect::<Vec<_>>().join(" or ")
    }
}

/// The different values of accept-encoding among the load's requests.
fn offers(load: &Load) -> Vec<&str> {
    let headers = load.headers.iter().filter(|_| load.requests.is_empty());
    let headers = headers.chain(load.requests.iter().flat_map(|request| &request.headers));
    let mut offers: Vec<&str> = Vec::new();
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("accept-encoding") && !offers.contains(&value.as_str()) {
            offers.push(value);
        }
    }
    offers
}

/// Why a content coding is not as expected: compression is asked for by the client, and servers leave small bodies alone.
fn coding(wanted: &[String], offers: &[&str], body_bytes: u64) -> String {
    let codings: Vec<&str> = wanted.iter().map(String::as_str).filter(|coding| !coding.is_empty()).collect();
    let offered = offers.join(" and ");
    match codings.first() {
        None if offers.is_empty() => {
            "the load sends no accept-encoding, so the service compresses unasked: see its configuration"
                .into()
        }
        None => format!("the load sends accept-encoding: {offered}, and something compresses: switch it off"),
        Some(coding) if offers.is_empty() => format!(
            "the load sends no accept-encoding, and servers compress for those alone who do: set load.headers = \
             {{ accept-encoding = \"{coding}\" }}"
        ),
        Some(coding) if !codings.iter().any(|coding| is_among(coding, offers)) => format!(
            "the load sends accept-encoding: {offered}, which does not offer {coding}: set load.headers.accept-encoding"
        ),
        Some(_) => format!(
            "the load does send accept-encoding: {offered}, so it lies with the service: see whether it compresses at all, this \
             type of content, and bodies as small as these ({body_bytes} bytes)"
        ),
    }
}

/// Whether a coding is among those offered, `*` being any.
fn is_among(coding: &str, offers: &[&str]) -> bool {
    let offered = offers.iter().flat_map(|offer| offer.split(','));
    let mut names = offered.map(|part| part.split(';').next().unwrap_or_default().trim());
    names.any(|name| name.eq_ignore_ascii_case(coding) || name == "*")
}
