//! What who attends is told, read by a thread of its own: so that a start under way hears that it is to be broken off, and that nobody
//! is there any more.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Order, line};

/// The orders that are still to be carried out, and what cannot wait its turn.
pub(super) struct Orders {
    waiting: Receiver<io::Result<Order>>,
    heard: Arc<Heard>,
    lease: Duration,
}

#[derive(Debug)]
struct Heard {
    /// When anything came last.
    last: Mutex<Instant>,
    /// Whether nothing comes any more.
    over: AtomicBool,
    cancelled: AtomicBool,
}

impl Orders {
    /// Listens. Who says nothing for as long as `lease` is taken for dead.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn listen(input: impl Read + Send + 'static, lease: Duration) -> io::Result<Orders> {
        let heard = Arc::new(Heard {
            last: Mutex::new(Instant::now()),
            over: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
        });
        let (to, waiting) = channel();
        let board = Arc::clone(&heard);
        let read = move || {
            let mut input = BufReader::new(input);
            while board.take(&mut input, &mut |order| to.send(order).is_ok()) {}
            board.over.store(true, Ordering::SeqCst);
        };
        // It ends with the input, or with the process: reading cannot be broken off.
        thread::Builder::new().name("orders".to_owned()).spawn(read)?;
        Ok(Orders { waiting, heard, lease })
    }

    /// The next order; `None`: there is nobody any more.
    pub fn next(&self) -> Option<io::Result<Order>> {
        loop {
            let left = self.lease.saturating_sub(self.heard.silent_for());
            match self.waiting.recv_timeout(left) {
                Ok(order) => return Some(order),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.is_silent() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Whether what is under way is wanted no more: by an order, or because there is nobody.
    pub fn is_cancelled(&self) -> bool {
        self.heard.cancelled.load(Ordering::SeqCst)
            || self.heard.over.load(Ordering::SeqCst)
            || self.is_silent()
    }

    /// Whether somebody may be there who has said nothing for too long.
    pub fn is_silent(&self) -> bool {
        !self.heard.over.load(Ordering::SeqCst) && self.heard.silent_for() >= self.lease
    }
}

impl Heard {
    /// Takes in the next line; whether there may be another.
    fn take(&self, input: &mut impl BufRead, pass: &mut dyn FnMut(io::Result<Order>) -> bool) -> bool {
        let order = line::read::<Order>(input);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        match order {
            Ok(None | Some(Order::End)) => false,
            Ok(Some(Order::Beat)) => true,
            Ok(Some(Order::Cancel)) => {
                self.cancelled.store(true, Ordering::SeqCst);
                true
            }
            Ok(Some(order)) => {
                // What broke off the last start is not meant for this one.
                if matches!(order, Order::Start(_)) {
                    self.cancelled.store(false, Ordering::SeqCst);
                }
                pass(Ok(order))
            }
            Err(error) => {
                pass(Err(error));
                false
            }
        }
    }

    fn silent_for(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}
