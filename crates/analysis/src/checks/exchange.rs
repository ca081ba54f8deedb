//! Requests of a variant, their contracts, and the headers of recorded responses.

use model::header;
use plan::{Contract, Load, Request};
use record::Witness;

pub(super) fn values<'a>(witness: &'a Witness, name: &str) -> Vec<&'a str> {
    let named = witness
        .headers
        .iter()
        .filter(|(other, _)| header::is_same(other, name));
    named.map(|(_, value)| value.as_str()).collect()
}

/// The first `accept-encoding` of the requests.
pub(super) fn accept_encoding(load: &plan::Load) -> Option<&str> {
    let mut said = load
        .requests
        .iter()
        .flat_map(|request| header::values(&request.headers, "accept-encoding"));
    said.next().map(String::as_str)
}

/// Returns the request with this name, or the only one.
pub(super) fn named<'a>(load: &'a Load, name: &str) -> Option<&'a Request> {
    match load.requests.as_slice() {
        [only] => Some(only),
        several => several.iter().find(|request| request.name == name),
    }
}

/// Returns the contract for the responses to a request.
pub(super) fn contract_of<'a>(variant: &'a plan::Variant, request: &str) -> &'a Contract {
    named(&variant.load, request)
        .and_then(|request| request.expect.as_ref())
        .unwrap_or(&variant.expect)
}
