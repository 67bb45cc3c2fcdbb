//! A real collector: it receives an agent's metrics over OTLP, and its output equals the recorded metrics.
//!
//! The collector is Rotel, from PyPI; CI on Linux requires it.

mod rotel;
mod wire;

use std::collections::BTreeMap;

use oa_chat::{Endpoint, RetryConfig};
use oa_client::{AgentOptions, Client};
use oa_metrics::{Instrument, Metrics};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_otlp::{MetricExporter, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{HistogramDataPoint, Metric, metric::Data};
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use prost::Message as _;
use serde_json::json;

use crate::rotel::Rotel;
use crate::wire::{Posts, Sender};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_values_reach_the_collector() {
    let posts = Posts::listen();
    let Some(rotel) = services::or_skip(Rotel::start(posts.address())) else { return };

    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(Sender)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("http://{}/v1/metrics", rotel.address()))
        .build()
        .unwrap();
    let reader = PeriodicReader::builder(exporter).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    run(&Metrics::new(&provider.meter("open-agent"))).await;
    // The one that is kept is not shut down yet, which would send everything again.
    let exporting = provider.clone();
    tokio::task::spawn_blocking(move || exporting.force_flush().unwrap()).await.unwrap();

    let body = tokio::task::spawn_blocking(move || posts.next()).await.unwrap();
    let body = rotel.unpack(&body).unwrap();
    let request = ExportMetricsServiceRequest::decode(&*body).unwrap();
    let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    let metrics: Vec<&Metric> = scopes.flat_map(|scope| &scope.metrics).collect();
    let mut names: Vec<&str> = metrics.iter().map(|metric| &*metric.name).collect();
    names.sort_unstable();
    let mut listed: Vec<&str> =
        Instrument::ALL.iter().map(|instrument| instrument.name()).collect();
    listed.sort_unstable();
    assert_eq!(names, listed, "{rotel:?}");
    for metric in metrics {
        check(metric);
    }
}

/// A turn with a call, over a server that fails once.
async fn run(metrics: &Metrics) {
    let call = Reply::new().call("add", json!({ "a": 2, "b": 3 })).usage(40, 12);
    let script = Script::new()
        .reply(Reply::error(503, "Loading model"))
        .reply(call)
        .reply(Reply::text("The sum is five.").usage(60, 6));
    let server = Endpoint::builder().base_url("http://localhost:11434/v1");
    let server = server.transport(MemoryServer::new(script)).build();
    let add = tool("add", "Adds").param("a", "number").param("b", "number");
    let add = add.build(|_| async { Ok(json!(5)) });
    let retry = RetryConfig::default().initial_delay(std::time::Duration::from_millis(1));
    let options = AgentOptions::builder()
        .model("qwen3:8b")
        .retry(retry)
        .chat_service(metrics.endpoint(server.unwrap_or_else(|error| panic!("{error}"))))
        .tool(metrics.tool(add))
        .auto_execute_tools(true)
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    let mut client = Client::new(options).unwrap_or_else(|error| panic!("{error}"));
    let agent = metrics.agent().name("Adder").model("qwen3:8b");
    let reply =
        agent.turn(client.ask("What are 2 and 3?")).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(reply.text, "The sum is five.");
}

/// Compares a metric with what the turn did.
fn check(metric: &Metric) {
    let instrument = Instrument::ALL.iter().find(|instrument| instrument.name() == metric.name);
    let instrument = instrument.unwrap_or_else(|| panic!("{}", metric.name));
    assert_eq!(metric.unit, instrument.unit());
    let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
    let points: Vec<(BTreeMap<String, String>, &HistogramDataPoint)> =
        histogram.data_points.iter().map(|point| (attributes(point), point)).collect();
    for (_, point) in &points {
        assert_eq!(point.explicit_bounds, instrument.boundaries());
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
    }
    let count = |key: &str, value: &str| -> u64 {
        let has = |of: &BTreeMap<String, String>| of.get(key).is_some_and(|found| found == value);
        points.iter().filter(|(of, _)| has(of)).map(|(_, point)| point.count).sum()
    };
    let all: u64 = points.iter().map(|(_, point)| point.count).sum();
    match instrument {
        Instrument::OperationDuration => {
            assert_eq!((all, count("error.type", "api")), (3, 1), "{points:?}");
            assert_eq!(count("server.port", "11434"), 3, "{points:?}");
        }
        Instrument::TokenUsage => {
            let sum = |kind: &str| -> f64 {
                let of = points.iter().filter(|(of, _)| of["gen_ai.token.type"] == kind);
                of.filter_map(|(_, point)| point.sum).sum()
            };
            assert_eq!((sum("input"), sum("output")), (100.0, 18.0), "{points:?}");
        }
        Instrument::AgentDuration => {
            assert_eq!((all, count("gen_ai.agent.name", "Adder")), (1, 1), "{points:?}");
            assert_eq!(count("gen_ai.request.model", "qwen3:8b"), 1, "{points:?}");
        }
        Instrument::ToolDuration => assert_eq!((all, count("gen_ai.tool.name", "add")), (1, 1)),
        _ => assert_eq!((all, count("gen_ai.response.model", "qwen3:8b")), (2, 2), "{points:?}"),
    }
}

fn attributes(point: &HistogramDataPoint) -> BTreeMap<String, String> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;

    let value = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let pairs = point.attributes.iter().filter_map(|pair| {
        let found = pair.value.as_ref()?.value.as_ref()?;
        Some((pair.key.clone(), value(found)))
    });
    pairs.collect()
}
