//! Rule: files and functions have a maximum size, so that a file fits in a reader's head and a function on
//! a screen. Rust is measured in tokens, which do not depend on formatting, and other languages in lines.
//! Tests, generated files (`@generated` in the first lines) and vendored files may be longer. Files that are
//! not read as code, such as data, are not measured.

use super::code::{Function, ParsedCode};
use super::tree::File;
use super::{SourceTree, TidyFinding};

const FILE_TOKENS_MAX: usize = 7000;
const FUNCTION_TOKENS_MAX: usize = 1_100;
const FILE_LINES_MAX: usize = 600;
const GENERATED_WITHIN_LINES: usize = 5;
const SOURCE_EXTENSIONS: [&str; 8] = ["js", "cjs", "mjs", "ts", "css", "pug", "py", "sh"];
const REMEDY: &str = "divide it by what it does; long tests go to a sibling tests.rs";

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let judged = tree.files().iter().filter(|file| !is_exempt(file));
    let findings = |file: &File| match file.parsed() {
        Some(code) => large_code(file, code),
        None => long_file(file).into_iter().collect(),
    };
    judged.flat_map(findings).collect()
}

fn is_exempt(file: &File) -> bool {
    let generated = file
        .text
        .lines()
        .take(GENERATED_WITHIN_LINES)
        .any(|line| line.contains("@generated"));
    file.is_test || generated || file.is_below("vendor")
}

fn long_file(file: &File) -> Option<TidyFinding> {
    let is_source = file
        .extension()
        .is_some_and(|extension| SOURCE_EXTENSIONS.contains(&extension));
    let lines = file.text.lines().count();
    let what = format!("{lines} lines, at most {FILE_LINES_MAX}");
    (is_source && lines > FILE_LINES_MAX).then(|| file.finding(FILE_LINES_MAX + 1, what, REMEDY))
}

fn large_code(file: &File, code: &ParsedCode) -> Vec<TidyFinding> {
    let whole = code.size();
    let what = format!("{whole} tokens, at most {FILE_TOKENS_MAX}");
    let large = (whole > FILE_TOKENS_MAX).then(|| file.finding(1, what, REMEDY));
    let function = |one: &Function| {
        let tokens = code.size_of(one);
        let what = format!(
            "`{}` has {tokens} tokens, at most {FUNCTION_TOKENS_MAX}",
            one.name
        );
        let remedy = "push decisions up and loops down into functions of their own";
        (tokens > FUNCTION_TOKENS_MAX).then(|| file.finding(one.start.line, what, remedy))
    };
    let functions = code
        .functions
        .iter()
        .filter(|one| !code.is_test_at(one.start))
        .filter_map(function);
    large.into_iter().chain(functions).collect()
}
