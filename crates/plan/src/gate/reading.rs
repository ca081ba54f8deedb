//! From a written bound to a limit of a figure: whether relation, sign and unit are ones that this figure can have.

use ::model::Unit as Quantity;

use super::{Bound, Figure, FormError, Limit, LimitText, TextForm, Unit};
use crate::problem::did_you_mean;
use crate::text_form::Relation;

/// A change beyond this is a slip of the hand.
const CHANGE_PERCENT_MAX: f64 = 10_000.0;

/// A limit with its figure in front.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    let at = text.find(['<', '>']).unwrap_or(text.len());
    let (name, written) = (text[..at].trim(), text[at..].trim());
    let Some(figure) = Figure::named(name) else {
        let hint = did_you_mean(name, "figures", Figure::all().map(Figure::name));
        return Err(format!("there is no figure `{name}`; a limit is written \"p99 < 50ms\": {hint}"));
    };
    let limit = LimitText::read(written).and_then(|text| Limit::new(figure, text));
    limit.map_err(|error| format!("`{written}` {}: {}", error.reason, error.hint))
}

impl Limit {
    pub(super) fn new(figure: Figure, text: LimitText) -> Result<Limit, FormError> {
        let wanted = if figure.wants_more() { Relation::Above } else { Relation::Below };
        if text.relation != wanted {
            return Err(wrong_side(figure));
        }
        match text.bound {
            Bound::Change(percent) => check_change(figure, percent)?,
            Bound::Amount(number, unit) => check_amount(figure, number, unit)?,
        }
        Ok(Limit { figure, bound: text.bound })
    }
}

fn wrong_side(figure: Figure) -> FormError {
    let (label, hint) = match figure {
        figure if figure.wants_more() => (
            "expected `>`",
            "more of it is better: \"> -3%\" allows a loss of 3 %, \"> +10%\" asks for a gain, \"> 1000/s\" is an amount",
        ),
        Figure::Failed => ("expected `<`", "less of it is better: \"< 0.1%\""),
        Figure::Metric(_) => {
            ("expected `<`", "less of it is better: \"< +5%\" allows 5 % more, \"< -10%\" asks for less")
        }
    };
    FormError { reason: "holds back what is good".to_owned(), label, hint }
}

fn check_change(figure: Figure, percent: f64) -> Result<(), FormError> {
    if figure == Figure::Failed {
        return Err(FormError {
            reason: "is a change, and shares of failed requests are not compared".to_owned(),
            label: "expected a share such as \"< 0.1%\"",
            hint: "without a sign it is the share of all requests: \"< 0.1%\"",
        });
    }
    let error = |reason: String| FormError {
        reason,
        label: "expected a change such as \"+5%\" or \"-3%\"",
        hint: "a change is above -100% and at most +10000%",
    };
    match percent {
        percent if percent <= -100.0 => Err(error("leaves nothing over".to_owned())),
        percent if percent > CHANGE_PERCENT_MAX => {
            Err(error(format!("is too large, it must be at most +{CHANGE_PERCENT_MAX}%")))
        }
        _ => Ok(()),
    }
}

fn check_amount(figure: Figure, number: f64, unit: Unit) -> Result<(), FormError> {
    let (label, hint) = expected(figure);
    let error = |reason: String| Err(FormError { reason, label, hint });
    if unit == Unit::Percent && figure != Figure::Failed {
        return error("is a change without a sign".to_owned());
    }
    if unit.counts() != figure.unit() {
        return error(format!("is in {}, which it is not measured in", unit.name()));
    }
    if number <= 0.0 {
        return error("is nothing, it must be above 0".to_owned());
    }
    if figure == Figure::Failed && number >= 100.0 {
        return error("is all of them, it must be below 100%".to_owned());
    }
    Ok(())
}

/// What a limit of the figure looks like.
fn expected(figure: Figure) -> (&'static str, &'static str) {
    match figure.unit() {
        Quantity::Share => {
            ("expected a share such as \"< 0.1%\"", "a share of all requests, in %: \"< 0.1%\"")
        }
        Quantity::PerS => (
            "expected a limit such as \"> -3%\"",
            "a change against the baseline has a sign: \"> -3%\"; an amount is in /s: \"> 1000/s\"",
        ),
        Quantity::Bytes => (
            "expected a limit such as \"< 200MB\"",
            "a change against the baseline has a sign: \"< +5%\"; an amount is in kB, MB or GB: \"< 200MB\"",
        ),
        Quantity::Us => (
            "expected a limit such as \"< 50ms\"",
            "a change against the baseline has a sign: \"< +5%\"; an amount is in us, ms or s: \"< 50ms\"",
        ),
        Quantity::Ratio | Quantity::Count | Quantity::Number => {
            ("expected a limit such as \"< +5%\"", "a change against the baseline has a sign: \"< +5%\"")
        }
    }
}
