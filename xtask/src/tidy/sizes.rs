//! Rule: limits the lines of files and functions. Tests, generated files (`@generated` in the first lines)
//! and vendored files may be longer. Files that are not source code are not counted.

use super::code::Function;
use super::tree::File;
use super::{Finding, Tree};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const GENERATED_WITHIN_LINES: usize = 5;
const SOURCE_EXTENSIONS: [&str; 9] = ["rs", "js", "cjs", "mjs", "ts", "css", "pug", "py", "sh"];

pub fn find(tree: &Tree) -> Vec<Finding> {
    let judged = tree.files().iter().filter(|file| !is_exempt(file));
    judged.flat_map(|file| long_file(file).into_iter().chain(long_functions(file))).collect()
}

fn is_exempt(file: &File) -> bool {
    let generated = file.text.lines().take(GENERATED_WITHIN_LINES).any(|line| line.contains("@generated"));
    file.is_test || generated || file.is_below("vendor")
}

fn long_file(file: &File) -> Option<Finding> {
    let is_source = file.extension().is_some_and(|extension| SOURCE_EXTENSIONS.contains(&extension));
    let lines = file.text.lines().count();
    let remedy = "divide it by what it does; long tests go to a sibling tests.rs";
    let what = format!("{lines} lines, at most {FILE_LINES_MAX}");
    (is_source && lines > FILE_LINES_MAX).then(|| file.finding(FILE_LINES_MAX + 1, what, remedy))
}

fn long_functions(file: &File) -> Vec<Finding> {
    let Some(code) = file.parsed() else { return Vec::new() };
    let functions = code.functions.iter();
    let too_long = functions.filter(|one| one.lines > FUNCTION_LINES_MAX && !code.is_test_at(one.start));
    let finding = |one: &Function| {
        let what = format!("`{}` has {} lines, at most {FUNCTION_LINES_MAX}", one.name, one.lines);
        file.finding(one.start.line, what, "push decisions up and loops down into functions of their own")
    };
    too_long.map(finding).collect()
}
