//! Generators that are processes of their own: connected before anything else, had back where they were lost, and what becomes of the
//! block in which one was. Nothing of it where load comes from this process.
//!
//! A block without all its generators is none: what was measured with fewer connections, or at a lower rate, is another experiment.

use record::{Event, GeneratorLost};

use super::{Dispatcher, News, Progress, Update};
use crate::environment::{Connected, Connecting, Failure, Lost, Result, lost_text};

impl Dispatcher<'_> {
    /// Has all generators there, and keeps who they are and who was gone. One that was lost is tried for once.
    pub(super) fn connect(&mut self) -> Result<()> {
        let Connected { generators, lost } = match self.connected() {
            Err(Failure::GeneratorsLost(lost)) => return Err(self.without(&lost)?),
            outcome => outcome?,
        };
        self.keep_lost(&lost)?;
        if !generators.is_empty() {
            self.keep(Event::GeneratorsConnected(generators))?;
        }
        Ok(())
    }

    /// The same for captures, of which nothing is kept but what was captured.
    pub(super) fn connect_for_captures(&mut self) -> Result<()> {
        let Connected { generators, lost } = self.connected()?;
        for lost in &lost {
            self.tell(News::Event(&lost_in(self.block, lost)));
        }
        if !generators.is_empty() {
            self.tell(News::Event(&Event::GeneratorsConnected(generators)));
        }
        Ok(())
    }

    fn connected(&mut self) -> Result<Connected> {
        let (elapsed_s, left_s) = (self.elapsed_s(), self.left_s().max(0.0));
        let watch = &mut *self.watch;
        let mut tell = |connecting: Connecting<'_>| {
            watch(&Update { elapsed_s, left_s, news: News::Progress(Progress::Connecting(connecting)) });
        };
        self.environment.connect(&mut tell)
    }

    /// Gives up the block under way, in which these were lost: it counts for nothing, and another takes its place.
    ///
    /// # Errors
    /// If generators are lost too often for that, or the record cannot be written.
    pub(super) fn abandon_block(&mut self, lost: &[Lost]) -> Result<()> {
        let may_go_on = self.may_drop_one_more(self.blocks_kept());
        self.stop_all()?;
        self.keep_lost(lost)?;
        let why = lost_text(lost);
        self.keep(Event::BlockDropped { block: self.block, why: why.clone() })?;
        if may_go_on {
            return Ok(());
        }
        let blocks = self.writer.record().blocks_dropped();
        Err(Failure::Generator(format!("{why}; {blocks} blocks were dropped by now, too many to go on")))
    }

    /// The failure that a run ends with for want of these.
    pub(super) fn without(&mut self, lost: &[Lost]) -> Result<Failure> {
        self.keep_lost(lost)?;
        Ok(Failure::Generator(lost_text(lost)))
    }

    fn keep_lost(&mut self, lost: &[Lost]) -> Result<()> {
        lost.iter().try_for_each(|lost| self.keep(lost_in(self.block, lost)))
    }
}

fn lost_in(block: u32, Lost { generator, why }: &Lost) -> Event {
    Event::GeneratorLost(GeneratorLost { block, generator: generator.clone(), why: why.clone() })
}
