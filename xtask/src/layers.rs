//! The layers of the crates and their allowed dependencies. `cargo xtask tidy` compares this table with
//! the real graph. When a crate is added, removed or moved, change only this table.

/// One crate under `crates/`.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    /// The workspace crates that it may depend on, outside its tests. All must be on lower layers.
    pub(crate) ours: &'static [&'static str],
    /// The external crates that it and the workspace crates below it may depend on, with default features.
    /// Transitive dependencies are not listed. `None`: not checked.
    pub(crate) external: Option<&'static [&'static str]>,
    /// The number of external crates a Linux build may hold.
    pub(crate) limits: &'static [Limit],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Layer(u8),
    /// Outside of the layers: no layer may depend on it, except in tests.
    Side,
}

#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) features: Features,
    pub(crate) most: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Features {
    /// All features that do not add TLS.
    AllButTls,
    Default,
    /// The default features and this one.
    DefaultAnd(&'static str),
    /// All features that do not add TLS, except this one.
    Without(&'static str),
}

/// The highest layer without I/O, and the crates that it therefore never depends on, under any feature.
pub(crate) const PURE: u8 = 1;
pub(crate) const FORBIDDEN_IN_PURE: &[&str] = &["hyper", "tokio", "tower"];

/// Features of the facade, and the most external crates that each may add beyond those of all others.
pub(crate) const ALONE: &[(&str, usize)] = &[("mcp", 20)];

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "oa-access",
        place: Place::Layer(0),
        ours: &[],
        external: Some(&["http", "subtle"]),
        limits: &[Limit { features: Features::Default, most: 4 }],
    },
    Row { name: "oa-contain", place: Place::Layer(0), ours: &[], external: Some(&[]), limits: &[] },
    Row {
        name: "oa-redact",
        place: Place::Layer(0),
        ours: &[],
        external: Some(&["serde_json"]),
        limits: &[Limit { features: Features::Default, most: 5 }],
    },
    Row {
        name: "oa-json",
        place: Place::Layer(0),
        ours: &[],
        external: Some(&["serde_core", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 5 }],
    },
    Row {
        name: "oa-sse",
        place: Place::Layer(0),
        ours: &[],
        external: Some(&["bytes", "memchr", "simdutf8"]),
        limits: &[Limit { features: Features::Default, most: 3 }],
    },
    Row {
        name: "oa-types",
        place: Place::Layer(0),
        ours: &[],
        external: Some(&["serde", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 11 }],
    },
    Row {
        name: "oa-aggregate",
        place: Place::Layer(1),
        ours: &["oa-json", "oa-types"],
        external: Some(&["serde", "serde_core", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 11 }],
    },
    Row {
        name: "oa-context",
        place: Place::Layer(1),
        ours: &["oa-types"],
        external: Some(&["serde", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 11 }],
    },
    Row {
        name: "oa-fallback",
        place: Place::Layer(1),
        ours: &["oa-json", "oa-types"],
        external: Some(&["serde", "serde_core", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 15 }],
    },
    Row {
        name: "oa-hooks",
        place: Place::Layer(1),
        ours: &["oa-contain", "oa-types"],
        external: Some(&["serde", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 11 }],
    },
    Row {
        name: "oa-markdown",
        place: Place::Layer(1),
        ours: &["oa-redact"],
        external: Some(&["pulldown-cmark", "serde_json", "unicode-segmentation", "unicode-width"]),
        limits: &[Limit { features: Features::Default, most: 15 }],
    },
    Row {
        name: "oa-session",
        place: Place::Layer(1),
        ours: &["oa-contain", "oa-types"],
        external: Some(&["fs4", "rustix", "serde", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 15 }],
    },
    Row {
        name: "oa-tls",
        place: Place::Layer(1),
        ours: &[],
        external: Some(&["rustls", "rustls-native-certs"]),
        limits: &[],
    },
    Row {
        name: "oa-tools",
        place: Place::Layer(1),
        ours: &["oa-types"],
        external: Some(&["schemars", "serde", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 15 }],
    },
    Row {
        name: "oa-turn",
        place: Place::Layer(1),
        ours: &["oa-types"],
        external: Some(&["serde", "serde_json"]),
        limits: &[],
    },
    Row {
        name: "oa-executor",
        place: Place::Layer(2),
        ours: &["oa-contain", "oa-sse", "oa-tools", "oa-types"],
        external: Some(&[
            "bytes",
            "futures-core",
            "memchr",
            "serde",
            "serde_json",
            "simdutf8",
            "tokio",
        ]),
        limits: &[Limit { features: Features::Default, most: 20 }],
    },
    Row {
        name: "oa-files",
        place: Place::Layer(2),
        ours: &["oa-redact", "oa-tools", "oa-types"],
        external: Some(&["dunce", "serde", "serde_json"]),
        limits: &[],
    },
    Row {
        name: "oa-macros",
        place: Place::Layer(2),
        ours: &[],
        external: Some(&["proc-macro2", "quote", "syn"]),
        limits: &[Limit { features: Features::Default, most: 4 }],
    },
    Row {
        name: "oa-mcp-data",
        place: Place::Layer(2),
        ours: &["oa-json", "oa-redact", "oa-tools", "oa-types"],
        external: Some(&["serde", "serde_core", "serde_json", "sha2"]),
        limits: &[],
    },
    Row {
        name: "oa-output",
        place: Place::Layer(2),
        ours: &["oa-json", "oa-tools", "oa-types"],
        external: Some(&["schemars", "serde", "serde_core", "serde_json"]),
        limits: &[Limit { features: Features::Default, most: 15 }],
    },
    Row {
        name: "oa-session-postgres",
        place: Place::Layer(2),
        ours: &["oa-session", "oa-tls", "oa-types"],
        external: Some(&[
            "fs4",
            "futures-core",
            "rustix",
            "serde",
            "serde_json",
            "tokio",
            "tokio-postgres",
        ]),
        limits: &[Limit { features: Features::Default, most: 67 }],
    },
    Row {
        name: "oa-session-sqlite",
        place: Place::Layer(2),
        ours: &["oa-session", "oa-types"],
        external: Some(&["fs4", "rusqlite", "rustix", "serde", "serde_json"]),
        limits: &[],
    },
    Row {
        name: "oa-terminal",
        place: Place::Layer(2),
        ours: &["oa-hooks", "oa-redact"],
        external: Some(&["serde", "serde_json", "tokio"]),
        limits: &[],
    },
    Row {
        name: "oa-transport",
        place: Place::Layer(2),
        ours: &["oa-tls", "oa-types"],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-events",
        place: Place::Layer(3),
        ours: &["oa-aggregate", "oa-context", "oa-executor", "oa-types"],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-chat",
        place: Place::Layer(3),
        ours: &[
            "oa-aggregate",
            "oa-fallback",
            "oa-json",
            "oa-output",
            "oa-redact",
            "oa-session",
            "oa-sse",
            "oa-tools",
            "oa-transport",
            "oa-turn",
            "oa-types",
        ],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-mcp",
        place: Place::Layer(3),
        ours: &[
            "oa-access",
            "oa-contain",
            "oa-executor",
            "oa-hooks",
            "oa-mcp-data",
            "oa-redact",
            "oa-sse",
            "oa-tools",
            "oa-transport",
            "oa-types",
        ],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-client",
        place: Place::Layer(4),
        ours: &[
            "oa-aggregate",
            "oa-chat",
            "oa-contain",
            "oa-context",
            "oa-events",
            "oa-executor",
            "oa-fallback",
            "oa-hooks",
            "oa-json",
            "oa-output",
            "oa-redact",
            "oa-session",
            "oa-sse",
            "oa-tools",
            "oa-transport",
            "oa-turn",
            "oa-types",
        ],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-metrics",
        place: Place::Layer(4),
        ours: &["oa-chat", "oa-redact", "oa-tools", "oa-types"],
        external: None,
        limits: &[Limit { features: Features::Default, most: 36 }],
    },
    Row {
        name: "oa-router",
        place: Place::Layer(4),
        ours: &["oa-chat"],
        external: None,
        limits: &[Limit { features: Features::Default, most: 42 }],
    },
    Row {
        name: "oa-agents",
        place: Place::Layer(5),
        ours: &["oa-client", "oa-executor", "oa-hooks", "oa-mcp", "oa-tools", "oa-types"],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-batch",
        place: Place::Layer(5),
        ours: &["oa-chat", "oa-client", "oa-contain", "oa-session", "oa-types"],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-doctor",
        place: Place::Layer(5),
        ours: &[
            "oa-aggregate",
            "oa-chat",
            "oa-client",
            "oa-json",
            "oa-redact",
            "oa-sse",
            "oa-tools",
            "oa-transport",
            "oa-types",
        ],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-restate",
        place: Place::Layer(5),
        ours: &[
            "oa-client",
            "oa-events",
            "oa-executor",
            "oa-output",
            "oa-session",
            "oa-tools",
            "oa-transport",
            "oa-turn",
            "oa-types",
        ],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-event-log",
        place: Place::Layer(4),
        ours: &["oa-events", "oa-executor", "oa-json", "oa-types"],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-serve",
        place: Place::Layer(5),
        ours: &[
            "oa-access",
            "oa-client",
            "oa-event-log",
            "oa-events",
            "oa-executor",
            "oa-hooks",
            "oa-json",
            "oa-redact",
            "oa-session",
            "oa-sse",
            "oa-tools",
            "oa-types",
        ],
        external: None,
        limits: &[],
    },
    Row {
        name: "open-agent",
        place: Place::Layer(6),
        ours: &[
            "oa-agents",
            "oa-aggregate",
            "oa-batch",
            "oa-chat",
            "oa-client",
            "oa-context",
            "oa-doctor",
            "oa-events",
            "oa-executor",
            "oa-fallback",
            "oa-hooks",
            "oa-json",
            "oa-macros",
            "oa-mcp",
            "oa-mcp-data",
            "oa-metrics",
            "oa-output",
            "oa-redact",
            "oa-restate",
            "oa-router",
            "oa-serve",
            "oa-session",
            "oa-session-postgres",
            "oa-session-sqlite",
            "oa-sse",
            "oa-terminal",
            "oa-tools",
            "oa-transport",
            "oa-turn",
            "oa-types",
        ],
        external: None,
        limits: &[
            Limit { features: Features::Default, most: 40 },
            // With two databases, of which PostgreSQL's driver brings 42, derives of schemas, and the library of MCP, which
            // brings 17. Agents over HTTP bring 12: axum, and what is below it. The protocol of Restate brings 38.
            // Every keyword of JSON Schema brings another 34.
            Limit { features: Features::AllButTls, most: 206 },
            // The manual says how many it adds.
            Limit { features: Features::DefaultAnd("mcp"), most: 80 },
        ],
    },
    Row {
        name: "oa-cli",
        place: Place::Layer(7),
        ours: &["oa-files", "oa-markdown", "open-agent"],
        external: None,
        limits: &[],
    },
    Row {
        name: "oa-testkit",
        place: Place::Side,
        ours: &["oa-contain", "oa-redact", "oa-types"],
        external: None,
        limits: &[],
    },
];
