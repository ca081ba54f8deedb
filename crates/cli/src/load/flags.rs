//! The flags of `load` in the groups of `--help`, and their meaning for the engine.
//!
//! Each group checks its own flags. `load` checks conflicts between groups.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use load::{DriverChoice, Values};
use model::{Contract, Digest, Rates, SAMPLE_EVERY, header as field};
use plan::{FlagSetting, Limit, Load, LoadSettings, Request, STREAMS, Url, UrlPlace};

use crate::exit::{self, CliError};
use crate::experiment;
use crate::flags::{
    OutFlag, PrometheusFlag, SeedFlag, counted, header as parsed_header, seed_setting, setting,
    tls_file,
};
use crate::print::{AmountArgs, FormArgs, forms_without};

pub const EXAMPLES: &str = "\
Examples:
  Throughput, in 10 s; then response times at 60 % of it, with limits:
    proofload load http://127.0.0.1:3000/
    proofload load http://127.0.0.1:3000/ --rate 60% --limit 'p99 < 50ms' --limit 'failed < 0.1%'
  HTTP/2 over TLS, with an authority of your own:
    proofload load https://127.0.0.1/ --http2 --cacert ca.pem --sni shop.test
  A different item per request; 404 is a success too:
    proofload load 'http://127.0.0.1:3000/item/{id}' --values items.csv \\
      --expect-status 200,404
  Several requests by weight (docs/mix-file.md):
    proofload load http://127.0.0.1:3000 --mix mix.toml";

/// The help of `--rate`.
const RATE: &str = "\
Open loop: requests due per second, whether the service keeps up or not
  1000           at this rate
  1000..5000     rising, or falling, over --duration
  500,1000,2000  one after the other, each for --duration
  60%            of saturation, measured first: 4 s in closed loop
  25%,50%,100%   likewise, and so 10%..150%
  50k            50,000, as in every count and rate
Without it each connection sends its next request when the last one is done: closed loop";

/// Number of requests, at least one.
fn requests(text: &str) -> Result<u64, String> {
    match counted(text)? {
        0 => Err("must be at least 1".to_owned()),
        number => Ok(number),
    }
}

/// Values of `--arrivals`, as in an experiment file.
fn arrivals() -> PossibleValuesParser {
    let poisson = "At random and independent of each other, as from many users";
    [
        PossibleValue::new("constant").help("Evenly"),
        PossibleValue::new("poisson").help(poisson),
    ]
    .into()
}

/// Flags about the amount of load.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Load",
    mut_arg("seed", |arg| {
        arg.help("Seed of random arrivals and of the choice among requests")
            .default_value("1")
    })
)]
pub struct PaceFlags {
    #[arg(short, long, help = RATE)]
    pub rate: Option<Rates>,
    /// Distribution of the requests of --rate in time
    #[arg(long, requires = "rate", value_parser = arrivals(), default_value = "poisson")]
    arrivals: String,
    #[command(flatten)]
    seed: SeedFlag,
    /// Connections kept open, each with one request at a time
    #[arg(short, long, default_value_t = LoadSettings::default().connections, value_parser = counted::<u32>)]
    connections: u32,
    /// How long to send, for example 10s or 1m30s. With steps in --rate, the length of each step
    #[arg(short, long, default_value = "10s", value_parser = plan::duration)]
    duration: Duration,
    /// How many requests to send, instead of a duration
    #[arg(short = 'n', long, conflicts_with = "duration", value_parser = requests)]
    requests: Option<u64>,
    /// Threads that send. One can send tens of thousands of requests per second
    #[arg(short, long, default_value_t = 1)]
    threads: u32,
    /// Time limit for a response, also after the end of --duration
    #[arg(long, default_value = "5s", value_parser = plan::duration)]
    timeout: Duration,
    /// How sockets are read and written
    #[arg(long, value_parser = drivers(), default_value = "auto")]
    pub driver: DriverChoice,
}

/// Drivers of sockets, by name and with their descriptions.
const DRIVERS: [(&str, DriverChoice, &str); 3] = [
    (
        "auto",
        DriverChoice::Auto,
        "io_uring where the kernel grants it, else epoll",
    ),
    ("readiness", DriverChoice::Readiness, "epoll"),
    (
        "completion",
        DriverChoice::Completion,
        "io_uring, or epoll where it is refused",
    ),
];

fn drivers() -> impl TypedValueParser<Value = DriverChoice> {
    let values = DRIVERS.map(|(name, _, help)| PossibleValue::new(name).help(help));
    let named = |name| {
        DRIVERS
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, driver, _)| *driver)
    };
    PossibleValuesParser::new(values)
        .try_map(move |name: String| named(name).ok_or("no such driver"))
}

impl PaceFlags {
    /// The measurement and the load as keys of an experiment file, whose checks apply.
    pub fn settings(&self) -> Vec<FlagSetting> {
        let set = |table: &str, key: &str, value: toml::Value| {
            setting(&[table, key], &format!("--{key}"), value)
        };
        let length = match self.requests {
            // A number that a file cannot contain is limited only by time.
            Some(requests) => set(
                "measure",
                "requests",
                i64::try_from(requests).unwrap_or(i64::MAX).into(),
            ),
            None => set(
                "measure",
                "duration",
                plan::duration_text(self.duration).into(),
            ),
        };
        let load = [
            set("load", "connections", i64::from(self.connections).into()),
            set("load", "threads", i64::from(self.threads).into()),
            set("load", "timeout", plan::duration_text(self.timeout).into()),
        ];
        let of_rate = |rate: &Rates| {
            [
                set("measure", "rate", rate.written().into()),
                set("measure", "arrivals", self.arrivals.as_str().into()),
            ]
        };
        std::iter::once(length)
            .chain(load)
            .chain(self.seed.seed.map(seed_setting))
            .chain(self.rate.iter().flat_map(of_rate))
            .collect()
    }
}

/// Larger than any mix, and larger than the engine accepts for values.
const MIX_BYTES_MAX: u64 = 64 << 20;
const VALUES_BYTES_MAX: u64 = 1 << 30;

/// Flags about requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct Asking {
    /// The request's method [default: GET, or POST with a body]
    #[arg(short = 'X', long)]
    method: Option<String>,
    /// A request header, NAME: VALUE. May be repeated. With --mix for all requests that do not set it
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = parsed_header)]
    headers: Vec<(String, String)>,
    /// The request's body: its text, or @FILE for the content of a file
    #[arg(short, long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// Rows of values, .csv or .jsonl: {column} in path, headers and body is replaced by the value of a
    /// random row
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Several requests, each in proportion to its weight, sent to the URL's host. `proofload mix access.log`
    /// makes one, see docs/mix-file.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "values"])]
    mix: Option<PathBuf>,
}

impl Asking {
    /// The requests to the host of `url`, at least one, and settings of users. Everything else has its
    /// default.
    pub fn load(&self, url: &Url) -> anyhow::Result<Load> {
        let host = ("Host".to_owned(), url.authority());
        let mut load = match &self.mix {
            None => Load {
                requests: vec![self.single(url)?],
                ..Load::default()
            },
            Some(_) if url.path != "/" => {
                let problem = format!("{url} has a path, and so has each request of --mix");
                return Err(CliError::usage(problem)
                    .hint(format!("{}, or no --mix", url.origin()))
                    .into());
            }
            Some(mix) => several(mix)?,
        };
        let given: &[(String, String)] = if self.mix.is_some() {
            &self.headers
        } else {
            &[]
        };
        for request in &mut load.requests {
            let own = request.headers.clone();
            // A field that is given twice is sent twice.
            request.headers.extend(
                given
                    .iter()
                    .filter(|(name, _)| !field::has(&own, name))
                    .cloned(),
            );
            if !field::has(&request.headers, &host.0) {
                request.headers.push(host.clone());
            }
        }
        Ok(load)
    }

    fn single(&self, url: &Url) -> Result<Request, CliError> {
        let (body, body_file) = match self
            .body
            .as_deref()
            .map(|text| (text, text.strip_prefix('@')))
        {
            None => (String::new(), None),
            Some((_, Some(path))) => (String::new(), Some(readable("the body", Path::new(path))?)),
            Some((text, None)) => (text.to_owned(), None),
        };
        let default_method = if self.body.is_some() { "POST" } else { "GET" };
        let method = self
            .method
            .clone()
            .unwrap_or_else(|| default_method.to_owned());
        let values = self
            .values
            .as_deref()
            .map(checked_values)
            .transpose()
            .map_err(CliError::usage)?;
        let (path, headers) = (url.path.clone(), self.headers.clone());
        Ok(Request {
            method,
            path,
            headers,
            body,
            body_file,
            values,
            ..Request::default()
        })
    }
}

/// The load of a mix file. Problems are printed with their places in the file.
fn several(path: &Path) -> anyhow::Result<Load> {
    let unreadable =
        |error| CliError::usage(format!("cannot read the mix {}: {error}", path.display()));
    let text = plan::read_given(path, MIX_BYTES_MAX).and_then(|text| {
        String::from_utf8(text)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    });
    let text = text.map_err(unreadable)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let load = plan::mix(&text, folder).map_err(|found| experiment::shown(path, &text, &found))?;
    let values: BTreeSet<&PathBuf> = load
        .requests
        .iter()
        .filter_map(|request| request.values.as_ref())
        .collect();
    values
        .into_iter()
        .try_for_each(|path| checked_values(path).map(drop))
        .map_err(CliError::usage)?;
    Ok(load)
}

/// The absolute path of a file with rows of values. The extension determines the format.
fn checked_values(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let read: fn(&[u8]) -> _ = match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Values::csv,
        Some("jsonl" | "ndjson") => Values::jsonl,
        _ => {
            return Err(format!(
                "values {shown}: the name must end in .csv or .jsonl"
            ));
        }
    };
    let text = plan::read_file(path, VALUES_BYTES_MAX)
        .map_err(|error| format!("cannot read the values {shown}: {error}"))?;
    read(&text).map_err(|error| format!("values {shown}: {error}"))?;
    path.canonicalize()
        .map_err(|error| format!("cannot read the values {shown}: {error}"))
}

/// The absolute path of a readable file.
fn readable(what: &str, path: &Path) -> Result<PathBuf, CliError> {
    let absolute = plan::open_file(path).and_then(|_| path.canonicalize());
    let shown = plan::quotable(&path.display().to_string());
    absolute.map_err(|error| CliError::usage(format!("cannot read {what} from {shown}: {error}")))
}

/// Flags about connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionFlags {
    /// Keep connections open between requests, which is the default (for ab users)
    #[arg(
        short = 'k',
        long = "keepalive",
        alias = "keep-alive",
        overrides_with = "no_keep_alive"
    )]
    keep_alive: bool,
    /// Open a connection for each request. Latency then includes connecting
    #[arg(long = "no-keepalive", alias = "no-keep-alive", conflicts_with_all = ["http2", "pipeline"])]
    pub no_keep_alive: bool,
    /// Speak HTTP/2: negotiated in TLS with https, by prior knowledge with http
    #[arg(long)]
    http2: bool,
    /// Concurrent requests on each connection of --http2, if the server permits [default: 10]
    #[arg(long, value_name = "N", requires = "http2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    streams: Option<u32>,
    /// Requests that each connection sends without waiting for responses (HTTP/1.1 pipelining). No browser
    /// does this
    #[arg(long, value_name = "N", conflicts_with = "http2", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pipeline: Option<u32>,
    /// Connect to this unix socket. The URL still sets host and path
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Connect from this local address. Several addresses, separated by commas, are used in turn
    #[arg(
        long = "source",
        value_name = "ADDRESS",
        value_delimiter = ',',
        conflicts_with = "unix"
    )]
    sources: Vec<IpAddr>,
    /// Accept any certificate, without checking the server's identity
    #[arg(long)]
    insecure: bool,
    /// Trust only the authorities in this file (PEM) [default: those that this system trusts]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Client certificate in this file (PEM), for a server that requests one
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Private key of --cert in this file (PEM) [default: in the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Name that is sent as SNI and that the certificate must be valid for [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// Never resume a TLS session: each connection makes a full handshake
    #[arg(long)]
    no_resume: bool,
}

impl ConnectionFlags {
    /// Requests under way on a connection at once.
    pub fn lanes(&self) -> u32 {
        if self.http2 {
            self.streams.unwrap_or(STREAMS)
        } else {
            self.pipeline.unwrap_or(1)
        }
    }

    /// The flags as keys of an experiment file.
    pub fn settings(&self, url: &Url) -> Result<Vec<FlagSetting>, CliError> {
        let number = |key: &str, flag: &str, number: Option<u32>| {
            number.map(|number| setting(&["load", key], flag, i64::from(number)))
        };
        let protocol = self
            .http2
            .then(|| FlagSetting::new(&["load", "protocol"], "h2", "--http2"));
        let keep_alive = self
            .no_keep_alive
            .then(|| FlagSetting::new(&["load", "keep_alive"], false, "--no-keepalive"));
        let settings = [
            protocol,
            keep_alive,
            number("streams", "--streams", self.streams),
            number("pipeline", "--pipeline", self.pipeline),
        ];
        let tls = self.tls(url)?.into_iter();
        let settings = settings.into_iter().flatten().chain(tls);
        Ok(settings.chain(self.sources()?).collect())
    }

    /// Local addresses.
    ///
    /// # Errors
    /// An address that is not this machine's: each connection would fail with it.
    fn sources(&self) -> Result<Option<FlagSetting>, CliError> {
        for source in &self.sources {
            TcpListener::bind((*source, 0)).map_err(|error| {
                let hint = "it must be one of this machine's; 127.0.0.0/8 all are";
                CliError::usage(format!(
                    "--source {source}: cannot connect from there: {error}"
                ))
                .hint(hint)
            })?;
        }
        let texts: Vec<String> = self.sources.iter().map(IpAddr::to_string).collect();
        let from = format!("--source {}", texts.join(","));
        let is_given = !texts.is_empty();
        Ok(is_given.then(|| FlagSetting::new(&["load", "sources"], texts, from)))
    }

    /// TLS settings for an https URL.
    fn tls(&self, url: &Url) -> Result<Vec<FlagSetting>, CliError> {
        if !url.secure {
            let flags = [
                (self.insecure, "--insecure"),
                (self.cacert.is_some(), "--cacert"),
                (self.cert.is_some(), "--cert"),
                (self.sni.is_some(), "--sni"),
                (self.no_resume, "--no-resume"),
            ];
            let Some(flag) = exit::given(&flags) else {
                return Ok(Vec::new());
            };
            return Err(
                CliError::usage(format!("{flag} is about TLS, and {url} has none"))
                    .hint("https://"),
            );
        }
        let key =
            |key: &str, flag: &str, value: toml::Value| setting(&["load", "tls", key], flag, value);
        // The target may be a socket, while the certificate is for the host of the URL.
        let name = self.sni.as_deref().unwrap_or(url.host());
        let mut settings = vec![key("server_name", "--sni", name.into())];
        let files = [
            ("ca", "--cacert", &self.cacert),
            ("cert", "--cert", &self.cert),
            ("key", "--key", &self.key),
        ];
        for (name, flag, path) in files {
            if let Some(path) = path {
                let path = tls_file(flag, path)?.display().to_string();
                settings.push(key(name, flag, path.into()));
            }
        }
        if self.insecure {
            settings.push(key("insecure", "--insecure", true.into()));
        }
        if self.no_resume {
            let from = "--no-resume";
            settings.push(FlagSetting::new(
                &["load", "tls", "resumption"],
                false,
                from,
            ));
        }
        Ok(settings)
    }

    /// The target of connections: the URL's host, or a socket instead.
    pub fn place(&self, url: &Url) -> UrlPlace {
        let socket = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        self.unix
            .as_ref()
            .map_or_else(|| url.place.clone(), |path| UrlPlace::Unix(socket(path)))
    }
}

const SHA256: &str = "sha256:";
/// Larger than any content that is used for a throughput test.
const CONTENT_BYTES_MAX: u64 = 1 << 30;

/// Flags about responses.
#[derive(Debug, Args)]
#[command(next_help_heading = "Expectations")]
pub struct ExpectFlags {
    /// Status codes of a success, separated by commas [default: any 2xx]
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..1000))]
    expect_status: Vec<u16>,
    /// A header that responses must have, with this value, or with any value if only NAME is given. May be
    /// repeated: values of one name are alternatives, and `NAME:` permits absence
    #[arg(long = "expect-header", value_name = "NAME: VALUE", value_parser = header)]
    expect_headers: Vec<(String, Option<String>)>,
    /// Required size of the body on the wire in bytes, compressed if it is
    #[arg(long, value_name = "N")]
    expect_bytes: Option<u64>,
    /// Required content of sampled responses after decompression: the content of FILE, or its SHA-256
    #[arg(long, value_name = "FILE|sha256:HEX")]
    expect_body: Option<String>,
    /// Read one response in N in full and decode it. 0: none
    #[arg(long, value_name = "N", default_value_t = SAMPLE_EVERY)]
    sample: u64,
}

impl ExpectFlags {
    /// The sampling rate as a key of an experiment file.
    pub fn setting(&self) -> FlagSetting {
        let every = i64::try_from(self.sample).unwrap_or(i64::MAX);
        setting(&["load", "sample_every"], "--sample", every)
    }

    /// The contract of all requests without their own.
    pub fn contract(&self) -> Result<Contract, CliError> {
        if self.expect_body.is_some() && self.sample == 0 {
            let problem = "--expect-body compares sampled responses, and --sample 0 takes none";
            return Err(
                CliError::usage(problem).hint("--sample 1 compares all, the default one in 10000")
            );
        }
        Ok(Contract {
            status: self.expect_status.clone(),
            headers: by_name(&self.expect_headers),
            body_bytes: self.expect_bytes,
            content: self.expect_body.as_deref().map(content).transpose()?,
        })
    }
}

fn header(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value.trim().to_owned())),
        None => (text, None),
    };
    match name.trim() {
        "" => Err("expected NAME: VALUE, or NAME alone".into()),
        name => Ok((name.to_owned(), value)),
    }
}

/// Groups values by name, in the notation of a plan. A name that was given alone accepts all values.
fn by_name(given: &[(String, Option<String>)]) -> BTreeMap<String, Vec<String>> {
    // A name without a value makes its list empty, which accepts any value.
    let values = |name: &str| {
        field::values(given, name)
            .cloned()
            .collect::<Option<Vec<String>>>()
    };
    given
        .iter()
        .map(|(name, _)| (field::key(name), values(name).unwrap_or_default()))
        .collect()
}

fn content(text: &str) -> Result<Digest, CliError> {
    let shown = plan::quotable(text);
    if let Some(digits) = text.strip_prefix(SHA256) {
        return digits
            .parse()
            .map_err(|error| CliError::usage(format!("--expect-body {shown}: {error}")));
    }
    let unreadable =
        |error| CliError::usage(format!("--expect-body: cannot read {shown}: {error}"));
    Ok(Digest::of(
        &plan::read_given(Path::new(text), CONTENT_BYTES_MAX).map_err(unreadable)?,
    ))
}

/// Flags about the result.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Output",
    mut_arg("out", |arg| arg.help("New folder for the record and its page [default: no record]")),
    // The verdict plot needs a comparison.
    mut_arg("format", |arg| arg.value_parser(forms_without(&[&report::SVG]))),
)]
pub struct OutputFlags {
    /// Print more of the latency distribution, as wrk --latency does
    #[arg(long)]
    pub latency: bool,
    #[command(flatten)]
    pub form: FormArgs,
    #[command(flatten)]
    pub amount: AmountArgs,
    /// A limit, such as "p99 < 50ms" or "failed < 0.1%": exit code 0 if all pass, 1 if one fails. May be
    /// repeated
    #[arg(long = "limit", value_name = "LIMIT", value_parser = plan::limit)]
    pub limits: Vec<Limit>,
    #[command(flatten)]
    pub out: OutFlag,
    #[command(flatten)]
    pub prometheus: PrometheusFlag,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_of_a_header_are_alternatives_and_a_name_alone_takes_any() {
        let given = [
            "X-Cache: HIT",
            "Vary",
            "x-cache:",
            "ETag: \"a:b\"",
            "vary: Accept",
        ]
        .map(|text| header(text).unwrap());
        let expected = [
            ("x-cache", vec!["HIT", ""]),
            ("vary", vec![]),
            ("etag", vec!["\"a:b\""]),
        ];
        let expected = expected.map(|(name, values)| {
            (
                name.to_owned(),
                values.into_iter().map(str::to_owned).collect(),
            )
        });
        let expected = BTreeMap::from(expected);
        assert_eq!(by_name(&given), expected);
        assert!(header(": x").is_err());
    }
}
