use std::path::PathBuf;

/// A program as configured: how it is started, and what it gets of our environment.
#[derive(Clone)]
pub(crate) struct StdioSpec {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) inherited: Vec<String>,
    pub(crate) dir: Option<PathBuf>,
}
