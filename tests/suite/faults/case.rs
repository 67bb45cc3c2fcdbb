//! The cases: the fault, its stage, the framing and the kind of client, with the expected outcome.

use std::fmt;

use oa_client::ErrorKind;
use oa_testkit::Framing;

/// The stage of the answer at which the fault occurs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    BeforeHead,
    AfterHead,
    BeforeDelta,
    InText,
    InArguments,
    BeforeUsage,
    AfterDone,
}

/// A fault at a stage of the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// FIN between two events.
    Close,
    /// RST between two events.
    Reset,
    /// Silence on an open connection.
    Stall,
    /// FIN within an event, or within the head.
    Half,
    /// Bytes of no known protocol, then it continues.
    Garbage,
    /// An event that is not JSON, then it continues.
    BadPayload,
    /// A chunk whose size is not a number.
    BadChunk,
    /// Twenty bytes, one every 10 ms, then it continues.
    Slow,
    /// 64 KiB of comments, then it continues. 64 MB are tested in `floods.rs`.
    Comments,
    /// An HTML page, then the end.
    Html,
    /// An error as a line of JSON, then the end.
    JsonError,
    /// An error as an event, then the end.
    ErrorEvent,
    /// An event that is not JSON, then RST.
    BadReset,
    /// An error as an event, then RST.
    ErrorReset,
    /// An error as an event, then silence.
    ErrorStall,
    /// The whole answer as one JSON document.
    JsonAnswer,
    /// A content length that ends here, before the body does.
    TooShort,
    /// A content length that is not a number.
    BadLength,
    /// An endless head: 1 MB of one header.
    BigHead,
    /// The first bytes of TLS.
    Tls,
    /// An informational response before the real one.
    Interim(u16),
    /// The answer with another success status.
    Success(u16),
    /// An error status with a body.
    Status(u16, Page),
    /// A response while 8 MB of the request are still being sent.
    Early(Haste),
}

/// The body of an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Page {
    Empty,
    Html,
    Json,
    /// Half of it, then FIN.
    Close,
    /// Half of it, then RST.
    Reset,
    /// Half of it, then silence.
    Stall,
}

/// An early answer, and the way the server treats the rest of the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Haste {
    /// Rejects, and reads on.
    RefuseAndRead,
    /// Rejects, and closes.
    RefuseAndClose,
    /// Rejects, and neither reads nor closes.
    RefuseAndHold,
    /// Answers, and reads on.
    AnswerAndRead,
    /// Answers, and neither reads nor closes.
    AnswerAndHold,
}

impl Haste {
    pub(super) fn refuses(self) -> bool {
        !matches!(self, Self::AnswerAndRead | Self::AnswerAndHold)
    }
}

/// The kind of client that sends the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Query,
    /// A client whose caller runs the calls.
    Manual,
    /// A client that runs the calls itself; the fault is in the second round.
    Auto,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) stage: Stage,
    pub(super) fault: Fault,
    pub(super) framing: Framing,
    pub(super) mode: Mode,
    /// True if the client may retry twice.
    pub(super) retries: bool,
}

/// The meaning of a fault by the documented rules, for every [`Mode`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    /// The complete answer, as if nothing were wrong.
    Whole,
    /// A body that ends here, properly terminated (rule 14).
    Ends,
    /// A connection that breaks here (rule 14).
    Breaks,
    /// Something other than HTTP/1.1.
    Unreadable,
    /// Silence.
    Silence,
    /// An error inside a stream.
    Reports,
    /// An error status.
    Refuses(u16),
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// The delivered text.
    pub(super) text: String,
    pub(super) call: Called,
    pub(super) end: End,
    /// One letter per message: user, assistant, assistant with calls, tool.
    pub(super) history: String,
    /// The number of requests that the server got, without the later prompt.
    pub(super) requests: usize,
}

/// The state in which the answer's call was delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Called {
    Broken,
    Never,
    Whole,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    Failed { kind: ErrorKind, retryable: bool, status: Option<u16>, timeout: Option<&'static str> },
    Finished(String),
}

impl Case {
    fn told(&self) -> Told {
        use Fault::*;
        let by_close = self.framing == Framing::Close;
        match (self.stage, self.fault) {
            // Anything after `[DONE]` does not matter.
            (Stage::AfterDone, _) => Told::Whole,
            (_, Slow | Interim(_) | Success(_) | JsonAnswer) => Told::Whole,
            (_, Early(early)) if !early.refuses() => Told::Whole,
            (_, Early(_)) => Told::Refuses(413),
            (_, Status(204, _)) => Told::Ends,
            (_, Status(status, _)) => Told::Refuses(status),
            // The finish reason arrived, so the answer is complete.
            (Stage::BeforeUsage, Close | Half | Reset | BadReset | BadChunk | Stall) => Told::Ends,
            (_, Stall) => Told::Silence,
            (Stage::BeforeHead, Close | Half | Reset) => Told::Breaks,
            (Stage::BeforeHead, _) => Told::Unreadable,
            // Comments, unknown fields and payloads that are not JSON are skipped.
            (_, Comments | Garbage | BadPayload) => Told::Whole,
            // Without a length or chunks, closing ends the body.
            (_, Close | Half) if by_close => Told::Ends,
            (_, Close | Half | Reset | BadReset | BadChunk) => Told::Breaks,
            (_, Html | TooShort) => Told::Ends,
            // The server's message takes precedence over how its connection ended.
            (_, JsonError | ErrorEvent | ErrorReset | ErrorStall) => Told::Reports,
            (_, BadLength | BigHead | Tls) => Told::Unreadable,
        }
    }

    /// Returns the outcome that the documented rules require in this mode.
    pub(super) fn expected(&self) -> Outcome {
        let (stage, told) = (self.stage, self.told());
        let begun = matches!(stage, Stage::InText | Stage::InArguments | Stage::BeforeUsage);
        let failed = |kind, retryable| {
            let timeout =
                (kind == ErrorKind::Timeout).then_some(if begun { "Idle" } else { "FirstToken" });
            let status = match told {
                Told::Refuses(status) => Some(status),
                _ => None,
            };
            End::Failed { kind, retryable, status, timeout }
        };
        // Retryable: breaks before the first delta, and errors that a server calls temporary.
        let end = match told {
            Told::Whole => End::Finished("tool_calls".to_owned()),
            // An empty success is an error, and would be again.
            Told::Ends if !begun => failed(ErrorKind::Stream, false),
            Told::Ends if stage == Stage::BeforeUsage => End::Finished("tool_calls".to_owned()),
            Told::Ends => End::Finished("unspecified".to_owned()),
            Told::Breaks => failed(ErrorKind::Stream, !begun),
            Told::Unreadable => failed(ErrorKind::Stream, false),
            Told::Silence => failed(ErrorKind::Timeout, false),
            Told::Reports => failed(ErrorKind::Api, false),
            Told::Refuses(status) => failed(ErrorKind::Api, PASSING.contains(&status)),
        };
        if self.retries && matches!(end, End::Failed { retryable: true, .. }) {
            return self.recovered();
        }

        let text = match (told, stage) {
            (Told::Whole, _) | (_, Stage::InArguments | Stage::BeforeUsage) => "Hello world",
            (_, Stage::InText) => "Hello",
            _ => "",
        };
        // Calls are delivered after the end of their message, so not at all if it failed.
        let call = match (&end, told, stage) {
            (End::Failed { .. }, ..) => Called::Never,
            (_, Told::Whole, _) | (.., Stage::BeforeUsage) => Called::Whole,
            (.., Stage::InArguments) => Called::Broken,
            _ => Called::Never,
        };
        let answer = match (&end, call, self.mode) {
            // A prompt whose answer never started is taken back.
            (End::Failed { .. }, _, Mode::Manual) if begun => "u",
            (End::Failed { .. }, ..) => "",
            // A broken call is dropped where nobody can answer it (rule 10).
            (_, Called::Never, Mode::Auto) => "a",
            (_, Called::Whole | Called::Broken, Mode::Auto) => "cta",
            (_, Called::Never | Called::Broken, _) => "ua",
            (_, Called::Whole, _) => "uc",
        };
        let mut outcome =
            Outcome { text: text.to_owned(), call, end, history: answer.to_owned(), requests: 1 };
        match self.mode {
            Mode::Query => outcome.history.clear(),
            Mode::Manual => {}
            // The first round stays, and after a call, valid or broken, a third follows.
            Mode::Auto => {
                outcome.history.insert_str(0, "uct");
                outcome.requests += 1;
                if call != Called::Never {
                    outcome.text += RECOVERED;
                    outcome.end = End::Finished("stop".to_owned());
                    outcome.requests += 1;
                }
            }
        }
        outcome
    }

    /// Returns the outcome of a successful retry.
    fn recovered(&self) -> Outcome {
        let (history, requests) = match self.mode {
            Mode::Query => ("", 2),
            Mode::Manual => ("ua", 2),
            Mode::Auto => ("ucta", 3),
        };
        let end = End::Finished("stop".to_owned());
        let (text, history) = (RECOVERED.to_owned(), history.to_owned());
        Outcome { text, call: Called::Never, end, history, requests }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            End::Failed { kind, retryable, status, timeout } => {
                write!(f, "{kind:?}")?;
                status.map_or(Ok(()), |status| write!(f, " {status}"))?;
                timeout.map_or(Ok(()), |timeout| write!(f, " {timeout}"))?;
                f.write_str(if *retryable { " (again)" } else { "" })?;
            }
            End::Finished(reason) => f.write_str(reason)?,
        }
        write!(f, " {:?}", self.text)?;
        match self.call {
            Called::Broken => f.write_str(" + broken call"),
            Called::Never => Ok(()),
            Called::Whole => f.write_str(" + call"),
        }
    }
}

/// The cases, in the order of the table.
pub(super) fn cases() -> Vec<Case> {
    use Fault::*;
    let mut cases = Vec::new();
    let framings = [Framing::Chunked, Framing::Length, Framing::Close];
    let mut add = |stage, fault, framings: &[Framing]| {
        for &framing in framings {
            for mode in [Mode::Query, Mode::Manual, Mode::Auto] {
                let case = Case { stage, fault, framing, mode, retries: false };
                cases.push(case);
                // Retries behave the same with every framing, and are slow for large requests.
                if framing == framings[0] && !matches!(fault, Early(_)) {
                    cases.push(Case { retries: true, ..case });
                }
            }
        }
    };
    let any = &framings[..1];
    let heads = [
        Close, Reset, Stall, Half, Garbage, Comments, Html, JsonError, Slow, BadLength, BigHead,
        Tls,
    ];
    for fault in heads {
        add(Stage::BeforeHead, fault, any);
    }
    for status in [100, 102, 103] {
        add(Stage::BeforeHead, Interim(status), any);
    }
    for status in [201, 202, 206] {
        add(Stage::BeforeHead, Success(status), any);
    }
    for status in [101, 204, 300, 301, 302, 303, 304, 307, 308] {
        add(Stage::BeforeHead, Status(status, Page::Empty), any);
    }
    let errors = [
        400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413, 415, 418, 422, 425, 429, 431, 451,
        500, 501, 502, 503, 504, 505, 507, 520, 522, 529, 599,
    ];
    for status in errors {
        add(Stage::BeforeHead, Status(status, Page::Json), any);
    }
    for status in [400, 503] {
        for page in [Page::Empty, Page::Html, Page::Close, Page::Reset, Page::Stall] {
            add(Stage::BeforeHead, Status(status, page), &framings);
        }
    }
    let hastes = [
        Haste::RefuseAndRead,
        Haste::RefuseAndClose,
        Haste::RefuseAndHold,
        Haste::AnswerAndRead,
        Haste::AnswerAndHold,
    ];
    for early in hastes {
        add(Stage::BeforeHead, Early(early), any);
    }
    let stages = [
        Stage::AfterHead,
        Stage::BeforeDelta,
        Stage::InText,
        Stage::InArguments,
        Stage::BeforeUsage,
        Stage::AfterDone,
    ];
    for stage in stages {
        for fault in [Close, Reset, Garbage, BadPayload, Comments, Html, JsonError, ErrorEvent] {
            add(stage, fault, &framings);
        }
        if stage == Stage::AfterDone {
            // With a length the answer is over, and nobody can tell that the server is stuck.
            add(stage, Stall, &[Framing::Chunked, Framing::Close]);
        } else {
            for fault in [Stall, Half, Slow, BadReset, ErrorReset, ErrorStall] {
                add(stage, fault, &framings);
            }
            add(stage, TooShort, &[Framing::Length]);
        }
        if stage == Stage::AfterHead {
            add(stage, JsonAnswer, &framings);
        }
        add(stage, BadChunk, any);
    }
    cases
}

/// The statuses that are retried, by contract.
const PASSING: [u16; 9] = [408, 409, 425, 429, 500, 502, 503, 504, 529];

/// The server's text for every request without a fault.
pub(super) const RECOVERED: &str = "Recovered.";
