//! Options in `#[tool(..)]`, and tools of a crate by another name.

use std::time::Duration;

use oa_macros::tool;
use oa_tools::Tool;
use serde_json::json;

use crate::execute;

/// The names that an expansion uses, re-exported by a crate around it.
mod sdk {
    pub(crate) mod agents {
        pub(crate) use oa_tools::{__private, FnTool, tool};
    }
}

const DESCRIPTION: &str = "Deletes a file";
const LIMIT: usize = 2;

/// Docs for people.
#[tool(
    name = "delete-file",
    description = DESCRIPTION,
    category = "write",
    timeout = Duration::from_secs(5),
    max_parallel = LIMIT,
    output_schema = json!({ "type": "object" }),
    exclusive,
    cacheable,
)]
async fn delete(path: String) -> String {
    path
}

/// Does nothing special.
#[tool]
async fn plain() {}

#[test]
fn options_are_settings_of_the_builder() {
    let tool = delete::tool();
    tool.check().unwrap();
    assert_eq!((tool.name(), tool.description()), ("delete-file", "Deletes a file"));
    assert_eq!((tool.category(), tool.timeout()), (Some("write"), Some(Duration::from_secs(5))));
    assert_eq!(
        (tool.max_parallel(), tool.is_exclusive(), tool.is_cacheable()),
        (Some(2), true, true)
    );

    assert_eq!(tool.output_schema(), Some(&json!({ "type": "object" })));

    let tool = plain::tool();
    assert_eq!(tool.output_schema(), None);
    assert_eq!((tool.name(), tool.category(), tool.timeout()), ("plain", None, None));
    assert_eq!(
        (tool.max_parallel(), tool.is_exclusive(), tool.is_cacheable()),
        (None, false, false)
    );
}

/// Finds the crate by its path.
#[tool(crate = "sdk::agents")]
fn renamed(#[default(1)] a: u8) -> Vec<u8> {
    vec![a]
}

/// Finds it from anywhere.
#[tool(crate = "crate::options::sdk::agents")]
fn absolute() {}

#[test]
fn the_crate_may_have_another_name() {
    assert_eq!(execute(&renamed::tool(), json!({})).unwrap(), json!([1]));
    assert_eq!(execute(&absolute::tool(), json!({})).unwrap(), json!(null));
}

#[doc = concat!("Built", " by a macro")]
#[doc = " in two lines."]
#[tool]
fn documented() {}

/**
 Has docs
 in a block.
*/
#[tool]
fn block() {}

#[test]
fn docs_are_descriptions_in_any_form() {
    assert_eq!(documented::tool().description(), "Built by a macro\nin two lines.");
    assert_eq!(block::tool().description(), "Has docs\nin a block.");
}
