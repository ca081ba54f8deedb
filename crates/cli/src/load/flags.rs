//! The flags of `load` in the groups in which `--help` shows them, and what each group means to the engine.
//!
//! Each group checks its own flags; what two groups have to do with each other is checked where they meet, in `load`.

mod connection;
mod expect;
mod output;
mod pace;
mod request;

pub use connection::Connection;
pub use expect::Expect;
pub use output::Output;
pub use pace::Pace;
pub use request::Asking;

/// What stands at the end of `load --help`.
pub const EXAMPLES: &str = "\
Examples:
  What it can do, in 10 s; then what users wait at 60 % of that, and whether that will do:
    proofload load http://127.0.0.1:3000/
    proofload load http://127.0.0.1:3000/ --rate 60% --limit 'p99 < 50ms' --limit 'failed < 0.1%'
  HTTP/2 over TLS, whose certificate an authority of your own has signed:
    proofload load https://127.0.0.1/ --http2 --cacert ca.pem --sni shop.test
  Another item each time; that there is none is a success too:
    proofload load 'http://127.0.0.1:3000/item/{id}' --values items.csv \\
      --expect-status 200,404
  Several requests by weight (docs/mix-file.md), all latencies kept:
    proofload load http://127.0.0.1:3000 --mix mix.toml --hdr latencies.hlog";
