//! A meter whose exporter keeps everything in memory.

use std::fmt::Write as _;

use oa_metrics::{Instrument, Metrics};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

pub(crate) struct Lab {
    pub(crate) metrics: Metrics,
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        let metrics = Metrics::new(&provider.meter("tests"));
        Self { metrics, exporter, provider }
    }

    /// Everything that was exported, as text: also what no test asks for.
    pub(crate) fn exported(&self) -> String {
        self.provider.force_flush().unwrap_or_else(|error| panic!("{error}"));
        format!("{:?}", self.exporter.get_finished_metrics())
    }

    /// One line for each series: its name, its attributes, how many values it has, and their sum.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.provider.force_flush().unwrap_or_else(|error| panic!("{error}"));
        let all = self.exporter.get_finished_metrics().unwrap_or_else(|error| panic!("{error}"));
        // Each export has all values so far.
        let last = all.last().into_iter().flat_map(|all| all.scope_metrics());
        let mut lines: Vec<String> =
            last.flat_map(|scope| scope.metrics()).flat_map(series).collect();
        lines.sort();
        lines
    }
}

fn series(metric: &Metric) -> Vec<String> {
    check_form(metric);
    macro_rules! points {
        ($histogram:expr) => {
            $histogram
                .data_points()
                .map(|point| {
                    let mut attributes: Vec<String> = point
                        .attributes()
                        .map(|one| format!("{}={}", one.key.as_str(), one.value.as_str()))
                        .collect();
                    attributes.sort();
                    let mut line = metric.name().to_owned();
                    let _ = write!(
                        line,
                        "{{{}}} {} x, {}",
                        attributes.join(","),
                        point.count(),
                        point.sum()
                    );
                    line
                })
                .collect()
        };
    }
    match metric.data() {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => points!(histogram),
        AggregatedMetrics::U64(MetricData::Histogram(histogram)) => points!(histogram),
        other => panic!("{} is no histogram: {other:?}", metric.name()),
    }
}

/// Checks unit and boundaries against the list of instruments.
fn check_form(metric: &Metric) {
    let listed = Instrument::ALL.iter().find(|instrument| instrument.name() == metric.name());
    let Some(listed) = listed else { panic!("{} is not listed", metric.name()) };
    assert_eq!(metric.unit(), listed.unit());
    let bounds: Vec<f64> = match metric.data() {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            histogram.data_points().flat_map(|point| point.bounds()).collect()
        }
        AggregatedMetrics::U64(MetricData::Histogram(histogram)) => {
            histogram.data_points().flat_map(|point| point.bounds()).collect()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(bounds[..listed.boundaries().len()], *listed.boundaries());
}

/// Checks the series whose lines begin with `name`. The attributes that all requests have are left out.
#[track_caller]
pub(crate) fn check(lab: &Lab, name: &str, expected: &[&str]) {
    let common =
        "gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=qwen3:8b";
    let place = ",server.address=gpu,server.port=8000";
    let lines = lab.lines();
    let found = lines.iter().filter_map(|line| line.strip_prefix(name));
    let found: Vec<String> =
        found.map(|line| line.replace(common, "..").replace(place, "")).collect();
    assert_eq!(found, expected, "{lines:#?}");
}
