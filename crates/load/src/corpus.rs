//! Every request that can be sent, as bytes side by side, made before the load and never changed: threads share it,
//! and the kernel sends straight from it.
//!
//! ```text
//!   endpoint      0 "list"            1 "item", three rows               2 "add"
//!   variant       0                   1           2           3          4
//!   arena        |GET /list ...      |GET /item/1|GET /item/2|GET /item/3|POST /item ...|
//!   bounds       ^0                  ^1          ^2          ^3          ^4             ^5
//! ```
//! An endpoint is one request of the spec; its variants are what its rows of values make of it. This decides what can
//! be sent, and `deck` which of it is sent next; it must not know threads, connections or time.

use std::fmt;

use crate::render::Renderer;
use crate::values::shown;
use crate::{LoadError, Request};

mod deck;
mod wheel;

pub(crate) use deck::{Choice, Deck};
use wheel::Wheel;

/// Each has histograms of its own in each thread, of 264 KiB and more. Many requests that differ in a value are one endpoint.
const ENDPOINTS_MAX: usize = 100;
/// Of requests, rendered. Offsets have 32 bits.
const ARENA_MAX: usize = 512 << 20;

/// All requests of a load.
pub(crate) struct Corpus {
    arena: Box<[u8]>,
    /// Variant v is `arena[bounds[v]..bounds[v + 1]]`.
    bounds: Box<[u32]>,
    endpoints: Box<[Endpoint]>,
    wheel: Wheel,
}

/// One request of the spec, with what its values make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// What reports call it; unlike every other's.
    pub(crate) name: String,
    /// Its share among the weights of all.
    pub(crate) weight: u32,
    /// Whether its responses have no body whatever they say: those to HEAD.
    pub(crate) bodiless: bool,
    /// Its first variant, and how many follow one another; at least one.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// The longest of them in bytes.
    pub(crate) longest: u32,
}

impl Corpus {
    /// Renders all requests with all their rows.
    ///
    /// # Errors [`LoadError::Spec`]: the first request that cannot be sent as it is meant; no request, or more than
    /// 100; two of one name; values that no request uses; more than 512 MiB.
    pub(crate) fn render(requests: &[Request]) -> Result<Corpus, LoadError> {
        Corpus::render_within(requests, ARENA_MAX)
    }

    fn render_within(requests: &[Request], limit: usize) -> Result<Corpus, LoadError> {
        check(requests)?;
        let mut draft = Draft { arena: Vec::new(), bounds: vec![0], endpoints: Vec::new(), limit };
        let mut uses_values = Vec::new();
        for request in requests {
            let used = draft.add(request).map_err(|error| of_request(error, request, requests.len()))?;
            uses_values.push(used);
        }
        check_values(requests, &uses_values)?;
        let weights: Vec<u32> = requests.iter().map(|request| request.weight).collect();
        Ok(Corpus {
            arena: draft.arena.into(),
            bounds: draft.bounds.into(),
            endpoints: draft.endpoints.into(),
            wheel: Wheel::new(&weights),
        })
    }

    /// The endpoints in the order of the spec; [`Choice::endpoint`] is a number of this.
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Every request that can be drawn, with its endpoint.
    pub(crate) fn variants(&self) -> impl Iterator<Item = (&Endpoint, &[u8])> {
        self.endpoints.iter().flat_map(|endpoint| {
            let numbers = endpoint.first as usize..(endpoint.first + endpoint.count) as usize;
            let bytes =
                |number: usize| &self.arena[self.bounds[number] as usize..self.bounds[number + 1] as usize];
            numbers.map(move |number| (endpoint, bytes(number)))
        })
    }

    /// The bytes of a request that was drawn. They stay where they are as long as the corpus lives.
    pub(crate) fn bytes(&self, choice: Choice) -> &[u8] {
        &self.arena[choice.start as usize..][..choice.length as usize]
    }

    /// Variant `row` of the endpoint; both are within the corpus.
    fn choice(&self, endpoint: usize, row: u32) -> Choice {
        let Endpoint { first, bodiless, .. } = self.endpoints[endpoint];
        let variant = (first + row) as usize;
        let start = self.bounds[variant];
        let length = self.bounds[variant + 1] - start;
        // There are at most ENDPOINTS_MAX.
        Choice { start, length, endpoint: endpoint as u16, bodiless }
    }
}

/// Hundreds of megabytes are nothing to look at.
impl fmt::Debug for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corpus")
            .field("endpoints", &self.endpoints)
            .field("bytes", &self.arena.len())
            .finish_non_exhaustive()
    }
}

/// A corpus that is being made.
struct Draft {
    arena: Vec<u8>,
    bounds: Vec<u32>,
    endpoints: Vec<Endpoint>,
    limit: usize,
}

impl Draft {
    /// Appends an endpoint; whether it has placeholders.
    fn add(&mut self, request: &Request) -> Result<bool, LoadError> {
        let mut renderer = Renderer::new(request)?;
        let (begin, count) = (self.arena.len(), renderer.variants());
        let first = self.bounds.len() - 1;
        let mut longest = 0;
        for row in 0..count {
            let start = self.arena.len();
            renderer.push(row, &mut self.arena)?;
            let end = self.arena.len();
            if end > self.limit {
                return Err(self.too_large(begin, row + 1, count));
            }
            // Within the limit, which 32 bits hold; and no request has less than a byte.
            self.bounds.push(end as u32);
            longest = longest.max((end - start) as u32);
        }
        self.endpoints.push(Endpoint {
            name: request.title().into_owned(),
            weight: request.weight,
            bodiless: request.method == "HEAD",
            first: first as u32,
            count: count as u32,
            longest,
        });
        Ok(renderer.uses_values())
    }

    /// The size is projected from the rows that were rendered so far.
    fn too_large(&self, begin: usize, rendered: usize, count: usize) -> LoadError {
        let so_far = (self.arena.len() - begin) as u128;
        let projected = begin as u128 + so_far * count as u128 / rendered as u128;
        let rows = if count > 1 { format!(" with its {count} rows") } else { String::new() };
        let limit = self.limit;
        let problem = format!("rendered{rows} the load takes about {projected} bytes, at most {limit}");
        LoadError::Spec { field: "load.requests", problem: problem + "; use fewer rows or smaller bodies" }
    }
}

fn check(requests: &[Request]) -> Result<(), LoadError> {
    let refuse = |field, problem| Err(LoadError::Spec { field, problem });
    if requests.is_empty() || requests.len() > ENDPOINTS_MAX {
        let problem = format!("{} requests, from 1 to {ENDPOINTS_MAX}", requests.len());
        return refuse("load.requests", problem);
    }
    let mut names: Vec<_> = requests.iter().map(Request::title).collect();
    for (request, name) in requests.iter().zip(&names) {
        if name.contains(char::is_control) {
            let problem = format!("{} contains a control character", shown(name));
            return refuse("load.requests.name", problem);
        }
        if request.weight == 0 {
            let problem =
                format!("0 for request {}, at least 1; leave out what is not to be sent", shown(name));
            return refuse("load.requests.weight", problem);
        }
    }
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!("{} is there twice; give each request a name of its own", shown(&pair[0]));
        return refuse("load.requests.name", problem);
    }
    Ok(())
}

/// Values may be given to several requests though not all use them; if none does, a placeholder was mistyped.
fn check_values(requests: &[Request], uses_values: &[bool]) -> Result<(), LoadError> {
    let used = |values| {
        let mut all = requests.iter().zip(uses_values);
        all.any(|(request, used)| *used && request.values.as_ref() == Some(values))
    };
    for request in requests {
        if let Some(values) = request.values.as_ref().filter(|values| !used(values)) {
            let (name, column) = (request.title(), &values.columns()[0]);
            let problem = format!("request {} has values and no placeholder for them", shown(&name));
            let problem =
                problem + &format!("; a column is written {{{column}}}, with braces that are not doubled");
            return Err(LoadError::Spec { field: "load.requests.values", problem });
        }
    }
    Ok(())
}

/// Says which request it is about, where there are several.
fn of_request(error: LoadError, request: &Request, requests: usize) -> LoadError {
    match error {
        LoadError::Spec { field, problem } if requests > 1 => {
            let problem = format!("request {}: {problem}", shown(&request.title()));
            LoadError::Spec { field, problem }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
