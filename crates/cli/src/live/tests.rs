//! What people see while a run goes on, from a kept record told once more.

use lab::{Doing, Notice, Progress};
use ratatui_core::buffer::Buffer;
use record::{ContractFailure, FailureKind, Record, Slice};

use super::drawing::{View, draw};
use super::keys::{Shown, Wish};
use super::plain::Plain;
use super::replay::{kept, replay, screen};
use super::screen::Screen;

const KEYS: Shown = Shown { keys: true, wish: Wish::None, logs: false, help: false };

fn shown(screen: &Screen, shown: &Shown, (columns, rows): (u16, u16)) -> String {
    let logs =
        ["block-07-level-0-api: listening on 4711".to_owned(), "block-07-level-0-api: 表 é".to_owned()];
    text(&draw(View { screen, shown, logs: &logs, since_s: 1.2 }, columns, rows))
}

fn text(buffer: &Buffer) -> String {
    let row = |row| (0..buffer.area.width).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..buffer.area.height).map(|at| row(at).trim_end().to_owned() + "\n").collect()
}

fn at(screen: &Screen, notice: &Notice<'_>, tell: &mut dyn FnMut(&Progress<'_>)) {
    let place = screen.place;
    tell(&Progress {
        block: place.block,
        dropped: place.dropped,
        blocks_planned: place.planned,
        elapsed_s: place.elapsed_s,
        left_s: place.left_s,
        notice,
    });
}

/// The record with another plan, and every slice changed.
fn other(change: impl Fn(&mut Record), slice: impl Fn(&mut Slice)) -> Record {
    let mut record = kept();
    change(&mut record);
    let trials = record.blocks.iter_mut().flat_map(|block| &mut block.trials);
    trials.flat_map(|trial| &mut trial.slices).for_each(slice);
    record
}

#[test]
fn the_view_at_sixty_eighty_and_a_hundred_and_twenty_columns() {
    let mut screen = screen(&kept(), 7);
    at(&screen.clone(), &Notice::Trial(Doing::Measuring, "level-0"), &mut |progress| {
        screen.take_in(progress)
    });
    for columns in [60, 80, 120] {
        insta::assert_snapshot!(format!("{columns}_columns"), shown(&screen, &KEYS, (columns, 30)));
    }
    // Narrower than it is made for: cut, and no panic.
    for columns in 1..60 {
        let text = shown(&screen, &KEYS, (columns, 24));
        assert!(text.lines().all(|line| line.chars().count() < usize::from(columns).max(2)), "{text}");
    }
}

#[test]
fn before_there_is_an_interval_and_where_nothing_may_be_shown() {
    let begun = Screen::of(&kept().header.plan);
    insta::assert_snapshot!("begun", shown(&begun, &KEYS, (80, 24)));
    insta::assert_snapshot!("no_interval_yet", shown(&screen(&kept(), 3), &KEYS, (80, 24)));
    let once = other(|record| record.header.plan.design.looks = plan::LookRule::Once, |_| ());
    let text = shown(&screen(&once, 8), &KEYS, (80, 24));
    insta::assert_snapshot!("withheld", text);
    let mut plain = Plain::default();
    let mut screen = Screen::of(&once.header.plan);
    replay(&once, 8, &mut |progress| {
        screen.take_in(progress);
        let line = plain.line(&screen, progress).unwrap_or_default();
        assert!(!line.contains("level-0 ") && !line.contains('%'), "{line}");
    });
}

#[test]
fn what_is_wrong_is_shown_with_the_most_frequent_cause() {
    let record = other(
        |_| (),
        |slice| {
            slice.machine.steal_share = 0.08;
            slice.counts.successful -= 20;
            slice.counts.timed_out = 3;
            let failure = ContractFailure { kind: FailureKind::Status, count: 17, example: "503".into() };
            slice.counts.contract_failures = vec![failure];
        },
    );
    let paused = Shown { wish: Wish::Pause, ..KEYS };
    let mut screen = screen(&record, 6);
    let going_to = shown(&screen, &paused, (80, 24));
    at(&screen.clone(), &Notice::Paused, &mut |progress| screen.take_in(progress));
    let stopping = shown(&screen, &Shown { wish: Wish::Stop, ..KEYS }, (80, 24));
    insta::assert_snapshot!(
        "wrong",
        format!("{going_to}\n{}\n{stopping}", shown(&screen, &paused, (80, 24)))
    );
}

#[test]
fn help_and_logs_are_shown_when_asked_for_and_whatever_there_is_the_keys_stay() {
    let all = Shown { help: true, logs: true, ..KEYS };
    insta::assert_snapshot!("help_and_logs", shown(&screen(&kept(), 7), &all, (80, 40)));
    let many = other(
        |record| {
            let plan = &mut record.header.plan;
            let first = plan.variants[0].clone();
            let named = |number| plan::Variant { name: format!("变体 {number} <script>"), ..first.clone() };
            plan.variants.extend((2..200).map(named));
            plan.comparisons = vec![plan.comparisons[0].clone(); 40];
        },
        |_| (),
    );
    let screen = screen(&many, 2);
    insta::assert_snapshot!("many", shown(&screen, &KEYS, (80, 24)));
    for rows in 1..40 {
        for shown_keys in [&KEYS, &all] {
            let text = shown(&screen, shown_keys, (70, rows));
            assert!(text.lines().count() <= usize::from(rows.max(2) - 1), "{rows}: {text}");
            assert!(text.lines().last().is_some_and(|line| line.starts_with("q stop")), "{rows}: {text}");
        }
    }
}

#[test]
fn plain_lines_come_once_a_block_and_now_and_then() {
    let record = kept();
    let (mut screen, mut plain, mut lines) =
        (Screen::of(&record.header.plan), Plain::default(), String::new());
    replay(&record, 7, &mut |progress| {
        screen.take_in(progress);
        lines.extend(plain.line(&screen, progress).map(|line| line + "\n"));
    });
    insta::assert_snapshot!("plain", lines);
}
