use oa_redact::Secrets;
use serde_json::{Value, json};

/// A reader of paginated lists, which produces the requests and takes the answers.
#[derive(Debug)]
pub struct Pages {
    member: &'static str,
    limit: usize,
    read: usize,
    next: Option<Value>,
}

impl Pages {
    /// Creates a list whose entries are in `member` of each page, of at most `limit` pages.
    #[must_use]
    pub fn new(member: &'static str, limit: usize) -> Self {
        Self { member, limit, read: 0, next: Some(json!({})) }
    }

    /// Returns the parameters of the next request; `None` if the list is complete or has too many pages.
    pub fn params(&mut self) -> Option<Value> {
        if self.read == self.limit {
            return None;
        }
        // Counted before it is sent, so a server that repeats its cursor forever ends at the limit.
        self.read += 1;
        self.next.take()
    }

    /// Takes a page and returns its entries.
    ///
    /// # Errors
    ///
    /// A message with an excerpt, if the answer is not a page.
    pub fn take(&mut self, mut page: Value, secrets: &Secrets) -> Result<Vec<Value>, String> {
        // Servers that write every member end with an empty cursor.
        let cursor = page.get("nextCursor").and_then(Value::as_str).filter(|it| !it.is_empty());
        self.next = cursor.map(|cursor| json!({ "cursor": cursor }));
        match page.get_mut(self.member).map(Value::take) {
            Some(Value::Array(entries)) => Ok(entries),
            _ => {
                let excerpt = secrets.excerpt(&page.to_string(), 200);
                let what = self.member;
                Err(format!("the answer is not a list of {what}: {excerpt}"))
            }
        }
    }

    /// Returns a warning if not all pages were read.
    #[must_use]
    pub fn rest(&self) -> Option<String> {
        let (what, read) = (self.member, self.read);
        self.next
            .is_some()
            .then(|| format!("the list of {what} has more than {read} pages; the rest is left out"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(limit: usize, server: impl Fn(&Value) -> Value) -> (Vec<Value>, Option<String>) {
        let mut pages = Pages::new("tools", limit);
        let mut all = Vec::new();
        while let Some(params) = pages.params() {
            all.extend(pages.take(server(&params), &Secrets::new()).unwrap());
        }
        (all, pages.rest())
    }

    #[test]
    fn pages_are_read_to_the_end_or_to_the_limit() {
        let server = |params: &Value| match params["cursor"].as_str() {
            None => json!({ "tools": [1, 2], "nextCursor": "a" }),
            Some("a") => json!({ "tools": [], "nextCursor": "b" }),
            _ => json!({ "tools": [3] }),
        };
        assert_eq!(read(3, server), (vec![json!(1), json!(2), json!(3)], None));
        let rest = "the list of tools has more than 2 pages; the rest is left out";
        assert_eq!(read(2, server), (vec![json!(1), json!(2)], Some(rest.to_owned())));
        let empty = read(64, |_| json!({ "tools": [0], "nextCursor": "" }));
        assert_eq!(empty, (vec![json!(0)], None));
        let endless = read(64, |_| json!({ "tools": [0], "nextCursor": "again" }));
        assert_eq!((endless.0.len(), endless.1.is_some()), (64, true));
    }

    #[test]
    fn malformed_page_is_an_error() {
        let mut pages = Pages::new("prompts", 1);
        let error = pages.take(json!({ "prompts": 5 }), &Secrets::new()).unwrap_err();
        assert!(error.starts_with("the answer is not a list of prompts"), "{error}");
    }
}
