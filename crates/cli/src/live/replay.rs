//! A kept record told once more, as the lab would have told it: for tests of what is shown.

use std::path::Path;

use analysis::conclude;
use lab::{Doing, Notice, Progress};
use record::{Block, Record};

use super::screen::Screen;

/// The record that other crates' tests read, too: two variants, the second 25 % faster.
pub fn kept() -> Record {
    record::open(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1")))
        .expect("the kept record opens")
}

/// Tells the first blocks of a record, notice by notice.
pub fn replay(record: &Record, blocks: usize, tell: &mut dyn FnMut(&Progress<'_>)) {
    let (mut so_far, mut elapsed_s) = (record.clone(), 0.0);
    so_far.ended = None;
    for (index, block) in record.blocks.iter().take(blocks).enumerate() {
        let planned = (index >= 3).then_some(record.blocks_planned).flatten();
        let mut told = |notice: &Notice<'_>, elapsed_s: f64| {
            let left_s = record.header.plan.design.budget.as_secs_f64() - elapsed_s;
            tell(&Progress {
                block: block.number,
                dropped: 0,
                blocks_planned: planned,
                elapsed_s,
                left_s,
                notice,
            });
        };
        trials(record, block, &mut |notice, within_s| told(notice, elapsed_s + within_s));
        elapsed_s += block.seconds.unwrap_or(0.0);
        so_far.blocks = record.blocks[..=index].to_vec();
        told(&Notice::BlockDone(&conclude(&so_far)), elapsed_s);
    }
}

fn trials(record: &Record, block: &Block, tell: &mut dyn FnMut(&Notice<'_>, f64)) {
    let name = |variant: usize| record.header.plan.variants[variant].name.as_str();
    let mut within_s = 0.0;
    tell(&Notice::BlockStarted(&block.order), within_s);
    for trial in &block.trials {
        tell(&Notice::Trial(Doing::Starting, name(trial.variant())), within_s);
    }
    let slices = |index: usize| block.trials.iter().filter_map(move |trial| trial.slices.get(index));
    let most = block.trials.iter().map(|trial| trial.slices.len()).max().unwrap_or(0);
    for index in 0..most {
        let doing = if index == 0 { Doing::WarmingUp } else { Doing::Measuring };
        tell(&Notice::Trial(doing, name(block.order[0])), within_s);
        within_s += slices(index).map(|slice| slice.counts.window_ns as f64 / 1e9).sum::<f64>();
        slices(index).for_each(|slice| tell(&Notice::SliceDone(slice), within_s));
    }
}

/// The screen after the first blocks of a record.
pub fn screen(record: &Record, blocks: usize) -> Screen {
    let mut screen = Screen::of(&record.header.plan);
    replay(record, blocks, &mut |progress| screen.take_in(progress));
    screen
}
