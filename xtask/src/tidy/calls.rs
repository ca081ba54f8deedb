//! Rule: calls that end a program or print are allowed only in specific places. Works on tokens, so that
//! calls within macro arguments count and comments and strings do not.

use proc_macro2::{Delimiter, Group, LineColumn, TokenStream, TokenTree};

use super::code::ParsedCode;
use super::tree::File;
use super::{SourceTree, TidyFinding};

/// A call that is forbidden except where `allowed`.
struct Ban {
    call: &'static str,
    allowed: fn(&File) -> bool,
    in_tests: bool,
    remedy: &'static str,
}

const UNWRAP: Ban = Ban {
    call: ".unwrap()",
    allowed: |_| false,
    in_tests: true,
    remedy: "return an error, or for what cannot fail expect(\"the reason\")",
};
const EXIT: Ban = Ban {
    call: "process::exit",
    allowed: |file| file.path == "crates/cli/src/main.rs",
    in_tests: false,
    remedy: "return an error or an exit code; only main of crates/cli ends the program",
};
const PRINT: Ban = Ban {
    call: "a print macro",
    allowed: may_print,
    in_tests: true,
    remedy: "return the text or send an event; only crates/cli writes to the terminal",
};
const DEBUG: Ban = Ban {
    call: "dbg!",
    allowed: |_| false,
    in_tests: false,
    remedy: "take it out",
};
const UNWRITTEN: Ban = Ban {
    call: "a stand-in for code",
    allowed: |_| false,
    in_tests: false,
    remedy: "write it, or leave the case out of the type",
};

/// Also matches clap's type of the same name.
const PROGRAM: Ban = Ban {
    call: "Command::new",
    allowed: may_start_programs,
    in_tests: true,
    remedy: "start it with machine::command, so that it gets no token of a CI job",
};

const TEMPORARY: Ban = Ban {
    call: "tempfile::tempdir",
    allowed: |file| !file.path.starts_with("crates/"),
    in_tests: true,
    remedy: "make it with machine::temporary_folder: that of tempfile can be read by all users",
};

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    tree.files()
        .iter()
        .filter_map(|file| Some(banned_calls(file, file.parsed()?)))
        .flatten()
        .collect()
}

fn banned_calls(file: &File, code: &ParsedCode) -> Vec<TidyFinding> {
    let mut calls = Vec::new();
    collect(code.tokens.clone(), &mut calls);
    let is_allowed = |ban: &Ban, place: LineColumn| {
        (ban.allowed)(file) || ban.in_tests && (file.is_test || code.is_test_at(place))
    };
    calls.retain(|(ban, place)| !is_allowed(ban, *place));
    let finding = |(ban, place): (Ban, LineColumn)| {
        file.finding(
            place.line,
            format!("{} is not used here", ban.call),
            ban.remedy,
        )
    };
    calls.into_iter().map(finding).collect()
}

// Build scripts communicate with cargo by printing. xtask, examples and benches are run by people.
fn may_print(file: &File) -> bool {
    ["crates/cli/", "xtask/", "bench/"]
        .iter()
        .any(|root| file.path.starts_with(root))
        || ["examples", "benches"]
            .iter()
            .any(|folder| file.is_below(folder))
        || file.name() == "build.rs"
}

// `machine` implements the rule. A warden already has its environment from it, and SSH, kubectl and a browser
// act as the user.
fn may_start_programs(file: &File) -> bool {
    const FILES: [&str; 6] = [
        "crates/machine/src/programs.rs",
        "crates/services/src/warden/tree.rs",
        "crates/remote/src/ssh.rs",
        "crates/remote/src/ssh/talk.rs",
        "crates/remote/src/kubernetes/attach.rs",
        "crates/cli/src/report.rs",
    ];
    // The parser of `load --as`.
    const PARSER: &str = "crates/cli/src/load.rs";
    FILES.contains(&&*file.path)
        || file.path == PARSER
        || !file.path.starts_with("crates/")
        || file.is_below("examples")
}

/// Collects all calls in the table from the tokens, at any depth, with their positions.
fn collect(tokens: TokenStream, calls: &mut Vec<(Ban, LineColumn)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        if let Some(ban) = ban_at(&tokens[index..]) {
            calls.push((ban, token.span().start()));
        }
        if let TokenTree::Group(group) = token {
            collect(group.stream(), calls);
        }
    }
}

fn ban_at(tokens: &[TokenTree]) -> Option<Ban> {
    use TokenTree::{Group, Ident, Punct};
    match tokens {
        [Ident(name), Punct(bang), Group(_), ..] if bang.as_char() == '!' => {
            macro_ban(&name.to_string())
        }
        [Punct(dot), Ident(name), Group(arguments), ..]
            if dot.as_char() == '.' && name == "unwrap" =>
        {
            is_empty_call(arguments).then_some(UNWRAP)
        }
        // As a function by path: `Option::unwrap`.
        [Punct(colon), Ident(name), ..] if colon.as_char() == ':' && name == "unwrap" => {
            Some(UNWRAP)
        }
        [Ident(module), Punct(first), Punct(second), last, ..]
            if module == "Command" && first.as_char() == ':' && second.as_char() == ':' =>
        {
            matches!(last, Ident(name) if name == "new").then_some(PROGRAM)
        }
        [Ident(module), Punct(first), Punct(second), last, ..]
            if module == "tempfile" && first.as_char() == ':' && second.as_char() == ':' =>
        {
            matches!(last, Ident(name) if name == "tempdir").then_some(TEMPORARY)
        }
        [Ident(module), Punct(first), Punct(second), last, ..]
            if module == "process" && first.as_char() == ':' && second.as_char() == ':' =>
        {
            names_exit(last).then_some(EXIT)
        }
        _ => None,
    }
}

fn macro_ban(name: &str) -> Option<Ban> {
    match name {
        "print" | "println" | "eprint" | "eprintln" => Some(PRINT),
        "dbg" => Some(DEBUG),
        "todo" | "unimplemented" => Some(UNWRITTEN),
        _ => None,
    }
}

fn is_empty_call(arguments: &Group) -> bool {
    arguments.delimiter() == Delimiter::Parenthesis && arguments.stream().is_empty()
}

/// `exit` itself, or an import list that contains it.
fn names_exit(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(name) => name == "exit",
        TokenTree::Group(list) => list.stream().into_iter().any(|token| names_exit(&token)),
        _ => false,
    }
}
