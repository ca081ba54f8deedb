//! Certificates that were not checked
//!
//! **Seen.** `canary: certificates were not checked: who responded is not known`.
//!
//! **Why.** With `load.tls.insecure` any machine between may have responded.
//!
//! **What to do.** Set the authority (`load.tls.ca`) or certificate's name (`load.tls.server_name`).
//!
//! **Threshold.** The plan contains it.

use model::Grade;

use super::finding::CheckFinding;
use super::input::{CheckedRun, CheckedVariant};
use super::row::{Alone, CheckRow, Maker, NOTE, Subject, row};

pub(super) static ROW: CheckRow = row(
    Subject::Network,
    NOTE,
    &[Maker::Whole(certificates_unchecked)],
)
.alone(Alone::As(
    Grade::Note,
    "the handshakes cost what they would otherwise; --cacert FILE trusts an authority of your own",
));

fn certificates_unchecked(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let unchecked = |variant: &&CheckedVariant<'_>| {
        variant
            .plan
            .load
            .tls
            .as_ref()
            .is_some_and(|tls| tls.insecure)
    };
    let insecure = run
        .variants
        .iter()
        .filter(unchecked)
        .map(|variant| (variant.index, variant.name));
    let (about, names): (Vec<usize>, Vec<&str>) = insecure.unzip();
    let evidence = format!(
        "{}: certificates were not checked: who responded is not known",
        names.join(", ")
    );
    let remedy = "the handshakes cost what they would otherwise; load.tls.ca trusts an authority of your own";
    (!about.is_empty()).then(|| CheckFinding::note((), evidence, remedy).about(about))
}
