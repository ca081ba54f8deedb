//! The generator of an agent: one load after another, window by window.

use load::{Generator, LoadError, LoadSpec, Until};

use crate::protocol::{Blame, Control, Failed, GeneratorRequest, GeneratorResponse};

/// What generates load on an agent's machine.
pub(crate) struct GeneratorAgent {
    cpu_and_steal: fn() -> Option<(u64, u64)>,
    control: Control,
    generator: Option<Generator>,
    /// The window that `run` may name.
    prepared: Option<(u64, Until)>,
}

impl GeneratorAgent {
    pub fn new(cpu_and_steal: fn() -> Option<(u64, u64)>, control: Control) -> GeneratorAgent {
        GeneratorAgent { cpu_and_steal, control, generator: None, prepared: None }
    }

    pub fn carry_out(&mut self, request: GeneratorRequest) -> Result<GeneratorResponse, Failed> {
        let refused = |message: String| Err(Failed::new(Blame::Request, message));
        match (request, self.prepared.take(), &mut self.generator) {
            (GeneratorRequest::Begin { spec }, ..) => self.begin(*spec),
            (GeneratorRequest::Prepare { number, until }, _, Some(generator)) => {
                generator.prepare(until);
                self.prepared = Some((number, until));
                Ok(GeneratorResponse::Prepared { number })
            }
            (GeneratorRequest::Prepare { .. }, _, None) => {
                refused("there is no load yet: {\"generator\":{\"begin\":{\"spec\":{…}}}} comes first".into())
            }
            (GeneratorRequest::Run { number, start_at_ns }, Some((prepared, until)), Some(generator))
                if prepared == number =>
            {
                Ok(window(generator, number, until, start_at_ns, self.cpu_and_steal))
            }
            (GeneratorRequest::Run { number, .. }, ..) => {
                refused(format!("window {number} was not prepared"))
            }
            (GeneratorRequest::Rest, ..) => {
                self.generator = None;
                Ok(GeneratorResponse::Resting)
            }
        }
    }

    fn begin(&mut self, spec: LoadSpec) -> Result<GeneratorResponse, Failed> {
        // First, so that its connections are closed before there are others.
        self.generator = None;
        let generator = Generator::start(spec).map_err(|error| {
            let blame = match error {
                LoadError::Spec { .. } => Blame::Request,
                _ => Blame::Machine,
            };
            Failed::new(blame, error.to_string())
        })?;
        if !self.control.watch(generator.interrupt()) {
            return Err(Failed::new(Blame::Cancelled, "it ends"));
        }
        self.generator = Some(generator);
        Ok(GeneratorResponse::Begun)
    }
}

fn window(
    generator: &mut Generator,
    number: u64,
    until: Until,
    start_at_ns: u64,
    cpu_and_steal: fn() -> Option<(u64, u64)>,
) -> GeneratorResponse {
    let before = cpu_and_steal();
    let mut counts = generator.load(until, start_at_ns);
    let steal_share = steal_share(before, cpu_and_steal());
    counts.pack();
    let late_ns = if start_at_ns == 0 { 0 } else { counts.started_ns.saturating_sub(start_at_ns) };
    GeneratorResponse::Slice { number, late_ns, steal_share, counts: Box::new(counts) }
}

fn steal_share(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<f64> {
    let ((all_before, steal_before), (all, steal)) = before.zip(after)?;
    let passed = all.saturating_sub(all_before);
    (passed > 0).then(|| steal.saturating_sub(steal_before) as f64 / passed as f64)
}
