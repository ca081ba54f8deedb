//! Requirements of the blocks: generators in separate processes, data that services need, and unknown ports.
//!
//! Generators are connected before anything else and reconnected when they are lost. This does not apply if
//! the load comes from this process. A block without all generators does not count: with fewer connections,
//! or a lower rate, it would be another experiment. Data is made or found before the budget begins. It is the
//! same for every variant and every block, and the first run should not be shorter for having made it.

use model::quantity::many;
use plan::Pacing;
use record::{Event, GeneratorLost};

use super::{Dispatcher, Progress, Update, UpdateNews};
use crate::environment::{Connected, Connecting, Failure, LostGenerator, Result, lost_text};

impl Dispatcher<'_> {
    /// Connects all generators, and records them and those that were lost. A lost one is retried once.
    pub(super) fn connect(&mut self) -> Result<()> {
        let (elapsed_s, left_s) = (self.elapsed_s(), self.told_left_s());
        let watch = &mut *self.watch;
        let mut tell = |connecting: Connecting<'_>| {
            watch(&Update {
                elapsed_s,
                left_s,
                news: UpdateNews::Progress(Progress::Connecting(connecting)),
            });
        };
        let Connected { generators, lost } = match self.environment.connect(&mut tell) {
            Err(Failure::GeneratorsLost(lost)) => return Err(self.lost_for_good(&lost)?),
            outcome => outcome?,
        };
        self.note_lost(&lost)?;
        if generators.is_empty() {
            Ok(())
        } else {
            self.record_or_report(Event::GeneratorsConnected(generators))
        }
    }

    /// Drops the current block, in which these generators were lost. Another block replaces it.
    ///
    /// # Errors
    /// If generators are lost too often for that, or the record cannot be written.
    pub(super) fn abandon_block(&mut self, lost: &[LostGenerator]) -> Result<()> {
        let may_go_on = self.may_drop_one_more(self.blocks_kept());
        self.stop_all()?;
        self.note_lost(lost)?;
        let why = lost_text(lost);
        self.record(Event::BlockDropped {
            block: self.block,
            why: why.clone(),
        })?;
        if may_go_on {
            return Ok(());
        }
        let blocks = self.writer.record().blocks_dropped();
        Err(Failure::generator(format!(
            "{why}; dropped so far: {}, too many to go on",
            many(blocks.into(), "block")
        )))
    }

    /// The failure that ends a run without these generators.
    pub(super) fn lost_for_good(&mut self, lost: &[LostGenerator]) -> Result<Failure> {
        self.note_lost(lost)?;
        Ok(Failure::generator(lost_text(lost)))
    }

    fn note_lost(&mut self, lost: &[LostGenerator]) -> Result<()> {
        lost.iter()
            .cloned()
            .try_for_each(|LostGenerator { generator, why }| {
                self.record_or_report(Event::GeneratorLost(GeneratorLost {
                    block: self.block,
                    generator,
                    why,
                }))
            })
    }

    /// Records an event. During captures, where only captures are recorded, it is only reported.
    fn record_or_report(&mut self, event: Event) -> Result<()> {
        if self.captures_left_s.is_none() {
            return self.record(event);
        }
        self.report(UpdateNews::Event(&event));
        Ok(())
    }

    /// Makes all data, after which the run begins.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let left_s = self.plan.design.budget.as_secs_f64();
        for step in self.plan.prepare.clone() {
            let watch = &mut *self.watch;
            let mut tell = |preparing| {
                let news = UpdateNews::Progress(Progress::Preparing {
                    name: &step.name,
                    doing: preparing,
                });
                watch(&Update {
                    elapsed_s: 0.0,
                    left_s,
                    news,
                });
            };
            let prepared = self.environment.prepare(&step, &mut tell)?;
            self.record(Event::Prepared(prepared))?;
        }
        self.began_s = self.environment.now_s();
        Ok(())
    }

    /// Starts each variant with unknown ports once, in a block 0 that never ends: variants with the same
    /// fixed port cannot run concurrently.
    pub(super) fn find_ports(&mut self) -> Result<()> {
        let variants = self.plan.variants.iter().enumerate();
        let unknown = variants
            .filter(|(_, variant)| variant.services.iter().any(plan::Service::chooses_port));
        let order: Vec<usize> = unknown.map(|(index, _)| index).collect();
        // A single variant has no conflict, and if capacities are measured, everything is started once in any
        // case.
        if order.is_empty()
            || self.plan.variants.len() < 2
            || self.plan.design.rate_needs_capacity()
            || self.plan.design.pacing() == Pacing::Search
        {
            return Ok(());
        }
        self.each_alone(order, Self::start)
    }
}
