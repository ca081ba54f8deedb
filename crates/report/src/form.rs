//! The forms of a report: a table. A new form is a renderer of its own and a row here.

use serde_json::Value;

use crate::csv::{Figures, csv};
use crate::html::html;
use crate::markdown::markdown;
use crate::page::{PageData, page_of};
use crate::plot::{Ground, Plot};
use crate::text::text;
use model::document::Document;

/// Something that is reported: what people read of it, and what programs read.
pub trait Report {
    /// What people read.
    fn document(&self) -> Document;

    /// The first screen of it, for whoever ran it; the whole where that is short.
    fn brief(&self) -> Document {
        self.document()
    }

    /// What programs read, with a version of its own: within one, fields are added and never renamed or removed (docs/formats.md).
    fn data(&self) -> Value;

    /// Its figures for spreadsheets; `None` where it has none.
    fn figures(&self) -> Option<Figures> {
        None
    }

    /// What its page shows, where it has one of its own; others get a page of their document and their plot.
    fn page(&self) -> Option<PageData> {
        None
    }

    /// What passes or fails in it, as CI servers read it; `None` where nothing does.
    fn junit(&self) -> Option<String> {
        None
    }

    /// Its verdicts as a picture; `None` where it has none.
    fn plot(&self) -> Option<Plot> {
        None
    }
}

/// How a report is to look.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Columns of text.
    pub width: usize,
    /// What a picture stands on.
    pub ground: Ground,
}

/// A form: its name, other names of it, and what it is for.
#[derive(Debug)]
pub struct Form {
    /// As flags have it.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// In a few words.
    pub about: &'static str,
    draw: fn(&dyn Report, Look) -> Option<String>,
}

const fn form(
    name: &'static str,
    about: &'static str,
    draw: fn(&dyn Report, Look) -> Option<String>,
) -> Form {
    Form { name, aliases: &[], about, draw }
}

/// Text, the usual one.
pub static TEXT: Form =
    form("text", "For a terminal", |report, look| Some(text(&report.document(), look.width)));
/// Markdown.
pub static MARKDOWN: Form = Form {
    aliases: &["markdown"],
    ..form("md", "For a pull request", |report, _| Some(markdown(&report.document())))
};
/// JSON.
pub static JSON: Form =
    form("json", "For other programs", |report, _| Some(model::text::json(report.data())));
/// One page of HTML.
pub static HTML: Form = form("html", "For a browser: one page that needs nothing but itself", |report, _| {
    let page = report.page().map(|data| page_of(&data));
    Some(page.unwrap_or_else(|| html(&report.document(), report.plot().as_ref())))
});
/// CSV.
pub static CSV: Form = form("csv", "Figures, for spreadsheets", |report, _| Some(csv(&report.figures()?)));
/// The verdict plot.
pub static SVG: Form =
    form("svg", "The verdict plot, for pages", |report, look| Some(report.plot()?.svg(look.ground)));
/// JUnit's XML.
pub static JUNIT: Form =
    form("junit", "The limits of a gate as test cases, for CI servers", |report, _| report.junit());

/// All forms.
pub static FORMS: [&Form; 7] = [&TEXT, &MARKDOWN, &JSON, &HTML, &CSV, &SVG, &JUNIT];

impl Form {
    /// The form of that name.
    pub fn named(name: &str) -> Option<&'static Form> {
        FORMS.into_iter().find(|form| form.name == name || form.aliases.contains(&name))
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        self.name == other.name
    }
}

/// A report in a form; `None` where it has no such form. Text has its colours.
pub fn render(report: &dyn Report, form: &Form, look: Look) -> Option<String> {
    (form.draw)(report, look)
}
