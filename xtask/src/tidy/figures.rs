//! Rule: numbers are formatted in one module. A format with decimals or a sign elsewhere, or a plural made by
//! hand, would sometimes print `×0.00` or `1 requests`. Works on tokens, and ignores comments.

use proc_macro2::{Delimiter, Group, LineColumn, TokenStream, TokenTree};

use super::code::ParsedCode;
use super::tree::File;
use super::{SourceTree, TidyFinding};

/// The module that formats figures.
const OWNER: &str = "crates/model/src/quantity";
/// Files that write coordinates of drawings, or numbers that only programs read.
const NOT_FOR_READERS: [&str; 5] = [
    "crates/explain/src/flame.rs",
    "crates/explain/src/write.rs",
    "crates/plan/src/limit.rs",
    "crates/report/src/html.rs",
    "crates/report/src/plot/drawing.rs",
];
const REMEDY: &str = "write it with model::quantity (many, decimal, share, change, …)";

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let judged = |file: &&File| is_judged(&file.path) && !file.is_test;
    tree.files()
        .iter()
        .filter(judged)
        .filter_map(|file| Some(figures(file, file.parsed()?)))
        .flatten()
        .collect()
}

fn is_judged(path: &str) -> bool {
    let mut folders = path.split('/');
    let is_source = folders.next() == Some("crates") && folders.nth(1) == Some("src");
    is_source && !path.starts_with(OWNER) && !NOT_FOR_READERS.contains(&path)
}

fn figures(file: &File, code: &ParsedCode) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    collect(code.tokens.clone(), &mut found);
    found.retain(|(_, place)| !code.is_test_at(*place));
    found
        .into_iter()
        .map(|(what, place)| file.finding(place.line, what.to_owned(), REMEDY))
        .collect()
}

fn collect(tokens: TokenStream, found: &mut Vec<(&'static str, LineColumn)>) {
    for token in tokens {
        match token {
            TokenTree::Literal(literal) if formats_a_figure(&literal.to_string()) => {
                found.push(("a figure is formatted here", literal.span().start()));
            }
            TokenTree::Group(group) if !is_comment(&group) => {
                if is_ending_of_a_plural(&group) {
                    found.push(("a plural is made by hand", group.span_open().start()));
                }
                collect(group.stream(), found);
            }
            TokenTree::Group(_)
            | TokenTree::Ident(_)
            | TokenTree::Punct(_)
            | TokenTree::Literal(_) => {}
        }
    }
}

/// Whether a string contains `{…:.2}`, `{…:.n$}`, `{…:.*}` or `{…:+}`. `{…:.4e}` is allowed, because it is
/// for programs.
fn formats_a_figure(literal: &str) -> bool {
    let text = literal.replace("{{", "").replace("}}", "");
    literal.contains('"')
        && text.split('{').skip(1).any(|part| {
            let of = part
                .split_once('}')
                .and_then(|(inside, _)| inside.split_once(':'))
                .map_or("", |(_, of)| of);
            let is_format = of
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "<>^+#.*_$?".contains(c));
            is_format && (of.contains('+') || of.contains('.') && !of.ends_with('e'))
        })
}

/// Whether a block contains only a plural ending: `{ "s" }`.
fn is_ending_of_a_plural(group: &Group) -> bool {
    let text = group.stream().to_string();
    group.delimiter() == Delimiter::Brace && ["\"s\"", "\"es\""].contains(&text.as_str())
}

/// Whether a group is a doc comment: `[doc = "…"]`.
fn is_comment(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket && first.is_some_and(|first| first.to_string() == "doc")
}
