//! Writes flame pages and drawings of a made-up explanation into a folder, to look at while working on them. Nothing shipped may
//! use it.
//!
//! `cargo run -p proofload-report --example flame_page FOLDER`

use std::path::Path;
use std::{env, fs, io};

use proofload_report::flame;

#[path = "../tests/report/explained.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod explained;

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).ok_or_else(|| io::Error::other("usage: flame_page FOLDER"))?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let (simple, full) = (explained::simple(), explained::full());
    let (one, other) = (&simple.subjects[0], &simple.subjects[1]);
    let names = (one.variant.as_str(), other.variant.as_str());
    fs::write(
        folder.join("simple.html"),
        flame::page(&simple, "Log-in: hash on the main thread or in the pool"),
    )?;
    fs::write(folder.join("full.html"), flame::page(&full, "Log-in: three ways to hash"))?;
    let alone = [("server.cpuprofile", &one.tree)];
    fs::write(folder.join("alone.html"), flame::page_of_trees(&alone, "ms", "server.cpuprofile"))?;
    fs::write(folder.join("vast.html"), flame::page(&explained::vast(), "Four vast profiles"))?;
    fs::write(folder.join("one.svg"), flame::svg(&one.tree, names.0))?;
    let difference = flame::svg_difference((names.0, &one.tree), (names.1, &other.tree), "Log-in");
    fs::write(folder.join("difference.svg"), difference)
}
