//! Says to every generator now and then that we are there, whatever else is done or waited for: one that hears nothing for a while takes
//! us for dead and ends.

use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::generators::{Order, line};

/// The stdin of a generator, written to by whole lines.
pub(crate) type Input = Mutex<Box<dyn Write + Send>>;

/// The thread that does it. It ends when this is dropped, and keeps no input open.
#[derive(Debug)]
pub(crate) struct Beat {
    inputs: Inputs,
    _ended: Sender<()>,
}

#[derive(Clone, Default)]
struct Inputs(Arc<Mutex<Vec<Weak<Input>>>>);

impl Beat {
    /// # Errors
    /// If there is no thread for it.
    pub fn every(pause: Duration) -> io::Result<Beat> {
        let (inputs, (_ended, ended)) = (Inputs::default(), channel::<()>());
        let of_all = inputs.clone();
        let beat = move || {
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                of_all.tell();
            }
        };
        std::thread::Builder::new().name("beat".into()).spawn(beat)?;
        Ok(Beat { inputs, _ended })
    }

    /// From now on this one hears it, too.
    pub fn include(&self, input: &Arc<Input>) {
        self.inputs.lock().push(Arc::downgrade(input));
    }
}

impl Inputs {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Input>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        let mut inputs = self.lock();
        inputs.retain(|input| input.strong_count() > 0);
        let those_there: Vec<Arc<Input>> = inputs.iter().filter_map(Weak::upgrade).collect();
        drop(inputs);
        for input in those_there {
            // One that is not free is being told something right now, which says as much, and for however long that takes.
            if let Ok(mut input) = input.try_lock() {
                // That it is gone is heard from its other end, in better words.
                let _ = line::write(&mut *input, &Order::Beat);
            }
        }
    }
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Inputs").field(&self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    fn piped() -> (Arc<Input>, impl BufRead) {
        let (output, input) = io::pipe().unwrap();
        (Arc::new(Mutex::new(Box::new(input))), BufReader::new(output))
    }

    fn line(of: &mut impl BufRead) -> String {
        let mut line = String::new();
        of.read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn all_hear_it_but_for_who_is_being_told_something_and_none_is_kept_open() {
        let beat = Beat::every(Duration::from_millis(1)).unwrap();
        let ((one, mut heard_by_one), (other, mut heard_by_other)) = (piped(), piped());
        // It takes in nothing, and is locked by whoever waits for that.
        let (busy, _) = piped();
        let _writing = busy.lock().unwrap();
        [&busy, &one, &other].into_iter().for_each(|input| beat.include(input));
        for _ in 0..3 {
            assert_eq!(
                (line(&mut heard_by_one), line(&mut heard_by_other)),
                ("\"beat\"\n".into(), "\"beat\"\n".into())
            );
        }
        drop(one);
        while !line(&mut heard_by_one).is_empty() {}
        assert_eq!(line(&mut heard_by_other), "\"beat\"\n");
        drop((beat, other));
        while !line(&mut heard_by_other).is_empty() {}
    }
}
