//! The rate of an experiment in open loop: requests per second, a share of a capacity, or a ramp between two.

use ::model::{Ask, RATE_MAX_PER_S, RateLevel, Rates};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_form::text_form;

/// Requests due per second in open loop, the same for every variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedRate {
    /// A number above 0 and at most [`RATE_MAX_PER_S`]. 0 is only permitted at an end of a ramp.
    PerSecond(f64),
    /// A share of the slowest variant's capacity in closed loop, above 0 and at most 0.95.
    ShareOfCapacity(f64),
}

impl PlannedRate {
    /// Whether it is only known after capacities are measured.
    pub fn is_share(self) -> bool {
        match self {
            PlannedRate::PerSecond(_) => false,
            PlannedRate::ShareOfCapacity(_) => true,
        }
    }
}

// A rate per second, a share of a capacity, or a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum RateValue {
    PerSecond(#[schemars(extend("exclusiveMinimum" = 0, "maximum" = RATE_MAX_PER_S as u64))] f64),
    Text(RateText),
}

text_form! {
    /// A share of the slowest variant's capacity in closed loop, above 0% and at most 95%, such as 60%, or a
    /// ramp over each slice, such as 1000..5000 or 20%..60%.
    #[derive(Copy)]
    RateText((PlannedRate, Option<PlannedRate>)) = "Rate",
    "^[0-9]+([.][0-9]+)?(%|[kM]|[%kM]?[.][.][0-9]+([.][0-9]+)?[%kM]?)$",
    "a share of saturation such as \"60%\"",
    "requests per second are a number without quotes: 1000; a share of what the slowest variant can do is above 0 and at most 95, with its sign: \"60%\"; both make ramps over each slice: \"1000..5000\", \"20%..60%\"",
    rate
}

/// Closer to capacity the queue never settles, and an error of a few per cent in the capacity causes an
/// overload.
const CAPACITY_PERCENT_MAX: f64 = 95.0;

/// The rate, and its value at the end of each slice. `None` for a constant rate.
fn rate(text: &str) -> Result<(PlannedRate, Option<PlannedRate>), String> {
    let rates = text
        .parse::<Rates>()
        .map_err(|why| format!("is no rate: {why}"))?;
    let level = |level: RateLevel| match level {
        RateLevel::PerSecond(per_s) => Ok(PlannedRate::PerSecond(per_s)),
        RateLevel::Percent(percent) if percent > CAPACITY_PERCENT_MAX => Err(format!(
            "is too large, it must be at most {CAPACITY_PERCENT_MAX}%"
        )),
        RateLevel::Percent(percent) => Ok(PlannedRate::ShareOfCapacity(percent / 100.0)),
    };
    let [ask] = *rates.asks() else {
        return Err("has several steps, and an experiment has one rate".to_owned());
    };
    match ask {
        Ask::At(from @ RateLevel::Percent(_)) => Ok((level(from)?, None)),
        Ask::Ramp(RateLevel::PerSecond(_), RateLevel::Percent(_)) | Ask::Ramp(RateLevel::Percent(_), RateLevel::PerSecond(_)) => {
            Err("goes from a number of requests per second to a share of saturation or back, and which of the two is more is only known \
                 in the run"
                .to_owned())
        }
        Ask::Ramp(from @ RateLevel::PerSecond(_), to @ RateLevel::PerSecond(_))
        | Ask::Ramp(from @ RateLevel::Percent(_), to @ RateLevel::Percent(_)) => {
            Ok((level(from)?, Some(level(to)?)))
        }
        // A number without a sign may be a share that lacks it.
        Ask::At(from @ RateLevel::PerSecond(_)) if text.ends_with(['k', 'M']) => {
            Ok((level(from)?, None))
        }
        Ask::At(RateLevel::PerSecond(_)) => Err("is not a share of saturation".to_owned()),
    }
}
