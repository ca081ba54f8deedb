//! The forms of a report as a table. To add a form, add a renderer and a row here.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::csv::{CsvRows, csv};
use crate::html::html;
use crate::markdown::markdown;
use crate::page::{PageData, page_of};
use crate::plot::{Ground, Plot};
use crate::text::text;
use model::document::Document;

/// Format number of all JSON documents of reports. Within a format, fields are added and never renamed or
/// removed (docs/formats.md).
pub const FORMAT: u32 = 1;

/// A document of Proofload. Within a format, fields are added, and never renamed or removed. Ratios are
/// candidate over baseline: 1.1 is ten per cent more. Names of fields end in their unit. Null means "not
/// known" or "not measured", never 0.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Proofload report")]
pub(crate) struct JsonDocument<T> {
    /// Format number of the document.
    format: u32,
    #[serde(flatten)]
    document: T,
}

/// Puts the format number before the fields of a document.
pub fn with_format(data: Value) -> Value {
    let document = JsonDocument {
        format: FORMAT,
        document: data,
    };
    // An object with a number always converts to JSON.
    serde_json::to_value(document).unwrap_or_default()
}

/// A report, for people and for programs.
pub trait Report {
    /// The report for people.
    fn document(&self) -> Document;

    /// The first screen, for the user who ran it. The whole document if that is short.
    fn brief(&self) -> Document {
        self.document()
    }

    /// The report for programs, without the [format number](with_format).
    fn data(&self) -> Value;

    /// Figures for spreadsheets. `None` if there are none.
    fn figures(&self) -> Option<CsvRows> {
        None
    }

    /// Data of its page, if it has one. Other reports get a page with their document and their plot.
    fn page(&self) -> Option<PageData> {
        None
    }

    /// Test results for CI servers. `None` if nothing passes or fails.
    fn junit(&self) -> Option<String> {
        None
    }

    /// Its verdicts as a plot. `None` if there are none.
    fn plot(&self) -> Option<Plot> {
        None
    }
}

/// Appearance of a report.
#[derive(Debug, Clone, Copy)]
pub struct FormOptions {
    /// Columns of text.
    pub width: usize,
    /// Background of a picture.
    pub ground: Ground,
}

/// A form: its name, aliases, and purpose.
#[derive(Debug)]
pub struct Form {
    /// Value of flags.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Short description.
    pub about: &'static str,
    draw: fn(&dyn Report, FormOptions) -> Option<String>,
}

const fn form(
    name: &'static str,
    about: &'static str,
    draw: fn(&dyn Report, FormOptions) -> Option<String>,
) -> Form {
    Form {
        name,
        aliases: &[],
        about,
        draw,
    }
}

/// Text, the default.
pub static TEXT: Form = form("text", "For a terminal", |report, look| {
    Some(text(&report.document(), look.width))
});
/// Markdown.
pub static MARKDOWN: Form = Form {
    aliases: &["markdown"],
    ..form("md", "For a pull request", |report, _| {
        Some(markdown(&report.document()))
    })
};
/// JSON.
pub static JSON: Form = form("json", "For other programs", |report, _| {
    Some(model::text::json(with_format(report.data())))
});
/// One page of HTML.
pub static HTML: Form = form(
    "html",
    "For a browser: one page that needs nothing but itself",
    |report, _| {
        let page = report.page().map(|data| page_of(&data));
        Some(page.unwrap_or_else(|| html(&report.document(), report.plot().as_ref())))
    },
);
/// CSV.
pub static CSV: Form = form("csv", "Figures, for spreadsheets", |report, _| {
    Some(csv(&report.figures()?))
});
/// The verdict plot.
pub static SVG: Form = form("svg", "The verdict plot, for pages", |report, look| {
    Some(report.plot()?.svg(look.ground))
});
/// JUnit's XML.
pub static JUNIT: Form = form(
    "junit",
    "The limits of a gate as test cases, for CI servers",
    |report, _| report.junit(),
);

/// All forms.
pub static FORMS: [&Form; 7] = [&TEXT, &MARKDOWN, &JSON, &HTML, &CSV, &SVG, &JUNIT];

impl Form {
    /// Finds the form with this name.
    pub fn named(name: &str) -> Option<&'static Form> {
        FORMS
            .into_iter()
            .find(|form| form.name == name || form.aliases.contains(&name))
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        self.name == other.name
    }
}

/// Renders a report in a form. `None` if the report does not have this form. Text contains colours.
pub fn render(report: &dyn Report, form: &Form, look: FormOptions) -> Option<String> {
    (form.draw)(report, look)
}
