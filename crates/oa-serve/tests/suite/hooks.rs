//! Hooks of a served agent: what they block, change or refuse does not come back in the histories that front ends keep.

use std::sync::Arc;

use oa_client::AgentOptionsBuilder;
use oa_hooks::{HookDecision, Hooks};
use oa_session::{MemoryStore, SessionId, SessionStore};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::tool;
use serde_json::{Value, json};

use crate::app::App;

/// A protocol whose clients keep the history, and the messages that its client has.
struct Talk {
    app: App,
    path: &'static str,
    messages: Vec<Value>,
    /// The events of the last run, as the client reads them.
    frames: Vec<Value>,
}

const PROTOCOLS: [&str; 3] = ["/api/chat", "/ag-ui", "/v1/chat/completions"];

impl Talk {
    fn new(path: &'static str, agent: AgentOptionsBuilder) -> Self {
        Self {
            app: App::of(agent, |server| server),
            path,
            messages: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Sends a prompt with the history, and keeps both and the answer as the protocol's client does.
    async fn send(&mut self, prompt: &str) {
        let is_chat = self.path == "/api/chat";
        let parts = json!([{"type": "text", "text": prompt}]);
        self.messages.push(if is_chat {
            json!({"id": "u", "role": "user", "parts": parts})
        } else {
            json!({"id": "u", "role": "user", "content": prompt})
        });
        let messages = &self.messages;
        let body = match self.path {
            "/api/chat" => json!({"id": "c", "messages": messages}),
            "/ag-ui" => json!({"threadId": "t", "runId": "r", "messages": messages}),
            _ => json!({"model": "agent", "messages": messages, "stream": true}),
        };
        self.frames = self.app.frames(self.path, &body).await;
        if is_chat { self.keep_parts() } else { self.keep_messages() }
    }

    fn keep_parts(&mut self) {
        let mut parts: Vec<Value> = Vec::new();
        for frame in &self.frames {
            let call = frame["toolCallId"].clone();
            let part = parts.iter_mut().find(|part| part["toolCallId"] == call && !call.is_null());
            match (frame["type"].as_str().unwrap_or_default(), part) {
                ("start-step", _) => parts.push(json!({"type": "step-start"})),
                ("text-delta", _) => parts.push(json!({"type": "text", "text": frame["delta"]})),
                ("tool-input-available", None) => parts.push(json!({
                    "type": format!("tool-{}", frame["toolName"].as_str().unwrap_or_default()),
                    "toolCallId": call, "state": "input-available", "input": frame["input"],
                })),
                ("tool-output-available", Some(part)) => {
                    part["state"] = "output-available".into();
                    part["output"] = frame["output"].clone();
                }
                _ => {}
            }
        }
        self.messages.push(json!({"id": "a", "role": "assistant", "parts": parts}));
    }

    fn keep_messages(&mut self) {
        let mut said = json!({"id": "a", "role": "assistant", "content": ""});
        let add = |said: &mut Value, text: &Value| {
            let before = said["content"].as_str().unwrap_or_default().to_owned();
            said["content"] = (before + text.as_str().unwrap_or_default()).into();
        };
        for frame in &self.frames {
            add(&mut said, &frame["choices"][0]["delta"]["content"]);
            match frame["type"].as_str().unwrap_or_default() {
                "TEXT_MESSAGE_START" if said["content"] != "" => {
                    self.messages.push(said.clone());
                    said = json!({"id": "b", "role": "assistant", "content": ""});
                }
                "TEXT_MESSAGE_CONTENT" => add(&mut said, &frame["delta"]),
                "TOOL_CALL_START" => {
                    let function = json!({"name": frame["toolCallName"], "arguments": "{}"});
                    let id = &frame["toolCallId"];
                    said["toolCalls"] =
                        json!([{"id": id, "type": "function", "function": function}]);
                }
                "TOOL_CALL_RESULT" => {
                    self.messages.push(said.clone());
                    self.messages.push(json!({
                        "id": "r", "role": "tool", "toolCallId": frame["toolCallId"],
                        "content": frame["content"],
                    }));
                    said = json!({"id": "b", "role": "assistant", "content": ""});
                }
                _ => {}
            }
        }
        if said["content"] != "" {
            self.messages.push(said);
        }
    }
}

/// Says what the model was sent.
fn echo() -> Reply {
    Reply::by(|asked| Reply::text(json!(asked.messages()).to_string()))
}

fn agent(hooks: Hooks, server: &MemoryServer) -> AgentOptionsBuilder {
    let read = tool("read", "Reads").build(|_| async { Ok(json!({"token": "abc-1"})) });
    let agent = oa_client::AgentOptions::builder().model("any").transport(server.clone());
    agent.tool(read).hooks(hooks).auto_execute_tools(true)
}

fn bodies(server: &MemoryServer) -> Vec<String> {
    let requests = server.requests();
    requests.iter().map(|asked| String::from_utf8_lossy(asked.body()).into_owned()).collect()
}

#[tokio::test]
async fn blocked_prompts_stay_out() {
    for path in PROTOCOLS {
        let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
            event.prompt.contains("password").then(|| HookDecision::block("no passwords"))
        });
        let server = MemoryServer::new([Reply::text("Hi."), Reply::text("Fine.")]);
        let mut talk = Talk::new(path, agent(hooks, &server));
        talk.send("My password is 1234.").await;
        assert!(json!(talk.frames).to_string().contains("no passwords"), "{path}");
        let (_, list) = talk.app.get("/api/conversations").await;
        assert!(!list.to_string().contains("1234"), "not even as a title: {list}");
        talk.messages.retain(|message| message["role"] == "user");
        talk.send("Hello").await;
        talk.send("How are you?").await;
        let bodies = bodies(&server);
        assert_eq!(bodies.len(), 2, "{path}");
        for body in bodies {
            assert!(!body.contains("1234") && body.contains("Hello"), "{path}: {body}");
        }
    }
}

/// The stored conversation keeps the parts that the front end lacks, such as thinking.
#[tokio::test]
async fn changed_prompts_stay_changed() {
    for path in PROTOCOLS {
        let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
            let masked = event.prompt.replace("1234", "****");
            (masked != event.prompt).then(|| HookDecision::modify_prompt(masked, "a secret"))
        });
        let replies = [Reply::new().think("Hm.").say("Hi."), Reply::text("Fine.")];
        let server = MemoryServer::new(replies);
        let mut talk = Talk::new(path, agent(hooks, &server));
        talk.send("My password is 1234.").await;
        talk.send("Hello").await;
        let body = &bodies(&server)[1];
        assert!(!body.contains("1234") && body.contains("My password is ****."), "{path}: {body}");
        if path == "/api/chat" {
            let (_, kept) = talk.app.get("/api/conversations/chat-c").await;
            assert!(kept["messages"].to_string().contains("Hm."), "{kept}");
            assert!(!kept.to_string().contains("1234"), "{kept}");
        }
    }
}

/// Front ends get the result as the hooks have left it, also if the agent shows only its last text.
#[tokio::test]
async fn changed_results_stay_changed() {
    for (path, last_only) in PROTOCOLS.into_iter().flat_map(|path| [(path, false), (path, true)]) {
        let hooks = Hooks::new().add_post_tool_use(|_| async {
            Some(HookDecision::modify_result(json!({"token": "****"}), "a secret"))
        });
        let replies =
            [Reply::new().call("read", json!({})), Reply::text("Read."), Reply::text("Fine.")];
        let server = MemoryServer::new(replies);
        let mut talk = Talk::new(path, agent(hooks, &server).final_text_only(last_only));
        talk.send("Read it.").await;
        let frames = json!(talk.frames).to_string();
        assert!(!frames.contains("abc-1"), "{path}: {frames}");
        assert_eq!(frames.contains("****"), path != "/v1/chat/completions", "{path}: {frames}");
        talk.send("Hello").await;
        for body in bodies(&server) {
            assert!(!body.contains("abc-1"), "{path}: {body}");
        }
    }
}

/// A client that was sent the result before the hook was there sends it back as it was.
#[tokio::test]
async fn sent_results_do_not_replace_stored_ones() {
    let hooks = Hooks::new().add_post_tool_use(|_| async {
        Some(HookDecision::modify_result(json!({"token": "****"}), "a secret"))
    });
    for path in ["/api/chat", "/ag-ui"] {
        let server = MemoryServer::new([
            Reply::new().call("read", json!({})),
            Reply::text("Read."),
            Reply::text("Fine."),
        ]);
        let mut talk = Talk::new(path, agent(hooks.clone(), &server));
        talk.send("Read it.").await;
        let sent = json!(talk.messages).to_string().replace("****", "abc-1");
        talk.messages = serde_json::from_str(&sent).expect("it is JSON");
        talk.send("Hello").await;
        let body = &bodies(&server)[2];
        assert!(body.contains("****") && !body.contains("abc-1"), "{path}: {body}");
    }
}

/// The page and other native viewers, too.
#[tokio::test]
async fn native_viewers_get_changed_results() {
    let hooks = Hooks::new().add_post_tool_use(|_| async {
        Some(HookDecision::modify_result(json!({"token": "****"}), "a secret"))
    });
    let server = MemoryServer::new([Reply::new().call("read", json!({})), Reply::text("Read.")]);
    let app = App::of(agent(hooks, &server), |server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "Read it.").await;
    let run = events.run().await;
    let ends = run.iter().filter(|event| event.data["data"]["type"] == "tool_call_complete");
    let ends: Vec<_> = ends.map(|event| &event.data["data"]["result"]).collect();
    assert_eq!(ends, [&json!({"token": "****"})]);
    assert!(run.iter().all(|event| !event.data.to_string().contains("abc-1")));
}

/// Those that are refused, so that the model answers again, and those that are blocked. Also after a restart.
#[tokio::test]
async fn refused_answers_stay_out() {
    for (path, is_blocked) in PROTOCOLS.into_iter().flat_map(|path| [(path, false), (path, true)]) {
        let hooks = Hooks::new().add_answer(move |event| async move {
            let reason = "it has a key";
            event.message.text().contains("1234").then(|| match is_blocked {
                true => HookDecision::block(reason),
                false => HookDecision::retry(reason),
            })
        });
        let again = (!is_blocked).then(|| Reply::text("I will not say."));
        let replies = [Reply::text("The key is 1234.")].into_iter().chain(again);
        let server = MemoryServer::new(replies.chain([echo()]).collect::<Vec<_>>());
        let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
        let serve =
            || App::of(agent(hooks.clone(), &server), |app| app.session_store(Arc::clone(&store)));
        let mut talk = Talk { app: serve(), path, messages: Vec::new(), frames: Vec::new() };
        talk.send("What is the key?").await;
        talk.app = serve();
        talk.send("Hello").await;
        let bodies = bodies(&server);
        let last = bodies.last().unwrap_or_else(|| panic!("a request"));
        assert!(last.contains("What is the key?") && last.contains("Hello"), "{path}: {last}");
        assert!(!last.contains("1234"), "{path}: {last}");
        assert!(is_blocked || last.contains("I will not say."), "{path}: {last}");
        if path == "/api/chat" {
            let id = SessionId::new("chat-c").unwrap_or_else(|error| panic!("{error}"));
            let kept = store.load(&id).await.unwrap_or_else(|error| panic!("{error}"));
            assert!(!json!(kept.conversation()).to_string().contains("key is 1234"));
        }
    }
}
