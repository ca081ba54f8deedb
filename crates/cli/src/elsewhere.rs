//! The machines that a plan's services run on beside this one, reached for a run.

use hosts::Program;
use lab::{Attendants, AttendantsError, Reached};
use plan::Plan;

use crate::exit::{self, Failed};
use crate::hosts::CopyWatch;
use crate::print;

/// The subcommand that attends there.
const ATTEND: &str = "attend";

/// Reaches every host of a plan. Without any it does nothing.
///
/// # Errors
/// If one cannot be reached, or services cannot be started there.
pub fn open(plan: &Plan) -> Result<Attendants, Failed> {
    let mut program = None;
    let mut reach = |host: &str| {
        print::talk(&format!("reaching {host}"));
        let program = match &program {
            Some(program) => program,
            // What runs on the generators' machines runs on these.
            None => {
                program.insert(plan.generators.program.as_deref().map_or_else(Program::own, Program::at)?)
            }
        };
        let mut copying = CopyWatch::default();
        let channel = hosts::ssh::open_watched(host, program, &[ATTEND], &mut |copied| copying.show(copied))?;
        let address = plan.wants_address_of(host).then(|| hosts::address(host)).transpose()?;
        Ok(Reached { channel, address })
    };
    let attendants = Attendants::open(plan, &mut reach).map_err(|error| failed(&error))?;
    for (host, process) in attendants.ended() {
        print::talk(&format!("ended on {host}: {process}, left by a run that was killed"));
    }
    Ok(attendants)
}

fn failed(error: &AttendantsError) -> Failed {
    Failed { message: error.to_string(), hint: error.hint(), code: exit::SERVICE }
}
