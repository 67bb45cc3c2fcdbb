/// The forms of answers over HTTP that a client accepts. The standard demands both of a client, but some have only one.
///
/// ```
/// use oa_mcp_data::client::Accepted;
///
/// let accepted = Accepted::read(["application/json;q=0.9, text/html"]);
/// assert_eq!((accepted.json, accepted.events), (true, false));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Accepted {
    /// Accepts `application/json`.
    pub json: bool,
    /// Accepts `text/event-stream`.
    pub events: bool,
}

impl Accepted {
    /// Reads the `Accept` headers of a request, which may have wildcards. A request without any accepts everything.
    pub fn read<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut types = headers.into_iter().flat_map(|header| header.split(',')).peekable();
        let accepts_all = types.peek().is_none();
        let mut this = Self { json: accepts_all, events: accepts_all };
        for of in types {
            let of = of.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            this.json |= matches!(&*of, "*/*" | "application/*" | "application/json");
            this.events |= matches!(&*of, "*/*" | "text/*" | "text/event-stream");
        }
        this
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_forms_are_read_from_headers() {
        let read = |headers: &[&str]| {
            let Accepted { json, events } = Accepted::read(headers.iter().copied());
            (json, events)
        };
        assert_eq!(read(&[]), (true, true));
        assert_eq!(read(&["application/json, text/event-stream;q=0.9"]), (true, true));
        assert_eq!(read(&["application/*", "TEXT/*"]), (true, true));
        assert_eq!(read(&["*/*;q=0.1"]), (true, true));
        assert_eq!(read(&["Text/Event-Stream"]), (false, true));
        assert_eq!(read(&["application/json"]), (true, false));
        assert_eq!(read(&["text/html, application/xml", ""]), (false, false));
    }
}
