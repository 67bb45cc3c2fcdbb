//! OpenTelemetry metrics of two turns: durations, tokens and tool calls, with a server that fails once.
//!
//! The numbers are printed here. A real program gives its meter provider an exporter, such as that of `opentelemetry-otlp`,
//! which sends them to a collector.
//!
//!     cargo run --example metrics --features metrics

use std::error::Error;
use std::fmt::Display;

use examples::{Arguments, Chat, Terminal};
use oa_testkit::{Reply, Request, Script, SocketServer};
use open_agent::{AgentOptions, Client, Endpoint, Metrics, json, tool};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Histogram, HistogramDataPoint, Metric, MetricData,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("metrics.rs"))?;
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();

    let server = stand_in().await?;
    let metrics = Metrics::new(&provider.meter("open-agent"));
    let server = Endpoint::builder().base_url(server.base_url()).build()?;
    let stock = tool("stock", "How many of something are there").param("of", "string").build(
        |args| async move { Ok(json!({ "pieces": args["of"].as_str().map_or(0, str::len) })) },
    );
    let options = AgentOptions::builder()
        .model("qwen3:8b")
        .chat_service(metrics.endpoint(server))
        .tool(metrics.tool(stock))
        .auto_execute_tools(true)
        .build()?;
    let mut client = Client::new(options)?;
    let agent = metrics.agent().name("storekeeper").model("qwen3:8b");
    agent.turn(client.ask("How many apples are there?")).await?;
    agent.turn(client.ask("And plums?")).await?;

    provider.force_flush()?;
    let mut terminal = Terminal::new();
    let exported = exporter.get_finished_metrics()?;
    let scopes = exported.iter().flat_map(|all| all.scope_metrics());
    let mut all: Vec<&Metric> = scopes.flat_map(|scope| scope.metrics()).collect();
    all.sort_by_key(|metric| metric.name());
    for metric in all {
        terminal.line(metric.name());
        match metric.data() {
            AggregatedMetrics::F64(MetricData::Histogram(times)) => {
                print(&mut terminal, times, |point| format!("{:.1} ms", point.sum() * 1_000.0));
            }
            AggregatedMetrics::U64(MetricData::Histogram(tokens)) => {
                print(&mut terminal, tokens, |point| format!("{} tokens", point.sum()));
            }
            _ => {}
        }
    }
    provider.shutdown()?;
    Ok(())
}

/// Prints the series of an instrument, without the port of the stand-in, which differs in each run.
fn print<T: Copy, D: Display>(
    terminal: &mut Terminal,
    of: &Histogram<T>,
    sum: impl Fn(&HistogramDataPoint<T>) -> D,
) {
    let mut lines: Vec<String> = of
        .data_points()
        .map(|point| {
            let shown = point.attributes().filter(|one| one.key.as_str() != "server.port");
            let mut shown: Vec<String> =
                shown.map(|one| format!("{}={}", one.key, one.value)).collect();
            shown.sort();
            format!("  count {}, sum {} | {}", point.count(), sum(point), shown.join(" "))
        })
        .collect();
    lines.sort_by(|a, b| a.rsplit('|').next().cmp(&b.rsplit('|').next()));
    for line in lines {
        terminal.line(&line);
    }
}

/// Starts a server that fails once, and then can use one tool.
async fn stand_in() -> Result<SocketServer, Box<dyn Error>> {
    let answer = |request: &Request| {
        let chat = Chat::of(request);
        let of = chat.prompt().trim_end_matches('?').split(' ').find(|word| word.ends_with('s'));
        let of = of.unwrap_or("things");
        match chat.result("stock") {
            None => Reply::new().call("stock", json!({ "of": of })).usage(120, 18),
            Some(stock) => {
                Reply::text(format!("There are {} {of}.", stock["pieces"])).usage(160, 6)
            }
        }
    };
    let script = Script::new().strict().reply(Reply::error(503, "Loading model"));
    Ok(SocketServer::start(script.otherwise(Reply::by(answer))).await?)
}
