//! What of a record's services ran already and was not started.

use crate::{Deployed, Record};

impl Record {
    /// All that ran already and was loaded, each as it was when it was first; empty where everything was started.
    pub fn deployed(&self) -> Vec<&Deployed> {
        let trials = self.blocks.iter().flat_map(|block| &block.trials);
        let mut first: Vec<&Deployed> = Vec::new();
        for deployed in trials.filter_map(|trial| trial.started.deployed.as_ref()) {
            if first
                .iter()
                .all(|known| (&known.place, &known.address) != (&deployed.place, &deployed.address))
            {
                first.push(deployed);
            }
        }
        first
    }
}
