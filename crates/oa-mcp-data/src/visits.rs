use std::collections::VecDeque;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::answer::{PAGES_REQUIRED, read_integer};
use crate::rounds::InputRequest;

/// The number of reported visits that are kept.
const KEPT: usize = 64;
/// The longest id of a page that is kept, in bytes.
const LONGEST_ID: usize = 256;

/// The pages that the user has to visit before a server answers a request: its `URLElicitationRequiredError` of version
/// 2025-11-25.
///
/// ```
/// use oa_mcp_data::{RequiredPages, Visits};
/// use serde_json::json;
///
/// let page = json!({ "mode": "url", "elicitationId": "e1", "url": "https://a.example", "message": "Log in" });
/// let error = json!({ "code": -32042, "message": "log in", "data": { "elicitations": [page] } });
/// let pages = RequiredPages::read(&json!({ "id": 1, "error": error })).unwrap();
///
/// let mut visits = Visits::default();
/// assert!(!pages.are_visited(&visits));
/// visits.report("e1"); // `notifications/elicitation/complete`
/// assert!(pages.are_visited(&visits));
/// ```
#[derive(Clone, PartialEq)]
pub struct RequiredPages {
    questions: InputRequest,
    ids: Vec<String>,
}

impl RequiredPages {
    /// Reads an answer; `None` if it is another one, or requires something else than pages.
    #[must_use]
    pub fn read(answer: &Value) -> Option<Self> {
        let error = answer.get("error")?;
        error.get("code").and_then(read_integer).filter(|code| *code == PAGES_REQUIRED)?;
        let pages = error.pointer("/data/elicitations")?.as_array()?;
        let (mut requests, mut ids) = (Map::new(), Vec::new());
        for page in pages {
            // A form cannot be answered here: the request has no place for its content.
            if page.get("mode")? != "url" {
                return None;
            }
            ids.extend(page.get("elicitationId").and_then(Value::as_str).map(str::to_owned));
            let request = json!({ "method": "elicitation/create", "params": page });
            requests.insert(requests.len().to_string(), request);
        }
        let questions = InputRequest { requests, state: None };
        (!pages.is_empty()).then_some(Self { questions, ids })
    }

    /// Returns a question to the user for each page.
    #[must_use]
    pub fn questions(&self) -> InputRequest {
        self.questions.clone()
    }

    /// Returns true if the server has reported a visit of each page.
    #[must_use]
    pub fn are_visited(&self, visits: &Visits) -> bool {
        let count = self.questions.requests.len();
        self.ids.len() == count && self.ids.iter().all(|id| visits.0.contains(id))
    }
}

/// Omits the pages, whose URLs may have keys.
impl fmt::Debug for RequiredPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequiredPages")
            .field("count", &self.questions.requests.len())
            .finish_non_exhaustive()
    }
}

/// The latest visits of pages that a server has reported, by the ids of the pages.
///
/// They are kept because a report may arrive before anybody waits for it.
#[derive(Clone, Debug, Default)]
pub struct Visits(VecDeque<String>);

impl Visits {
    /// Adds the id of a page that was visited.
    pub fn report(&mut self, id: &str) {
        if id.len() > LONGEST_ID {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(id: &Value) -> Value {
        json!({ "mode": "url", "elicitationId": id, "url": "https://a.example/?key=k", "message": "" })
    }

    fn read(code: i64, pages: &Value) -> Option<RequiredPages> {
        let error = json!({ "code": code, "message": "", "data": { "elicitations": pages } });
        RequiredPages::read(&json!({ "id": 1, "error": error }))
    }

    #[test]
    fn only_pages_are_required() {
        let good = page(&json!("a"));
        assert!(read(PAGES_REQUIRED, &json!([good, good])).is_some());
        assert!(read(-32000, &json!([good])).is_none());
        for other in [json!([]), json!({}), json!("a"), json!([good, 7]), json!([good, {}])] {
            assert!(read(PAGES_REQUIRED, &other).is_none(), "{other}");
        }
        let form =
            json!({ "mode": "form", "message": "", "requestedSchema": { "type": "object" } });
        assert!(read(PAGES_REQUIRED, &json!([good, form])).is_none());
        assert!(RequiredPages::read(&json!({ "result": {} })).is_none());
        let shown = format!("{:?}", read(PAGES_REQUIRED, &json!([good])));
        assert_eq!(shown, "Some(RequiredPages { count: 1, .. })");
    }

    #[test]
    fn all_pages_must_be_visited() {
        let pages = read(PAGES_REQUIRED, &json!([page(&json!("a")), page(&json!("b"))])).unwrap();
        let mut visits = Visits::default();
        visits.report("b");
        visits.report("other");
        assert!(!pages.are_visited(&visits));
        visits.report("a");
        assert!(pages.are_visited(&visits));
        // A page without an id is never reported.
        let nameless = read(PAGES_REQUIRED, &json!([page(&json!("a")), page(&json!(7))])).unwrap();
        assert!(!nameless.are_visited(&visits));
    }

    #[test]
    fn kept_visits_are_bounded() {
        let mut visits = Visits::default();
        visits.report(&"x".repeat(LONGEST_ID + 1));
        assert!(visits.0.is_empty());
        (0..2 * KEPT).for_each(|id| visits.report(&id.to_string()));
        assert_eq!(visits.0.len(), KEPT);
        assert_eq!(visits.0.back().map(String::as_str), Some("127"));
    }
}
