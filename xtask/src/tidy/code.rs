//! A parsed Rust file: its tokens, its functions, and its test-only parts. The file is parsed and not
//! searched, so that strings and comments are never mistaken for code. This module does not know the rules.

use proc_macro2::{Group, LineColumn, Span, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Ident, ImplItem, Item, Meta, Path, Signature, Token, TraitItem, UseName, UseRename,
    UseTree,
};

use super::tree::File;
use super::{SourceTree, TidyFinding};

/// The parts of a Rust file that rules use.
pub struct ParsedCode {
    pub tokens: TokenStream,
    pub functions: Vec<Function>,
    /// Names of modules declared as `#[cfg(test)] mod name;`, whose code is in separate files.
    pub test_modules: Vec<String>,
    /// Types defined here: structs, enums, unions, traits and aliases, but not types defined by macros.
    pub types: Vec<(String, LineColumn)>,
    /// Paths that begin with `crate`, `self` or `super`, in imports and in code.
    pub paths: Vec<(Vec<String>, LineColumn)>,
    test_spans: Vec<(LineColumn, LineColumn)>,
    /// Where each token begins, in order; comments have none.
    starts: Vec<LineColumn>,
}

/// A function with a body, from its signature to its closing brace.
pub struct Function {
    pub name: String,
    pub start: LineColumn,
    end: LineColumn,
}

impl ParsedCode {
    pub fn parse(text: &str) -> syn::Result<Self> {
        let syntax = syn::parse_file(text)?;
        let (functions, test_modules, test_spans) = (Vec::new(), Vec::new(), Vec::new());
        let (tokens, mut starts) = (text.parse::<TokenStream>()?, Vec::new());
        collect_starts(tokens.clone(), &mut starts);
        let mut code = Self {
            tokens,
            functions,
            test_modules,
            types: Vec::new(),
            paths: Vec::new(),
            test_spans,
            starts,
        };
        if is_for_tests(&syntax.attrs) {
            code.mark_test(syntax.span());
        }
        code.visit_file(&syntax);
        Ok(code)
    }

    /// Whether this position is inside a test-only item.
    pub fn is_test_at(&self, place: LineColumn) -> bool {
        self.test_spans
            .iter()
            .any(|(start, end)| (start..=end).contains(&&place))
    }

    /// Number of tokens outside of test-only code.
    pub fn size(&self) -> usize {
        self.starts
            .iter()
            .filter(|start| !self.is_test_at(**start))
            .count()
    }

    /// Number of tokens of a function.
    pub fn size_of(&self, function: &Function) -> usize {
        let before = |place: LineColumn| self.starts.partition_point(|start| *start < place);
        before(function.end) - before(function.start)
    }

    fn add_type(&mut self, name: &Ident) {
        self.types.push((name.to_string(), name.span().start()));
    }

    /// Adds the paths of an import that begin within this crate.
    fn add_imports(&mut self, mut prefix: Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.add_imports(prefix, &path.tree);
            }
            UseTree::Group(group) => {
                let mut each = |tree| self.add_imports(prefix.clone(), tree);
                group.items.iter().for_each(&mut each);
            }
            UseTree::Name(UseName { ident }) | UseTree::Rename(UseRename { ident, .. }) => {
                prefix.push(ident.to_string());
                self.add_path(prefix, ident.span().start());
            }
            UseTree::Glob(glob) => self.add_path(prefix, glob.span().start()),
        }
    }

    fn add_path(&mut self, path: Vec<String>, start: LineColumn) {
        let is_own = |first: &String| ["crate", "self", "super"].contains(&first.as_str());
        if path.first().is_some_and(is_own) {
            self.paths.push((path, start));
        }
    }

    fn mark_test(&mut self, span: Span) {
        self.test_spans.push((span.start(), span.end()));
    }

    fn add_function(&mut self, signature: &Signature, end: LineColumn) {
        let start = signature.span().start();
        self.functions.push(Function {
            name: signature.ident.to_string(),
            start,
            end,
        });
    }
}

/// Collects the positions where tokens begin. An opening and a closing bracket count as one token each. Doc
/// comments, which are attributes here, are left out.
fn collect_starts(tokens: TokenStream, starts: &mut Vec<LineColumn>) {
    let mut is_attribute = false;
    for token in tokens {
        let is_doc = |group: &Group| {
            group
                .stream()
                .into_iter()
                .next()
                .is_some_and(|first| first.to_string() == "doc")
        };
        match &token {
            TokenTree::Group(group) if is_attribute && is_doc(group) => {
                starts.pop();
            }
            TokenTree::Group(group) => {
                starts.push(group.span_open().start());
                collect_starts(group.stream(), starts);
                starts.push(group.span_close().start());
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {
                starts.push(token.span().start());
            }
        }
        is_attribute =
            matches!(&token, TokenTree::Punct(mark) if ['#', '!'].contains(&mark.as_char()));
    }
}

impl<'ast> Visit<'ast> for ParsedCode {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes_of(item)) {
            self.mark_test(item.span());
            if let Item::Mod(module) = item
                && module.content.is_none()
            {
                self.test_modules.push(module.ident.to_string());
            }
        }
        match item {
            Item::Fn(function) => self.add_function(&function.sig, function.block.span().end()),
            Item::Struct(item) => self.add_type(&item.ident),
            Item::Enum(item) => self.add_type(&item.ident),
            Item::Union(item) => self.add_type(&item.ident),
            Item::Trait(item) => self.add_type(&item.ident),
            Item::Type(item) => self.add_type(&item.ident),
            Item::Use(item) => self.add_imports(Vec::new(), &item.tree),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let words = path.segments.iter().map(|part| part.ident.to_string());
        self.add_path(words.collect(), path.span().start());
        visit::visit_path(self, path);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(function) = item {
            if is_for_tests(&function.attrs) {
                self.mark_test(function.span());
            }
            self.add_function(&function.sig, function.block.span().end());
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(function) = item
            && let Some(body) = &function.default
        {
            self.add_function(&function.sig, body.span().end());
        }
        visit::visit_trait_item(self, item);
    }
}

/// Whether attributes include `#[test]` or similar (`#[some::test]`), or a `#[cfg(...)]` that requires
/// `test`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path
            .segments
            .last()
            .is_some_and(|last| last.ident == "test"),
        Meta::List(list) if list.path.is_ident("cfg") => list
            .parse_args::<Meta>()
            .is_ok_and(|condition| needs_test(&condition)),
        _ => false,
    })
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            parts.is_ok_and(|parts| match list.path.is_ident("all") {
                true => parts.iter().any(needs_test),
                false => list.path.is_ident("any") && parts.iter().all(needs_test),
            })
        }
        Meta::NameValue(_) => false,
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Rule: a Rust file parses. The other rules cannot check a file that does not.
pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let unparsed = |file: &File| {
        let error = file.code.as_ref()?.as_ref().err()?;
        Some(file.finding(
            error.span().start().line,
            format!("not Rust: {error}"),
            "see cargo check",
        ))
    };
    tree.files().iter().filter_map(unparsed).collect()
}
