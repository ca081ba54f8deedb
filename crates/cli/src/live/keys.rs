//! Keys: from the bytes that a terminal sends to what they ask for. Pure.

/// More bytes at once than somebody presses keys: something was pasted, and no key of it was meant.
const PASTED_FROM: usize = 5;
const ESCAPE: u8 = 0x1b;

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Stop with what there is; once more: leave at once.
    Stop,
    /// Pause, or go on.
    Pause,
    /// Show or hide the services' logs.
    Logs,
    /// Show or hide what the keys do.
    Help,
}

/// What the user wants to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wish {
    /// Nothing but to go on.
    #[default]
    None,
    /// That the run waits.
    Pause,
    /// That it stops.
    Stop,
}

/// What the user wants to be shown, and to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Whether keys are heard at all.
    pub keys: bool,
    /// What is to be done.
    pub wish: Wish,
    /// Whether the services' logs are shown.
    pub logs: bool,
    /// Whether it is shown what the keys do.
    pub help: bool,
}

/// What is to be done beyond showing something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// What a Ctrl-C does: the first stops, the second leaves.
    Interrupt,
    /// The run is to wait, or to go on.
    SetPaused(bool),
}

impl Shown {
    /// Takes in a key, and tells what is to be done.
    pub fn press(&mut self, key: Key) -> Option<Act> {
        match key {
            Key::Stop => {
                self.wish = Wish::Stop;
                return Some(Act::Interrupt);
            }
            // Who stops does not wait.
            Key::Pause if self.wish != Wish::Stop => {
                let paused = self.wish == Wish::None;
                self.wish = if paused { Wish::Pause } else { Wish::None };
                return Some(Act::SetPaused(paused));
            }
            Key::Pause => {}
            Key::Logs => self.logs = !self.logs,
            Key::Help => self.help = !self.help,
        }
        None
    }
}

/// The keys in what was read at once. Cursor keys and the like begin with an escape and mean nothing, as does what was pasted.
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    if bytes.contains(&ESCAPE) || bytes.len() >= PASTED_FROM {
        return Vec::new();
    }
    let key = |byte: &u8| match byte.to_ascii_lowercase() {
        b'q' | b's' => Some(Key::Stop),
        b'p' => Some(Key::Pause),
        b'l' => Some(Key::Logs),
        b'?' | b'h' => Some(Key::Help),
        _ => None,
    };
    bytes.iter().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_keys_and_cursor_keys_or_pasted_text_are_not() {
        assert_eq!(keys(b"q"), [Key::Stop]);
        assert_eq!(keys(b"pPl?"), [Key::Pause, Key::Pause, Key::Logs, Key::Help]);
        for nothing in
            [&b"\x1b[A"[..], b"\x1bOP", b"\x1b[200~qps\x1b[201~", b"make quick", b"x\n\xc3\xa9", b""]
        {
            assert_eq!(keys(nothing), [], "{nothing:?}");
        }
    }

    #[test]
    fn a_pause_is_ended_by_the_same_key_and_nothing_pauses_what_stops() {
        let mut shown = Shown::default();
        assert_eq!(shown.press(Key::Pause), Some(Act::SetPaused(true)));
        assert_eq!(shown.press(Key::Pause), Some(Act::SetPaused(false)));
        assert_eq!(shown, Shown::default());
        assert_eq!((shown.press(Key::Logs), shown.press(Key::Help)), (None, None));
        assert!(shown.logs && shown.help);
        assert_eq!((shown.press(Key::Stop), shown.press(Key::Pause)), (Some(Act::Interrupt), None));
        assert_eq!((shown.wish, shown.press(Key::Stop)), (Wish::Stop, Some(Act::Interrupt)));
    }
}
