//! Latencies of one thread by endpoint and by how requests ended. A latency is recorded here and nowhere else; sums over
//! endpoints are made when the slice is over.

use model::{ContentSeen, EndpointCounts, EndpointOutcome};
use stats::Latencies;

use crate::arena::Endpoint;
use crate::connection::{Loss, Response};

/// Different status codes of an endpoint with latencies of their own; further ones share those of [`OTHERS`].
const STATUSES_MAX: usize = 16;
/// Stands for all further status codes.
const OTHERS: u16 = 0;
/// What most requests end with: memory for it is set aside before the window.
const USUAL: u16 = 200;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Cells {
    /// By endpoint; in each the usual outcome first.
    endpoints: Vec<Vec<Cell>>,
    open_loop: bool,
    /// Response times of requests that were due and of which none was chosen, let alone sent.
    adrift: Option<Latencies>,
}

/// Requests of one endpoint that ended in one way.
#[derive(Debug)]
struct Cell {
    /// The response's, if there was one.
    status: Option<u16>,
    ok: u64,
    ok_in_window: u64,
    bytes_body: u64,
    latency: Latencies,
    /// In open loop.
    response: Option<Latencies>,
}

impl Cells {
    pub(super) fn new(endpoints: usize, open_loop: bool) -> Cells {
        let usual = || vec![Cell::new(Some(USUAL), open_loop)];
        Cells { endpoints: (0..endpoints).map(|_| usual()).collect(), open_loop, adrift: None }
    }

    pub(super) fn response(&mut self, response: &Response, in_window: bool) {
        let cell = self.cell(response.endpoint, Some(response.status));
        cell.latency.record(response.latency_ns);
        if let Some((response, ns)) = cell.response.as_mut().zip(response.response_ns) {
            response.record(ns);
        }
        cell.ok += u64::from(response.ok);
        cell.ok_in_window += u64::from(response.ok && in_window);
        cell.bytes_body += response.body_bytes;
    }

    pub(super) fn censor(&mut self, loss: &Loss) {
        let cell = self.cell(loss.endpoint, None);
        cell.latency.censor(loss.age_ns);
        if let Some((response, ns)) = cell.response.as_mut().zip(loss.response_age_ns) {
            response.censor(ns);
        }
    }

    /// A request that was due and never sent.
    pub(super) fn leave_unsent(&mut self, age_ns: u64) {
        self.adrift.get_or_insert_default().censor(age_ns);
    }

    /// The cell of an endpoint and an outcome. The first of a kind allocates; there are few kinds.
    fn cell(&mut self, endpoint: u16, status: Option<u16>) -> &mut Cell {
        let cells = &mut self.endpoints[usize::from(endpoint)];
        let known = |status| move |cell: &Cell| cell.status == status;
        let mut index = cells.iter().position(known(status));
        let mut status = status;
        if index.is_none() && status.is_some() && cells.len() >= STATUSES_MAX {
            status = Some(OTHERS);
            index = cells.iter().position(known(status));
        }
        let index = index.unwrap_or_else(|| {
            cells.push(Cell::new(status, self.open_loop));
            cells.len() - 1
        });
        &mut cells[index]
    }

    /// Latencies of all requests sent, and response times of all that were due.
    pub(super) fn totals(&self) -> (Latencies, Latencies) {
        let (mut latency, mut response) = (Latencies::new(), Latencies::new());
        for cell in self.endpoints.iter().flatten() {
            latency.merge(&cell.latency);
            cell.response.iter().for_each(|more| response.merge(more));
        }
        self.adrift.iter().for_each(|more| response.merge(more));
        (latency, response)
    }

    /// What came of each endpoint, with the contents that were seen of it.
    pub(super) fn into_endpoints(
        self,
        endpoints: &[Endpoint],
        contents: Vec<Vec<ContentSeen>>,
    ) -> Vec<EndpointCounts> {
        let each = self.endpoints.into_iter().zip(endpoints).zip(contents);
        let counts = |((cells, endpoint), contents): ((Vec<Cell>, &Endpoint), _)| {
            let mut counts = EndpointCounts { contents, ..EndpointCounts::new(&endpoint.name) };
            cells
                .into_iter()
                .filter(|cell| !cell.latency.is_empty())
                .for_each(|cell| cell.add_to(&mut counts));
            counts.outcomes.sort_by_key(|outcome| (outcome.status.is_none(), outcome.status));
            counts
        };
        each.map(counts).collect()
    }
}

impl Cell {
    fn new(status: Option<u16>, open_loop: bool) -> Cell {
        Cell {
            status,
            ok: 0,
            ok_in_window: 0,
            bytes_body: 0,
            latency: Latencies::new(),
            response: open_loop.then(Latencies::new),
        }
    }

    fn add_to(self, endpoint: &mut EndpointCounts) {
        endpoint.sent += self.latency.count();
        endpoint.successful += self.ok;
        endpoint.successful_in_window += self.ok_in_window;
        endpoint.body_bytes += self.bytes_body;
        let response = self.response.unwrap_or_else(Latencies::none);
        endpoint.outcomes.push(EndpointOutcome { status: self.status, response, latency: self.latency });
    }
}
