//! Which of many records were made on one machine with one software.
//!
//! What a record does not tell is no difference, so that "the same" is not the same as "known to be the same": each machine is known by all
//! that its records tell together.

use record::Environment;

use crate::across::differences;

/// For each environment the number of its machine, from 0 in the order in which they first come.
pub fn machines<'a>(environments: impl IntoIterator<Item = &'a Environment>) -> Vec<usize> {
    let mut known: Vec<Environment> = Vec::new();
    let mut number = |environment: &Environment| {
        // The latest first: after an update a machine that was never told from either belongs to what is there now.
        match known.iter().rposition(|machine| differences(machine, environment).is_empty()) {
            Some(number) => {
                learn(&mut known[number], environment);
                number
            }
            None => {
                known.push(environment.clone());
                known.len() - 1
            }
        }
    };
    environments.into_iter().map(&mut number).collect()
}

/// What one record of a machine did not tell, and another does.
fn learn(machine: &mut Environment, more: &Environment) {
    let take = |into: &mut Option<String>, from: &Option<String>| {
        if into.is_none() {
            into.clone_from(from);
        }
    };
    take(&mut machine.kernel, &more.kernel);
    take(&mut machine.libc, &more.libc);
    take(&mut machine.cpu_model, &more.cpu_model);
    take(&mut machine.governor, &more.governor);
    machine.memory_bytes = machine.memory_bytes.or(more.memory_bytes);
    for (program, version) in &more.runtimes {
        machine.runtimes.entry(program.clone()).or_insert_with(|| version.clone());
    }
    for (host, there) in &more.hosts {
        learn(machine.hosts.entry(host.clone()).or_default(), there);
    }
}

/// The letters by which lists name a machine: `A` to `Z`, then `AA`.
pub fn machine_mark(number: usize) -> String {
    let letter = char::from(b'A' + (number % 26) as u8);
    if number < 26 { letter.to_string() } else { machine_mark(number / 26 - 1) + &letter.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(kernel: Option<&str>, program: &str, version: &str) -> Environment {
        let runtimes = [(program.to_owned(), version.to_owned())].into();
        Environment { kernel: kernel.map(str::to_owned), runtimes, cpus: 2, ..Environment::default() }
    }

    #[test]
    fn a_machine_is_known_by_all_that_its_records_tell() {
        let told = [
            environment(Some("6.1"), "node", "v20"),
            environment(None, "nginx", "1.22"),
            environment(Some("6.1"), "nginx", "1.24"),
            environment(Some("6.1"), "node", "v20"),
            environment(Some("6.2"), "node", "v20"),
        ];
        // The third differs from the second, which the first had taken in.
        assert_eq!(machines(&told), [0, 0, 1, 1, 2]);
        assert_eq!([0, 25, 26, 701, 702].map(machine_mark), ["A", "Z", "AA", "ZZ", "AAA"]);
    }
}
