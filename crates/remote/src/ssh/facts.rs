//! What a machine's shell tells of it, and what of the program is there.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Fault;
use super::talk::Line;
use crate::Program;

/// What is known of a machine once one has logged in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What it calls itself.
    pub host: String,
    /// Who we are there.
    pub user: String,
    /// Its kernel's release, as `uname -r` has it.
    pub kernel: String,
    /// Its processor, as `uname -m` has it.
    pub machine: String,
    /// Its operating system, as `uname -s` has it.
    pub system: String,
    /// Processors that we may use there.
    pub processors: Option<u32>,
    /// How far its calendar is ahead of ours, in seconds, to about a second and the time of a message. Nothing depends on it.
    pub calendar_ahead_s: Option<i64>,
    /// Where programs are put.
    pub folder: String,
    /// Whether ours is among them.
    pub state: State,
    /// Other versions, and pieces that were left.
    pub others: Vec<Kept>,
    pub(super) room: Room,
}

/// Whether the program is on a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// There is no file of its name.
    #[default]
    Absent,
    /// There is one with other contents.
    Damaged,
    /// It is there, byte for byte.
    There,
}

/// A file that Proofload has put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where it is.
    pub path: String,
    /// How long it is.
    pub bytes: u64,
}

/// What `df -Pk` says of a file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Room {
    available_bytes: Option<u64>,
    /// Its last line.
    line: String,
}

impl Facts {
    /// Takes in one thing that was said.
    pub(super) fn learn(&mut self, said: Line) {
        let Line { what, text } = said;
        match what.as_str() {
            "host" => self.host = text,
            "user" => self.user = text,
            "kernel" => self.kernel = text,
            "machine" => self.machine = text,
            "system" => self.system = text,
            "processors" => self.processors = text.parse().ok(),
            "time" => self.calendar_ahead_s = text.parse().ok().and_then(ahead_s),
            "folder" => self.folder = text,
            "room" => self.room = Room::of(text),
            "program" => self.state = State::of(&text),
            "other" => self.others.extend(Kept::of(&text)),
            _ => {}
        }
    }

    /// Whether the machine can run the program at all.
    pub(super) fn fits(&self, program: &Program) -> Result<(), Fault> {
        if self.system != "Linux" {
            return Err(Fault::System { system: self.system.clone() });
        }
        if !program.runs_on(&self.machine) {
            return Err(Fault::Machine { theirs: self.machine.clone(), ours: program.machine() });
        }
        Ok(())
    }

    /// Whether there is room for it.
    pub(super) fn has_room(&self, program: &Program) -> bool {
        self.room.available_bytes.is_none_or(|bytes| bytes >= program.bytes())
    }

    /// That there is none.
    pub(super) fn full(&self, program: &Program) -> Fault {
        let room = if self.room.line.is_empty() { "df says nothing" } else { &self.room.line };
        Fault::Full {
            folder: self.folder.clone(),
            needed_bytes: program.bytes(),
            room: format!("df: {room}"),
        }
    }
}

impl State {
    fn of(text: &str) -> State {
        match text {
            "there" => State::There,
            "damaged" => State::Damaged,
            _ => State::Absent,
        }
    }
}

impl Kept {
    /// From a size and a path.
    pub(super) fn of(text: &str) -> Option<Kept> {
        let (bytes, path) = text.split_once(' ')?;
        Some(Kept { path: path.to_owned(), bytes: bytes.parse().ok()? })
    }
}

impl Room {
    /// From a line of `df -Pk`: what is available stands before the one word that is a share.
    fn of(line: String) -> Room {
        let words: Vec<&str> = line.split_whitespace().collect();
        let share = words.iter().rposition(|word| word.ends_with('%'));
        let available_kib = share.and_then(|at| words.get(at.checked_sub(1)?)?.parse::<u64>().ok());
        Room { available_bytes: available_kib.map(|kib| kib.saturating_mul(1024)), line: words.join(" ") }
    }
}

/// How far a time in seconds since 1970 is ahead of now.
fn ahead_s(theirs: i64) -> Option<i64> {
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(theirs - i64::try_from(ours.as_secs()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        for (what, text) in lines {
            facts.learn(Line { what: (*what).to_owned(), text: (*text).to_owned() });
        }
        facts
    }

    #[test]
    fn what_is_told_is_understood_also_from_odd_systems() {
        let facts = of(&[
            ("system", "Linux"),
            ("machine", std::env::consts::ARCH),
            ("processors", "8"),
            ("room", "Filesystem 1024-blocks Used Available Capacity Mounted on"),
            ("room", "tmpfs 1024 1000 24 98% /mnt/a 5% b"),
            ("program", "damaged"),
            ("other", "17 /home/me/.cache/proofload/bin/proofload-01 and more"),
            ("other", "nonsense"),
            ("something", "from a later version"),
        ]);
        assert_eq!((facts.processors, facts.state), (Some(8), State::Damaged));
        assert_eq!(facts.others.len(), 1);
        assert_eq!(facts.others[0].path, "/home/me/.cache/proofload/bin/proofload-01 and more");
        let own = Program::own().unwrap();
        assert!(facts.fits(&own).is_ok());
        let unknown = of(&[("room", "overlay - - - - /")]);
        assert!(unknown.has_room(&own), "where df knows nothing, only a try tells");
        assert_eq!(unknown.fits(&own).unwrap_err().to_string(), "it runs , and Proofload runs on Linux");
    }

    #[test]
    fn a_full_disk_is_told_with_what_df_says() {
        let facts =
            of(&[("folder", "/root/.cache/proofload/bin"), ("room", "tmpfs  1024 1024 0 100% /root")]);
        let own = Program::own().unwrap();
        assert!(!facts.has_room(&own));
        let said = facts.full(&own).to_string();
        assert!(
            said.contains("/root/.cache/proofload/bin") && said.contains("df: tmpfs 1024 1024 0 100% /root"),
            "{said}"
        );
    }
}
