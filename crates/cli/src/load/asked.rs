//! From flags to a plan with one variant: a service that runs already, its load, and a measurement. Judges nothing that plans judge.

use std::path::Path;

use plan::{Draft, DraftSource, DraftVariant, Plan, Ready, Secrets, Setting, Url};

use super::LoadArgs;
use crate::exit::Failed;
use crate::experiment;

/// The plan. Whether anybody listens where it leads is not asked yet.
///
/// # Errors
/// If the flags make no plan, or a file cannot be read.
pub(super) fn plan(args: &LoadArgs) -> anyhow::Result<Plan> {
    let text = args.url.as_deref().unwrap_or_default();
    let url: Url = text.parse().map_err(|problem| Failed::usage(format!("{text}: {problem}")))?;
    let (requests, expect) = (args.asking.requests(&url)?, args.expect.contract()?);
    let (tls, sources) = (args.connection.tls(&url)?, args.connection.sources()?);
    let mut plan = draft(args, &url)?;
    plan.design.seed = Some(args.pace.seed);
    for variant in &mut plan.variants {
        let load = &mut variant.load;
        load.requests.clone_from(&requests);
        (load.connections, load.timeout) = (args.pace.connections, args.pace.timeout);
        load.threads = Some(args.pace.threads);
        (load.protocol, load.keep_alive) = (args.connection.protocol(), args.connection.keeps_alive());
        (load.tls, load.sources) = (tls.clone(), sources.clone());
        load.sample_every = args.expect.sample;
        variant.expect = expect.clone();
        for service in &mut variant.services {
            // Whether it is there is seen before, and no request is sent that nobody asked for.
            service.ready = Ready::Tcp;
        }
    }
    plan.secrets =
        Secrets::of(&plan, Path::new(".")).map_err(|problems| Failed::usage(problems.join("; ")))?;
    Ok(plan)
}

/// The plan of a file that says where and how long, all else as it usually is.
fn draft(args: &LoadArgs, url: &Url) -> Result<Plan, Failed> {
    let place = args.connection.place(url);
    let origin = Url { place, path: "/".to_owned(), secure: url.secure }.origin();
    let settings: Vec<Setting> = args.pace.measure();
    let source = DraftSource::Url(origin.clone());
    let variants = vec![DraftVariant { name: None, source, from: origin }];
    let draft = Draft { name: "load".to_owned(), variants, settings, ..Draft::default() };
    let written = draft.write();
    written.plan(Path::new("."), None).map_err(|problems| experiment::shown_made(&written, &problems))
}
