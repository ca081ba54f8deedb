//! How the service is reached and spoken to: addresses, TLS, protocols.

use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;

use clap::Args;
use model::Protocol;
use plan::{Place, Tls, Url};

use crate::exit::Failed;

/// Browsers have about as many under way; servers allow 100 and more.
const STREAMS: u32 = 10;

/// Flags about connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Keep connections open between requests: the default, for those used to ab -k
    #[arg(short = 'k', long = "keepalive", alias = "keep-alive", overrides_with = "no_keep_alive")]
    keep_alive: bool,
    /// Open a connection for each request: latency then includes connecting
    #[arg(long = "no-keepalive", alias = "no-keep-alive", conflicts_with_all = ["http2", "pipeline"])]
    no_keep_alive: bool,
    /// Speak HTTP/2: agreed on in TLS with https, by prior knowledge with http
    #[arg(long)]
    http2: bool,
    /// Requests under way on each connection of --http2, if the server allows as many [default: 10]
    #[arg(long, value_name = "N", requires = "http2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    streams: Option<u32>,
    /// Requests that each connection sends without waiting for responses (HTTP/1.1 pipelining). No browser does it
    #[arg(long, value_name = "N", conflicts_with = "http2", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pipeline: Option<u32>,
    /// Connect to this unix socket; the URL still says host and path
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Connect from this local address, in turn from several; may be repeated or a list with commas
    #[arg(long = "source", value_name = "ADDRESS", value_delimiter = ',', conflicts_with = "unix")]
    sources: Vec<IpAddr>,
    /// Trust any certificate: nobody's identity is checked
    #[arg(long)]
    insecure: bool,
    /// Trust the authorities in this file (PEM) and no others [default: those that this system trusts]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// The name that the certificate must be for and that is sent as SNI [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// Never take up an earlier TLS session: each connection makes a full handshake
    #[arg(long)]
    no_resume: bool,
}

impl Connection {
    /// Whether connections are kept.
    pub fn keeps_alive(&self) -> bool {
        !self.no_keep_alive
    }

    /// What is spoken.
    pub fn protocol(&self) -> Protocol {
        if self.http2 {
            Protocol::Http2 { streams: self.streams.unwrap_or(STREAMS) }
        } else {
            Protocol::Http1 { pipeline: self.pipeline.unwrap_or(1) }
        }
    }

    /// Local addresses.
    ///
    /// # Errors
    /// One that is not this machine's: each connection would fail with it.
    pub fn sources(&self) -> Result<Vec<IpAddr>, Failed> {
        for source in &self.sources {
            TcpListener::bind((*source, 0)).map_err(|error| {
                let hint = "it must be one of this machine's; 127.0.0.0/8 all are";
                Failed::usage(format!("--source {source}: cannot connect from there: {error}")).hint(hint)
            })?;
        }
        if self.sources.iter().any(|source| source.is_ipv4() != self.sources[0].is_ipv4()) {
            return Err(Failed::usage(
                "--source: IPv4 and IPv6 addresses cannot connect to the same address",
            ));
        }
        Ok(self.sources.clone())
    }

    /// TLS, if the URL asks for it.
    ///
    /// # Errors
    /// If flags about TLS are given without it, or the authorities cannot be read.
    pub fn tls(&self, url: &Url) -> Result<Option<Tls>, Failed> {
        if !url.secure {
            let given = [
                (self.insecure, "--insecure"),
                (self.cacert.is_some(), "--cacert"),
                (self.sni.is_some(), "--sni"),
                (self.no_resume, "--no-resume"),
            ];
            return match given.iter().find(|(given, _)| *given) {
                None => Ok(None),
                Some((_, flag)) => {
                    Err(Failed::usage(format!("{flag} is about TLS, and {url} has none")).hint("https://"))
                }
            };
        }
        let readable = |path: &PathBuf| plan::open_file(path).and_then(|_| path.canonicalize());
        let ca = self.cacert.as_ref().map(|path| {
            readable(path)
                .map_err(|error| Failed::usage(format!("--cacert: cannot read {}: {error}", path.display())))
        });
        let server_name = Some(self.sni.clone().unwrap_or_else(|| url.host().to_owned()));
        Ok(Some(Tls {
            ca: ca.transpose()?,
            server_name,
            insecure: self.insecure,
            resumption: !self.no_resume,
        }))
    }

    /// Where connections lead: to the URL's host, or to a socket in its place.
    pub fn place(&self, url: &Url) -> Place {
        let socket = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        self.unix.as_ref().map_or_else(|| url.place.clone(), |path| Place::Unix(socket(path)))
    }
}
