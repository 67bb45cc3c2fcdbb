use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use oa_redact::Secrets;
use serde_json::{Value, json};

/// A reader of paginated lists, which produces the requests and takes the answers.
#[derive(Debug)]
pub struct Pages {
    member: &'static str,
    limit: usize,
    read: usize,
    next: Option<Value>,
    /// The hashes of the cursors so far: a cursor may be as long as a message.
    cursors: HashSet<u64>,
    is_circle: bool,
}

impl Pages {
    /// Creates a list whose entries are in `member` of each page, of at most `limit` pages.
    #[must_use]
    pub fn new(member: &'static str, limit: usize) -> Self {
        let next = Some(json!({}));
        Self { member, limit, read: 0, next, cursors: HashSet::new(), is_circle: false }
    }

    /// Returns the parameters of the next request; `None` if the list is complete, has too many pages, or repeats a
    /// cursor.
    pub fn params(&mut self) -> Option<Value> {
        if self.read == self.limit {
            return None;
        }
        let next = self.next.take()?;
        self.read += 1;
        Some(next)
    }

    /// Takes a page and returns its entries.
    ///
    /// # Errors
    ///
    /// A message with an excerpt, if the answer is not a page.
    pub fn take(&mut self, mut page: Value, secrets: &Secrets) -> Result<Vec<Value>, String> {
        // Servers that write every member end with an empty cursor. Some count pages, and get their number back.
        let cursor = page.get("nextCursor").filter(|cursor| match cursor {
            Value::String(text) => !text.is_empty(),
            cursor => cursor.is_number(),
        });
        // A repeated cursor would lead to the same pages again and again.
        self.is_circle = cursor.is_some_and(|cursor| !self.cursors.insert(hash_of(cursor)));
        let cursor = cursor.filter(|_| !self.is_circle);
        self.next = cursor.map(|cursor| json!({ "cursor": cursor }));
        match page.get_mut(self.member).map(Value::take) {
            Some(Value::Array(entries)) => Ok(entries),
            // Servers in Go write an empty list as null.
            Some(Value::Null) => Ok(Vec::new()),
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
        if self.is_circle {
            return Some(format!(
                "the list of {what} repeats a cursor after {read} pages; the rest is left out"
            ));
        }
        self.next
            .is_some()
            .then(|| format!("the list of {what} has more than {read} pages; the rest is left out"))
    }
}

fn hash_of(cursor: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    cursor.hash(&mut hasher);
    hasher.finish()
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
        for last in [json!(""), json!(null), json!(false)] {
            let read = read(64, |_| json!({ "tools": [0], "nextCursor": last }));
            assert_eq!(read, (vec![json!(0)], None), "{last}");
        }
    }

    #[test]
    fn cursors_may_be_numbers() {
        let server = |params: &Value| match params["cursor"].as_u64() {
            None => json!({ "tools": [1], "nextCursor": 2 }),
            Some(page) if page < 4 => json!({ "tools": [page], "nextCursor": page + 1 }),
            Some(page) => json!({ "tools": [page] }),
        };
        assert_eq!(read(64, server), ([1, 2, 3, 4].map(|page| json!(page)).to_vec(), None));
        let same = read(64, |_| json!({ "tools": [0], "nextCursor": 7 }));
        assert_eq!(same.0.len(), 2);
    }

    #[test]
    fn repeated_cursor_ends_the_list() {
        let rest = |pages: usize| {
            Some(format!(
                "the list of tools repeats a cursor after {pages} pages; the rest is left out"
            ))
        };
        let same = read(64, |_| json!({ "tools": [0], "nextCursor": "again" }));
        assert_eq!(same, (vec![json!(0); 2], rest(2)));
        let circle = read(64, |params| match params["cursor"].as_str() {
            None => json!({ "tools": [1], "nextCursor": "a" }),
            Some("a") => json!({ "tools": [2], "nextCursor": "b" }),
            _ => json!({ "tools": [3], "nextCursor": "a" }),
        });
        assert_eq!(circle, (vec![json!(1), json!(2), json!(3)], rest(3)));
    }

    #[test]
    fn empty_page_may_be_null() {
        let server = |params: &Value| match params["cursor"].as_str() {
            None => json!({ "tools": null, "nextCursor": "a" }),
            _ => json!({ "tools": [1] }),
        };
        assert_eq!(read(3, server), (vec![json!(1)], None));
    }

    #[test]
    fn malformed_page_is_an_error() {
        let mut pages = Pages::new("prompts", 2);
        assert!(pages.take(json!({ "items": [] }), &Secrets::new()).is_err());
        let error = pages.take(json!({ "prompts": 5 }), &Secrets::new()).unwrap_err();
        assert!(error.starts_with("the answer is not a list of prompts"), "{error}");
    }
}
