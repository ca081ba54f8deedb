//! The verdict plot of valid, void and hostile records.

use analysis::conclude;
use proofload_report::plot::{Ground, Plot};
use proofload_report::{MeasuredRecord, Report};
use record::Record;

use crate::records::{failing, kept, many_variants};

fn plot(record: &Record) -> Plot {
    MeasuredRecord::new(record, &conclude(record), None)
        .plot()
        .expect("it has a plot")
}

fn light(record: &Record) -> String {
    plot(record).svg(Ground::Light)
}

#[test]
fn plot_of_a_sound_record() {
    insta::assert_snapshot!(light(&kept()));
}

#[test]
fn a_void_record_has_no_number_and_no_axis() {
    let plot = light(&failing());
    let refusal = ">no conclusion may be drawn, see the findings</text>";
    for there in [
        ">INVALID</text>",
        refusal,
        "2 invalid findings: see the report",
    ] {
        assert!(plot.contains(there), "{there}: {plot}");
    }
    assert!(
        !plot.contains(" %") && !plot.contains("circle") && !plot.contains("log axis"),
        "{plot}"
    );
}

#[test]
fn names_from_outside_do_nothing_in_a_plot() {
    let mut record = kept();
    record.header.plan.question = Some("</title><script>alert(1)</script>&\u{0}\u{202e}".into());
    record.header.plan.comparisons[0].label = "\"/><a href='x'>名前 vs ".repeat(200);
    let plot = light(&record);
    for markup in ["<script", "<a ", "\u{0}", "\u{202e}"] {
        assert!(!plot.contains(markup), "{markup:?}: {plot}");
    }
    let texts = plot.lines().filter(|line| line.starts_with("<text"));
    assert!(
        texts.map(|line| line.chars().count()).max() < Some(400),
        "{plot}"
    );
}

#[test]
fn of_very_many_comparisons_the_first_are_drawn_and_the_others_counted() {
    let plot = light(&many_variants(200, "v"));
    assert_eq!(plot.matches("v0</text>").count(), 40);
    assert!(
        plot.contains("and 159 more verdicts that are not drawn: see the report"),
        "{plot}"
    );
}
