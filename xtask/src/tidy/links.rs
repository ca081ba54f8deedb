//! Rule: a relative link in a Markdown page leads to a file or folder of this tree. Links to other sites and
//! anchors within a page are not checked.

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::tree::File;
use super::{SourceTree, TidyFinding};

pub fn find(tree: &SourceTree) -> Vec<TidyFinding> {
    let pages = tree
        .files()
        .iter()
        .filter(|file| file.extension() == Some("md") && !file.is_below("vendor"));
    pages.flat_map(|page| broken_links(tree, page)).collect()
}

fn broken_links(tree: &SourceTree, page: &File) -> Vec<TidyFinding> {
    let broken = links_of(&page.text)
        .into_iter()
        .filter(|(link, _)| is_broken(tree, page, link));
    let remedy = "mend the link, or write the page";
    broken
        .map(|(link, at)| page.finding_at(at, format!("`{link}` leads nowhere"), remedy))
        .collect()
}

/// Returns all links and images of a page with their byte offsets, including HTML but not code.
fn links_of(text: &str) -> Vec<(String, usize)> {
    let mut links = Vec::new();
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push((dest_url.into_string(), range.start));
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                links.extend(html_links(&html).map(|link| (link.to_string(), range.start)));
            }
            _ => {}
        }
    }
    links
}

fn html_links(html: &str) -> impl Iterator<Item = &str> {
    let attributes = [" href=\"", " src=\"", " srcset=\""].into_iter();
    attributes
        .flat_map(move |it| html.split(it).skip(1))
        .filter_map(|rest| rest.split('"').next())
}

/// Whether a link should lead into the tree and does not.
fn is_broken(tree: &SourceTree, page: &File, link: &str) -> bool {
    let path = link.split(['#', '?']).next().unwrap_or(link);
    let other_site = path.contains("://") || path.starts_with("mailto:") || path.starts_with("//");
    let within_page = path.is_empty();
    !other_site && !within_page && !target_of(page, path).is_some_and(|target| tree.has(&target))
}

/// Resolves a link relative to its page, or to the root if it begins with `/`. `None` if it leaves the tree.
fn target_of(page: &File, path: &str) -> Option<String> {
    let start = if path.starts_with('/') {
        ""
    } else {
        page.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
