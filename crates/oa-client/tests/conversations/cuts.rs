//! Turns that are cut at each of their polls: dropped, interrupted, steered, or left for something else.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use oa_client::{AgentEvent, AgentOptionsBuilder, Client, ResponseFormat};
use oa_context::{ContextPolicy, Overflow};
use oa_hooks::{HookDecision, HookEvent, Hooks, Permission, PermissionMode};
use oa_testkit::{Cut, MemoryServer, Reply, Request, Script};
use oa_tools::{FnTool, tool};
use oa_types::{FinishReason, Message, TextBlock};
use serde_json::json;
use tokio::time::{sleep, timeout};

use suite::talk::{Alive, auto, client, open_calls, read, told};

/// The time that each part of a turn takes, so that each is waited for.
const TICK: Duration = Duration::from_millis(1);
/// Paused time reaches this only if nothing else is left to wait for.
const PATIENCE: Duration = Duration::from_secs(600);
/// More polls than a turn has.
const MOST: usize = 200;

/// A strict server that calls two tools after each prompt but "Fine?", and then answers.
fn server() -> MemoryServer {
    let answer = |request: &Request| {
        let last = request.messages().last().expect("a message");
        let said = last["content"].as_str().unwrap_or_default();
        let reply = match last["role"].as_str() {
            _ if said.ends_with("Fine?") => return Reply::text("Fine."),
            _ if said.starts_with("Summarize") => Reply::text("They spoke of bees."),
            Some("user") => Reply::text("Let me see. Let me see. ")
                .call("slow", json!({"say": "a"}))
                .call("quick", json!({"say": "b"})),
            _ => Reply::text("Bees are insects."),
        };
        reply.cut(Cut::Every(200)).delay(TICK).delay_head(TICK)
    };
    MemoryServer::new(Script::new().strict().otherwise(Reply::by(answer)))
}

/// A tool whose runs are counted while they live.
fn counted(name: &str, ticks: u32, alive: &Alive) -> FnTool {
    let alive = alive.clone();
    tool(name, "Says it").param("say", "string").build_with_context(move |args, cx| {
        let guard = alive.enter(move || cx.is_cancelled());
        async move {
            let _guard = guard;
            sleep(TICK * ticks).await;
            Ok(args["say"].clone())
        }
    })
}

/// Waits in a hook, and is counted meanwhile.
fn wait<T: HookEvent>(
    alive: &Alive,
) -> impl Future<Output = Option<HookDecision<T>>> + Send + use<T> {
    let guard = alive.enter(|| false);
    async move {
        let _guard = guard;
        sleep(TICK).await;
        None
    }
}

fn hooks(alive: &Alive) -> Hooks {
    let [prompt, before, after, answer] = [(); 4].map(|()| alive.clone());
    Hooks::new()
        .add_user_prompt_submit(move |_| wait(&prompt))
        .add_pre_tool_use(move |_| wait(&before))
        .add_post_tool_use(move |_| wait(&after))
        .add_answer(move |_| wait(&answer))
}

/// An agent that waits wherever one can, with a conversation that is too long.
fn agent(server: &MemoryServer, alive: &Alive, change: impl Fn(Options) -> Options) -> Client {
    let options = auto(server)
        .tool(counted("slow", 3, alive))
        .tool(counted("quick", 1, alive))
        .hooks(hooks(alive))
        .permission_mode(PermissionMode::Ask)
        .can_use_tool(|_| async {
            sleep(TICK).await;
            Permission::Allow
        })
        .before_step(|step| async move {
            sleep(TICK).await;
            step
        })
        .context(ContextPolicy::new(1_200).with_overflow(Overflow::Summarize))
        .archive_context(|_| sleep(TICK));
    let mut client = client(change(options));
    let turn = |turn| {
        let words = format!("Answer {turn}. {}", "And so on. ".repeat(20));
        let answer = Message::assistant(vec![TextBlock::new(words).into()]);
        [Message::user(format!("Question {turn}?")), answer]
    };
    *client.history_mut() = (0..12).flat_map(turn).collect();
    client
}

type Options = AgentOptionsBuilder;

/// Polls a future up to a number of times, each when it is woken, and drops it.
async fn polls<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let (mut future, mut polls) = (pin!(future), 0);
    poll_fn(|cx| {
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Waits for a future, and fails if nothing would ever wake it.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: it hangs"))
}

fn is_in_history(client: &Client, words: &str) -> usize {
    told(client.history()).iter().filter(|line| line.contains(words)).count()
}

/// Checks that the conversation goes on.
async fn check(client: &mut Client, alive: &Alive, what: &str) {
    soon(what, client.send("Fine?")).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(soon(what, read(client)).await, ["Fine."], "{what}");
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop), "{what}");
    assert!(open_calls(client.history()).is_empty(), "{what}");
    assert_eq!(alive.now(), 0, "{what}");
}

async fn rest(client: &mut Client) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails") {
        events.push(event);
    }
    events
}

/// Each poll of the turn in its turn is the only one of its future, with a waker that nobody hears.
#[tokio::test(start_paused = true)]
async fn dropped_reads_lose_nothing() {
    let mut expected = None;
    for place in 0..MOST {
        let (server, alive) = (server(), Alive::default());
        let mut client = agent(&server, &alive, |it| it);
        client.send("Go.").await.unwrap();
        let (mut polls, mut blocks) = (0, Vec::new());
        let reading = async {
            loop {
                let read = poll_fn(|cx| {
                    let mut next = pin!(client.receive());
                    polls += 1;
                    if polls != place {
                        return next.as_mut().poll(cx).map(Some);
                    }
                    match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(block) => Poll::Ready(Some(block)),
                        Poll::Pending => Poll::Ready(None),
                    }
                });
                match read.await {
                    Some(Ok(Some(block))) => blocks.push(block),
                    Some(end) => return end,
                    None => {}
                }
            }
        };
        assert_eq!(soon(&format!("poll {place}"), reading).await.unwrap(), None);
        assert_eq!(is_in_history(&client, "They spoke of bees."), 1);
        let seen = (blocks, client.history().to_vec());
        assert_eq!(&seen, expected.get_or_insert_with(|| seen.clone()), "{place}");
        if polls < place {
            return;
        }
    }
    panic!("the turn has more polls");
}

/// An action at a poll.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Checkpoint,
    Clear,
    Compact,
    Continue,
    Drop,
    Interrupt,
    Send,
    SendCut,
    SetTools,
    Steer,
    Structured,
    TimeUp,
}

#[tokio::test(start_paused = true)]
async fn turns_may_be_cut_at_any_poll() {
    use Act::{Checkpoint, Clear, Compact, Continue, Drop, Send, SendCut, SetTools, Structured};
    for act in [Checkpoint, Clear, Compact, Continue, Drop, Send, SendCut, SetTools, Structured] {
        for place in 1..=MOST {
            assert!(place < MOST, "{act:?}: the turn has more polls");
            if is_over_at(act, place).await {
                break;
            }
        }
    }
}

/// Drops the future of a turn after a number of polls, and acts. Returns true if the turn was over before.
async fn is_over_at(act: Act, place: usize) -> bool {
    let (server, alive) = (server(), Alive::default());
    let mut client = agent(&server, &alive, |it| it);
    let what = format!("{act:?} after poll {place}");
    let mut is_sent = false;
    let turn = async {
        client.send("Go.").await.expect("it is sent");
        is_sent = true;
        rest(&mut client).await;
    };
    let is_over = polls(turn, place).await.is_some();
    if !is_sent {
        assert_eq!((alive.now(), is_in_history(&client, "Go.")), (0, 0), "{what}");
    }
    match act {
        Act::Checkpoint => {
            if let Some(reached) = client.next_checkpoint().await.expect("nothing fails") {
                assert_eq!(reached.messages, client.history().len(), "{what}");
            }
            rest(&mut client).await;
        }
        Act::Clear => client.clear_history(),
        Act::Compact => {
            let policy = ContextPolicy::new(300).with_overflow(Overflow::DropOldest);
            let is_refused = client.compact(&policy).await.is_err();
            assert_eq!(is_refused, is_sent && !is_over, "{what}");
        }
        Act::Continue => {
            let continued = client.continue_turn().await;
            assert!(continued.is_err(), "{what}: nothing is there to continue");
            rest(&mut client).await;
        }
        Act::Drop => {
            drop(client);
            assert_eq!(alive.now(), 0, "{what}");
            return is_over;
        }
        // The next prompt is cut, too.
        Act::SendCut => drop(polls(client.send("Go on."), place % 7 + 1).await),
        Act::SetTools => client.set_tools([counted("quick", 1, &alive)]).expect("it fits"),
        Act::Structured => {
            // It is refused, and leaves the turn as it is.
            let format = ResponseFormat::new("any", json!({"type": "object"}));
            assert!(client.send_for_format("", format).await.is_err(), "{what}");
            rest(&mut client).await;
        }
        Act::Interrupt | Act::Send | Act::Steer | Act::TimeUp => {}
    }
    check(&mut client, &alive, &what).await;
    is_over
}

#[tokio::test(start_paused = true)]
async fn turns_end_at_any_signal() {
    for act in [Act::Interrupt, Act::Steer, Act::TimeUp] {
        for place in 1..=MOST {
            assert!(place < MOST, "{act:?}: the turn has more polls");
            if ends_before(act, place).await {
                break;
            }
        }
    }
}

/// Signals a turn after a number of polls, or when its time is up. Returns true if it ends before that.
async fn ends_before(act: Act, place: usize) -> bool {
    let (server, alive) = (server(), Alive::default());
    let ticks = u32::try_from(place).expect("it is at most MOST");
    let time = if act == Act::TimeUp { TICK * ticks } else { PATIENCE };
    let mut client = agent(&server, &alive, |it| it.max_run_time(time));
    let what = format!("{act:?} at {place}");
    let (interrupt, steer) = (client.interrupt_handle(), client.steer_handle());
    let mut polls = 0;
    {
        let mut turn = pin!(async {
            client.send("Go.").await.expect("it is sent");
            rest(&mut client).await
        });
        let turn = poll_fn(|cx| {
            let polled = turn.as_mut().poll(cx);
            polls += 1;
            match act {
                _ if polls != place || polled.is_ready() => {}
                Act::Interrupt => interrupt.interrupt(),
                Act::Steer => steer.steer("Quick.").expect("there is room"),
                _ => {}
            }
            polled
        });
        soon(&what, turn).await;
    }
    assert_eq!(alive.now(), 0, "{what}");
    assert!(open_calls(client.history()).is_empty(), "{what}");
    let is_told = polls > place;
    let reason = client.finish_reason().cloned();
    let ended = match act {
        Act::TimeUp if reason == Some(FinishReason::MaxRunTime) => false,
        Act::Interrupt if is_told => {
            assert_eq!(reason, Some(FinishReason::Interrupted), "{what}");
            false
        }
        Act::Steer if is_told => {
            assert_eq!(is_in_history(&client, "Quick."), 1, "{what}");
            false
        }
        _ => {
            assert_eq!(reason, Some(FinishReason::Stop), "{what}");
            true
        }
    };
    if act != Act::TimeUp {
        check(&mut client, &alive, &what).await;
    }
    ended
}
