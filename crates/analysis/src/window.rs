//! One slice of a run without a comparison, and its figures. Pure.

use model::{Finding, Grade, Quantity, SliceRequest, Until};
use plan::{Load, Plan, Variant};
use record::{Slice, SliceKind};

use crate::checks::Check;

/// Minimum window length for any rate.
const RATE_WINDOW_MIN_NS: u64 = 100_000_000;

/// A slice and its findings.
#[derive(Debug)]
pub struct MeasuredWindow<'a> {
    /// The slice with its counts.
    pub slice: &'a Slice,
    /// The requested load.
    pub asked: SliceRequest,
    /// Name of the slice: the requested rate, or `saturation`. If there is only one slice, the request.
    pub name: String,
    /// Maximum concurrent requests per connection.
    pub lanes: u32,
    /// Whether the user interrupted the slice.
    pub interrupted: bool,
    /// Findings, most severe first.
    pub findings: Vec<Finding<Check>>,
    /// The variant under load.
    variant: Option<&'a Variant>,
    /// Whether the load goes to a URL, which may be on this machine.
    pub(crate) runs_already: bool,
}

/// Content of sampled responses, over all endpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledContent {
    /// Number of responses whose content was decoded.
    pub count: u64,
    /// Bytes as sent, without framing.
    pub encoded_bytes: u64,
    /// Bytes of the decoded content.
    pub decoded_bytes: u64,
    /// Number of distinct contents.
    pub different: usize,
}

impl<'a> MeasuredWindow<'a> {
    /// Creates a window without running any checks.
    pub fn alone(slice: &'a Slice) -> MeasuredWindow<'a> {
        let asked = slice.asked.unwrap_or(SliceRequest {
            until: Until::Requests(slice.counts.sent),
            open: None,
        });
        MeasuredWindow {
            slice,
            asked,
            name: String::new(),
            lanes: 1,
            interrupted: false,
            findings: Vec::new(),
            variant: None,
            runs_already: false,
        }
    }

    /// Creates the window of a slice of a plan without comparisons. `several` is whether the plan has several
    /// slices, `interrupted` whether the user interrupted the run.
    pub(crate) fn of(
        plan: &'a Plan,
        slice: &'a Slice,
        several: bool,
        interrupted: bool,
    ) -> MeasuredWindow<'a> {
        let window = MeasuredWindow::alone(slice);
        let variant = plan.variants.first();
        let load = variant.map(|variant| &variant.load);
        let name = match (window.asked.open, slice.kind) {
            (_, SliceKind::Capacity) => "saturation".to_owned(),
            (Some(open), _) if several => open.ask.to_string(),
            _ => load.map(Load::title).unwrap_or_default(),
        };
        let short = match window.asked.until {
            Until::Elapsed(length) => u128::from(slice.counts.window_ns) < length.as_nanos(),
            Until::Requests(total) => slice.counts.due() < total,
        };
        MeasuredWindow {
            name,
            lanes: load.map_or(1, |load| load.protocol.lanes()),
            interrupted: interrupted && short,
            variant,
            runs_already: variant
                .and_then(|variant| variant.entry_service()?.url())
                .is_some(),
            ..window
        }
    }

    pub(crate) fn load(&self) -> Option<&'a Load> {
        Some(&self.variant?.load)
    }

    /// Whether any request succeeded.
    pub fn has_success(&self) -> bool {
        self.slice.counts.successful > 0
    }

    /// The most severe finding that makes the slice invalid, if any.
    pub fn void(&self) -> Option<&Finding<Check>> {
        self.findings.iter().find(|of| of.grade == Grade::Invalid)
    }

    /// Converts an amount to a rate per second of the window. `None` if the window is too short.
    pub fn per_s(&self, amount: u64) -> Option<f64> {
        let window_ns = self.slice.counts.window_ns;
        (!self.is_too_short()).then(|| amount as f64 * 1e9 / window_ns as f64)
    }

    /// Successes per second of the window. `None` if [`MeasuredWindow::without_rate`] has a reason.
    pub fn throughput_per_s(&self) -> Option<f64> {
        self.per_s(self.slice.counts.successful_in_window)
            .filter(|_| !self.is_shorter_than_a_response())
    }

    /// Why the window has no throughput.
    pub fn without_rate(&self) -> Option<String> {
        let window = Quantity::ns(self.slice.counts.window_ns);
        match () {
            () if self.is_too_short() => {
                Some(format!("the window of {window} is too short for a rate"))
            }
            () if self.is_shorter_than_a_response() => {
                Some(format!("no response came within the window of {window}"))
            }
            () => None,
        }
    }

    pub(crate) fn is_too_short(&self) -> bool {
        self.slice.counts.window_ns < RATE_WINDOW_MIN_NS
    }

    pub(crate) fn is_shorter_than_a_response(&self) -> bool {
        self.slice.counts.successful_in_window == 0 && self.has_success()
    }

    /// Bytes received per response, including the head.
    pub fn bytes_per_response(&self) -> Option<f64> {
        let counts = &self.slice.counts;
        (counts.responses > 0).then(|| counts.wire_bytes as f64 / counts.responses as f64)
    }

    /// Bytes per second: the rate of responses times the bytes per response, so that the drain does not
    /// count.
    pub fn transfer_per_s(&self) -> Option<f64> {
        Some(self.bytes_per_response()? * self.per_s(self.slice.counts.responses_in_window)?)
    }

    /// Summarizes the content of sampled responses.
    pub fn sampled(&self) -> SampledContent {
        let mut all = SampledContent::default();
        for seen in self
            .slice
            .counts
            .endpoints
            .iter()
            .flat_map(|endpoint| &endpoint.contents)
        {
            all.count += seen.count;
            all.encoded_bytes += seen.encoded_bytes;
            all.decoded_bytes += seen.decoded_bytes;
            all.different += 1;
        }
        all
    }
}
