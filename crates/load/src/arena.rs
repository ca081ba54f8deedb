//! All requests as adjacent bytes, rendered before the load and never changed. Threads share the arena, and
//! the kernel sends straight from it.
//!
//! ```text
//!   endpoint      0 "list"            1 "item", three rows               2 "add"
//!   variant       0                   1           2           3          4
//!   arena        |GET /list ...      |GET /item/1|GET /item/2|GET /item/3|POST /item ...|
//!   bounds       ^0                  ^1          ^2          ^3          ^4             ^5
//! ```
//! An endpoint is one request of the spec. Its variants are its renderings, one per row of values. This
//! module decides what can be sent, and `sampler` which request is sent next. It knows no threads,
//! connections or time.

use std::collections::HashMap;
use std::hint::select_unpredictable;
use std::sync::Arc;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::error::refuse;
use crate::pacer::rng_of;
use crate::render::{Hole, Renderer};
use crate::values::shown;
use crate::{LoadError, RequestSpec, Users};

/// Maximum number of endpoints. Each has its own histograms in each thread, of 264 KiB and more. Requests
/// that differ in a value are one endpoint.
const ENDPOINTS_MAX: usize = 100;
/// Approximate memory for the holes of a variant.
const HOLES_BYTES: usize = 128;
/// Maximum size of the rendered requests. Offsets have 32 bits.
const ARENA_MAX: usize = 512 << 20;

pub(crate) struct RequestArena {
    arena: Vec<u8>,
    /// Variant v is `arena[bounds[v]..bounds[v + 1]]`.
    bounds: Vec<u32>,
    /// In the order of the spec. [`Choice::endpoint`] is an index into this.
    pub(crate) endpoints: Vec<ArenaEndpoint>,
    /// Holes of variants that each user fills, by the variant's start.
    holes: HashMap<u32, Box<[Hole]>>,
    table: AliasTable,
}

/// One request of the spec, with its variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArenaEndpoint {
    /// Its name in reports, unique among endpoints.
    pub(crate) name: String,
    /// Whether its responses never have a body, as with HEAD.
    bodiless: bool,
    /// Whether it is drawn. Otherwise users send it first.
    pub(crate) is_drawn: bool,
    /// Its first variant and the number of variants, at least one.
    first: u32,
    count: u32,
}

impl RequestArena {
    /// Renders all requests with all their rows. The last requests are those by which `users` log in, which
    /// are not drawn.
    ///
    /// # Errors
    /// Returns a [`LoadError::Spec`] for the first request that cannot be sent as intended. Also for no
    /// request, more than 100, two of one name, unused values, or more than 512 MiB.
    pub(crate) fn render(
        requests: &[RequestSpec],
        users: &Users,
    ) -> Result<RequestArena, LoadError> {
        RequestArena::render_within(requests, users, ARENA_MAX)
    }

    fn render_within(
        requests: &[RequestSpec],
        users: &Users,
        limit: usize,
    ) -> Result<RequestArena, LoadError> {
        check(requests)?;
        let drawn = requests.len().saturating_sub(users.first.len());
        if drawn == 0 {
            return refuse(
                "load.requests",
                "all are sent once, at least one again and again",
            );
        }
        let weights: Vec<u32> = requests[..drawn]
            .iter()
            .map(|request| request.weight)
            .collect();
        let mut arena = RequestArena {
            arena: Vec::new(),
            bounds: vec![0],
            endpoints: Vec::new(),
            holes: HashMap::new(),
            table: AliasTable::new(&weights),
        };
        let mut uses_values = Vec::new();
        for (index, request) in requests.iter().enumerate() {
            // Each first request of a user can use the values captured by earlier ones.
            let before = index.checked_sub(drawn).unwrap_or(users.first.len());
            let captured = users.first[..before]
                .iter()
                .flat_map(|first| &first.capture);
            let captured: Vec<String> = captured.map(|(name, _)| name.clone()).collect();
            let renderer = Renderer::new(request, &captured, users.cookies);
            let used = renderer.and_then(|renderer| arena.add(request, renderer, limit));
            uses_values.push(used.map_err(|error| of_request(error, request, requests.len()))?);
        }
        check_values(requests, &uses_values)?;
        arena.arena.shrink_to_fit();
        Ok(arena)
    }

    /// Appends an endpoint. Returns whether it has placeholders.
    fn add(
        &mut self,
        request: &RequestSpec,
        mut renderer: Renderer<'_>,
        limit: usize,
    ) -> Result<bool, LoadError> {
        let (begin, count) = (self.arena.len(), renderer.variants());
        let first = self.bounds.len() - 1;
        for row in 0..count {
            let place = self.arena.len() as u32;
            let holes = renderer.push(row, &mut self.arena)?;
            if !holes.is_empty() {
                self.holes.insert(place, holes.into());
            }
            let end = self.arena.len();
            if end + self.holes.len() * HOLES_BYTES > limit {
                // Estimated from the rows rendered so far.
                let projected =
                    begin as u128 + (end - begin) as u128 * count as u128 / (row + 1) as u128;
                let rows = if count > 1 {
                    format!(" with its {count} rows")
                } else {
                    String::new()
                };
                let problem = format!(
                    "rendered{rows} the load takes about {projected} bytes, at most {limit}"
                );
                return refuse(
                    "load.requests",
                    problem + "; use fewer rows or smaller bodies",
                );
            }
            // The limit fits into 32 bits.
            self.bounds.push(end as u32);
        }
        self.endpoints.push(ArenaEndpoint {
            name: request.title().into_owned(),
            bodiless: request.method == "HEAD",
            is_drawn: self.endpoints.len() < self.table.slots.len(),
            first: first as u32,
            count: count as u32,
        });
        Ok(renderer.uses_values())
    }

    /// All requests that can be drawn, with the name of their endpoint.
    pub(crate) fn variants(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.endpoints.iter().enumerate().flat_map(
            move |(endpoint, ArenaEndpoint { name, count, .. })| {
                (0..*count).map(move |row| (name.as_str(), self.bytes(self.choice(endpoint, row))))
            },
        )
    }

    /// The bytes of a request that was drawn. They do not move as long as the arena lives.
    pub(crate) fn bytes(&self, choice: RequestChoice) -> &[u8] {
        &self.arena[choice.start as usize..][..choice.length as usize]
    }

    /// The places in a request that each user fills, if any.
    pub(crate) fn holes(&self, choice: RequestChoice) -> Option<&[Hole]> {
        self.holes.get(&choice.start).map(|holes| &**holes)
    }

    /// The endpoint's variant for this row number, modulo the number of rows.
    pub(crate) fn row_of(&self, endpoint: usize, number: usize) -> RequestChoice {
        self.choice(
            endpoint,
            (number % self.endpoints[endpoint].count as usize) as u32,
        )
    }

    /// Variant `row` of the endpoint. Both must be within the arena.
    fn choice(&self, endpoint: usize, row: u32) -> RequestChoice {
        let ArenaEndpoint {
            first, bodiless, ..
        } = self.endpoints[endpoint];
        let variant = (first + row) as usize;
        let start = self.bounds[variant];
        let length = self.bounds[variant + 1] - start;
        // There are at most ENDPOINTS_MAX.
        RequestChoice {
            start,
            length,
            endpoint: endpoint as u16,
            bodiless,
        }
    }
}

fn check(requests: &[RequestSpec]) -> Result<(), LoadError> {
    if requests.is_empty() || requests.len() > ENDPOINTS_MAX {
        let problem = format!("{} requests, from 1 to {ENDPOINTS_MAX}", requests.len());
        return refuse("load.requests", problem);
    }
    let mut names: Vec<_> = requests.iter().map(RequestSpec::title).collect();
    if let Some(name) = names.iter().find(|name| name.contains(char::is_control)) {
        return refuse(
            "load.requests.name",
            format!("{} contains a control character", shown(name)),
        );
    }
    if let Some(request) = requests.iter().find(|request| request.weight == 0) {
        let problem = format!("0 for request {}, at least 1", shown(&request.title()));
        return refuse(
            "load.requests.weight",
            problem + "; leave out what is not to be sent",
        );
    }
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!(
            "{} is there twice; give each request a name of its own",
            shown(&pair[0])
        );
        return refuse("load.requests.name", problem);
    }
    Ok(())
}

/// Values may be given to several requests although not all use them. If none does, a placeholder was
/// mistyped.
fn check_values(requests: &[RequestSpec], uses_values: &[bool]) -> Result<(), LoadError> {
    let used = |values| {
        let mut all = requests.iter().zip(uses_values);
        all.any(|(request, used)| *used && request.values.as_ref() == Some(values))
    };
    for request in requests {
        if let Some(values) = request.values.as_ref().filter(|values| !used(values)) {
            let (name, column) = (request.title(), &values.columns()[0]);
            let problem = format!(
                "request {} has values and no placeholder for them",
                shown(&name)
            );
            let hint =
                format!("; a column is written {{{column}}}, with braces that are not doubled");
            return refuse("load.requests.values", problem + &hint);
        }
    }
    Ok(())
}

/// Adds the name of the request to an error, if there are several.
fn of_request(error: LoadError, request: &RequestSpec, requests: usize) -> LoadError {
    match error {
        LoadError::Spec { field, problem } if requests > 1 => LoadError::Spec {
            field,
            problem: format!("request {}: {problem}", shown(&request.title())),
        },
        other => other,
    }
}

// The next request of a thread: an endpoint drawn by weight, then one of its rows with equal probability.
//
// ```text
//   seed ──► one seed a thread ──► words ──► endpoint (none is drawn where there is one)
//                                       └──► row      (none is drawn where there is one)
// ```
// The sequence depends only on the arena, the seed and the thread's number, not on events during the load. It
// must not change between versions, so that a seed in a record keeps its meaning.

/// Separates these words from the arrivals' words, which use the same seed. "requests" in ASCII.
const PURPOSE: u64 = 0x7265_7175_6573_7473;

/// The infinite sequence of requests of one thread. A clone draws the same ones.
#[derive(Clone)]
pub(crate) struct RequestSampler {
    arena: Arc<RequestArena>,
    rng: Pcg64Mcg,
}

/// A request that was drawn: a range of the arena. [`RequestArena::bytes`] returns its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestChoice {
    /// Offset in the arena.
    start: u32,
    pub(crate) length: u32,
    pub(crate) endpoint: u16,
    /// Whether the response never has a body.
    pub(crate) bodiless: bool,
}

impl RequestSampler {
    /// Creates the sampler of thread `thread` (from 0).
    pub(crate) fn new(arena: Arc<RequestArena>, seed: u64, thread: u32) -> RequestSampler {
        RequestSampler {
            arena,
            rng: rng_of(seed ^ PURPOSE, thread),
        }
    }

    pub(crate) fn draw(&mut self) -> RequestChoice {
        let endpoint = match self.arena.table.slots.len() {
            1 => 0,
            _ => self.arena.table.pick(self.rng.next_u64()),
        };
        let row = match self.arena.endpoints[endpoint].count {
            1 => 0,
            // The high part of the product. The probabilities of rows differ by at most 2⁻³².
            count => ((u128::from(self.rng.next_u64()) * u128::from(count)) >> 64) as u32,
        };
        self.arena.choice(endpoint, row)
    }
}

// Weighted draw in constant time: Vose's form of Walker's alias method.
//
// ```text
//   weights 6, 3, 1 have 18, 9 and 3 of thirty parts; a slot holds ten parts of at most two numbers
//
//   slot 0  0000000000        word ── high part ──► slot
//   slot 1  1111111110             └─ low part ───► its own number below the mark, the other above
//   slot 2  2220000000
// ```
// Weights are integers and are distributed exactly. Only the marks are rounded, to 2⁻⁶⁴ of a slot. Pure: the
// caller passes the random word. The result for a word must never change, because records contain seeds.

/// The numbers from 0, each with its share of all words.
pub(crate) struct AliasTable {
    slots: Box<[Slot]>,
}

#[derive(Clone, Copy)]
struct Slot {
    mark: u64,
    /// The number drawn from the mark on.
    other: u16,
}

impl AliasTable {
    /// Creates a table for 1 to 65 536 weights, each at least 1.
    pub(crate) fn new(weights: &[u32]) -> AliasTable {
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        // A slot holds `total`, and a number fills as many parts of slots as its weight: at most 2³² · 2¹⁶,
        // which fits into 64 bits.
        let mut left: Vec<u64> = weights
            .iter()
            .map(|weight| u64::from(*weight) * weights.len() as u64)
            .collect();
        let mut slots: Vec<Slot> = (0..weights.len())
            .map(|own| Slot {
                mark: u64::MAX,
                other: own as u16,
            })
            .collect();
        let (mut below, mut above): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&own| left[own] < total);
        while let (Some(small), Some(&large)) = (below.pop(), above.last()) {
            let mark = (u128::from(left[small]) << 64) / u128::from(total);
            slots[small] = Slot {
                mark: mark as u64,
                other: large as u16,
            };
            left[large] -= total - left[small];
            if left[large] < total {
                above.pop();
                below.push(large);
            }
        }
        AliasTable {
            slots: slots.into(),
        }
    }

    /// Returns the number for a random word.
    pub(crate) fn pick(&self, word: u64) -> usize {
        let place = u128::from(word) * self.slots.len() as u128;
        let (own, within) = ((place >> 64) as usize, place as u64);
        let Slot { mark, other } = self.slots[own];
        // A branch would be mispredicted up to half the time.
        select_unpredictable(within < mark, own, other.into())
    }
}

#[cfg(test)]
mod tests;
