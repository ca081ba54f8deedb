//! What the sampled answers contained, taken together, and whether it was always the same. Pure.

use model::EndpointCounts;
use report::count;
use serde::Serialize;

use super::outcome::Outcome;

/// Contents that the engine tells apart, from each thread.
const TOLD_APART: usize = 16;
/// More endpoints than these are not named.
const NAMED_MAX: usize = 3;

/// All sampled answers whose content could be decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sampled {
    pub count: u64,
    /// Bytes as they were sent, without framing.
    pub encoded_bytes: u64,
    pub decoded_bytes: u64,
    /// Different contents.
    #[serde(rename = "different")]
    pub forms: usize,
}

impl Outcome {
    /// Of all endpoints.
    pub fn sampled(&self) -> Sampled {
        let mut all = Sampled::default();
        for seen in self.slice.endpoints.iter().flat_map(|endpoint| &endpoint.contents) {
            all.count += seen.count;
            all.encoded_bytes += seen.encoded_bytes;
            all.decoded_bytes += seen.decoded_bytes;
            all.forms += 1;
        }
        all
    }

    /// Endpoints whose requests are all the same, and whose answers are not.
    pub(super) fn contents_differ(&self) -> Option<String> {
        let endpoints = self.slice.endpoints.iter().zip(&self.setup.fixed);
        let differ = endpoints.filter(|(endpoint, fixed)| **fixed && endpoint.contents.len() > 1);
        let differ: Vec<String> = differ.map(|(endpoint, _)| told(endpoint)).collect();
        let more = match differ.len() {
            0 => return None,
            many if many > NAMED_MAX => format!(", and {} more", many - NAMED_MAX),
            _ => String::new(),
        };
        let named = differ.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join(", ");
        Some(format!(
            "The same request is answered with different contents, which may be as it should: {named}{more}."
        ))
    }
}

fn told(endpoint: &EndpointCounts) -> String {
    let at_least = if endpoint.contents.len() >= TOLD_APART { "at least " } else { "" };
    let sampled: u64 = endpoint.contents.iter().map(|seen| seen.count).sum();
    format!("{} with {at_least}{} in {} sampled", endpoint.name, endpoint.contents.len(), count(sampled))
}

#[cfg(test)]
mod tests {
    use load::Digest;
    use model::{ContentSeen, Counts};

    use super::super::sample::{outcome, slice};
    use super::*;

    #[test]
    fn contents_that_differ_and_those_not_compared_are_told() {
        let seen = |text: &str| ContentSeen {
            sha256: Digest::of(text.as_bytes()).to_string(),
            count: 10,
            encoded_bytes: 100,
            decoded_bytes: 300,
        };
        let endpoint = |name: &str, texts: &[&str]| EndpointCounts {
            name: name.into(),
            sent: 0,
            successful: 0,
            successful_in_window: 0,
            body_bytes: 0,
            outcomes: vec![],
            contents: texts.iter().map(|text| seen(text)).collect(),
        };
        let endpoints =
            vec![endpoint("same", &["a"]), endpoint("rows", &["a", "b"]), endpoint("news", &["a", "b"])];
        let mut outcome = outcome(Counts { endpoints, ..slice() });
        outcome.setup.fixed = vec![true, false, true];
        assert_eq!(
            outcome.sampled(),
            Sampled { count: 50, encoded_bytes: 500, decoded_bytes: 1500, forms: 5 }
        );
        let told = outcome.caveats().join(" ");
        assert!(told.contains("as it should: news with 2 in 20 sampled."), "{told}");
        assert!(!told.contains("was compared"), "{told}");
        outcome.setup.compares_content = true;
        let told = outcome.caveats().join(" ");
        assert!(told.contains("The content of 50 of 100,000 answers was compared"), "{told}");
    }
}
