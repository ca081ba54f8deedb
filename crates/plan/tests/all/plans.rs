//! Plans of valid files: the variants, what they start and send, and which of them are compared.

use std::time::Duration;

use model::{Ask, Pacing, RateLevel, Rates, Until};
use proofload_plan::{
    ArrivalProcess, Cpus, Metric, Plan, PlannedRate, Protocol, Ready, ServiceCommand, Variant,
    parse,
};

use crate::{here, kept, names, plan, read_file};

fn variant<'a>(plan: &'a Plan, name: &str) -> &'a Variant {
    plan.variants
        .iter()
        .find(|variant| variant.name == name)
        .expect("a variant of this name")
}

fn started(variant: &Variant) -> &ServiceCommand {
    variant.services[0].command().expect("it is started")
}

fn labels(plan: &Plan) -> Vec<&str> {
    plan.comparisons
        .iter()
        .map(|comparison| comparison.label.as_str())
        .collect()
}

const MINIMAL: &str = r#"
name = "minimal"
[services.api]
command = ["node", "server.js"]
"#;

/// Three factors in non-alphabetical order.
const FACTORS: &str = r#"
name = "factors"
[services.api]
command = ["node", "server.js"]
[factors.node_env]
production = { api.env.NODE_ENV = "production" }
development = { api.env.NODE_ENV = "development" }
[factors.body]
small = { load.path = "/small" }
large = { load.path = "/large" }
[factors.gzip]
off = {}
on = { load.headers.accept-encoding = "gzip" }
br = { load.headers.accept-encoding = "br" }
"#;

#[test]
fn a_level_may_set_the_rate_of_all_variants_or_none() {
    let file = |low: &str, design: &str| {
        format!(
            "{MINIMAL}[factors.rate]\nlow = {low}\nhigh = {{ load.rate = 800 }}\n[design]\n{design}"
        )
    };
    let even = plan(&file(
        "{ load.rate = 200 }",
        "metric = \"cpu_per_request\"\narrivals = \"constant\"",
    ));
    assert_eq!(
        (even.design.pacing(), even.design.arrivals),
        (Pacing::Open, ArrivalProcess::Constant)
    );
    let plan = plan(&file("{ load.rate = 200 }", "metric = \"p99\""));
    let rates: Vec<_> = plan
        .variants
        .iter()
        .map(|variant| variant.load.rate_per_s)
        .collect();
    assert_eq!(
        (rates, plan.design.rate),
        (
            vec![Some(200.0), Some(800.0)],
            Some(PlannedRate::PerSecond(200.0))
        )
    );
    for (low, design, told) in [
        (
            "{ load.rate = 200 }",
            "",
            "is for open loop, and the metric is `throughput`",
        ),
        ("{}", "metric = \"p99\"", "is set for 1 of 2 variants"),
        (
            "{ load.rate = 200 }",
            "metric = \"p99\"\nrate = 100",
            "stands beside another rate",
        ),
        ("{ load.rate = 0 }", "metric = \"p99\"", "above 0"),
        (
            "{ load.rate = 200, gate.failed = \"< 1%\" }",
            "metric = \"p99\"",
            "a level cannot set `gate`",
        ),
    ] {
        let problems = parse(&file(low, design), here()).expect_err(told);
        let found: Vec<&str> = problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
    }
}

#[test]
fn a_minimal_file_has_one_variant_the_documented_defaults_and_nothing_to_compare() {
    let plan = plan(MINIMAL);
    assert!(plan.comparisons.is_empty() && plan.factors.is_empty());
    let only = variant(&plan, "only");
    assert_eq!(
        (only.entry.as_str(), only.load.title().as_str()),
        ("api", "GET /")
    );
    assert_eq!(
        (only.load.settings.connections, only.load.timeout),
        (64, Duration::from_secs(5))
    );
    assert_eq!(only.expect.status, [200]);
    let api = &only.services[0];
    assert_eq!((&api.ready, started(only).port), (&Ready::Response, None));
    assert_eq!(api.ready_timeout, Duration::from_secs(30));
    assert_eq!(started(only).directory, here().canonicalize().unwrap());
    assert_eq!(
        (plan.design.margin, plan.design.budget),
        (0.03, Duration::from_secs(600))
    );
}

#[test]
fn levels_combine_in_the_order_of_the_file_the_last_factor_fastest() {
    let plan = plan(FACTORS);
    assert_eq!(plan.variants.len(), 12);
    let first = ["small · off", "small · on", "small · br", "large · off"];
    assert_eq!(
        names(&plan)[..4],
        first.map(|rest| format!("production · {rest}"))
    );
    assert_eq!(
        variant(&plan, "development · large · on").levels["body"],
        "large"
    );
}

#[test]
fn without_compare_every_variant_is_compared_with_the_baseline() {
    let plan = plan(&format!(
        "{FACTORS}[design.baseline]\nnode_env = \"development\"\n"
    ));
    assert_eq!(plan.comparisons.len(), 11);
    assert_eq!(
        labels(&plan)[0],
        "production · small · off vs development · small · off"
    );
    let baseline = plan.comparisons[0].baseline;
    assert!(
        plan.comparisons
            .iter()
            .all(|comparison| comparison.baseline == baseline)
    );
}

#[test]
fn compare_changes_one_factor_at_a_time_within_the_others() {
    let text = format!("{FACTORS}[design]\ncompare = \"gzip\"\nbaseline.gzip = \"br\"\n");
    let plan = plan(&text);
    assert_eq!(plan.comparisons.len(), 8);
    assert_eq!(
        labels(&plan)[..3],
        [
            "off vs br (production · small)",
            "on vs br (production · small)",
            "off vs br (production · large)"
        ]
    );
    for comparison in &plan.comparisons {
        let (one, other) = (
            &plan.variants[comparison.baseline].levels,
            &plan.variants[comparison.candidate].levels,
        );
        assert_eq!(one["gzip"], "br");
        let differing: Vec<_> = one
            .keys()
            .filter(|factor| one[*factor] != other[*factor])
            .collect();
        assert_eq!(differing, ["gzip"], "{}", comparison.label);
    }
}

#[test]
fn a_level_merges_tables_replaces_the_rest_and_leaves_the_other_variants_alone() {
    let plan = plan(
        r#"
        name = "overrides"
        entry = "proxy"
        [services.api]
        command = ["node", "server.js"]
        env = { PORT = "{port}", WORKERS = 2, DEBUG = false, RATIO = 1.0 }
        [services.proxy]
        command = ["nginx", "-g", "{api.port}"]
        needs = ["api"]
        [load]
        headers = { z-first = "1", accept = "a" }
        [factors.mode]
        base = {}
        other = { api.env.WORKERS = 4, services.api.command = ["bun", "server.ts"], load.headers.Accept = "b", expect.status = [200, 304], expect.headers.Vary = "accept" }
        direct = { entry = "api" }
    "#,
    );
    let [base, other, direct] = plan.variants.as_slice() else {
        panic!("three variants")
    };
    assert_eq!(started(base).env["WORKERS"], "2");
    assert_eq!(
        (&*started(base).env["DEBUG"], &*started(base).env["RATIO"]),
        ("false", "1.0")
    );
    assert_eq!(started(other).env["WORKERS"], "4");
    assert_eq!(started(other).env["PORT"], "{port}");
    assert_eq!(started(other).command, ["bun", "server.ts"]);
    let headers = [("z-first", "1"), ("Accept", "b")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(other.load.requests[0].headers, headers);
    assert_eq!(other.expect.status, [200, 304]);
    assert_eq!(other.expect.headers["vary"], ["accept"]);
    assert_eq!(base.load.requests[0].headers[1].1, "a");
    let started = |variant: &Variant| {
        variant
            .services
            .iter()
            .map(|service| service.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(started(base), ["api", "proxy"]);
    assert_eq!(
        started(direct),
        ["api"],
        "what the entry does not need is not started"
    );
}

#[test]
fn services_start_after_what_they_need_the_entry_last() {
    let service = |name: &str, needs: &str| {
        format!("[services.{name}]\ncommand = [\"x\"]\nneeds = [{needs}]\n")
    };
    let text = "name = \"diamond\"\nentry = \"a\"\n".to_owned()
        + &service("a", r#""b", "c""#)
        + &service("b", r#""d""#)
        + &service("c", r#""d""#)
        + &service("d", "")
        + &service("unused", r#""a""#);
    let plan = plan(&text);
    let started: Vec<&str> = plan.variants[0]
        .services
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    assert_eq!(started, ["d", "b", "c", "a"]);
}

#[test]
fn latencies_are_measured_at_a_common_rate_and_throughput_at_none() {
    let design = |lines: &str| plan(&format!("{MINIMAL}[design]\n{lines}\n")).design;
    for (lines, metric, rate) in [
        ("", Metric::Throughput, None),
        ("metric = \"cpu_per_request\"", Metric::CpuPerRequest, None),
        (
            "metric = \"cpu_per_request\"\nrate = 1000",
            Metric::CpuPerRequest,
            Some(PlannedRate::PerSecond(1000.0)),
        ),
        (
            "metric = \"p99\"",
            Metric::P99,
            Some(PlannedRate::ShareOfCapacity(0.6)),
        ),
        (
            "metric = \"p99.9\"\nrate = \"12.5%\"",
            Metric::P999,
            Some(PlannedRate::ShareOfCapacity(0.125)),
        ),
        (
            "metric = \"p50\"\nrate = 2.5",
            Metric::P50,
            Some(PlannedRate::PerSecond(2.5)),
        ),
    ] {
        let found = design(lines);
        assert_eq!(
            (found.metric, found.rate, found.arrivals),
            (metric, rate, ArrivalProcess::Poisson),
            "{lines}"
        );
    }
    assert_eq!(
        design("metric = \"p90\"\narrivals = \"constant\"").arrivals,
        ArrivalProcess::Constant
    );
    assert!(design("metric = \"p90\"\npooled = true").pooled && !design("pooled = false").pooled);
    let problems = parse(&format!("{MINIMAL}[design]\npooled = true\n"), here()).unwrap_err();
    assert!(
        problems[0]
            .message
            .starts_with("`design.pooled` is for open loop"),
        "{problems:?}"
    );
}

#[test]
fn several_metrics_are_judged_the_first_first_and_a_latency_among_them_sets_the_rate() {
    let design = |lines: &str| plan(&format!("{FACTORS}[design]\n{lines}\n")).design;
    let found = design("metric = [\"cpu_per_request\", \"p50\", \"p99\"]");
    assert_eq!(
        found.metrics().collect::<Vec<_>>(),
        [Metric::CpuPerRequest, Metric::P50, Metric::P99]
    );
    assert_eq!(found.rate, Some(PlannedRate::ShareOfCapacity(0.6)));
    assert_eq!(found.most_wanting().0, Metric::P99);
    let found = design("metric = [\"throughput\", \"peak_memory\"]");
    assert_eq!(
        (found.co_primary.as_slice(), found.rate),
        ([Metric::PeakMemory].as_slice(), None)
    );
    assert_eq!(design("metric = [\"p90\"]").co_primary, []);
}

#[test]
fn users_keep_their_connections() {
    let text = format!("{MINIMAL}[load]\ncookies = true\nkeep_alive = false\n");
    assert_eq!(parse(&text, here()).unwrap_err()[0].label, "expected true");
}

#[test]
fn several_requests_share_what_the_load_says_and_one_may_be_judged() {
    let plan = plan(include_str!("../mix.toml"));
    let load = &plan.variants[0].load;
    let sent: Vec<(&str, u32, &str, &str)> = load
        .requests
        .iter()
        .map(|of| {
            (
                of.name.as_str(),
                of.weight,
                of.method.as_str(),
                of.path.as_str(),
            )
        })
        .collect();
    let expected = [
        ("ping", 3, "GET", "/ping"),
        ("auth", 1, "PUT", "/auth?user=1"),
        ("POST /new", 1, "POST", "/new"),
    ];
    assert_eq!(sent, expected);
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        load.requests[0].headers,
        [header("x-trace", "1"), header("accept", "text/plain")]
    );
    assert_eq!(
        load.requests[1].headers,
        [header("Accept", "application/json"), header("x-trace", "1")]
    );
    assert_eq!(
        (load.share_of("ping"), load.share_of("auth2")),
        (Some(0.6), None)
    );
    // The smallest share of all variants determines the length of trials.
    let endpoint = plan.design.endpoint.as_ref().expect("it was chosen");
    assert_eq!((endpoint.name.as_str(), endpoint.share), ("ping", 0.6));
    assert_eq!(plan.design.cpus, Cpus::Shared);
    let alone = Metric::P50.requests_wanted();
    assert_eq!(
        plan.design.most_wanting(),
        (Metric::P50, (alone / 0.6).ceil())
    );
}

#[test]
fn a_copy_of_the_baseline_is_the_last_variant_and_no_comparison() {
    let level = "[factors.again]\n\"a\" = {}\n\"a (again)\" = { api.env.X = 1 }\n";
    let plan = plan(&format!(
        "{MINIMAL}{level}[design]\naa = true\nlooks = \"once\"\n"
    ));
    assert_eq!((plan.variants.len(), plan.comparisons.len()), (3, 1));
    let copy = plan.aa.as_ref().expect("it was asked for");
    assert_eq!(
        (copy.baseline, copy.candidate),
        (plan.comparisons[0].baseline, 2)
    );
    let (of, copied) = (&plan.variants[0], &plan.variants[2]);
    assert_eq!(
        (&of.services, &of.load, &of.levels),
        (&copied.services, &copied.load, &copied.levels)
    );
    assert_eq!(
        names(&plan),
        ["a", "a (again)", "a (again) (again)"],
        "names tell variants apart"
    );
    let calibration = plan
        .calibration(1, plan.design.budget, None)
        .expect("there is such a variant");
    assert_eq!(
        (calibration.variants.len(), calibration.comparisons.len()),
        (2, 1)
    );
    assert!(
        calibration.aa.is_none()
            && calibration.factors.is_empty()
            && plan.calibration(3, plan.design.budget, None).is_none()
    );
}

const PREPARED: &str = r#"
name = "prepared"
entry = "api"
[prepare.zips]
command = ["node", "generate.js", "{output}"]
inputs = ["Cargo.toml", "src"]
space = "2200MB"
[prepare.names]
command = ["make"]
env = { DIR = "{output}" }
timeout = "1h"
[prepare.idle]
command = ["make", "{output}"]
[services.api]
command = ["node", "server.js"]
env = { DATA = "{prepare.zips}/all.json" }
[services.other]
command = ["node", "server.js", "{prepare.idle}"]
[factors.data]
zips = {}
names = { api.env.DATA = "{prepare.names}" }
"#;

#[test]
fn only_what_a_started_service_mentions_is_prepared() {
    let plan = plan(PREPARED);
    let steps = |plan: &Plan| {
        plan.prepare
            .iter()
            .map(|step| step.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        steps(&plan),
        ["names", "zips"],
        "a level may mention it; `other` is never started"
    );
    let (made, zips) = (&plan.prepare[0], &plan.prepare[1]);
    assert_eq!(
        (zips.space_bytes, zips.timeout),
        (Some(2_200_000_000), Duration::from_secs(600))
    );
    assert_eq!(
        (&*zips.inputs.join(" "), &zips.directory),
        ("Cargo.toml src", &here().canonicalize().unwrap())
    );
    assert_eq!(
        (made.env["DIR"].as_str(), made.timeout),
        ("{output}", Duration::from_secs(3600))
    );
    assert_eq!(
        steps(
            &plan
                .calibration(0, plan.design.budget, None)
                .expect("there is such a variant")
        ),
        ["zips"]
    );
}

#[test]
fn a_link_may_be_set_by_a_level_and_needs_one_of_its_two() {
    let text = format!(
        "{MINIMAL}[factors.link]\nnone = {{}}\nslow = {{ load.network.rate = \"1.5mbit\" }}\n\
         far = {{ load.network.delay = \"500us\" }}\n"
    );
    let plan = plan(&text);
    let links: Vec<_> = plan
        .variants
        .iter()
        .map(|variant| variant.load.network.clone())
        .collect();
    let slow = proofload_plan::Network {
        rate_bit_per_s: Some(1_500_000),
        delay: None,
    };
    let far = proofload_plan::Network {
        rate_bit_per_s: None,
        delay: Some(Duration::from_micros(500)),
    };
    assert_eq!(links, [None, Some(slow), Some(far)]);
}

#[test]
fn every_shipped_experiment_is_valid() {
    let files = std::fs::read_dir(here().join("../../experiments")).unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    let experiments = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let read = experiments.map(|path| read_file(&path).unwrap_or_else(|error| panic!("{error:?}")));
    assert!(read.count() > 0);
}

#[test]
fn generators_are_this_process_unless_the_file_says_otherwise_and_old_plans_do_not_say() {
    let alone = plan(MINIMAL);
    assert!(alone.generators.is_here() && !alone.generators.is_elsewhere());
    assert!(
        kept(&alone).get("generators").is_none(),
        "records of one generator are as they were"
    );

    let shared = plan(&format!(
        "{MINIMAL}[generators]\nlocal = 2\nssh = [\"me@bench-1\"]\naddress = \"10.0.0.2\"\nprogram = \"Cargo.toml\"\n\
         [generators.kubernetes]\npods = 8\nimage = \"proofload:1\"\nresources = {{ cpu = 2, memory = \"512Mi\" }}\n"
    ));
    let generators = &shared.generators;
    assert_eq!(
        (generators.count(), generators.pods(), generators.local),
        (11, 8, 2)
    );
    assert!(generators.is_elsewhere() && !generators.is_here());
    assert_eq!(generators.address, Some("10.0.0.2".parse().unwrap()));
    assert_eq!(
        generators.program.as_deref(),
        Some(&*here().join("Cargo.toml").canonicalize().unwrap())
    );
    let cluster = generators.kubernetes.as_ref().unwrap();
    assert_eq!(
        (
            cluster.resources["cpu"].as_str(),
            cluster.resources["memory"].as_str()
        ),
        ("2", "512Mi")
    );
    kept(&shared);
    assert!(
        !plan(&format!("{MINIMAL}[generators]\nlocal = 2\n"))
            .generators
            .is_here()
    );
    // A calibration uses the same client.
    assert_eq!(
        shared
            .calibration(0, shared.design.budget, None)
            .unwrap()
            .generators,
        shared.generators
    );
}

#[test]
fn what_runs_already_is_named_by_levels_and_needs_nothing_of_what_is_started() {
    let text = "name = \"x\"\n[services.shop]\nkubernetes = { service = \"shop\", namespace = \"prod\", port = 80, context = \"eu\" }\n\
                ready = \"/healthz\"\n[generators]\nlocal = 0\nkubernetes = { pods = 2, image = \"proofload:1\" }\n[factors.version]\n\
                stable = { shop.kubernetes.service = \"shop\" }\n\
                canary = { shop.kubernetes = { service = \"shop-canary\", port = \"http\" } }\n";
    let plan = plan(text);
    let deployed: Vec<String> = plan
        .variants
        .iter()
        .filter_map(|variant| Some(variant.deployed()?.to_string()))
        .collect();
    let expected = ["shop in prod, port 80", "shop-canary in prod, port http"];
    assert_eq!(
        deployed,
        expected.map(|which| format!("Service {which}, of the context eu"))
    );
    assert!(plan.loads_running());
    let figure = |name| proofload_plan::LimitFigure::named(name).unwrap();
    assert!(plan.measures(figure("throughput")) && !plan.measures(figure("cpu_per_request")));
    kept(&plan);
    assert!(
        plan.check_here()
            .is_err_and(|error| error.to_string().contains("shop runs already"))
    );
    // The same service in the same words is one variant.
    let alike = text.replace(
        "{ service = \"shop-canary\", port = \"http\" }",
        "{ service = \"shop\" }",
    );
    assert!(parse(&alike, here()).is_err_and(|problems| problems[0].message.contains("alike")));
}

#[test]
fn urls_say_where_and_below_which_path_and_the_rest_of_the_load_is_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["ca.pem", "rows.csv", "body.bin"] {
        std::fs::write(folder.path().join(file), "id\n1\n").unwrap();
    }
    let text = "name = \"urls\"\n[services.shop]\nready = \"/up\"\n\
                [factors.where]\n\
                tcp = { shop.url = \"https://[::1]:8443/api/\", load.tls.ca = \"ca.pem\", load.protocol = \"h2\" }\n\
                far = { shop.url = \"shop.example:80\", load.keep_alive = false }\n\
                socket = { shop.url = \"http://unix:/run/shop.sock:/v1\", load.pipeline = 4 }\n\
                [load]\nrequests = [\n{ path = \"/a/{id}\", values = \"rows.csv\" },\n\
                { path = \"/b\", body_file = \"body.bin\", expect.status = 201 }]\n\
                [design]\nmetric = \"p99\"\nrate = \"20%..60%\"\n";
    let plan = parse(text, folder.path()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let [tcp, far, socket] = plan.variants.as_slice() else {
        panic!("three variants")
    };
    assert_eq!(tcp.services[0].ready, Ready::Http("/api/up".to_owned()));
    let (first, second) = (&tcp.load.requests[0], &tcp.load.requests[1]);
    assert_eq!((&*first.name, &*first.path), ("GET /a/{id}", "/api/a/{id}"));
    assert!(first.values.as_ref().is_some_and(|file| file.is_absolute()));
    assert_eq!(
        (&*second.method, &second.expect.as_ref().unwrap().status),
        ("POST", &vec![201])
    );
    let tls = tcp.load.tls.as_ref().unwrap();
    assert!(tls.server_name.as_deref() == Some("::1") && tls.resumption && far.load.tls.is_none());
    assert_eq!(tcp.load.protocol, Protocol::Http2 { streams: 10 });
    assert_eq!(socket.load.protocol, Protocol::Http1 { pipeline: 4 });
    assert_eq!(
        (&*socket.load.requests[1].path, far.load.settings.keep_alive),
        ("/v1/b", false)
    );
    let ramp = (
        PlannedRate::ShareOfCapacity(0.2),
        PlannedRate::ShareOfCapacity(0.6),
    );
    assert_eq!(plan.design.rate.zip(plan.design.ramp_to), Some(ramp));
    assert_eq!(
        kept(&plan)["variants"][1]["services"][0]["url"],
        "http://shop.example/"
    );
}

#[test]
fn one_request_without_a_path_is_the_url_itself() {
    let plan = plan("name = \"one\"\n[services.shop]\nurl = \"127.0.0.1:3000/a?b=1\"\n");
    assert_eq!(plan.variants[0].load.requests[0].path, "/a?b=1");
    assert_eq!(plan.variants[0].services[0].ready, Ready::Response);
}

#[test]
fn a_measurement_has_slices_and_perhaps_a_capacity() {
    let read = |measure: &str| {
        plan(&format!("{MINIMAL}[measure]\n{measure}"))
            .measure
            .unwrap()
    };
    let measure = read("duration = \"2s\"\nrate = \"50%,1000\"");
    assert_eq!(measure.until, Until::Elapsed(Duration::from_secs(2)));
    let asks = [
        Ask::At(RateLevel::Percent(50.0)),
        Ask::At(RateLevel::PerSecond(1000.0)),
    ];
    assert_eq!(measure.rates.as_ref().map(Rates::asks), Some(&asks[..]));
    assert_eq!(
        (measure.slices(), measure.total()),
        (2, Duration::from_secs(8))
    );
    let measure = read("requests = 500\n");
    let expected = (Until::Requests(500), None, ArrivalProcess::Poisson);
    assert_eq!((measure.until, measure.rates, measure.arrivals), expected);
    for (text, problem) in [
        ("requests = 5\nduration = \"1s\"", "a duration and a number"),
        ("requests = 5\nrate = \"1..9\"", "gives it no length"),
        ("rate = \"fast\"", "is no rate"),
        ("arrivals = \"constant\"", "the loop is closed"),
        (
            "[gate]\ncapacity = \"> 5/s\"",
            "never measured: capacity is searched for within limits",
        ),
        (
            "[factors.a]\none = {}\ntwo = { load.path = \"/2\" }",
            "about one variant",
        ),
        (
            "[design]\nmetric = \"p99\"\nrate = 500",
            "`design.rate` is for comparisons",
        ),
        (
            "[design]\nbudget = \"1m\"",
            "`design.budget` is for comparisons",
        ),
    ] {
        let problems = parse(&format!("{MINIMAL}[measure]\n{text}"), here()).unwrap_err();
        assert!(
            problems.iter().any(|found| found.message.contains(problem)),
            "{text}: {problems:?}"
        );
    }
}

#[test]
fn load_files_are_known_by_their_contents() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{MINIMAL}[load]\nmethod = \"POST\"\nbody_file = \"body.json\"\n");
    let digests = |content: &str| {
        std::fs::write(folder.path().join("body.json"), content).unwrap();
        proofload_plan::digests(&parse(&text, folder.path()).unwrap())
    };
    let (one, other) = (digests("[1]"), digests("[2]"));
    assert_eq!(one.keys().collect::<Vec<_>>(), ["body.json"]);
    assert!(one != other && digests("[1]") == one);
    let plan = parse(&text, folder.path()).unwrap();
    std::fs::remove_file(folder.path().join("body.json")).unwrap();
    assert!(
        proofload_plan::digests(&plan).is_empty(),
        "a preparation may make it"
    );
}
