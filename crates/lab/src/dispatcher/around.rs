//! What surrounds the blocks: generators that are processes of their own, data that services need, and ports that only they know.
//!
//! Generators are connected before anything else and reconnected when they are lost; none of this applies where load comes from this
//! process. A block without all of them is none: what was measured with fewer connections, or at a lower rate, is another experiment.
//! Data is made or found before the budget begins: it is the same for every variant and every block, and no run is to be shorter for
//! having been the first.

use model::quantity::many;
use plan::Pacing;
use record::{Event, GeneratorLost};

use super::{Dispatcher, News, Progress, Update};
use crate::environment::{Connected, Connecting, Failure, Lost, Result, lost_text};

impl Dispatcher<'_> {
    /// Has all generators there, and notes who they are and who was gone. A lost one is tried once more.
    pub(super) fn connect(&mut self) -> Result<()> {
        let (elapsed_s, left_s) = (self.elapsed_s(), self.told_left_s());
        let watch = &mut *self.watch;
        let mut tell = |connecting: Connecting<'_>| {
            watch(&Update { elapsed_s, left_s, news: News::Progress(Progress::Connecting(connecting)) });
        };
        let Connected { generators, lost } = match self.environment.connect(&mut tell) {
            Err(Failure::GeneratorsLost(lost)) => return Err(self.without(&lost)?),
            outcome => outcome?,
        };
        self.note_lost(&lost)?;
        if generators.is_empty() { Ok(()) } else { self.note(Event::GeneratorsConnected(generators)) }
    }

    /// Gives up the block under way, in which these were lost: it counts for nothing, and another takes its place.
    ///
    /// # Errors
    /// If generators are lost too often for that, or the record cannot be written.
    pub(super) fn abandon_block(&mut self, lost: &[Lost]) -> Result<()> {
        let may_go_on = self.may_drop_one_more(self.blocks_kept());
        self.stop_all()?;
        self.note_lost(lost)?;
        let why = lost_text(lost);
        self.keep(Event::BlockDropped { block: self.block, why: why.clone() })?;
        if may_go_on {
            return Ok(());
        }
        let blocks = self.writer.record().blocks_dropped();
        Err(Failure::Generator(format!(
            "{why}; dropped so far: {}, too many to go on",
            many(blocks.into(), "block")
        )))
    }

    /// The failure that a run ends with for want of these.
    pub(super) fn without(&mut self, lost: &[Lost]) -> Result<Failure> {
        self.note_lost(lost)?;
        Ok(Failure::Generator(lost_text(lost)))
    }

    fn note_lost(&mut self, lost: &[Lost]) -> Result<()> {
        lost.iter().cloned().try_for_each(|Lost { generator, why }| {
            self.note(Event::GeneratorLost(GeneratorLost { block: self.block, generator, why }))
        })
    }

    /// Keeps an event; between captures, of which nothing is kept but what was captured, it is only told.
    fn note(&mut self, event: Event) -> Result<()> {
        if self.captures_left_s.is_none() {
            return self.keep(event);
        }
        self.tell(News::Event(&event));
        Ok(())
    }

    /// Has all data made; then the run begins.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let left_s = self.plan.design.budget.as_secs_f64();
        for step in self.plan.prepare.clone() {
            let watch = &mut *self.watch;
            let mut tell = |preparing| {
                let news = News::Progress(Progress::Preparing { name: &step.name, doing: preparing });
                watch(&Update { elapsed_s: 0.0, left_s, news });
            };
            let prepared = self.environment.prepare(&step, &mut tell)?;
            self.keep(Event::Prepared(prepared))?;
        }
        self.began_s = self.environment.now_s();
        Ok(())
    }

    /// Starts once, in a block 0 that never ends, each variant of which nobody knows where it listens: variants that insist on one port
    /// cannot live together.
    pub(super) fn find_ports(&mut self) -> Result<()> {
        let variants = self.plan.variants.iter().enumerate();
        let unknown =
            variants.filter(|(_, variant)| variant.services.iter().any(plan::Service::chooses_port));
        let order: Vec<usize> = unknown.map(|(index, _)| index).collect();
        // One alone has nobody to fight with, and where capacities are measured, everything is started once in any case.
        if order.is_empty()
            || self.plan.variants.len() < 2
            || self.plan.design.rate_needs_capacity()
            || self.plan.design.pacing() == Pacing::Search
        {
            return Ok(());
        }
        self.one_by_one(order, Self::start)
    }
}
