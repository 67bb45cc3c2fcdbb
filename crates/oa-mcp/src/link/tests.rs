use std::thread;
use std::time::Duration;

use oa_mcp_data::{ElicitationAnswer, Offers, QuestionLimits};
use oa_redact::Secrets;
use rmcp::model::CustomRequest;

use super::*;

const ID: i64 = 7;

fn link(outgoing: mpsc::Sender<Outgoing>) -> Link {
    let questions = QuestionLimits { text_bytes: 1_000, schema_bytes: 1_000, tokens: 1 };
    let mut offers = Offers::default();
    offers.on_elicitation = Some(Arc::new(|_, _| Box::pin(async { ElicitationAnswer::Cancel })));
    let setup = Setup {
        limits: Limits::default(),
        secrets: Arc::new(KnownSecrets::new(Secrets::new())),
        on_log: None,
        host: Host::new("s", "s", questions, offers),
        begins_stateless: false,
        ignored: Arc::default(),
    };
    Link::new(setup, outgoing, mpsc::unbounded_channel().0)
}

fn call(params: Value) -> Ticket {
    Ticket::new(Call {
        headers: Vec::new(),
        params,
        reply: oneshot::channel().0,
        cx: None,
        questions: None,
        beat: Arc::default(),
        token: None,
        written: Arc::default(),
    })
}

fn request(ticket: &Ticket) -> TxJsonRpcMessage<RoleClient> {
    let mut request = CustomRequest::new("tools/call", None);
    request.extensions.insert(ticket.clone());
    JsonRpcMessage::request(ClientRequest::CustomRequest(request), RequestId::Number(ID))
}

/// Returns a link whose call was sent, the queue of messages to write, and where its answer arrives.
fn asked() -> (Link, mpsc::Receiver<Outgoing>, oneshot::Receiver<Result<Value, Error>>) {
    let (outgoing, queue) = mpsc::channel(8);
    let (reply, answer) = oneshot::channel();
    let mut open = call(json!({})).take().expect("it is not sent");
    open.reply = reply;
    let link = link(outgoing);
    assert!(link.send(request(&Ticket::new(open))).is_ok());
    (link, queue, answer)
}

/// Large parameters take long to write. The call is dropped as soon as it counts as sent.
#[test]
fn cancellation_never_overtakes_its_request() {
    let (outgoing, mut queue) = mpsc::channel(8);
    let link = link(outgoing);
    let ticket = call(json!({ "text": "x".repeat(4_000_000) }));
    let message = request(&ticket);
    thread::scope(|threads| {
        threads.spawn(|| link.send(message));
        while !link.lock().calls.contains_key(&ID) {
            thread::sleep(Duration::from_micros(50));
        }
        link.give_up(ID, &ticket, "no longer wanted");
    });
    let kinds: Vec<_> = std::iter::from_fn(|| queue.try_recv().ok()).map(|out| out.of).collect();
    assert_eq!(kinds, [Kind::Request(ID), Kind::Cancel(ID)]);
}

#[test]
fn canceled_call_is_never_sent() {
    let (outgoing, mut queue) = mpsc::channel(8);
    let link = link(outgoing);
    let ticket = call(json!({}));
    let message = request(&ticket);
    link.give_up(ID, &ticket, "no longer wanted");
    assert!(link.send(message).is_ok());
    assert!(queue.try_recv().is_err());
}

/// The call would otherwise wait until it times out.
#[test]
fn unreadable_answers_fail_their_call() {
    let deep = format!(r#"{{"id":"7","result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for (answer, expected) in [
        (&*deep, "the answer is not valid JSON"),
        (r#"{"id":7,"result":{"text":"cut: \ud83d"}}"#, "cut: \u{fffd}"),
    ] {
        let (link, _queue, mut told) = asked();
        // The same of another request, or with a method, is not the answer.
        let other = answer.replace('7', "8");
        let _ = link.incoming(other.as_bytes(), None);
        let asked = deep.replace("{\"id", "{\"method\":\"x\",\"id");
        assert!(link.incoming(asked.as_bytes(), None).is_err());
        assert!(told.try_recv().is_err());
        assert!(link.incoming(answer.as_bytes(), None).is_ok());
        let told = match told.try_recv().expect("it is answered") {
            Ok(result) => result["text"].as_str().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(told.contains(expected), "{told}");
    }
}

/// A result that is undefined in JavaScript is left out of its answer.
#[test]
fn answer_without_a_result_ends_its_call() {
    let (link, _queue, mut told) = asked();
    for other in [r#"{"id": 7, "msg": "a log line"}"#, r#"{"jsonrpc": "2.0", "id": 8}"#] {
        assert!(link.incoming(other.as_bytes(), None).is_err(), "{other}");
        assert!(told.try_recv().is_err(), "{other}");
    }
    assert!(link.incoming(br#"{"jsonrpc": "2.0", "id": 7}"#, None).is_ok());
    assert_eq!(told.try_recv().expect("it is answered").expect("it is no error"), Value::Null);
}

/// A server that could not read a request does not know its id.
#[test]
fn error_without_an_id_is_about_its_request() {
    for id in ["null", "\"server-error\""] {
        let answer = format!(r#"{{"id": {id}, "error": {{"code": -32600, "message": "no"}}}}"#);
        let (link, _queue, mut told) = asked();
        let _ = link.incoming(answer.as_bytes(), None);
        let _ = link.incoming(answer.as_bytes(), Some(8));
        assert!(told.try_recv().is_err(), "{id}");
        assert!(link.incoming(answer.as_bytes(), Some(ID)).is_ok());
        let error = told.try_recv().expect("it is answered").expect_err("it is refused");
        assert_eq!((error.code(), error.to_string().as_str()), (Some(-32600), "no"), "{id}");
        let result = format!(r#"{{"id": {id}, "result": {{}}}}"#);
        let (link, _queue, mut told) = asked();
        let _ = link.incoming(result.as_bytes(), Some(ID));
        assert!(told.try_recv().is_err(), "a result needs its id: {id}");
    }
}

/// Otherwise the call behind it would wait until it times out.
#[test]
fn invalid_message_does_not_hide_its_batch() {
    let (link, _queue, mut told) = asked();
    let batch = br#"[1, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 7, "result": {"a": 1}}]"#;
    assert!(link.incoming(batch, None).is_err(), "it is counted as invalid");
    assert_eq!(told.try_recv().expect("it is answered").expect("it has a result"), json!({"a": 1}));
}

/// An error with its id would be taken for the answer, which the user still has to give.
#[test]
fn repeated_question_is_asked_once() {
    let (link, mut queue, _told) = asked();
    let (questions, mut waiting) = mpsc::channel(8);
    if let Some(call) = link.lock().calls.get_mut(&ID) {
        call.questions = Some(questions);
    }
    let params = json!({ "message": "Who?", "requestedSchema": { "type": "object" } });
    let question = json!({ "id": "q", "method": "elicitation/create", "params": params });
    for _ in 0..2 {
        assert!(link.incoming(question.to_string().as_bytes(), None).is_ok());
    }
    link.reply(&json!("q"), Ok(json!({ "action": "cancel" })));
    let sent = std::iter::from_fn(|| queue.try_recv().ok()).filter(|out| out.of == Kind::Answer);
    let sent: Vec<Value> = sent.map(|out| serde_json::from_slice(&out.bytes).unwrap()).collect();
    let answer = json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "cancel" } });
    assert_eq!(sent, [answer]);
    assert_eq!(std::iter::from_fn(|| waiting.try_recv().ok()).count(), 1);
}

/// A server that holds numbers as floats returns them as such.
#[test]
fn ids_and_tokens_may_be_floats_or_texts() {
    for id in ["7", "\"7\"", "7.0", "7e0"] {
        let (link, _queue, mut told) = asked();
        if let Some(call) = link.lock().calls.get_mut(&ID) {
            call.token = Some(json!(7));
        }
        let progress = format!(
            r#"{{"method": "notifications/progress", "params": {{"progressToken": {id}, "progress": 1}}}}"#
        );
        assert!(link.incoming(progress.as_bytes(), None).is_ok());
        assert_eq!(link.ignored.counts().progress, 0, "{id}");
        let answer = format!(r#"{{"id": {id}, "result": true}}"#);
        assert!(link.incoming(answer.as_bytes(), None).is_ok());
        let told = told.try_recv().unwrap_or_else(|_| panic!("{id} is the id"));
        assert_eq!(told.expect("it has a result"), json!(true));
    }
    for id in ["7.5", "8.0", "1e300", "true", "[7]"] {
        assert_ne!(read_integer(&serde_json::from_str(id).expect("it is JSON")), Some(ID), "{id}");
    }
}
