//! A client on a multithreaded runtime: all its futures are `Send`, and it can be shared.

use std::sync::Arc;

use oa_client::{
    AgentOptions, BlockStream, Client, ClientStream, HistoryMut, InterruptHandle, query,
};
use oa_testkit::{Reply, Script, SocketServer};
use oa_types::{FinishReason, Message};
use serde_json::json;
use tokio::sync::{RwLock, mpsc, oneshot};

use suite::talk::{adder, client, line, manual, models, next, read, stalling, strict, talk, told};

fn send<T: Send>(value: T) -> T {
    value
}

#[test]
fn every_future_of_a_client_is_send() {
    fn is_sync<T: Send + Sync>() {}
    is_sync::<Client>();
    is_sync::<ClientStream<'_>>();
    is_sync::<HistoryMut<'_>>();
    is_sync::<BlockStream>();
    is_sync::<InterruptHandle>();
    is_sync::<AgentOptions>();

    let server = strict([]);
    let options = manual(&server).build().unwrap();
    let mut client = client(manual(&server));
    drop(send(client.send("Hi.")));
    drop(send(client.send_message(Message::user("Hi."))));
    drop(send(client.continue_turn()));
    drop(send(client.ask("Hi.")));
    drop(send(client.receive()));
    drop(send(client.next_event()));
    drop(send(client.stream()));
    drop(send(query("Hi.", &options)));
    drop(send(models(&options)));
}

#[tokio::test]
async fn the_futures_of_an_answer_are_send() {
    let server = strict([Reply::text("Hello.")]);
    let options = manual(&server).build().unwrap();
    let mut answer = query("Hi.", &options).await.unwrap();
    drop(send(answer.next()));
    assert_eq!(send(answer.text()).await.unwrap(), "Hello.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_can_live_in_their_own_task() {
    let script = Script::from([
        Reply::text("I add. ").call_with_id("c", "add", json!({"a": 1, "b": 2})),
        Reply::text("It is 3."),
        stalling(&["One,"]),
        Reply::silence(),
    ]);
    let server = SocketServer::start(script.strict()).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url());
    let mut client = client(options.tool(adder()).auto_execute_tools(true));
    let handle = client.interrupt_handle();
    let (ask, mut asked) = mpsc::channel::<(String, mpsc::Sender<String>)>(1);
    let actor = tokio::spawn(async move {
        while let Some((prompt, answer)) = asked.recv().await {
            client.send(&prompt).await.expect("it is answered");
            while let Some(block) = client.receive().await.expect("nothing fails here") {
                answer.send(line(&block)).await.expect("it is waited for");
            }
        }
        client
    });

    let (answer, mut answers) = mpsc::channel(64);
    ask.send(("Add.".to_owned(), answer)).await.unwrap();
    let mut seen = String::new();
    while let Some(line) = answers.recv().await {
        seen += &line;
    }
    assert_eq!(seen, r#"I add. [c add {"a":1,"b":2}]c=3.0It is 3."#);

    // Interrupted from this thread.
    let (answer, mut answers) = mpsc::channel(64);
    ask.send(("Count.".to_owned(), answer)).await.unwrap();
    assert_eq!(answers.recv().await.as_deref(), Some("One,"));
    handle.interrupt();
    while answers.recv().await.is_some() {}
    drop(ask);
    let client = actor.await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert!(told(client.history())[5].ends_with("(interrupted)"));

    // An aborted task drops its client.
    let mut client = client;
    let (begun, begins) = oneshot::channel();
    let task = tokio::spawn(async move {
        begun.send(()).expect("it is waited for");
        let _ = client.send("Still there?").await;
    });
    begins.await.unwrap();
    let patience = std::time::Duration::from_secs(10);
    server.wait_until(patience, |requests| requests.len() == 4).await;
    task.abort();
    server.wait_for_close(patience).await;
    assert!(server.requests()[3].aborted());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_read_a_client_between_its_turns() {
    let server = strict([Reply::text("Hello."), Reply::text("Bye.")]);
    let client = Arc::new(RwLock::new(client(manual(&server))));
    for (prompt, said) in [("Hi.", 2), ("Bye.", 4)] {
        client.write().await.ask(prompt).await.unwrap();
        let readers = (0..2).map(|_| {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                let client = client.read().await;
                tokio::task::yield_now().await; // a `&Client` is held here
                client.history().len()
            })
        });
        for reader in readers.collect::<Vec<_>>() {
            assert_eq!(reader.await.unwrap(), said);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_share_options_concurrently() {
    let echo = Reply::by(|request| {
        let said = request.messages().last().map(|message| message["content"].clone());
        Reply::text(said.as_ref().and_then(|said| said.as_str()).unwrap_or_default())
    });
    let server = SocketServer::start(Script::new().strict().otherwise(echo)).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url());
    let options = options.build().unwrap();
    let talks = (0..32).map(|number| {
        let options = options.clone();
        tokio::spawn(async move {
            let mut client = Client::new(options).expect("there is a model");
            for turn in 0..5 {
                let prompt = format!("{number} and {turn}");
                assert_eq!(talk(&mut client, &prompt).await, [prompt]);
            }
        })
    });
    for talk in talks.collect::<Vec<_>>() {
        talk.await.unwrap();
    }
    assert_eq!(server.requests().len(), 160);
    println!("32 clients, 5 turns each: {} connections", server.connections());
    assert!(server.connections() <= 32);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_move_between_tasks_mid_stream() {
    let server = strict([Reply::text("one two three")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    let client = tokio::spawn(async move {
        let mut stream = client.stream();
        let first = next(&mut stream).await.expect("a word").expect("no error");
        assert_eq!(first.as_text(), Some("one"));
        client
    });
    let mut client = client.await.unwrap();
    assert_eq!(read(&mut client).await, [" two three"]);
}
