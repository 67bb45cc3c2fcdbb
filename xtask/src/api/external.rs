//! Types of other crates in public signatures: each is a promise about the versions of another project.

use super::signature::Names;

/// Paths that may be named, each with all below it, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("axum::Router", "an agent is nested into an application"),
    ("bytes::Bytes", "bodies and events are shared without copying"),
    ("futures_core::Stream", "streams are used with the adapters of others"),
    ("http", "requests, responses and addresses at the seam of transports"),
    ("http_body::Body", "bodies at the seam of transports"),
    ("opentelemetry::metrics::Meter", "the meter that a program has set up"),
    ("schemars::JsonSchema", "types with a derived schema are tools and answers, by a feature"),
    ("serde::Deserialize", "messages and reports are stored"),
    ("serde::Deserializer", "times are whole microseconds in JSON, in every crate"),
    ("serde::Serialize", "messages and reports are stored"),
    ("serde::Serializer", "times are whole microseconds in JSON, in every crate"),
    ("serde::de::DeserializeOwned", "typed tools and answers are read"),
    ("serde_json", "schemas and arguments are JSON"),
    ("tokio::io", "a connection that a connector of one's own makes"),
    ("tokio::net::TcpListener", "a worker serves on one"),
    ("tokio::net::ToSocketAddrs", "a server listens on one"),
    ("tokio::time::Instant", "the clock that tests pause"),
    ("tower::Layer", "metrics go around a chat service"),
    ("tower::Service", "the seams of transports and chat requests"),
];

/// Reports names that are not allowed, unused rows, and names that cannot be resolved.
pub(crate) fn complaints(names: &Names) -> Vec<String> {
    judge(names, ALLOWED)
}

fn judge(names: &Names, allowed: &[(&str, &str)]) -> Vec<String> {
    let covers = |row: &str, path: &str| {
        path.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let mut complaints = Vec::new();
    for (path, place) in &names.foreign {
        if !allowed.iter().any(|(row, _)| covers(row, path)) {
            complaints.push(format!(
                "{path} is named by {place}: keep it out of the signature, or add a row with a reason to \
                 xtask/src/api/external.rs"
            ));
        }
    }
    for (row, reason) in allowed {
        if !names.foreign.keys().any(|path| covers(row, path)) {
            complaints.push(format!("{row} is named nowhere, though {reason}: take its row away"));
        }
    }
    for (word, place) in &names.unknown {
        complaints.push(format!("{place}: cannot tell what `{word}` is"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_unused_rows_are_reported() {
        let mut names = Names::default();
        let told = |names: &Names| {
            let told = judge(names, &[("http", "it is the seam"), ("bytes::Bytes", "bodies")]);
            told.iter()
                .map(|line| line.split(':').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        for path in ["http::Uri", "http::request::Parts", "bytes::Bytes"] {
            names.foreign.insert(path.to_owned(), "a::b".to_owned());
        }
        assert_eq!(told(&names), [""; 0]);
        names.foreign.insert("http_body::Body".to_owned(), "a::b".to_owned());
        names.foreign.remove("bytes::Bytes");
        names.unknown.insert("X".to_owned(), "a::c".to_owned());
        assert_eq!(
            judge(&names, &[("http", "seam"), ("bytes::Bytes", "bodies")]),
            [
                "http_body::Body is named by a::b: keep it out of the signature, or add a row with a reason to \
             xtask/src/api/external.rs",
                "bytes::Bytes is named nowhere, though bodies: take its row away",
                "a::c: cannot tell what `X` is",
            ]
        );
    }
}
