//! The generator's side: carries out what comes on its input, and tells what came of it on its output.
//!
//! One thread reads orders and answers pings at once, also while a window runs; another loads. When the input ends, so does the window
//! under way: a generator that nobody hears any more must not load a service. Silence ends it, too, whatever both are doing: where a network
//! was cut no input ends, and what is written goes nowhere.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use load::{Generator, Interrupt, LoadError, LoadSpec, Until};

use crate::generators::clock::monotonic_ns;
use crate::generators::silence::{LastWord, Watched};
use crate::generators::{Answer, Order, ServeError, VERSION, line};

/// How long the window under way may take to end once nobody is there any more. What is left of it then ends with the process.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// What a generator tells of its machine.
#[derive(Debug, Clone)]
pub struct Host {
    /// Version of the program.
    pub proofload: String,
    /// Name of the machine.
    pub name: String,
    /// Processors that the generator may use.
    pub processors: u32,
    /// Reads the CPU time of all processors so far, and what of it the machine's host gave to others, in the same unit; `None` where the
    /// kernel does not say.
    pub cpu_and_steal: fn() -> Option<(u64, u64)>,
    /// How long whoever gives orders may be silent, once there was one, before we take them for dead.
    pub lease: Duration,
}

/// Serves until the input ends, says so, or is silent for too long.
///
/// # Errors
/// If the output cannot be written, or nobody is there any more. What comes in and cannot be carried out is answered, and no error here.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    host: &Host,
) -> Result<(), ServeError> {
    let (output, wish) = (Output(Arc::new(Mutex::new(output))), Arc::new(Mutex::new(Wish::default())));
    let (heard, orders) = channel();
    let last = LastWord::default();
    let (pings, ending, to) = (output.clone(), wish.clone(), heard.clone());
    let input = Watched::new(input, last.clone());
    // It ends with the input, or with the process: reading a terminal cannot be broken off.
    std::thread::Builder::new().name("orders".into()).spawn(move || listen(input, &pings, &ending, &to))?;
    let (carrying, here, (done, ended)) = (wish.clone(), host.clone(), channel());
    // It too: writing to who reads no more cannot be broken off either.
    let carry = move || drop(done.send(served(&orders, &output, &carrying, &here)));
    std::thread::Builder::new().name("serve".into()).spawn(carry)?;
    loop {
        let left = last.left(host.lease, monotonic_ns());
        match ended.recv_timeout(left) {
            Ok(served) => return served.map_err(ServeError::from),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            // Or it has panicked, and said so.
            Err(_) => {
                end(&wish, &heard);
                let _ = ended.recv_timeout(END_PATIENCE);
                return Err(ServeError::Silent { lease: host.lease });
            }
        }
    }
}

fn served<W: Write>(
    orders: &Receiver<io::Result<Order>>,
    output: &Output<W>,
    wish: &Mutex<Wish>,
    host: &Host,
) -> io::Result<()> {
    match carry_out(orders, output, wish, host) {
        Ok(()) => output.tell(&Answer::Ended),
        Err(Ending::Unwritable(error)) => Err(error),
        Err(Ending::Refused { message, by_specification }) => {
            output.tell(&Answer::Failed { message, by_specification })
        }
    }
}

/// Why serving ends early.
enum Ending {
    Unwritable(io::Error),
    Refused { message: String, by_specification: bool },
}

impl From<io::Error> for Ending {
    fn from(error: io::Error) -> Ending {
        Ending::Unwritable(error)
    }
}

/// The wish to end, which may come before there is anything to interrupt.
#[derive(Default)]
struct Wish {
    ended: bool,
    generator: Option<Interrupt>,
}

struct Output<W>(Arc<Mutex<W>>);

impl<W> Clone for Output<W> {
    fn clone(&self) -> Output<W> {
        Output(self.0.clone())
    }
}

impl<W: Write> Output<W> {
    fn tell(&self, answer: &Answer) -> io::Result<()> {
        line::write(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), answer)
    }
}

/// Reads orders until there are no more, and then ends what is under way.
fn listen<W: Write>(
    mut input: impl BufRead,
    output: &Output<W>,
    wish: &Mutex<Wish>,
    heard: &Sender<io::Result<Order>>,
) {
    loop {
        match line::read::<Order>(&mut input) {
            Ok(Some(Order::Ping(ping))) => {
                let pong = Answer::Pong { ping, clock_ns: monotonic_ns() };
                if output.tell(&pong).is_err() {
                    break;
                }
            }
            Ok(Some(Order::Beat)) => {}
            Ok(Some(Order::End) | None) => break,
            Ok(Some(order)) => drop(heard.send(Ok(order))),
            Err(error) => {
                drop(heard.send(Err(error)));
                break;
            }
        }
    }
    end(wish, heard);
}

/// Ends the window under way, and then what carries out orders.
fn end(wish: &Mutex<Wish>, orders: &Sender<io::Result<Order>>) {
    let mut wish = wish.lock().unwrap_or_else(PoisonError::into_inner);
    wish.ended = true;
    if let Some(generator) = &wish.generator {
        generator.stop();
    }
    // It may have ended by itself.
    let _ = orders.send(Ok(Order::End));
}

fn carry_out<W: Write>(
    orders: &Receiver<io::Result<Order>>,
    output: &Output<W>,
    wish: &Mutex<Wish>,
    host: &Host,
) -> Result<(), Ending> {
    let mut generator: Option<Generator> = None;
    let mut prepared: Option<(u64, Until)> = None;
    while let Ok(order) = orders.recv() {
        match (order.map_err(not_understood)?, prepared.take(), &mut generator) {
            // Also to who speaks another version: so it learns which one is spoken here.
            (Order::Hello { .. }, ..) => output.tell(&ready(host))?,
            (Order::Begin { spec }, _, generator) => {
                // First, so that its connections are closed before there are others.
                *generator = None;
                match begun(*spec, wish)? {
                    Some(begun) => *generator = Some(begun),
                    None => return Ok(()),
                }
                output.tell(&Answer::Begun)?;
            }
            (Order::Prepare { number, until }, _, Some(generator)) => {
                generator.prepare(until);
                prepared = Some((number, until));
                output.tell(&Answer::Prepared { number })?;
            }
            (Order::Run { number, start_at_ns }, Some((ready, until)), Some(generator))
                if ready == number =>
            {
                output.tell(&window(generator, number, until, start_at_ns, host))?;
            }
            (Order::Rest, _, generator) => {
                *generator = None;
                output.tell(&Answer::Resting)?;
            }
            (Order::Prepare { .. }, _, None) => {
                return Err(wrong(
                    "nothing is to be loaded yet: {\"begin\":{\"spec\":{…}}} comes first".into(),
                ));
            }
            (Order::Run { number, .. }, ..) => {
                return Err(wrong(format!("window {number} was not prepared")));
            }
            (Order::End, ..) => return Ok(()),
            // Heard by the reading thread alone.
            (Order::Ping(_) | Order::Beat, ..) => {}
        }
    }
    Ok(())
}

fn ready(host: &Host) -> Answer {
    let Host { proofload, name, processors, .. } = host.clone();
    Answer::Ready { version: VERSION, proofload, host: name, processors }
}

/// The generator of a specification, which a wish to end interrupts from now on; `None` where that came before.
fn begun(spec: LoadSpec, wish: &Mutex<Wish>) -> Result<Option<Generator>, Ending> {
    let generator = Generator::start(spec).map_err(refused)?;
    let mut wish = wish.lock().unwrap_or_else(PoisonError::into_inner);
    wish.generator = Some(generator.interrupt());
    Ok((!wish.ended).then_some(generator))
}

fn window(generator: &mut Generator, number: u64, until: Until, start_at_ns: u64, host: &Host) -> Answer {
    let before = (host.cpu_and_steal)();
    let mut counts = generator.load(until, start_at_ns);
    let steal_share = steal_share(before, (host.cpu_and_steal)());
    counts.pack();
    let late_ns = if start_at_ns == 0 { 0 } else { counts.started_ns.saturating_sub(start_at_ns) };
    Answer::Slice { number, late_ns, steal_share, counts: Box::new(counts) }
}

fn steal_share(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<f64> {
    let ((all_before, steal_before), (all, steal)) = before.zip(after)?;
    let passed = all.saturating_sub(all_before);
    (passed > 0).then(|| steal.saturating_sub(steal_before) as f64 / passed as f64)
}

fn refused(error: LoadError) -> Ending {
    let by_specification = matches!(error, LoadError::Spec { .. });
    Ending::Refused { message: error.to_string(), by_specification }
}

fn not_understood(error: io::Error) -> Ending {
    wrong(format!("not understood: {error}"))
}

fn wrong(message: String) -> Ending {
    Ending::Refused { message, by_specification: true }
}
