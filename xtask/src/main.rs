//! `cargo xtask`: repository chores as a program, so that they are reviewed and tested like the rest of the
//! code. This file only parses arguments and prints. It does not implement rules, and nothing shipped may
//! depend on it.

use std::path::Path;
use std::process::ExitCode;

mod seeds;
mod tidy;

/// The parent folder of this crate.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const USAGE: &str = "\
usage: cargo xtask tidy [FOLDER]    the house rules over the tree (by default this repository)
       cargo xtask seeds FOLDER     what the tests know as seeds, in a folder for each fuzz target";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => run_tidy(Path::new(ROOT)),
        ["tidy", folder] if !folder.starts_with('-') => run_tidy(Path::new(folder)),
        ["seeds", folder] if !folder.starts_with('-') => write_seeds(Path::new(folder)),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => failed(USAGE),
    }
}

fn run_tidy(root: &Path) -> ExitCode {
    let tree = match tidy::SourceTree::read(root) {
        Ok(tree) => tree,
        Err(error) => return failed(&format!("cannot read {}: {error}", root.display())),
    };
    let violations = tidy::violations(&tree);
    violations
        .iter()
        .for_each(|violation| println!("{violation}"));
    println!(
        "tidy: {} files, {} violations",
        tree.files().len(),
        violations.len()
    );
    if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn write_seeds(folder: &Path) -> ExitCode {
    match seeds::write(folder) {
        Ok(count) => println!("seeds: {count} in {}", folder.display()),
        Err(error) => {
            return failed(&format!(
                "cannot write seeds to {}: {error}",
                folder.display()
            ));
        }
    }
    ExitCode::SUCCESS
}

fn failed(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(2)
}
