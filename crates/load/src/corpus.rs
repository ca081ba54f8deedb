//! Every request that can be sent, rendered before the load starts, and the order in which a thread sends them.

use std::sync::Arc;

use crate::{LoadError, Request, render};

/// All requests as bytes. It never changes, so that the kernel may read from it at any time.
#[derive(Debug)]
pub(crate) struct Corpus {
    requests: Vec<Box<[u8]>>,
    bodiless: Vec<bool>,
}

/// Which request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) endpoint: u16,
    pub(crate) variant: u32,
    /// Its response has no body, whatever its head says: the method is HEAD.
    pub(crate) bodiless: bool,
}

/// One thread's sequence of choices.
#[derive(Debug, Clone)]
pub(crate) struct Deck {
    corpus: Arc<Corpus>,
}

impl Corpus {
    pub(crate) fn render(requests: &[Request]) -> Result<Corpus, LoadError> {
        let bodiless = requests.iter().map(|request| request.method == "HEAD").collect();
        let requests = requests.iter().map(|request| Ok(render::bytes(request)?.into()));
        Ok(Corpus { requests: requests.collect::<Result<_, LoadError>>()?, bodiless })
    }

    pub(crate) fn bytes(&self, choice: Choice) -> &[u8] {
        &self.requests[choice.variant as usize]
    }
}

impl Deck {
    pub(crate) fn new(corpus: Arc<Corpus>, _seed: u64, _thread: u32) -> Deck {
        Deck { corpus }
    }

    pub(crate) fn draw(&mut self) -> Choice {
        Choice { endpoint: 0, variant: 0, bodiless: self.corpus.bodiless[0] }
    }
}
