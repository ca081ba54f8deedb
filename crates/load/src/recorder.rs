//! Recording of request results in the thread's tally, with the contract at hand.

use model::{Cause, Phase};

use crate::check::ContractCheck;
use crate::in_flight::InFlight;
use crate::settings::WorkerSettings;
use crate::tally::ThreadTally;
use crate::user::User;

/// Records results at one point in time.
pub(crate) struct Recorder<'a> {
    pub(crate) now_ns: u64,
    /// Time since the start of the window. `None` outside of it.
    pub(crate) since_start_ns: Option<u64>,
    pub(crate) settings: &'a WorkerSettings,
    pub(crate) check: &'a mut ContractCheck,
    pub(crate) tally: &'a mut ThreadTally,
    pub(crate) in_flight: &'a mut u32,
    /// The user of the connection, if the load has distinct users.
    pub(crate) user: Option<&'a mut User>,
    /// Whether a response was completed since this recorder was created.
    pub(crate) has_response: bool,
}

impl Recorder<'_> {
    /// Records a response.
    pub(crate) fn completed(&mut self, mut request: InFlight, status: u16, body_bytes: u64) {
        *self.in_flight -= 1;
        self.tally
            .silence
            .response(request.choice.endpoint, self.now_ns, *self.in_flight);
        self.has_response = true;
        if request.own.is_some() && self.book_for_user(&mut request, (status, body_bytes)) {
            return;
        }
        let endpoint = request.choice.endpoint;
        if let Some(content) = request.content.take() {
            request.breach = self.check.content(endpoint, *content);
        }
        let ok = self.check.body(endpoint, request.breach, body_bytes);
        self.tally.response(
            &request,
            (status, body_bytes, ok),
            self.now_ns,
            self.since_start_ns,
        );
    }

    /// Keeps the cookies of a user's response. If it answers a log-in, records it here and returns true,
    /// because a successful log-in is not a sample.
    #[cold]
    fn book_for_user(&mut self, request: &mut InFlight, (status, body_bytes): (u16, u64)) -> bool {
        let (Some(own), Some(user)) = (request.own.take(), &mut self.user) else {
            return false;
        };
        user.keep_cookies(&own);
        if own.step.is_none() {
            return false;
        }
        let endpoint = request.choice.endpoint;
        let content = request.content.take().map(|content| content.finish());
        let why = match self.check.refusal(endpoint, request.breach, body_bytes) {
            Some(refusal) => refusal,
            None => match user.go_on(&own, content) {
                Ok(()) => {
                    self.tally.counts.log_ins += 1;
                    return true;
                }
                Err(lacking) => lacking,
            },
        };
        user.start_over();
        self.has_response = false;
        self.check.log_in_failed(
            &self.settings.arena.endpoints[usize::from(endpoint)].name,
            why,
        );
        self.tally.log_in_failed();
        self.tally.response(
            request,
            (status, body_bytes, false),
            self.now_ns,
            self.since_start_ns,
        );
        true
    }

    /// Records a request that gets no response.
    pub(crate) fn fail(&mut self, request: &InFlight, phase: Phase, cause: Cause) {
        *self.in_flight -= 1;
        self.tally.silence.lose(request.choice.endpoint);
        if request.is_log_in() {
            self.tally.log_in_failed();
            self.user.iter_mut().for_each(|user| user.start_over());
        }
        self.tally.loss(request, phase, cause, self.now_ns);
    }

    /// Records a request without a response at the end of the slice, which is not an error.
    pub(crate) fn leave_unfinished(&mut self, request: &InFlight) {
        *self.in_flight -= 1;
        self.tally.silence.lose(request.choice.endpoint);
        if !request.is_log_in() {
            self.tally.leave_unfinished(request, self.now_ns);
        }
    }
}
