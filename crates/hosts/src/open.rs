//! The generators of a plan, wherever they are: all opened at the same time, and whatever could not be had told together.
//!
//! A host takes seconds, a cluster longer: whoever waits is told for whom, and may cancel. What is opened by then is closed again.

use std::collections::VecDeque;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plan::{Generators, Kubernetes};

use crate::{Channel, HostError, Program, here, kubernetes, ssh};

/// Hosts that are opened at the same time: each may be sent a program of many megabytes.
const AT_ONCE_MAX: usize = 16;
/// How often it is asked whether anybody still waits.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How often it is told for whom.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What is wanted of a plan's generators.
pub struct Wanted<'a> {
    /// Which there are.
    pub generators: &'a Generators,
    /// Name of the run, for what is made elsewhere.
    pub run: &'a str,
    /// What the program is to be there, as its arguments.
    pub arguments: &'static [&'static str],
    /// The same on this machine, as a command.
    pub here: &'a dyn Fn() -> Command,
}

/// Who waits, and as long as they do.
pub struct Waiting<'a> {
    /// Whether nobody does any more.
    pub cancelled: &'a dyn Fn() -> bool,
    /// Hears about once a second for whom, and for how long so far.
    pub watch: &'a mut dyn FnMut(&[String], Duration),
}

/// Opens a channel to every generator of a plan: those on this machine first, then hosts in the order of the plan, then pods.
///
/// # Errors
/// All that could not be had, and then none is left running; an empty list where it was cancelled.
pub fn generators(wanted: &Wanted<'_>, waiting: &mut Waiting<'_>) -> Result<Vec<Channel>, Vec<HostError>> {
    opened(doors(wanted).map_err(|error| vec![error])?, wanted, waiting)
}

/// Opens the channel to one of them again, by its place among all. A pod is another pod then.
///
/// # Errors
/// As [`generators`].
pub fn again(
    wanted: &Wanted<'_>,
    place: usize,
    waiting: &mut Waiting<'_>,
) -> Result<Channel, Vec<HostError>> {
    let doors = doors(wanted).map_err(|error| vec![error])?;
    // Pods are one door, the last.
    let last = doors.len().saturating_sub(1);
    let Some(mut door) = doors.into_iter().nth(place.min(last)) else { return Err(Vec::new()) };
    if let Door::Pods(cluster) = &mut door {
        cluster.pods = 1;
    }
    let name = door.name();
    let ended = || vec![unanswered(&name)];
    opened(vec![door], wanted, waiting)?.pop().ok_or_else(ended)
}

/// Where channels come from.
enum Door {
    Here(String),
    Ssh(String, Arc<Program>),
    Pods(Kubernetes),
}

fn doors(wanted: &Wanted<'_>) -> Result<Vec<Door>, HostError> {
    let Generators { local, ssh, kubernetes, program, .. } = wanted.generators;
    let name = |number: u32| if *local == 1 { "local".to_owned() } else { format!("local {number}") };
    let mut doors: Vec<Door> = (1..=*local).map(|number| Door::Here(name(number))).collect();
    if !ssh.is_empty() {
        let program = Arc::new(program.as_deref().map_or_else(Program::own, Program::at)?);
        doors.extend(ssh.iter().map(|host| Door::Ssh(host.clone(), Arc::clone(&program))));
    }
    doors.extend(kubernetes.clone().map(Door::Pods));
    Ok(doors)
}

impl Door {
    fn name(&self) -> String {
        match self {
            Door::Here(name) => name.clone(),
            Door::Ssh(host, _) if host.contains("://") => host.clone(),
            Door::Ssh(host, _) => format!("ssh://{host}"),
            Door::Pods(cluster) if cluster.pods == 1 => "1 pod".to_owned(),
            Door::Pods(cluster) => format!("{} pods", cluster.pods),
        }
    }
}

/// What a thread that opens has to say of a door.
enum News {
    /// How far it is, in words.
    Told(usize, String),
    Done(usize, Result<Vec<Channel>, HostError>),
}

fn opened(
    doors: Vec<Door>,
    wanted: &Wanted<'_>,
    waiting: &mut Waiting<'_>,
) -> Result<Vec<Channel>, Vec<HostError>> {
    let names: Vec<String> = doors.iter().map(Door::name).collect();
    let mut results: Vec<Opened> = doors.iter().map(|_| None).collect();
    let mut far = VecDeque::new();
    for (place, door) in doors.into_iter().enumerate() {
        match door {
            Door::Here(name) => results[place] = Some(here(name, (wanted.here)()).map(|one| vec![one])),
            door => far.push_back((place, door)),
        }
    }
    if !far.is_empty() && !awaited(far, wanted, waiting, (&names, &mut results)) {
        return Err(Vec::new());
    }
    let (mut channels, mut errors) = (Vec::new(), Vec::new());
    for (result, name) in results.into_iter().zip(&names) {
        match result.unwrap_or_else(|| Err(unanswered(name))) {
            Ok(more) => channels.extend(more),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(channels) } else { Err(errors) }
}

/// What came of a door; `None` where nobody answered.
type Opened = Option<Result<Vec<Channel>, HostError>>;

/// Has these opened, and fills in what came of each; false where it was cancelled.
fn awaited(
    far: VecDeque<(usize, Door)>,
    wanted: &Wanted<'_>,
    waiting: &mut Waiting<'_>,
    (names, results): (&[String], &mut [Opened]),
) -> bool {
    let (began, mut told) = (Instant::now(), Instant::now());
    let over = Arc::new(AtomicBool::new(false));
    let mut open: Vec<(usize, String)> =
        far.iter().map(|(place, _)| (*place, names[*place].clone())).collect();
    let list = |open: &[(usize, String)]| open.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
    (waiting.watch)(&list(&open), Duration::ZERO);
    let news = begin(far, wanted, &over);
    while !open.is_empty() {
        match news.recv_timeout(ASK_EVERY) {
            Ok(News::Told(place, words)) => {
                let of_it = open.iter_mut().filter(|(open, _)| *open == place);
                of_it.for_each(|(_, name)| *name = format!("{} ({words})", names[place]));
            }
            Ok(News::Done(place, result)) => {
                open.retain(|(open, _)| *open != place);
                results[place] = Some(result);
            }
            // Whoever has not answered by now never will.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if (waiting.cancelled)() {
            over.store(true, Ordering::Relaxed);
            return false;
        }
        if told.elapsed() >= TELL_EVERY && !open.is_empty() {
            told = Instant::now();
            (waiting.watch)(&list(&open), began.elapsed());
        }
    }
    true
}

/// Threads that open these doors one after the other. They end by themselves: what they open when nobody waits any more is closed at once.
fn begin(far: VecDeque<(usize, Door)>, wanted: &Wanted<'_>, over: &Arc<AtomicBool>) -> Receiver<News> {
    let (to, news) = channel();
    let threads = far.len().min(AT_ONCE_MAX);
    let queue = Arc::new(Mutex::new(far));
    for _ in 0..threads {
        let (queue, over, to) = (Arc::clone(&queue), Arc::clone(over), to.clone());
        let (arguments, run) = (wanted.arguments, wanted.run.to_owned());
        let work = move || {
            let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            while let Some((place, door)) = next().filter(|_| !over.load(Ordering::Relaxed)) {
                let result = open(door, (&run, arguments), &over, &mut |words| {
                    let _ = to.send(News::Told(place, words));
                });
                let _ = to.send(News::Done(place, result));
            }
        };
        // Without a thread its doors are told as unanswered.
        drop(thread::Builder::new().name("open".into()).spawn(work));
    }
    news
}

fn open(
    door: Door,
    (run, arguments): (&str, &[&str]),
    over: &AtomicBool,
    tell: &mut dyn FnMut(String),
) -> Result<Vec<Channel>, HostError> {
    match door {
        Door::Here(name) => Err(unanswered(&name)),
        Door::Ssh(host, program) => ssh::open(&host, &program, arguments).map(|one| vec![one]),
        Door::Pods(cluster) => {
            kubernetes::open(&cluster, run, arguments, tell, &|| over.load(Ordering::Relaxed))
        }
    }
}

fn unanswered(name: &str) -> HostError {
    let source = io::Error::other("no thread could be had for it");
    HostError::NotStarted { host: name.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    fn cat() -> Command {
        Command::new("cat")
    }

    fn wanted<'a>(generators: &'a Generators, here: &'a dyn Fn() -> Command) -> Wanted<'a> {
        Wanted { generators, run: "test", arguments: &["generate"], here }
    }

    #[test]
    fn those_here_are_opened_in_order_and_again_by_their_place() {
        let generators = Generators { local: 3, ..Generators::default() };
        let wanted = wanted(&generators, &cat);
        let (mut watch, cancelled) = (|_: &[String], _| (), || false);
        let mut waiting = Waiting { cancelled: &cancelled, watch: &mut watch };
        let mut channels = super::generators(&wanted, &mut waiting).unwrap();
        let names: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
        assert_eq!(names, ["local 1", "local 2", "local 3"]);
        assert!(channels.iter().all(|channel| channel.process().is_some()));
        let again = again(&wanted, 1, &mut waiting).unwrap();
        assert_eq!(again.name, "local 2");
        assert_ne!(again.process(), channels[1].process());
        let Channel { mut input, mut output, keeper, .. } = channels.remove(0);
        input.write_all(b"word").unwrap();
        drop(input);
        let mut echo = String::new();
        output.read_to_string(&mut echo).unwrap();
        assert_eq!(echo, "word");
        drop(keeper);
    }

    #[test]
    fn all_that_cannot_be_started_are_told_and_none_stays() {
        let generators = Generators { local: 2, ..Generators::default() };
        let missing = || Command::new("/no/such/program");
        let wanted = wanted(&generators, &missing);
        let (mut watch, cancelled) = (|_: &[String], _| (), || false);
        let mut waiting = Waiting { cancelled: &cancelled, watch: &mut watch };
        let errors = super::generators(&wanted, &mut waiting).unwrap_err();
        let said: Vec<String> = errors.iter().map(HostError::to_string).collect();
        assert!(said.len() == 2 && said[1].starts_with("local 2: cannot be started: "), "{said:?}");
    }
}
