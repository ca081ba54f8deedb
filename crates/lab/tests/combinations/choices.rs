//! The features of an experiment file as choices, grouped by axis. A test draws at most one choice of each
//! axis and merges their TOML.

use toml::{Table, Value};

/// The experiment that every combination starts from.
pub const BASE: &str = r#"
    name = "net"
    services.api.command = ["node", "server.js"]
    factors.setting.off.api.env.SETTING = "off"
    factors.setting.on.api.env.SETTING = "on"
    design.budget = "40s"
"#;

/// Files that choices use, in the folder of the experiment.
pub const FILES: [(&str, &str); 5] = [
    ("body.txt", "hello"),
    ("rows.csv", "id\n1\n2\n"),
    ("app.conf.tmpl", "listen {{port}};\n"),
    ("compose.yaml", "services: { web: { image: shop } }\n"),
    ("inputs.txt", "1"),
];

/// One feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    pub axis: &'static str,
    pub name: &'static str,
    /// Merged into [`BASE`].
    pub toml: &'static str,
    /// Top-level tables of [`BASE`] that it replaces.
    pub without: &'static [&'static str],
}

const fn choice(axis: &'static str, name: &'static str, toml: &'static str) -> Choice {
    Choice {
        axis,
        name,
        toml,
        without: &[],
    }
}

/// A measurement of one variant.
const fn alone(name: &'static str, toml: &'static str) -> Choice {
    Choice {
        axis: "measure",
        name,
        toml,
        without: &["factors", "design"],
    }
}

/// A service that is not a command.
const fn source(name: &'static str, toml: &'static str) -> Choice {
    Choice {
        axis: "source",
        name,
        toml,
        without: &["services", "factors"],
    }
}

pub const CHOICES: &[Choice] = &[
    choice("rate", "requests per second", r#"design.rate = 800"#),
    choice("rate", "share", r#"design.rate = "50%""#),
    choice(
        "rate",
        "ramp",
        "design.rate = \"300..900\"\ndesign.arrivals = \"constant\"",
    ),
    choice("rate", "ramp of shares", r#"design.rate = "20%..60%""#),
    choice(
        "rate",
        "by level",
        "factors.setting.off.load.rate = 300\nfactors.setting.on.load.rate = 600",
    ),
    choice("length", "blocks", "design.blocks = 5\ndesign.seed = 7"),
    choice(
        "length",
        "slices",
        "design.slice = \"300ms\"\ndesign.slices = 3",
    ),
    choice("length", "warm-up", r#"design.warmup = "1s""#),
    choice("length", "short budget", r#"design.budget = "12s""#),
    choice(
        "length",
        "one look",
        "design.looks = \"once\"\ndesign.margin = \"5%\"",
    ),
    alone("duration", r#"measure.duration = "2s""#),
    alone("requests", r#"measure.requests = 500"#),
    alone(
        "steps",
        "measure.rate = \"500,1000\"\nmeasure.arrivals = \"constant\"\nmeasure.warmup = \"1s\"",
    ),
    alone(
        "shares",
        "measure.rate = \"25%,50%\"\nmeasure.duration = \"1s\"",
    ),
    alone(
        "ramp",
        "measure.rate = \"100..500\"\nmeasure.duration = \"3s\"",
    ),
    choice(
        "metric",
        "cpu_per_request",
        r#"design.metric = "cpu_per_request""#,
    ),
    choice("metric", "peak_memory", r#"design.metric = "peak_memory""#),
    choice("metric", "p50 and p75", r#"design.metric = ["p50", "p75"]"#),
    choice("metric", "p99", r#"design.metric = "p99""#),
    choice(
        "metric",
        "three quantiles",
        r#"design.metric = ["p90", "p95", "p99.5"]"#,
    ),
    choice("metric", "p99.9", r#"design.metric = "p99.9""#),
    choice(
        "metric",
        "throughput and CPU",
        r#"design.metric = ["throughput", "cpu_per_request", "peak_memory"]"#,
    ),
    choice(
        "metric",
        "objective",
        r#"design.slo = ["p99 < 50ms", "failed < 1%"]"#,
    ),
    choice(
        "metric",
        "capacity",
        "design.metric = \"capacity\"\ndesign.slo = [\"p95 < 20ms\"]",
    ),
    choice(
        "metric",
        "endpoint",
        r#"
        design.metric = "p90"
        design.endpoint = "rare"
        load.requests = [{ path = "/often", weight = 9 }, { name = "rare", path = "/rare" }]"#,
    ),
    source(
        "container",
        r#"
        services.api.container = { image = "shop:1", port = 3000, args = ["--fast"], engine = "podman", env = { A = 1 } }
        factors.setting.off.api.container.image = "shop:2"
        factors.setting.on.api.container.image = "shop:3""#,
    ),
    source(
        "compose",
        r#"
        services.api.compose = { file = "compose.yaml", service = "web", port = 3000, engine = "docker" }
        factors.setting.off.api.env.SETTING = "off"
        factors.setting.on.api.env.SETTING = "on""#,
    ),
    source(
        "URL",
        r#"
        services.api.url = "http://127.0.0.1:3000/api"
        factors.setting.off.api.url = "http://127.0.0.1:3000/api"
        factors.setting.on.api.url = "http://127.0.0.1:4000/api""#,
    ),
    source(
        "Kubernetes",
        r#"
        services.api.kubernetes = { service = "shop", namespace = "prod", context = "eu", port = 80 }
        factors.setting.off.api.kubernetes.service = "shop"
        factors.setting.on.api.kubernetes.service = "canary""#,
    ),
    choice(
        "protocol",
        "pipeline",
        "load.pipeline = 4\nload.protocol = \"http/1.1\"",
    ),
    choice("protocol", "h2", "load.protocol = \"h2\"\nload.streams = 5"),
    choice(
        "protocol",
        "TLS",
        "load.tls = { insecure = true, server_name = \"shop\", resumption = false }",
    ),
    choice(
        "protocol",
        "TLS with a client certificate",
        r#"load.tls = { ca = "body.txt", cert = "body.txt", key = "body.txt" }"#,
    ),
    choice(
        "protocol",
        "connections closed",
        "load.keep_alive = false\nload.connections = 8\nload.threads = 1",
    ),
    choice(
        "protocol",
        "link",
        r#"load.network = { rate = "20mbit", delay = "5ms" }"#,
    ),
    choice(
        "protocol",
        "addresses",
        r#"load.sources = ["127.0.0.2", "127.0.0.3"]"#,
    ),
    choice(
        "requests",
        "HEAD",
        "load.method = \"HEAD\"\nload.path = \"/items?page=2\"",
    ),
    choice(
        "requests",
        "body",
        "load.method = \"POST\"\nload.body = '{\"a\": 1}'\nload.headers.accept = [\"a\", \"b\"]",
    ),
    choice(
        "requests",
        "body of a file",
        "load.method = \"PUT\"\nload.body_file = \"body.txt\"\nload.timeout = \"2s\"",
    ),
    choice(
        "requests",
        "values",
        "load.path = \"/items/{id}\"\nload.values = \"rows.csv\"",
    ),
    choice(
        "requests",
        "mix",
        r#"
        load.requests = [
            { name = "often", path = "/often", weight = 9, headers = { a = "1" } },
            { name = "rare", path = "/{id}", values = "rows.csv", expect = { status = 404, headers = { etag = "a" }, body_bytes = 10, content = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" } },
            { name = "new", method = "POST", path = "/new", body = "x" },
            { name = "put", method = "PUT", path = "/put", body_file = "body.txt" },
        ]"#,
    ),
    choice(
        "requests",
        "log-in",
        r#"
        load.cookies = true
        load.requests = [
            { name = "log in", path = "/login", method = "POST", body = "a", once = true, capture = { token = "json:/token" } },
            { name = "cart", path = "/cart", headers = { authorization = "Bearer {token}" } },
        ]"#,
    ),
    choice(
        "requests",
        "no samples",
        "load.sample_every = 0\nexpect.body_bytes = 1000\nexpect.headers.etag = [\"a\", \"\"]",
    ),
    choice(
        "requests",
        "content",
        "expect.status = [200, 201]\nexpect.content = \"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"",
    ),
    choice(
        "start",
        "cluster",
        "services.api.launcher = \"cluster\"\nservices.api.workers = 2",
    ),
    choice(
        "start",
        "PM2 fork",
        "services.api.launcher = \"pm2-fork\"\nservices.api.pmx = false",
    ),
    choice(
        "start",
        "PM2 cluster",
        "services.api.launcher = \"pm2-cluster\"\nservices.api.workers = \"cores\"",
    ),
    choice(
        "start",
        "two services",
        r#"
        entry = "api"
        services.db = { command = ["db"], ready = "/ok", ready_timeout = "1m", stop_timeout = "2s", port = 5432 }
        services.api.needs = ["db"]"#,
    ),
    choice(
        "start",
        "prepared data and templates",
        r#"
        services.api.directory = "."
        services.api.templates = { "app.conf" = "app.conf.tmpl" }
        services.api.env.DATA = "{prepare.rows}"
        prepare.rows = { command = ["make", "{output}"], inputs = ["inputs.txt"], space = "1MB", timeout = "1m", directory = ".", env = { N = 1 } }"#,
    ),
    choice("generators", "two here", r#"generators.local = 2"#),
    choice(
        "generators",
        "by SSH",
        r#"generators = { local = 0, ssh = ["b"], address = "10.0.0.2", program = "proofload" }"#,
    ),
    choice(
        "generators",
        "in Kubernetes",
        r#"generators = { local = 1, address = "10.0.0.2", kubernetes = { pods = 1, image = "proofload:1", namespace = "bench", context = "eu", node_selector = { disk = "ssd" }, resources = { cpu = "2" } } }"#,
    ),
    choice(
        "gate",
        "changes",
        "gate = { throughput = \"> -3%\", cpu_per_request = \"< +5%\", peak_memory = \"< +5%\" }",
    ),
    choice(
        "gate",
        "amounts",
        "gate = { throughput = \"> 1/s\", cpu_per_request = [\"< 900us\"], peak_memory = \"< 200MB\", failed = \"< 1%\" }",
    ),
    choice(
        "gate",
        "quantiles",
        "gate = { p50 = \"< 1s\", p90 = \"< +50%\", p99 = \"< 2s\", \"p99.9\" = \"< 3s\", p75 = \"< 1s\", p95 = \"< 1s\", \"p99.5\" = \"< 1s\" }",
    ),
    choice(
        "gate",
        "capacity",
        "gate = { capacity = [\"> 10/s\", \"> -50%\"], failed = \"< 5%\" }",
    ),
    choice(
        "gate",
        "of a level",
        "gate.failed = \"< 5%\"\ngate.of.on.throughput = \"> 1/s\"",
    ),
    choice(
        "gate",
        "amounts of a level",
        r#"
        gate.of.on = { cpu_per_request = "< 900us", peak_memory = "< 200MB", failed = "< 5%" }"#,
    ),
    choice(
        "gate",
        "quantiles of a level",
        r#"
        gate.of.on = { p50 = "< 1s", p75 = "< 1s", p90 = "< 1s", p95 = "< 1s", p99 = "< 1s", "p99.5" = "< 1s", "p99.9" = "< 1s" }"#,
    ),
    choice(
        "gate",
        "capacity of a level",
        r#"gate.of.on.capacity = "> 1/s""#,
    ),
    choice(
        "gate",
        "of a comparison",
        "gate.of.\"on vs off\".throughput = \"> -90%\"",
    ),
    choice(
        "design",
        "copy",
        "design.aa = true\nquestion = \"Does it matter?\"",
    ),
    choice("design", "profiles", "design.explain = true"),
    choice(
        "design",
        "by the clock",
        "design.per_core = false\ndesign.drop_disturbed = false",
    ),
    choice("design", "pooled", "design.pooled = true"),
    choice("design", "cores shared", r#"design.cpus = "shared""#),
    choice("design", "cores separate", r#"design.cpus = "separate""#),
    choice(
        "design",
        "two factors",
        r#"
        factors.size.small.load.path = "/small"
        factors.size.large = { load.path = "/large", expect.status = [200], services.api.env.SIZE = "large" }
        design.compare = ["setting"]
        design.baseline = { setting = "on" }"#,
    ),
    choice(
        "design",
        "entries",
        "services.other.command = [\"other\"]\nentry = \"api\"\nfactors.way.a.entry = \"api\"\nfactors.way.b.entry = \"other\"",
    ),
    choice(
        "design",
        "tuning",
        "tune = { try = [\"A=1\"], only = [\"workers\"], without = [\"http-keep-alive\"], keep = [\"memory < +20%\"] }",
    ),
    choice(
        "design",
        "build of a commit",
        "against = { build = [\"make\"], timeout = \"1m\", copy = [\"inputs.txt\"] }",
    ),
];

/// The experiment with these choices.
pub fn experiment(choices: &[Choice]) -> String {
    let mut table = parsed(BASE);
    for name in choices.iter().flat_map(|choice| choice.without) {
        table.remove(*name);
    }
    choices
        .iter()
        .for_each(|choice| merge(&mut table, parsed(choice.toml)));
    toml::to_string(&table).expect("a table can be written")
}

/// The names of these choices, for messages.
pub fn title(choices: &[Choice]) -> String {
    let names: Vec<String> = choices
        .iter()
        .map(|choice| format!("{}: {}", choice.axis, choice.name))
        .collect();
    names.join(" + ")
}

pub fn parsed(text: &str) -> Table {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (_, value) => _ = into.insert(key, value),
        }
    }
}
