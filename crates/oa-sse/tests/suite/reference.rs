//! A naive implementation of WHATWG HTML 9.2.6: the whole stream in memory, one pass over its lines.

use crate::{End, Seen};

pub(crate) struct Read {
    pub(crate) seen: Vec<Seen>,
    pub(crate) last_event_id: String,
    pub(crate) retry: Option<u64>,
}

pub(crate) fn read(input: &[u8], end: End) -> Read {
    let text = String::from_utf8_lossy(input);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = normal.split('\n').collect();
    let unfinished = lines.pop().unwrap_or_default();
    if end == End::Lenient {
        // A lenient end adds a line end and a blank line.
        if !unfinished.is_empty() {
            lines.push(unfinished);
        }
        lines.push("");
    }

    let mut out = Read { seen: Vec::new(), last_event_id: String::new(), retry: None };
    let (mut data, mut event, mut id) = (String::new(), String::new(), String::new());
    for line in lines {
        if line.is_empty() {
            out.last_event_id.clone_from(&id);
            if data.is_empty() {
                event.clear();
                continue;
            }
            data.pop();
            if event.is_empty() {
                event = "message".to_owned();
            }
            out.seen.push(Seen::Event {
                event: std::mem::take(&mut event),
                data: std::mem::take(&mut data),
                id: id.clone(),
            });
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => out.seen.push(Seen::Comment(value.into())),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "event" => value.clone_into(&mut event),
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() => {
                out.retry = Some(value.parse().unwrap_or(u64::MAX));
            }
            "id" | "retry" => {}
            _ => out.seen.push(Seen::Unknown(line.into())),
        }
    }
    out
}
