//! Sampling of real processes: running code is found in the right module and thread, with CPU time that
//! matches the kernel's accounting. If perf events are not allowed, each test reports that it was skipped.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use proofload_explain::perf::{StackSampler, allowed};
use proofload_explain::{NativeProfile, NativeStack};

/// CPU time for which a child is sampled.
const SAMPLED_NS: u64 = 500_000_000;

/// Whether sampling is allowed. Prints a message if not.
fn is_allowed() -> bool {
    let Err(error) = allowed() else { return true };
    let (hint, thread) = (error.hint().unwrap_or_default(), std::thread::current());
    let test = thread.name().unwrap_or_default();
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {test}: nothing was tested: {error}; {hint}"
    );
    false
}

/// A child that is killed at the end of the test.
struct Busy(Child);

impl Busy {
    fn start(program: &str, arguments: &[&str], output: Stdio) -> Busy {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(output)
            .spawn();
        Busy(child.unwrap_or_else(|error| panic!("{program}: {error}")))
    }

    /// Starts Node.js and waits until it prints a line.
    fn node(script: &str) -> Busy {
        let mut busy = Busy::start("node", &["-e", script], Stdio::piped());
        let mut line = String::new();
        BufReader::new(busy.0.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        busy
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it has used this much more CPU time. Returns the amount.
    fn burn(&self, ns: u64) -> u64 {
        let now = || machine::process::cpu_ns(self.pid()).unwrap_or(0);
        let (begin, start) = (now(), Instant::now());
        while now() < begin + ns {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "it used {} of {ns} ns",
                now() - begin
            );
            sleep(Duration::from_millis(10));
        }
        now() - begin
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.end();
    }
}

fn samples(profile: &NativeProfile) -> u64 {
    profile.stacks.iter().map(|stack| stack.samples).sum()
}

/// Asserts that samples match the CPU time, within the deviations caused by other load and a hypervisor.
fn assert_accounts_for(profile: &NativeProfile, used_ns: u64) {
    let seen_ns = samples(profile) * profile.period_ns;
    let ratio = seen_ns as f64 / used_ns as f64;
    assert!(
        (0.5..1.3).contains(&ratio),
        "{seen_ns} ns sampled of {used_ns} ns used; lost {}",
        profile.lost
    );
}

/// Share of the samples whose stack matches.
fn share(profile: &NativeProfile, is_like: impl Fn(&NativeStack) -> bool) -> f64 {
    let like: u64 = profile
        .stacks
        .iter()
        .filter(|stack| is_like(stack))
        .map(|stack| stack.samples)
        .sum();
    like as f64 / samples(profile) as f64
}

/// Name and module of the function that ran.
fn leaf<'p>(profile: &'p NativeProfile, stack: &NativeStack) -> (&'p str, &'p str) {
    let frame = &profile.frames[*stack.frames.last().unwrap() as usize];
    (&frame.name, &frame.module)
}

#[test]
fn crypto_of_node_is_found_by_its_function_in_its_main_thread_and_in_those_that_start_later() {
    if !is_allowed() {
        return;
    }
    let main = "console.log('ready'); for (;;) require('crypto').pbkdf2Sync('secret', 'salt', 20000, 64, 'sha512')";
    // libuv starts its threads on first use.
    let pool = "console.log('ready'); const { pbkdf2 } = require('crypto'); \
                const again = () => pbkdf2('secret', 'salt', 20000, 64, 'sha512', again); \
                process.stdin.once('data', () => { again(); again() })";
    for (script, in_main) in [(main, true), (pool, false)] {
        let mut busy = Busy::node(script);
        let sampler = StackSampler::start(&[busy.pid()]).unwrap();
        busy.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let used_ns = busy.burn(SAMPLED_NS);
        let [profile] = <[NativeProfile; 1]>::try_from(sampler.stop()).unwrap();
        assert_accounts_for(&profile, used_ns);
        let ran = |stack: &NativeStack| leaf(&profile, stack);
        // Linked into node, or the system's library.
        let in_module =
            |stack: &NativeStack| ran(stack).1 == "node" || ran(stack).1.starts_with("libcrypto");
        let in_function = |stack: &NativeStack| ran(stack).0.to_lowercase().contains("sha512");
        let in_thread = |stack: &NativeStack| (stack.thread == busy.pid()) == in_main;
        let shares = [
            share(&profile, in_module),
            share(&profile, |of| in_thread(of) && in_function(of)),
        ];
        assert!(
            shares[0] > 0.8 && shares[1] > 0.4,
            "{shares:?}: {profile:?}"
        );
        assert!(
            !in_main
                || share(&profile, |of| in_thread(of)
                    && of.thread_name.starts_with("node"))
                    > 0.8
        );
        assert!(
            profile
                .stacks
                .iter()
                .all(|stack| !stack.thread_name.is_empty()),
            "{:?}",
            profile.stacks
        );
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(
            serde_json::from_str::<NativeProfile>(&text).unwrap(),
            profile
        );
    }
}

#[test]
fn a_program_that_ends_meanwhile_keeps_its_names_beside_one_that_lives() {
    if !is_allowed() {
        return;
    }
    let mut first = Busy::start("sha256sum", &["/dev/zero"], Stdio::null());
    let second = Busy::start("gzip", &["-9", "-c", "/dev/zero"], Stdio::null());
    first.burn(50_000_000);
    second.burn(50_000_000);
    let pids = [first.pid(), second.pid(), first.pid()];
    let sampler = StackSampler::start(&pids).unwrap();
    let used_ns = first.burn(SAMPLED_NS);
    first.end();
    second.burn(50_000_000);
    let gone = StackSampler::start(&[first.pid()]).err().unwrap();
    assert_eq!(
        gone.to_string(),
        format!("process {} cannot be sampled: it is not there", first.pid())
    );
    let profiles = sampler.stop();
    assert_eq!(
        profiles
            .iter()
            .map(|profile| profile.pid)
            .collect::<Vec<_>>(),
        pids[..2]
    );
    assert!(
        StackSampler::start(&[first.pid(), second.pid()]).is_ok(),
        "one of them is there"
    );
    assert_accounts_for(&profiles[0], used_ns);
    for (profile, module) in profiles.iter().zip(["sha256sum", "gzip"]) {
        let in_module = |stack: &NativeStack| leaf(profile, stack).1;
        let own = share(profile, |of| {
            in_module(of) == module || in_module(of).starts_with("libcrypto")
        });
        let kernel = share(profile, |of| in_module(of) == "[kernel]");
        // The kernel generates their zeros.
        assert!(own > 0.3 && own + kernel > 0.9, "{module}: {profile:?}");
        assert!(
            profile
                .stacks
                .iter()
                .all(|stack| stack.thread_name == module),
            "{:?}",
            profile.stacks
        );
        assert!(profile.end_ns > profile.start_ns && profile.period_ns == 1_001_000);
    }
}

#[test]
fn the_kernels_functions_have_names_where_it_shows_them() {
    if !is_allowed() {
        return;
    }
    let busy = Busy::start(
        "dd",
        &["if=/dev/zero", "of=/dev/null", "bs=1"],
        Stdio::null(),
    );
    busy.burn(50_000_000);
    let sampler = StackSampler::start(&[busy.pid()]).unwrap();
    busy.burn(SAMPLED_NS);
    let profile = sampler.stop().swap_remove(0);
    let kernel = profile
        .frames
        .iter()
        .filter(|frame| frame.module == "[kernel]");
    let kernel: Vec<&str> = kernel.map(|frame| frame.name.as_str()).collect();
    if let Some(note) = profile.notes.first() {
        // If the kernel is not sampled or not named, there are no names.
        assert!(
            kernel.iter().all(|name| *name == "[unknown]"),
            "{note}: {kernel:?}"
        );
    } else {
        assert!(
            kernel.iter().any(|name| name.contains("read")),
            "{kernel:?}"
        );
        // The caller is nearer to the root: the system call is above the function it runs.
        let deepest = profile
            .stacks
            .iter()
            .max_by_key(|stack| stack.frames.len())
            .unwrap();
        assert_eq!(
            leaf(&profile, deepest).1,
            "[kernel]",
            "{:?}",
            profile.stacks
        );
    }
}
