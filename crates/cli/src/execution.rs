//! Runs a plan in the lab: creates its record, shows its progress, and writes what follows from the record.

use std::net::TcpListener;
use std::path::Path;

use ::explain::Explanation;
use lab::{LabError, RealEnvironment, Stop, Update};
use plan::Plan;
use record::{Header, MachineFingerprint, Record, Repeat, Writer};
use report::{MeasuredRecord, Report};

use crate::exit::CliError;
use crate::failure::{failed, unwritable};
use crate::live::Live;
use crate::prometheus::Exporter;
use crate::{
    REMOTE_AGENT, WARDEN, elsewhere, explanation, history, preflight, print, records, signals,
};

/// Message when a signal requests a stop.
pub const STOPPING: &str =
    "stopping: the services are ended and the record is closed; once more to leave at once";

/// A plan to run, and the folder of its record.
#[derive(Debug)]
pub struct LabJob<'a> {
    /// The experiment's name in the record: the path of a file, or a command.
    pub experiment: &'a str,
    /// How to repeat the run.
    pub repeat: Repeat,
    /// The experiment's text.
    pub text: String,
    /// The plan of the text and its flags.
    pub plan: Plan,
    /// New folder for the record. `None` for no record.
    pub directory: Option<&'a Path>,
    /// Number of passes over all variants that only capture profiles, without blocks, verdict and report.
    /// `None` to measure.
    pub captures_alone: Option<u32>,
    /// Whether events are printed on stdout, as JSON lines.
    pub events: bool,
    /// Whether other machines may be loaded without asking.
    pub yes: bool,
    /// Confirmed targets, if the user was asked before.
    pub agreed: Option<elsewhere::Agreed>,
    /// Listener for Prometheus.
    pub prometheus: Option<TcpListener>,
}

impl<'a> LabJob<'a> {
    /// A measurement that `run` repeats, without events and exporter.
    ///
    /// # Errors
    /// If a check of [`preflight`] fails. Nothing is started or written then.
    pub fn new(
        experiment: &'a str,
        text: String,
        plan: Plan,
        directory: Option<&'a Path>,
    ) -> Result<LabJob<'a>, CliError> {
        preflight::plan(&plan, directory)?;
        Ok(LabJob {
            experiment,
            repeat: Repeat::Command(vec!["run".to_owned(), experiment.to_owned()]),
            text,
            plan,
            directory,
            captures_alone: None,
            events: false,
            yes: false,
            agreed: None,
            prometheus: None,
        })
    }
}

/// Creates the record, and finds running services that are loaded.
pub fn prepare(job: LabJob<'_>, stop: Stop) -> anyhow::Result<(Writer, RealEnvironment)> {
    note_untyped_body(&job.plan);
    let agreed = job
        .agreed
        .map_or_else(|| elsewhere::agree(&job.plan, job.yes), Ok)?;
    elsewhere::check(&job.plan, &agreed)?;
    let plan = job.plan.clone();
    let created = record::now();
    let header = Header {
        version: record::VERSION,
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        order: job
            .directory
            .and_then(|directory| records::order(directory, &created)),
        created,
        experiment: job.experiment.to_owned(),
        command: print::typed_command(),
        repeat: job.repeat,
        seed: plan.design.seed.unwrap_or_else(lab::draw_seed),
        environment: MachineFingerprint::look(&plan),
        files: plan::digests(&job.plan),
        plan: job.plan,
    };
    let writer = match job.directory {
        Some(directory) => Writer::create(directory, header, &job.text).map_err(unwritable)?,
        None => Writer::nowhere(header, &job.text),
    };
    let directory = writer.record().directory.clone();
    let warden = services::Warden::of_this_program(WARDEN);
    let mut environment = RealEnvironment::new(plan, warden, &[REMOTE_AGENT], directory, stop);
    (environment.destinations, environment.deployed) = (agreed.destinations, agreed.deployed);
    Ok((writer, environment))
}

/// Runs the plan. The folder of the record then also has the explanation and, if blocks were measured, the
/// reports.
///
/// # Errors
/// If the record cannot be created, or events cannot be written. Later errors are returned beside the record.
pub fn execute(mut job: LabJob<'_>) -> anyhow::Result<(Record, Result<(), LabError>)> {
    let LabJob {
        captures_alone,
        events,
        ..
    } = job;
    let prometheus = job.prometheus.take();
    let stop = Stop::default();
    let (writer, mut environment) = prepare(job, stop.clone())?;
    let directory = writer.record().directory.clone();
    print::tell!("record: {}", records::typed(&directory).display());
    let plan = &writer.record().header.plan;
    let exporter = prometheus
        .map(|at| Exporter::begin(at, plan, stop.clone()))
        .transpose()?;
    let mut live = Live::begin(&writer.record().header, directory, events)?;
    let screen = live.screen();
    signals::on_first(move || {
        stop.request();
        screen.stopping(STOPPING);
    })?;
    let mut watch = |update: &Update<'_>| {
        live.show(update);
        exporter
            .iter()
            .for_each(|exporter| exporter.take_in(update));
    };
    let (mut record, result) = match captures_alone {
        None => lab::run(writer, &mut environment, &mut watch),
        Some(rounds) => {
            lab::capture_only(writer, &mut environment, rounds, &lab::TRIALS, &mut watch)
        }
    };
    live.clear();
    let explanation = explanation::keep(&record);
    if captures_alone.is_none() {
        keep_reports(&record, explanation.as_ref());
    }
    let report = || {
        let conclusion = analysis::conclude(&record);
        report::with_format(MeasuredRecord::new(&record, &conclusion, explanation.as_ref()).data())
    };
    live.finish(&record, report)?;
    record.directory = records::typed(&record.directory);
    Ok((record, result))
}

/// Returns the exit code of a run whose report is printed, or its error, which is then printed last.
pub fn end(result: Result<(), LabError>, code: u8) -> anyhow::Result<u8> {
    result.map(|()| code).map_err(|error| failed(error).into())
}

/// Writes the report to the record's folder. A full disk is no error, because the report is printed.
pub fn keep_reports(record: &Record, explanation: Option<&Explanation>) {
    let conclusion = analysis::conclude(record);
    history::keep(record, &conclusion);
    let of = (record, &conclusion, explanation);
    print::keep(&record.directory, "report", |form, path| {
        crate::report::write(of, form, path)
    });
}

/// Prints a note if a body is sent without its type, because many services then do not read it.
fn note_untyped_body(plan: &Plan) {
    if let Some(request) = plan
        .variants
        .iter()
        .find_map(|variant| variant.load.untyped_body())
    {
        let body = request.body.trim_start();
        let kind = if body.starts_with(['{', '[']) {
            "application/json"
        } else {
            "TYPE"
        };
        print::tell!(
            "note: the body of {} {} has no Content-Type, and a service may not read it: -H 'content-type: {kind}'",
            request.method,
            plan::masked(None, &request.path)
        );
    }
}
