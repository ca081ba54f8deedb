//! Display of a run in progress, from a replayed stored record.

use std::path::Path;

use analysis::conclude;
use lab::{Doing, Progress, Update, UpdateNews};
use record::{Block, ContractFailure, Event, FailureKind, Record, Slice};

use super::LiveState;
use super::PlainView;
use super::drawing::{LiveFrame, StyledLine, draw};
use super::screen::ScreenRequests;

const KEYS: ScreenRequests = ScreenRequests {
    keys: true,
    stops: false,
    logs: false,
    help: false,
};

/// The record that other crates' tests use as well: two variants, the second 25 % faster.
pub fn kept() -> Record {
    record::open(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../record/tests/records/v1"
    )))
    .expect("the kept record opens")
}

/// Replays the first blocks of a record as the lab reports them.
pub fn replay(record: &Record, blocks: usize, tell: &mut dyn FnMut(&Update<'_>)) {
    let (mut so_far, mut elapsed_s) = (record.clone(), 0.0);
    so_far.ended = None;
    for (index, block) in record.blocks.iter().take(blocks).enumerate() {
        let mut told = |news: UpdateNews<'_>, elapsed_s: f64| {
            let left_s = record.header.plan.design.budget.as_secs_f64() - elapsed_s;
            tell(&Update {
                elapsed_s,
                left_s,
                news,
            });
        };
        if let Some(blocks) = record.blocks_planned.filter(|_| index == 3) {
            told(
                UpdateNews::Event(&Event::BlocksChosen { blocks }),
                elapsed_s,
            );
        }
        trials(block, &mut |news, within_s| {
            told(news, elapsed_s + within_s)
        });
        elapsed_s += block.seconds.unwrap_or(0.0);
        so_far.blocks = record.blocks[..=index].to_vec();
        told(
            UpdateNews::Progress(Progress::Concluded(&conclude(&so_far))),
            elapsed_s,
        );
    }
}

fn trials(block: &Block, tell: &mut dyn FnMut(UpdateNews<'_>, f64)) {
    let mut within_s = 0.0;
    let (number, order) = (block.number, block.order.clone());
    tell(
        UpdateNews::Event(&Event::BlockStarted {
            block: number,
            order,
        }),
        within_s,
    );
    for trial in &block.trials {
        tell(trial_news(Doing::Starting, trial.variant()), within_s);
    }
    let slices = |index: usize| {
        block
            .trials
            .iter()
            .filter_map(move |trial| trial.slices.get(index))
    };
    let most = block
        .trials
        .iter()
        .map(|trial| trial.slices.len())
        .max()
        .unwrap_or(0);
    for index in 0..most {
        let doing = if index == 0 {
            Doing::WarmingUp
        } else {
            Doing::Measuring
        };
        tell(trial_news(doing, block.order[0]), within_s);
        within_s += slices(index)
            .map(|slice| slice.counts.window_ns as f64 / 1e9)
            .sum::<f64>();
        for slice in slices(index) {
            tell(
                UpdateNews::Event(&Event::Slice(Box::new(slice.clone()))),
                within_s,
            );
        }
    }
}

fn trial_news(doing: Doing, variant: usize) -> UpdateNews<'static> {
    UpdateNews::Progress(Progress::Trial { doing, variant })
}

/// The state after the first blocks of a record.
fn state(record: &Record, blocks: usize) -> LiveState {
    let mut state = LiveState::of(record.header.clone());
    replay(record, blocks, &mut |update| state.take_in(update));
    state
}

fn shown(state: &LiveState, shown: &ScreenRequests, (columns, rows): (u16, u16)) -> String {
    let logs = [
        "block-07-level-0-api: listening on 4711".to_owned(),
        "block-07-level-0-api: 表 é".to_owned(),
    ];
    let lines = draw(
        LiveFrame {
            state,
            shown,
            logs: &logs,
            since_s: 1.2,
        },
        columns,
        rows,
    );
    let text = |line: &StyledLine| {
        line.iter()
            .map(|(part, _)| part.as_str())
            .collect::<String>()
    };
    lines
        .iter()
        .map(|line| text(line).trim_end().to_owned() + "\n")
        .collect()
}

/// Merges another update, with no time passed.
fn at(state: &mut LiveState, progress: Progress<'_>) {
    let news = UpdateNews::Progress(progress);
    state.take_in(&Update {
        elapsed_s: state.elapsed_s,
        left_s: state.left_s,
        news,
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
    let mut state = state(&kept(), 7);
    at(
        &mut state,
        Progress::Trial {
            doing: Doing::Measuring,
            variant: 0,
        },
    );
    for columns in [60, 80, 120] {
        insta::assert_snapshot!(
            format!("{columns}_columns"),
            shown(&state, &KEYS, (columns, 30))
        );
    }
    // Narrower than supported: truncated, and no panic.
    for columns in 1..60 {
        let text = shown(&state, &KEYS, (columns, 24));
        assert!(
            text.lines()
                .all(|line| line.chars().count() < usize::from(columns).max(2)),
            "{text}"
        );
    }
}

#[test]
fn before_there_is_an_interval_and_where_nothing_may_be_shown() {
    let begun = LiveState::of(kept().header);
    insta::assert_snapshot!("begun", shown(&begun, &KEYS, (80, 24)));
    insta::assert_snapshot!(
        "no_interval_yet",
        shown(&state(&kept(), 3), &KEYS, (80, 24))
    );
    let once = other(
        |record| record.header.plan.design.looks = plan::LookRule::Once,
        |_| (),
    );
    let text = shown(&state(&once, 8), &KEYS, (80, 24));
    insta::assert_snapshot!("withheld", text);
    let plain = PlainView;
    let mut state = LiveState::of(once.header.clone());
    replay(&once, 8, &mut |update| {
        state.take_in(update);
        let line = plain.line(&state, update).unwrap_or_default();
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
            let failure = ContractFailure {
                kind: FailureKind::Status,
                count: 17,
                example: "503".into(),
            };
            slice.counts.contract_failures = vec![failure];
        },
    );
    let stopping = ScreenRequests {
        stops: true,
        ..KEYS
    };
    insta::assert_snapshot!("wrong", shown(&state(&record, 6), &stopping, (80, 24)));
}

#[test]
fn help_and_logs_are_shown_when_asked_for_and_whatever_there_is_the_keys_stay() {
    let all = ScreenRequests {
        help: true,
        logs: true,
        ..KEYS
    };
    insta::assert_snapshot!("help_and_logs", shown(&state(&kept(), 7), &all, (80, 40)));
    let many = other(
        |record| {
            let plan = &mut record.header.plan;
            let first = plan.variants[0].clone();
            let named = |number| plan::Variant {
                name: format!("变体 {number} <script>"),
                ..first.clone()
            };
            plan.variants.extend((2..200).map(named));
            plan.comparisons = vec![plan.comparisons[0].clone(); 40];
        },
        |_| (),
    );
    let state = state(&many, 2);
    insta::assert_snapshot!("many", shown(&state, &KEYS, (80, 24)));
    for rows in 1..40 {
        for shown_keys in [&KEYS, &all] {
            let text = shown(&state, shown_keys, (70, rows));
            assert!(
                text.lines().count() <= usize::from(rows.max(2) - 1),
                "{rows}: {text}"
            );
            assert!(
                text.lines()
                    .last()
                    .is_some_and(|line| line.starts_with("q stop")),
                "{rows}: {text}"
            );
        }
    }
}

#[test]
fn plain_output_has_one_line_per_block() {
    let record = kept();
    let (mut state, mut lines) = (LiveState::of(record.header.clone()), String::new());
    replay(&record, 7, &mut |update| {
        state.take_in(update);
        lines.extend(PlainView.line(&state, update).map(|line| line + "\n"));
    });
    assert_eq!(lines.lines().count(), 7);
    insta::assert_snapshot!("plain", lines);
}
