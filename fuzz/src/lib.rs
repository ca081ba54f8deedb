//! What the fuzz targets share: reports drawn in every form, and problems of a text shown at their places.

use plan::Problem;
use report::plot::Ground;
use report::{FORMS, HTML, Look, Report, render};

/// A narrow terminal.
const LOOK: Look = Look {
    width: 60,
    ground: Ground::Light,
};

/// Draws a report in every form; pages, which are slow, where `slowly`.
pub fn draw(report: &dyn Report, slowly: bool) {
    for form in FORMS.into_iter().filter(|form| slowly || **form != HTML) {
        let drawn = render(report, form, LOOK);
        assert!(drawn.is_none_or(|text| !text.is_empty()), "{}", form.name);
    }
}

/// Each problem lies in the text, and says what it is in a line.
pub fn show(text: &str, problems: &[Problem]) {
    assert!(!problems.is_empty());
    for problem in problems {
        assert!(
            text.get(problem.span.clone()).is_some(),
            "{problem:?} lies outside the text"
        );
        assert!(
            problem.line_column(text).0 <= text.lines().count() + 1,
            "{problem:?}"
        );
        assert!(
            !problem.message.is_empty() && !problem.message.contains(['\n', '\r', '\0']),
            "{problem:?}"
        );
    }
}

/// The parts of an input that zeros stand between, as many as are asked for; those that are not there are empty.
pub fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut parts = input.splitn(N, |byte| *byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}
