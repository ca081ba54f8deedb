//! Cases that pass or fail as JUnit XML, which CI servers other than GitHub's show beside those of tests.
//!
//! There is no standard; these are the elements that Jenkins and GitLab read. Must not: judge anything.

use model::text::{line, markup};

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed,
    /// Nobody knows.
    Error,
    /// Nobody knows, and that is let pass.
    Skipped,
}

/// A case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What was to hold.
    pub name: String,
    /// What it is about.
    pub of: String,
    /// What became of it.
    pub fate: Fate,
    /// What was seen.
    pub seen: String,
}

/// The document.
pub fn junit(suite: &str, cases: &[Case]) -> String {
    let of = |fate| cases.iter().filter(|case| case.fate == fate).count();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}</testsuite>\n</testsuites>\n",
        text(suite),
        cases.len(),
        of(Fate::Failed),
        of(Fate::Error),
        of(Fate::Skipped),
        cases.iter().map(case).collect::<String>()
    )
}

fn case(case: &Case) -> String {
    let seen = text(&case.seen);
    let inside = match case.fate {
        Fate::Passed => format!("<system-out>{seen}</system-out>"),
        Fate::Failed => format!("<failure message=\"{seen}\"/>"),
        Fate::Error => format!("<error message=\"{seen}\"/>"),
        Fate::Skipped => format!("<skipped message=\"{seen}\"/>"),
    };
    format!("<testcase name=\"{}\" classname=\"{}\">{inside}</testcase>\n", text(&case.name), text(&case.of))
}

fn text(text: &str) -> String {
    markup(&line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fate_is_counted_and_no_name_is_markup() {
        let case = |fate, seen: &str| Case {
            name: "throughput > -3%".to_owned(),
            of: "b & \"a\"".to_owned(),
            fate,
            seen: seen.to_owned(),
        };
        let cases = [
            case(Fate::Passed, "+1 %"),
            case(Fate::Failed, "-9 %\n</testcase>"),
            case(Fate::Error, "too wide"),
            case(Fate::Skipped, "too wide"),
        ];
        let xml = junit("<x>", &cases);
        assert!(
            xml.contains("name=\"&lt;x&gt;\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""),
            "{xml}"
        );
        assert!(
            xml.contains(
                "name=\"throughput &gt; -3%\" classname=\"b &amp; &quot;a&quot;\"><system-out>+1 %<"
            ),
            "{xml}"
        );
        assert!(xml.contains("<failure message=\"-9 % &lt;/testcase&gt;\"/>"), "{xml}");
        assert_eq!(xml.matches("</testcase>").count(), 4);
    }
}
