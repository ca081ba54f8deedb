//! The verdict plot: what it shows, of sound, void and hostile records, and that its pixels are there.

use analysis::conclude;
use proofload_report::plot::{Ground, Plot};
use proofload_report::{Measured, Report};
use record::Record;
use tiny_skia::Pixmap;

use crate::records::{factorial, failing, kept, many_variants};

fn plot(record: &Record) -> Plot {
    Measured::new(record, &conclude(record), None).plot().expect("it has a plot")
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
    for there in [">INVALID</text>", refusal, "2 invalid findings: see the report"] {
        assert!(plot.contains(there), "{there}: {plot}");
    }
    assert!(!plot.contains(" %") && !plot.contains("circle") && !plot.contains("log axis"), "{plot}");
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
    assert!(texts.map(|line| line.chars().count()).max() < Some(400), "{plot}");
    assert!(self::plot(&record).png(Ground::Light).is_some());
}

#[test]
fn of_very_many_comparisons_the_first_are_drawn_and_the_others_counted() {
    let plot = light(&many_variants(200, "v"));
    assert_eq!(plot.matches("v0</text>").count(), 40);
    assert!(plot.contains("and 159 more verdicts that are not drawn: see the report"), "{plot}");
}

/// Pixels of about a colour within an area that is given in the units of the SVG.
fn pixels(image: &Pixmap, (left, top): (u32, u32), (right, bottom): (u32, u32), colour: [u8; 3]) -> usize {
    let rows = 2 * top..2 * bottom;
    let all = rows.flat_map(|y| (2 * left..2 * right).map(move |x| (x, y)));
    let near = |(x, y): &(u32, u32)| {
        image.pixel(*x, *y).is_some_and(|pixel| {
            let seen = [pixel.red(), pixel.green(), pixel.blue()];
            seen.iter().zip(colour).all(|(one, other)| one.abs_diff(other) < 24)
        })
    };
    all.filter(near).count()
}

#[test]
fn the_picture_has_bar_letters_and_ground_and_is_the_same_every_time() {
    let record = factorial(2, 0.0);
    for (ground, paper, ink, better) in [
        (Ground::Light, [0xff; 3], [0x16, 0x19, 0x1d], [0x0b, 0x63, 0xb5]),
        (Ground::Dark, [0x14, 0x17, 0x1b], [0xee, 0xf0, 0xf3], [0x6f, 0xb1, 0xf5]),
    ] {
        let bytes = plot(&record).png(ground).expect("there is memory");
        assert_eq!(Some(&bytes), plot(&record).png(ground).as_ref());
        let image = Pixmap::decode_png(&bytes).expect("it is a PNG");
        assert_eq!(image.width(), 1400);
        assert_eq!(pixels(&image, (0, 0), (10, 10), paper), 400);
        // The title, and the bar of an interval from about +6.7 % to +8.8 %.
        assert!(pixels(&image, (20, 15), (400, 45), ink) > 300, "{ground:?}");
        assert!(pixels(&image, (20, 45), (430, 120), better) > 300, "{ground:?}");
    }
}
