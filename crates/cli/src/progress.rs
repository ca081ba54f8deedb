//! What is shown while an experiment runs: a few lines that renew themselves on a terminal, a line a block elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use audit::Conclusion;
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Doing, Notice, Progress};
use record::{CaptureKind, Prepared, RateChosen};
use report::{bytes, rate, seconds, share, so_far};
use target::Preparing;

use crate::print;

/// Shows a run's progress on stderr.
#[derive(Debug)]
pub struct Display {
    /// The renewing lines; `None` where stderr is no terminal.
    bar: Option<ProgressBar>,
    /// The estimates after the last block.
    estimates: String,
}

impl Display {
    /// Chooses the form by what stderr is.
    pub fn new() -> Display {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Display { bar, estimates: String::new() }
    }

    /// Takes in what just happened.
    pub fn show(&mut self, progress: &Progress<'_>) {
        let doing = match progress.notice {
            Notice::Preparing(name, preparing) => self.preparing(name, preparing),
            Notice::Prepared(prepared) => {
                if prepared.made {
                    self.teller().say(&made_line(prepared));
                }
                format!("{} is there", prepared.name)
            }
            Notice::Trial(Doing::Starting, variant) => format!("starting {variant}"),
            Notice::Trial(Doing::WarmingUp, variant) => format!("warming up {variant}"),
            Notice::Trial(Doing::Measuring, variant) => format!("measuring {variant}"),
            Notice::Trial(Doing::MeasuringCapacity, variant) => {
                format!("measuring the capacity of {variant}")
            }
            Notice::RateChosen(chosen) => {
                self.teller().say(&rate_line(chosen));
                "rate settled".to_owned()
            }
            Notice::BlockDone(conclusion) => {
                self.block_done(progress, conclusion);
                "block done".to_owned()
            }
            Notice::BlockDropped(why) => {
                self.teller().say(&format!("block {} counts for nothing: {why}", progress.block));
                "block dropped".to_owned()
            }
            Notice::Pointless(why) => {
                self.teller().say(&format!("stopped, because going on is pointless: {why}"));
                "stopping".to_owned()
            }
            Notice::Explaining { variants, rounds, seconds: took } => {
                self.teller().say(&explaining_line(*variants, *rounds, *took));
                "explaining".to_owned()
            }
            Notice::Capturing { round, kind, variant } => {
                format!("round {round}: capturing {} of {variant}", captured(*kind))
            }
            Notice::NotExplained(why) => {
                self.teller().say(&format!("not explained: {why}"));
                "stopping".to_owned()
            }
        };
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} · {doing}{}", position(progress), self.estimates));
        }
    }

    /// What is done about some data; where nothing renews itself, a line as it begins.
    fn preparing(&self, name: &str, preparing: &Preparing) -> String {
        let (doing, first) = match preparing {
            Preparing::Waiting => (format!("waiting for another run that is making {name}"), true),
            Preparing::Making(Duration::ZERO) => (format!("making {name}"), true),
            Preparing::Making(for_now) => {
                (format!("making {name}, {}", seconds(for_now.as_secs_f64())), false)
            }
        };
        if self.bar.is_none() && first {
            print::talk(&doing);
        }
        doing
    }

    /// What tells something beside the renewing lines, from any thread.
    pub fn teller(&self) -> Teller {
        Teller(self.bar.clone())
    }

    /// Clears the renewing lines, so that the report stands alone.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn block_done(&mut self, progress: &Progress<'_>, conclusion: &Conclusion) {
        let estimates = so_far(conclusion);
        match &self.bar {
            Some(_) => self.estimates = estimates.iter().map(|line| format!("\n  so far {line}")).collect(),
            None => {
                let lines: String = estimates.iter().map(|line| format!("; {line}")).collect();
                print::talk(&format!("{}{lines}", position(progress)));
            }
        }
    }
}

/// Tells something without disturbing the renewing lines.
#[derive(Debug)]
pub struct Teller(Option<ProgressBar>);

impl Teller {
    /// Tells it on stderr.
    pub fn say(&self, text: &str) {
        match &self.0 {
            Some(bar) => bar.suspend(|| print::talk(text)),
            None => print::talk(text),
        }
    }
}

fn made_line(prepared: &Prepared) -> String {
    let Prepared { name, bytes: size, seconds: took, .. } = prepared;
    format!("made {name}: {} in {}, kept for the next run", bytes(*size as f64), seconds(*took))
}

fn explaining_line(variants: usize, rounds: u32, took: f64) -> String {
    let variants = if variants == 1 { "1 variant".to_owned() } else { format!("{variants} variants") };
    let plural = if rounds == 1 { "" } else { "s" };
    format!("capturing profiles of {variants} in {rounds} round{plural}, which takes about {}", seconds(took))
}

fn captured(kind: CaptureKind) -> &'static str {
    match kind {
        CaptureKind::Plain => "CPU time by thread",
        CaptureKind::Counters => "counters",
        CaptureKind::Cpu => "a CPU profile",
        CaptureKind::Native => "native stacks",
        CaptureKind::Heap => "allocations",
    }
}

fn rate_line(chosen: &RateChosen) -> String {
    let of = chosen.share.map(|part| format!(", {} of the slowest variant's capacity", share(part)));
    format!("open loop at {}{}", rate(chosen.per_s), of.unwrap_or_default())
}

fn position(progress: &Progress<'_>) -> String {
    let dropped =
        if progress.dropped > 0 { format!(", {} dropped", progress.dropped) } else { String::new() };
    // Those that were dropped are replaced, so that there will be as many more.
    let of = progress.blocks_planned.map(|blocks| format!(" of at most {}", blocks + progress.dropped));
    let of = of.unwrap_or_default();
    let left = if progress.left_s > 0.0 {
        format!(", at most {} left", seconds(progress.left_s))
    } else {
        String::new()
    };
    let place = match progress.block {
        0 => "before block 1".to_owned(),
        block => format!("block {block}{of}{dropped}"),
    };
    format!("{place} · {}{left}", seconds(progress.elapsed_s))
}
