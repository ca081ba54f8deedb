//! What Proofload and its agent on another machine send each other: frames, messages, heartbeats, and the loop of the agent.
//!
//! ```text
//!   here                                        there
//!   Fleet, RemoteHost ── requests ──► stdin     proofload remote-agent: generates load, runs services
//!                     ◄─ responses ── stdout
//! ```
//! A frame is one JSON object on a line of its own, of limited length. Each request has one response, in order, but for `heartbeat`,
//! `cancel` and `end`, which have none, and `ping`, whose response does not wait for others. The agent opens no port. How it was started,
//! and what carries its frames, is not this module's business.
//!
//! ```text
//! ──► {"hello":{"version":5}}
//! ◄── {"ready":{"version":5,"proofload":"0.1.0","host":"bench-1","processors":8}}
//! ──► {"ping":1}
//! ◄── {"pong":{"ping":1,"clock_ns":81234567890}}
//! ──► "heartbeat"                                            every ten seconds
//! ──► {"generator":{"begin":{"spec":{…}}}}
//! ◄── {"generator":"begun"}
//! ──► {"generator":{"prepare":{"number":1,"until":{"elapsed":{"secs":10,"nanos":0}}}}}
//! ◄── {"generator":{"prepared":{"number":1}}}
//! ──► {"generator":{"run":{"number":1,"start_at_ns":91234567890}}}
//! ◄── {"generator":{"slice":{"number":1,"late_ns":0,"steal_share":0.0,"slice":{…}}}}
//! ──► {"services":{"begin":{"services":[…]}}}
//! ◄── {"services":{"begun":{"cpus":[0,1],"about":{…},"ended":[]}}}
//! ──► {"services":{"start":{"number":1,"service":{…},"ports":{…},…}}}
//! ◄── {"services":{"started":{"pid":4711,…}}}                or {"failed":{"message":"…",…}}
//! ──► "end"                                                  or the end of stdin
//! ◄── "ended"
//! ```

mod agent;
mod connection;
mod message;

pub(crate) use agent::Control;
pub use agent::{AgentHost, ServeError, serve};
pub(crate) use connection::{Connection, Heartbeat, Message, QUEUE_MAX, read, write};
pub(crate) use message::other_version;
pub use message::{Failed, GeneratorRequest, GeneratorResponse, Request, Response, VERSION};

/// Reads frames of either side up to the first that is none; panics where one that is sent on is not the same there.
#[cfg(fuzzing)]
pub fn same_when_sent_again(bytes: &[u8]) {
    fn same<T: serde::Serialize + serde::de::DeserializeOwned>(mut input: &[u8]) {
        while let Ok(Some(value)) = read::<T>(&mut input) {
            let mut sent = Vec::new();
            write(&mut sent, &value).expect("what was read can be sent");
            let again: T = read(&mut &sent[..]).expect("what was sent is read").expect("and is there");
            let mut twice = Vec::new();
            write(&mut twice, &again).expect("once more");
            assert_eq!(sent, twice);
        }
    }
    same::<Response>(bytes);
    same::<Request>(bytes);
}
