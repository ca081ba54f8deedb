//! The generators of a plan, wherever they are: all opened at the same time, with all errors at once.
//!
//! A host takes seconds, a cluster longer: the caller gets the names of those that are missing, and may cancel. What is opened by then is
//! closed again.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plan::{Generators, Kubernetes};

use crate::{Blame, Channel, Error, Program, here, kubernetes, ssh};

/// Hosts that are opened at the same time: each may be sent a program of many megabytes.
const AT_ONCE_MAX: usize = 16;
/// How often it is asked whether anybody still waits.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a cluster may be away before its pods count as lost for good: API servers are restarted while a run goes on.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How long after an attempt it is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often the caller gets the names of those that are missing.
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

/// The caller, who waits.
pub struct Waiting<'a> {
    /// Whether the caller cancels.
    pub cancelled: &'a dyn Fn() -> bool,
    /// Called about once a second with the names of those that are missing, and how long it took so far.
    pub watch: &'a mut dyn FnMut(&[String], Duration),
}

/// Opens a channel to every generator of a plan: those on this machine first, then hosts in the order of the plan, then pods.
///
/// # Errors
/// All that could not be had, and then none is left running; an empty list where it was cancelled.
pub fn generators(wanted: &Wanted<'_>, waiting: &mut Waiting<'_>) -> Result<Vec<Channel>, Vec<Error>> {
    opened(doors(wanted).map_err(|error| vec![error])?, wanted, waiting)
}

/// These places, which are in order, as they can be opened again: all pods together, and every other by itself.
pub fn together(generators: &Generators, places: &[usize]) -> Vec<Vec<usize>> {
    let first_pod = (generators.local as usize).saturating_add(generators.ssh.len());
    let (others, pods): (Vec<usize>, Vec<usize>) = places.iter().partition(|place| **place < first_pod);
    let pods = Some(pods).filter(|pods| !pods.is_empty());
    others.into_iter().map(|place| vec![place]).chain(pods).collect()
}

/// Opens channels again, by their places among all, which go [`together`]. Pods are other pods then; a cluster that does not answer is
/// waited for for a minute.
///
/// # Errors
/// As [`generators`].
pub fn again(
    wanted: &Wanted<'_>,
    places: &[usize],
    waiting: &mut Waiting<'_>,
) -> Result<Vec<Channel>, Vec<Error>> {
    let doors = doors(wanted).map_err(|error| vec![error])?;
    // Pods are one door, the last.
    let last = doors.len().saturating_sub(1);
    let place = places.first().copied().unwrap_or_default();
    let Some(mut door) = doors.into_iter().nth(place.min(last)) else { return Err(Vec::new()) };
    if let Door::Pods { cluster, away_max } = &mut door {
        cluster.pods = u32::try_from(places.len()).unwrap_or(u32::MAX);
        *away_max = AWAY_MAX;
    }
    opened(vec![door], wanted, waiting)
}

/// Where channels come from.
enum Door {
    Here(String),
    Ssh(String, Arc<Program>),
    /// Pods, and how long their cluster may not answer.
    Pods {
        cluster: Kubernetes,
        away_max: Duration,
    },
}

fn doors(wanted: &Wanted<'_>) -> Result<Vec<Door>, Error> {
    let Generators { local, ssh, kubernetes, program, .. } = wanted.generators;
    let name = |number: u32| if *local == 1 { "local".to_owned() } else { format!("local {number}") };
    let mut doors: Vec<Door> = (1..=*local).map(|number| Door::Here(name(number))).collect();
    if !ssh.is_empty() {
        let program = Arc::new(program.as_deref().map_or_else(Program::own, Program::at)?);
        doors.extend(ssh.iter().map(|host| Door::Ssh(host.clone(), Arc::clone(&program))));
    }
    // At the beginning it is a mistake to be mended.
    let away_max = Duration::ZERO;
    doors.extend(kubernetes.clone().map(|cluster| Door::Pods { cluster, away_max }));
    Ok(doors)
}

impl Door {
    fn name(&self) -> String {
        match self {
            Door::Here(name) => name.clone(),
            Door::Ssh(host, _) if host.contains("://") => host.clone(),
            Door::Ssh(host, _) => format!("ssh://{host}"),
            Door::Pods { cluster, .. } if cluster.pods == 1 => "1 pod".to_owned(),
            Door::Pods { cluster, .. } => format!("{} pods", cluster.pods),
        }
    }
}

/// What a thread that opens has to say of a door.
enum News {
    /// How far it is, in words.
    Told(usize, String),
    Done(usize, Result<Vec<Channel>, Error>),
}

fn opened(
    doors: Vec<Door>,
    wanted: &Wanted<'_>,
    waiting: &mut Waiting<'_>,
) -> Result<Vec<Channel>, Vec<Error>> {
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
        match result.unwrap_or_else(|| Err(not_opened(name))) {
            Ok(more) => channels.extend(more),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(channels) } else { Err(errors) }
}

/// What came of a door; `None` while nothing has.
type Opened = Option<Result<Vec<Channel>, Error>>;

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
            // All threads have ended: what is missing now never comes.
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

/// Threads that open these doors one after the other. They end by themselves: what they open after the caller has cancelled is closed at once.
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
        // Without a thread its doors stay missing.
        drop(thread::Builder::new().name("open".into()).spawn(work));
    }
    news
}

fn open(
    door: Door,
    (run, arguments): (&str, &[&str]),
    over: &AtomicBool,
    tell: &mut dyn FnMut(String),
) -> Result<Vec<Channel>, Error> {
    match door {
        Door::Here(name) => Err(not_opened(&name)),
        Door::Ssh(host, program) => ssh::open(&host, &program, arguments).map(|one| vec![one]),
        Door::Pods { cluster, away_max } => {
            let is_over = || over.load(Ordering::Relaxed);
            let mut open =
                |tell: &mut dyn FnMut(String)| kubernetes::open(&cluster, run, arguments, tell, &is_over);
            patiently(&mut open, tell, &|error, for_now| may_pass(error) && for_now < away_max && !is_over())
        }
    }
}

/// Tries again for as long as what is in the way of it is worth waiting for.
fn patiently<T>(
    open: &mut impl FnMut(&mut dyn FnMut(String)) -> Result<T, Error>,
    tell: &mut dyn FnMut(String),
    is_worth_waiting: &dyn Fn(&Error, Duration) -> bool,
) -> Result<T, Error> {
    let began = Instant::now();
    loop {
        match open(tell) {
            Err(error) if is_worth_waiting(&error, began.elapsed()) => {
                tell(error.to_string());
                thread::sleep(TRY_AGAIN_AFTER);
            }
            opened => return opened,
        }
    }
}

/// Whether it may be otherwise by itself some seconds later.
fn may_pass(error: &Error) -> bool {
    matches!(error.blame(), Blame::Away | Blame::Rights)
}

fn not_opened(name: &str) -> Error {
    Error::new(format!("{name}: cannot be started: no thread could be had for it"))
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
        let [again] = &again(&wanted, &[1], &mut waiting).unwrap()[..] else { panic!("one of them") };
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
    fn pods_are_opened_again_together_and_others_by_themselves() {
        let generators = Generators { local: 1, ssh: vec!["a".into(), "b".into()], ..Generators::default() };
        assert_eq!(together(&generators, &[0, 2, 3, 5]), [vec![0], vec![2], vec![3, 5]]);
        assert_eq!(together(&generators, &[1]), [[1]]);
        assert_eq!(together(&generators, &[4]), [[4]]);
        assert!(together(&generators, &[]).is_empty());
    }

    #[test]
    fn a_cluster_that_is_away_is_asked_again_until_it_answers_or_is_away_for_too_long() {
        let (mut asked, mut told) = (0, Vec::new());
        let away = || Error::new("https://c does not answer: refused").by(Blame::Away);
        let mut third = |_: &mut dyn FnMut(String)| {
            asked += 1;
            if asked < 3 { Err(away()) } else { Ok(asked) }
        };
        let opened = patiently(&mut third, &mut |words| told.push(words), &|error, _| may_pass(error));
        assert_eq!((opened.ok(), told.len()), (Some(3), 2));
        assert!(told[0].contains("https://c does not answer: refused"), "{told:?}");
        let mut never = |_: &mut dyn FnMut(String)| Err::<(), _>(away());
        let for_short = |_: &Error, for_now: Duration| for_now < Duration::from_millis(10);
        assert!(patiently(&mut never, &mut |_| (), &for_short).is_err());
        assert!(!may_pass(&Error::cancelled("x")));
    }

    #[test]
    fn all_that_cannot_be_started_are_told_and_none_stays() {
        let generators = Generators { local: 2, ..Generators::default() };
        let missing = || Command::new("/no/such/program");
        let wanted = wanted(&generators, &missing);
        let (mut watch, cancelled) = (|_: &[String], _| (), || false);
        let mut waiting = Waiting { cancelled: &cancelled, watch: &mut watch };
        let errors = super::generators(&wanted, &mut waiting).unwrap_err();
        let said: Vec<String> = errors.iter().map(Error::to_string).collect();
        assert!(said.len() == 2 && said[1].starts_with("local 2: cannot be started: "), "{said:?}");
    }
}
