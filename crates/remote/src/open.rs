//! Opens all generators of a plan at the same time, and reports all errors together.
//!
//! A host takes seconds to open, and a cluster longer. The caller therefore gets the names of missing
//! generators and may cancel. Channels that are open by then are closed again.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::quantity::{many, share};
use plan::{Generators, Kubernetes};

use crate::ssh::Copied;
use crate::{Blame, Channel, Error, Program, here, kubernetes, ssh};

/// Maximum number of hosts opened at the same time. Each may need a copy of the program, which has many
/// megabytes.
const AT_ONCE_MAX: usize = 16;
/// Interval between checks for cancellation.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a cluster may be unreachable before its pods count as lost for good. API servers may restart
/// during a run.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// Pause before an attempt is repeated.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a caller who cancels waits for the Job of the pods to be deleted.
const DELETION_PATIENCE: Duration = Duration::from_secs(15);
/// Interval between reports of missing generators.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// A request to open generators.
pub struct WantedGenerators<'a> {
    /// The generators of the plan.
    pub generators: &'a Generators,
    /// Name of the run, used to name objects created on other machines.
    pub run: &'a str,
    /// Arguments of the program on other machines.
    pub arguments: &'static [&'static str],
    /// Creates the command that runs the same program on this machine.
    pub here: &'a dyn Fn() -> Command,
    /// Whether the waiting caller cancels.
    pub cancelled: &'a dyn Fn() -> bool,
    /// Called about once a second with the names of missing generators and the time elapsed.
    pub watch: &'a mut dyn FnMut(&[String], Duration),
}

/// Opens a channel to every generator of a plan: local generators first, then hosts in the order of the plan,
/// then pods.
///
/// # Errors
/// All generators that could not be opened, and then none is left running. The list is empty after a
/// cancellation.
pub fn generators(wanted: &mut WantedGenerators<'_>) -> Result<Vec<Channel>, Vec<Error>> {
    opened(doors(wanted), wanted)
}

/// Groups generators for [`again`]: all pods form one group, and every other generator forms a group alone.
/// `places` are indexes of generators in ascending order.
pub fn together(generators: &Generators, places: &[usize]) -> Vec<Vec<usize>> {
    let first_pod = (generators.local as usize).saturating_add(generators.ssh.len());
    let (others, pods): (Vec<usize>, Vec<usize>) =
        places.iter().partition(|place| **place < first_pod);
    let pods = Some(pods).filter(|pods| !pods.is_empty());
    others
        .into_iter()
        .map(|place| vec![place])
        .chain(pods)
        .collect()
}

/// Opens the channels of one group of [`together`] again. `places` are indexes among all generators. Pods are
/// replaced by new pods, and a cluster that does not answer is retried for a minute.
///
/// # Errors
/// Same as [`generators`].
pub fn again(
    wanted: &mut WantedGenerators<'_>,
    places: &[usize],
) -> Result<Vec<Channel>, Vec<Error>> {
    let place = places.first().copied().unwrap_or_default();
    // All pods are one source, which is the last.
    let mut door = doors(wanted).into_iter().take(place + 1).next_back();
    if let Some(ChannelSource::Pods { cluster, away_max }) = &mut door {
        cluster.pods = u32::try_from(places.len()).unwrap_or(u32::MAX);
        *away_max = AWAY_MAX;
    }
    opened(door.into_iter().collect(), wanted)
}

/// A source of channels. For pods it includes how long their cluster may be unreachable.
enum ChannelSource {
    Here(String, Command),
    Ssh(String),
    Pods {
        cluster: Kubernetes,
        away_max: Duration,
    },
}

fn doors(wanted: &WantedGenerators<'_>) -> Vec<ChannelSource> {
    let Generators {
        local,
        ssh,
        kubernetes,
        ..
    } = wanted.generators;
    let name = |number: u32| {
        if *local == 1 {
            "local".to_owned()
        } else {
            format!("local {number}")
        }
    };
    let here = (1..=*local).map(|number| ChannelSource::Here(name(number), (wanted.here)()));
    // No retries when a run starts: an unreachable cluster is then a mistake that the user can fix.
    let pods = kubernetes.clone().map(|cluster| ChannelSource::Pods {
        cluster,
        away_max: Duration::ZERO,
    });
    here.chain(ssh.iter().cloned().map(ChannelSource::Ssh))
        .chain(pods)
        .collect()
}

impl ChannelSource {
    fn name(&self) -> String {
        match self {
            ChannelSource::Here(name, _) => name.clone(),
            ChannelSource::Ssh(host) if host.contains("://") => host.clone(),
            ChannelSource::Ssh(host) => format!("ssh://{host}"),
            ChannelSource::Pods { cluster, .. } => many(cluster.pods.into(), "pod"),
        }
    }
}

/// The channels of one source, or why they could not be opened.
type OpenResult = Result<Vec<Channel>, Error>;

/// A message from a thread that opens sources, with the index of the source.
enum OpenNews {
    /// Progress as text.
    Told(usize, String),
    Done(usize, OpenResult),
}

fn opened(
    doors: Vec<ChannelSource>,
    wanted: &mut WantedGenerators<'_>,
) -> Result<Vec<Channel>, Vec<Error>> {
    let names: Vec<String> = doors.iter().map(ChannelSource::name).collect();
    let missing = |name: &String| format!("{name}: cannot be started: creating a thread failed");
    let mut results: Vec<OpenResult> = names
        .iter()
        .map(|name| Err(Error::new(missing(name))))
        .collect();
    // Local generators start too quickly to be worth a report.
    let is_far = |place: &usize| !matches!(doors[*place], ChannelSource::Here(..));
    let mut far: BTreeMap<usize, String> = (0..doors.len())
        .filter(is_far)
        .map(|place| (place, names[place].clone()))
        .collect();
    let (began, mut told, mut left) = (Instant::now(), Instant::now(), doors.len());
    let (work, news) = OpenWork::begin(doors, wanted);
    let mut tell = |far: &BTreeMap<usize, String>, for_now| {
        if !far.is_empty() {
            (wanted.watch)(&far.values().cloned().collect::<Vec<_>>(), for_now);
        }
    };
    tell(&far, Duration::ZERO);
    while left > 0 {
        match news.recv_timeout(ASK_EVERY) {
            Ok(OpenNews::Told(place, words)) => {
                far.insert(place, format!("{} ({words})", names[place]));
            }
            Ok(OpenNews::Done(place, result)) => {
                far.remove(&place);
                (results[place], left) = (result, left - 1);
            }
            // All threads have ended, so the missing sources will not be opened any more.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if (wanted.cancelled)() {
            work.cancel(&news, |place| far.contains_key(&place));
            return Err(Vec::new());
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            tell(&far, began.elapsed());
        }
    }
    let (opened, errors): (Vec<OpenResult>, Vec<OpenResult>) =
        results.into_iter().partition(Result::is_ok);
    let mut errors: Vec<Error> = errors.into_iter().filter_map(Result::err).collect();
    // A program that cannot be read gives the same error for all hosts and for pods.
    errors.dedup();
    if errors.is_empty() {
        Ok(opened.into_iter().flatten().flatten().collect())
    } else {
        Err(errors)
    }
}

/// State shared by the threads that open sources.
#[derive(Default)]
struct OpenWork {
    doors: Mutex<VecDeque<(usize, ChannelSource)>>,
    arguments: &'static [&'static str],
    run: String,
    /// Path of the program for hosts. `None` means the program of this process.
    path: Option<PathBuf>,
    /// Read by the first thread that needs it, so that a caller who cancels does not wait for it.
    program: OnceLock<Result<Program, Error>>,
    has_hosts: bool,
    /// Index of the pods among the sources.
    pods: Option<usize>,
    /// Whether the caller has cancelled.
    over: AtomicBool,
}

impl OpenWork {
    /// Starts threads that open the sources in order. The threads are not joined. A channel that is opened
    /// after a cancellation is closed at once, see [`OpenWork::cancel`].
    fn begin(
        doors: Vec<ChannelSource>,
        wanted: &WantedGenerators<'_>,
    ) -> (Arc<OpenWork>, Receiver<OpenNews>) {
        let (to, news) = channel();
        let threads = doors.len().min(AT_ONCE_MAX);
        let has_hosts = doors
            .iter()
            .any(|door| matches!(door, ChannelSource::Ssh(_)));
        let pods = doors
            .iter()
            .position(|door| matches!(door, ChannelSource::Pods { .. }));
        let work = Arc::new(OpenWork {
            has_hosts,
            pods,
            doors: Mutex::new(doors.into_iter().enumerate().collect()),
            arguments: wanted.arguments,
            run: wanted.run.to_owned(),
            path: wanted.generators.program.clone(),
            ..OpenWork::default()
        });
        for _ in 0..threads {
            let (work, to) = (Arc::clone(&work), to.clone());
            // If no thread can be started, the sources stay missing.
            drop(
                thread::Builder::new()
                    .name("open".into())
                    .spawn(move || work.open_all(&to)),
            );
        }
        (work, news)
    }

    /// Opens no further sources. If a thread is opening pods, waits for it, because it has to delete their
    /// Job before this process ends.
    fn cancel(&self, news: &Receiver<OpenNews>, is_missing: impl Fn(usize) -> bool) {
        self.over.store(true, Ordering::Relaxed);
        let shut = std::mem::take(&mut *self.doors());
        let is_begun =
            |place: &usize| is_missing(*place) && shut.iter().all(|(other, _)| other != place);
        let Some(pods) = self.pods.filter(is_begun) else {
            return;
        };
        let until = Instant::now() + DELETION_PATIENCE;
        let next = || news.recv_timeout(until.saturating_duration_since(Instant::now()));
        while next().is_ok_and(|said| !matches!(said, OpenNews::Done(place, _) if place == pods)) {}
    }

    fn doors(&self) -> MutexGuard<'_, VecDeque<(usize, ChannelSource)>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_all(&self, to: &Sender<OpenNews>) {
        let next = || self.doors().pop_front();
        while let Some((place, door)) = next() {
            let result = self.open(door, &mut |words| {
                let _ = to.send(OpenNews::Told(place, words));
            });
            let _ = to.send(OpenNews::Done(place, result));
        }
    }

    fn open(&self, door: ChannelSource, tell: &mut dyn FnMut(String)) -> OpenResult {
        match door {
            ChannelSource::Here(name, command) => here(name, command).map(|one| vec![one]),
            ChannelSource::Ssh(host) => {
                let mut watch = |Copied { bytes, of }: Copied| {
                    tell(format!(
                        "copying the program, {}",
                        share(bytes as f64 / of.max(1) as f64)
                    ));
                };
                let opened = ssh::open(&host, self.program()?, self.arguments, &mut watch);
                opened.map(|one| vec![one])
            }
            ChannelSource::Pods { cluster, away_max } => {
                // Hosts cannot be opened without the program, so no pods are created if it cannot be read.
                if self.has_hosts {
                    self.program()?;
                }
                let is_over = || self.is_over();
                let mut open = |tell: &mut dyn FnMut(String)| {
                    kubernetes::open(&cluster, &self.run, self.arguments, tell, &is_over)
                };
                let waits = |error: &Error, for_now: Duration| {
                    may_pass(error) && for_now < away_max && !is_over()
                };
                patiently(&mut open, tell, &waits)
            }
        }
    }

    fn program(&self) -> Result<&Program, Error> {
        let read = || self.path.as_deref().map_or_else(Program::own, Program::at);
        self.program
            .get_or_init(read)
            .as_ref()
            .map_err(Clone::clone)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Repeats `open` while `is_worth_waiting` accepts its error.
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

/// Whether the error may disappear within seconds without any change by the user.
fn may_pass(error: &Error) -> bool {
    matches!(error.blame(), Blame::Away | Blame::Rights)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    /// Opens the generators at these places, or all, where `program` is the local program. Returns error
    /// messages.
    fn opening(
        generators: &Generators,
        (program, cancelled): (&str, bool),
        places: Option<&[usize]>,
    ) -> Result<Vec<Channel>, Vec<String>> {
        let (cancelled, here) = (|| cancelled, || Command::new(program));
        let (run, arguments, watch) = ("test", &["generate"], &mut |_: &[String], _: Duration| ());
        let mut wanted = WantedGenerators {
            generators,
            run,
            arguments,
            here: &here,
            cancelled: &cancelled,
            watch,
        };
        let opened = match places {
            None => super::generators(&mut wanted),
            Some(places) => again(&mut wanted, places),
        };
        opened.map_err(|errors| errors.iter().map(Error::to_string).collect())
    }

    #[test]
    fn those_here_are_opened_in_order_and_again_by_their_place() {
        let three = Generators {
            local: 3,
            ..Generators::default()
        };
        let mut channels = opening(&three, ("cat", false), None).unwrap();
        let names: Vec<&str> = channels
            .iter()
            .map(|channel| channel.name.as_str())
            .collect();
        assert_eq!(names, ["local 1", "local 2", "local 3"]);
        assert!(channels.iter().all(|channel| channel.process().is_some()));
        let [again] = &opening(&three, ("cat", false), Some(&[1])).unwrap()[..] else {
            panic!("one of them")
        };
        assert_eq!(again.name, "local 2");
        assert_ne!(again.process(), channels[1].process());
        let Channel {
            mut input,
            mut output,
            keeper,
            ..
        } = channels.remove(0);
        input.write_all(b"word").unwrap();
        drop(input);
        let mut echo = String::new();
        output.read_to_string(&mut echo).unwrap();
        assert_eq!(echo, "word");
        drop(keeper);
    }

    #[test]
    fn what_cannot_be_had_is_told_all_at_once_and_nothing_where_it_was_cancelled() {
        let here = Generators {
            local: 2,
            ..Generators::default()
        };
        let said = opening(&here, ("/no/such/program", false), None).unwrap_err();
        assert!(
            said.len() == 2 && said[1].starts_with("local 2: cannot be started: "),
            "{said:?}"
        );
        // The program for hosts is read once, and cancelling does not wait for it. Without the program no pod
        // is created.
        let program = Some("/no/such/program".into());
        let kubernetes = Some(Kubernetes {
            pods: 1,
            ..Kubernetes::default()
        });
        let ssh = vec!["a".into(), "b".into()];
        let hosts = Generators {
            local: 0,
            ssh,
            kubernetes,
            program,
            ..here
        };
        let said = opening(&hosts, ("cat", false), None).unwrap_err();
        assert!(
            said.len() == 1 && said[0].starts_with("/no/such/program: "),
            "{said:?}"
        );
        assert!(opening(&hosts, ("cat", true), None).unwrap_err().is_empty());
    }

    #[test]
    fn who_cancels_waits_for_the_thread_that_takes_pods_away_and_for_no_other() {
        let work = OpenWork {
            pods: Some(1),
            ..OpenWork::default()
        };
        let (to, news) = channel();
        let (began, is_gone) = (Instant::now(), AtomicBool::new(false));
        work.cancel(&news, |place| place == 0);
        assert!(
            began.elapsed() < DELETION_PATIENCE / 2,
            "the pods are there"
        );
        thread::scope(|scope| {
            scope.spawn(|| {
                to.send(OpenNews::Done(0, Ok(Vec::new()))).unwrap();
                thread::sleep(Duration::from_millis(50));
                is_gone.store(true, Ordering::Relaxed);
                to.send(OpenNews::Done(1, Err(Error::cancelled("pods"))))
                    .unwrap();
            });
            work.cancel(&news, |_| true);
            assert!(is_gone.load(Ordering::Relaxed) && work.is_over());
        });
        assert!(
            began.elapsed() < DELETION_PATIENCE,
            "it is told when they are gone"
        );
    }

    #[test]
    fn pods_are_opened_again_together_and_others_by_themselves() {
        let generators = Generators {
            local: 1,
            ssh: vec!["a".into(), "b".into()],
            ..Generators::default()
        };
        assert_eq!(
            together(&generators, &[0, 2, 3, 5]),
            [vec![0], vec![2], vec![3, 5]]
        );
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
        let opened = patiently(&mut third, &mut |words| told.push(words), &|error, _| {
            may_pass(error)
        });
        assert_eq!((opened.ok(), told.len()), (Some(3), 2));
        assert!(
            told[0].contains("https://c does not answer: refused"),
            "{told:?}"
        );
        let mut never = |_: &mut dyn FnMut(String)| Err::<(), _>(away());
        let for_short = |_: &Error, for_now: Duration| for_now < Duration::from_millis(10);
        assert!(patiently(&mut never, &mut |_| (), &for_short).is_err());
        assert!(!may_pass(&Error::cancelled("x")));
    }
}
