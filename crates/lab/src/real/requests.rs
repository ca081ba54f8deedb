//! The plan's requests in the engine's words. Pure: it renders nothing and sends nothing.

use load::Request;

/// What a variant sends, to the host and port that its `Host` field shall name: one request, or several with their weights.
pub(super) fn requests(load: &plan::Load, host: &str) -> Vec<Request> {
    if load.requests.is_empty() {
        return vec![Request {
            headers: load.headers.clone(),
            body: load.body.clone().into_bytes(),
            ..Request::new(&load.method, &load.path, host)
        }];
    }
    let request = |one: &plan::Request| Request {
        name: one.name.clone(),
        weight: one.weight,
        headers: one.headers.clone(),
        body: one.body.clone().into_bytes(),
        ..Request::new(&one.method, &one.path, host)
    };
    load.requests.iter().map(request).collect()
}
