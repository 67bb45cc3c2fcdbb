//! A thousand interrupts at random moments leave nothing behind: no task, no socket, no buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oa_client::{AgentOptionsBuilder, Client};
use oa_hooks::Hooks;
use oa_testkit::{MemoryServer, Reply, Script, SocketServer};
use oa_types::FinishReason;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tower::{Service, service_fn};

use suite::talk::{Alive, Random, adder, hanging, read, stalling, talk};

const PATIENCE: Duration = Duration::from_secs(10);
const INTERRUPTS: usize = 1000;

/// The points at which a turn hangs. The prompt names one of them.
const PLACES: [&str; 9] = [
    "head",
    "first word",
    "text",
    "arguments",
    "tool",
    "tools",
    "pre hook",
    "post hook",
    "second head",
];

/// A model that does what the prompt says.
fn model(reached: &Arc<Notify>) -> Script {
    let reached = Arc::clone(reached);
    let call = json!({"index": 0, "id": "c", "function": {"name": "add", "arguments": "{\"a\""}});
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
    let call = format!("data: {call}\n\n");
    let reply = Reply::by(move |request| {
        let last = request.messages().last().expect("a prompt");
        // An unanswered prompt precedes the next one in the same message.
        let place =
            last["content"].as_str().and_then(|said| said.lines().last()).unwrap_or_default();
        // Hooks and tools report themselves; a head is reached with this request, a word soon after.
        if !place.contains("hook") && !place.contains("tool") {
            reached.notify_one();
        }
        match place {
            "Fine?" => Reply::text("Fine."),
            "head" => Reply::silence(),
            "first word" => stalling(&[]),
            "text" => stalling(&["one", " two"]),
            "arguments" => Reply::sse(call.clone() + "data: [DONE]\n\n").stall_after(call.len()),
            "tool" => Reply::text("Hm.").call("hangs", json!({})),
            "tools" => (0..12).fold(Reply::new(), |reply, _| reply.call("hangs", json!({}))),
            "pre hook" | "post hook" | "second head" => Reply::new()
                .call("add", json!({"a": 1, "b": 2}))
                .call("add", json!({"a": 1, "b": 2})),
            // The results were sent.
            _ => Reply::silence(),
        }
    });
    Script::new().strict().otherwise(reply)
}

/// Hooks and tools hang while this is set, and are counted.
#[derive(Clone, Default)]
struct Trap {
    before: Arc<AtomicBool>,
    after: Arc<AtomicBool>,
    alive: Alive,
    reached: Arc<Notify>,
}

impl Trap {
    fn set(&self, place: &str) {
        self.before.store(place == "pre hook", Ordering::SeqCst);
        self.after.store(place == "post hook", Ordering::SeqCst);
    }

    fn hang(&self, trap: &AtomicBool) -> impl Future<Output = ()> + Send + use<> {
        let guard = trap.load(Ordering::SeqCst).then(|| self.alive.enter(|| false));
        let reached = Arc::clone(&self.reached);
        async move {
            if guard.is_some() {
                reached.notify_one();
                std::future::pending::<()>().await;
            }
        }
    }

    fn hooks(&self) -> Hooks {
        let (before, after) = (self.clone(), self.clone());
        Hooks::new()
            .add_pre_tool_use(move |event| {
                if event.tool_name == "hangs" {
                    before.reached.notify_one();
                }
                let hang = before.hang(&before.before);
                async move {
                    hang.await;
                    None
                }
            })
            .add_post_tool_use(move |_| {
                let hang = after.hang(&after.after);
                async move {
                    hang.await;
                    None
                }
            })
    }

    fn client(&self, options: AgentOptionsBuilder) -> Client {
        let options = options.model("any").auto_execute_tools(true).hooks(self.hooks());
        let options = options.tool(adder()).tool(hanging("hangs", &self.alive));
        Client::new(options.build().expect("these can work")).expect("there is a model")
    }

    /// Interrupts one turn at a random moment, then checks that all is well.
    async fn spring(&self, client: &mut Client, random: &mut Random) {
        let place = PLACES[random.below(PLACES.len())];
        self.set(place);
        let handle = client.interrupt_handle();
        let (waits, more) = (random.below(4) > 0, random.below(12));
        let interrupt = async {
            if waits {
                self.reached.notified().await;
            }
            for _ in 0..more {
                tokio::task::yield_now().await;
            }
            // The first poll starts a turn; before that an interrupt has no effect.
            handle.interrupt();
        };
        let turn = async {
            talk(client, place).await;
        };
        tokio::join!(turn, interrupt);
        assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted), "{place}");
        assert_eq!(client.receive().await.expect("nothing is left"), None);
        assert_eq!(self.alive.now(), 0, "{place}");
        self.set("");
        assert_eq!(talk(client, "Fine?").await, ["Fine."], "after {place}");
        client.clear_history();
        // Removes the notification that nobody waited for, if there is one.
        let _ = tokio::time::timeout(Duration::ZERO, self.reached.notified()).await;
    }
}

#[tokio::test]
async fn interrupts_leak_no_tasks_or_sockets() {
    let trap = Trap::default();
    let server = SocketServer::start(model(&trap.reached)).await.unwrap();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut client = trap.client(oa_client::AgentOptions::builder().base_url(server.base_url()));
    let mut random = Random::new(1);
    let start = std::time::Instant::now();
    for _ in 0..INTERRUPTS {
        trap.spring(&mut client, &mut random).await;
    }
    println!(
        "{INTERRUPTS} interrupts took {:?}, tools and hooks: {}",
        start.elapsed(),
        trap.alive.ever()
    );
    println!("{} connections, {} open", server.connections(), server.open_connections());
    // One connection stays open for the next request.
    server.wait_until(PATIENCE, |_| server.open_connections() <= 1).await;
    assert!(server.requests().iter().all(|request| request.is_over()));
    drop(client);
    server.wait_for_close(PATIENCE).await;
    // The runtime takes a moment to remove a finished task.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!((tasks(), trap.alive.now()), (before, 0));
}

#[test]
fn interrupts_leak_no_memory() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let trap = Trap::default();
    let script = model(&trap.reached);
    // A server stores its requests, so use a new one for each.
    let service = service_fn(move |request| MemoryServer::new(script.clone()).call(request));
    let mut client = trap.client(oa_client::AgentOptions::builder().transport(service));
    let mut random = Random::new(2);
    let mut run = |times: usize| {
        runtime.block_on(async {
            for _ in 0..times {
                trap.spring(&mut client, &mut random).await;
            }
        });
    };
    run(200);
    let counted = allocation_counter::measure(|| run(INTERRUPTS));
    println!("{INTERRUPTS} interrupts: {counted:?}");
    // A leak per interrupt would add up to a thousand.
    assert!(counted.bytes_current.abs() < 4096, "{} bytes more", counted.bytes_current);
    assert!(counted.count_current.abs() < 50, "{} allocations more", counted.count_current);
}

#[tokio::test]
async fn dropped_clients_leak_no_tasks_or_sockets() {
    let trap = Trap::default();
    let server = SocketServer::start(model(&trap.reached)).await.unwrap();
    let before = Handle::current().metrics().num_alive_tasks();
    let mut random = Random::new(3);
    for _ in 0..200 {
        let place = PLACES[random.below(PLACES.len())];
        trap.set(place);
        let base_url = server.base_url();
        let mut client = trap.client(oa_client::AgentOptions::builder().base_url(base_url));
        let more = random.below(20);
        let moment = async {
            trap.reached.notified().await;
            for _ in 0..more {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = talk(&mut client, place) => panic!("{place} has no end"),
            () = moment => {}
        }
        drop(client);
        assert_eq!(trap.alive.now(), 0, "{place}");
        let _ = tokio::time::timeout(Duration::ZERO, trap.reached.notified()).await;
    }
    server.wait_for_close(PATIENCE).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
}

#[tokio::test]
async fn interrupted_clients_can_change_tasks() {
    let trap = Trap::default();
    let server = MemoryServer::new(model(&trap.reached));
    let mut client = trap.client(oa_client::AgentOptions::builder().transport(server));
    client.send("text").await.unwrap();
    client.interrupt();
    let mut client = tokio::spawn(async move {
        assert!(read(&mut client).await.is_empty());
        client
    })
    .await
    .unwrap();
    assert_eq!(talk(&mut client, "Fine?").await, ["Fine."]);
}
