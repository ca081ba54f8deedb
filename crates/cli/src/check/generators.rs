//! Where load will come from, and how it is divided: in words, without reaching for anybody.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};

use load::{Address, LoadSpec};
use plan::{Generators, Plan};
use report::count;

/// Shares that are written one by one; of more generators as many as have the same.
const LISTED_MAX: usize = 8;

/// Some lines, or nothing where load comes from this process.
pub fn lines(plan: &Plan) -> String {
    let mut out = String::new();
    let generators = &plan.generators;
    if generators.is_here() {
        return out;
    }
    let reached = generators.address.map(|address| format!(", which reach this machine by {address}"));
    let _ = writeln!(
        out,
        "\nload from {}: {}{}",
        plural(generators.count().into(), "generator"),
        names(generators),
        reached.unwrap_or_default()
    );
    let numbers: BTreeSet<u32> = plan.variants.iter().map(|variant| variant.load.connections).collect();
    for connections in numbers {
        let divided = divided(connections, generators.count());
        let _ = writeln!(out, "  {}: {divided}", plural(connections.into(), "connection"));
    }
    if plan.design.rate.is_some() {
        let _ = writeln!(out, "  requests that are due are dealt to all their threads in turn");
    }
    out
}

fn names(generators: &Generators) -> String {
    let local = match generators.local {
        0 => None,
        1 => Some("1 on this machine".to_owned()),
        many => Some(format!("{many} on this machine")),
    };
    let cluster = generators.kubernetes.as_ref().map(|cluster| {
        let context = cluster.context.as_ref().map(|context| format!(" in {context}"));
        format!("{} of {}{}", plural(cluster.pods.into(), "pod"), cluster.image, context.unwrap_or_default())
    });
    let all = local.into_iter().chain(generators.ssh.iter().cloned()).chain(cluster);
    all.collect::<Vec<_>>().join(", ")
}

/// As the engine will divide them: `334 + 333 + 333`, or `4 × 101 + 96 × 100`.
fn divided(connections: u32, generators: u32) -> String {
    // Nobody is there yet who could be loaded.
    let nowhere = Address::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let all = LoadSpec { connections, ..LoadSpec::new(nowhere, Vec::new()) };
    let parts: Vec<u32> = all.divided(generators, 1).iter().map(|part| part.connections).collect();
    if parts.len() <= LISTED_MAX {
        return parts.iter().map(|part| count((*part).into())).collect::<Vec<_>>().join(" + ");
    }
    let runs = parts.chunk_by(|one, other| one == other);
    let runs = runs.filter_map(|run| Some(format!("{} × {}", run.len(), count((*run.first()?).into()))));
    runs.collect::<Vec<_>>().join(" + ")
}

fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::divided;

    #[test]
    fn shares_add_up_however_they_are_written() {
        assert_eq!(divided(1000, 3), "334 + 333 + 333");
        assert_eq!(divided(10_004, 100), "4 × 101 + 96 × 100");
        assert_eq!(divided(64_000, 64), "64 × 1,000");
    }
}
