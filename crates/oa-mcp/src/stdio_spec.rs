use std::path::PathBuf;

/// The configuration of a program: its command line and its environment.
#[derive(Clone, Default)]
pub(crate) struct StdioSpec {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) inherited: Vec<String>,
    pub(crate) dir: Option<PathBuf>,
}
