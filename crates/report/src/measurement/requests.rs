//! Each of several requests of a load.

use analysis::MeasuredWindow;
use model::EndpointCounts;
use model::document::{Cell, ColumnFit, DocumentPart, Table};
use model::quantity::{NONE, Quantity, count};
use stats::Latencies;

use super::at;

/// Results of each of several requests: without success only their numbers and statuses.
pub(super) fn endpoints(window: &MeasuredWindow<'_>) -> Option<DocumentPart> {
    let endpoints = &window.slice.counts.endpoints;
    let has_figures = window.void().is_none() && window.has_success();
    let figures: &[&str] = if has_figures {
        &["sent", "throughput", "p50", "p99", "failed"]
    } else {
        &["sent", "failed"]
    };
    let names = [("request", ColumnFit::CutEnd)];
    let mut table = Table::of_figures("", names, figures.iter().copied());
    table.columns.push(("status", ColumnFit::Wrapped).into());
    for endpoint in endpoints {
        let latencies = all_outcomes(window, endpoint);
        let per_s = window.per_s(endpoint.successful_in_window);
        let mut cells = vec![Cell::text(&endpoint.name), Cell::text(count(endpoint.sent))];
        if has_figures {
            cells.extend([
                Cell::figure(per_s.map(Quantity::per_s)),
                at(&latencies, 0.5),
                at(&latencies, 0.99),
            ]);
        }
        cells.extend([
            Cell::text(count(endpoint.failed())),
            Cell::text(statuses(endpoint)),
        ]);
        table.push(cells);
    }
    (endpoints.len() > 1).then_some(DocumentPart::Table(table))
}

/// Latencies of a request with any outcome: response times if requests were due.
pub(super) fn all_outcomes(window: &MeasuredWindow<'_>, endpoint: &EndpointCounts) -> Latencies {
    let open = window.asked.open.is_some();
    let mut latencies = Latencies::new();
    for ended in &endpoint.outcomes {
        latencies.merge(if open {
            &ended.response
        } else {
            &ended.latency
        });
    }
    latencies
}

fn statuses(endpoint: &EndpointCounts) -> String {
    let name =
        |status: Option<u16>| status.map_or("no response".to_owned(), |status| status.to_string());
    match endpoint.outcomes.as_slice() {
        [] => NONE.to_owned(),
        // The same for all requests.
        [only] => name(only.status),
        several => {
            let each = several
                .iter()
                .map(|o| format!("{} × {}", name(o.status), count(o.latency.count())));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}
