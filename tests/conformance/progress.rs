//! Progress reports of a llama.cpp server that reads a prompt.

use open_agent::{AgentEvent, Client, Provider};

use crate::server::{Wanted, check};

/// Reads one answer. Returns the progress reported before its text, and the number of later reports.
async fn told(client: &mut Client, prompt: &str) -> (Vec<open_agent::PromptProgress>, usize) {
    client.send(prompt).await.expect("the prompt fits");
    let (mut told, mut late, mut has_text) = (Vec::new(), 0, false);
    while let Some(event) = client.next_event().await.expect("an answer") {
        match event {
            AgentEvent::PromptProgress(progress) if !has_text => told.push(progress),
            AgentEvent::PromptProgress(_) => late += 1,
            AgentEvent::Block(_) => has_text = true,
            _ => {}
        }
    }
    (told, late)
}

#[test]
fn progress_reaches_the_whole_prompt() {
    check(Wanted::Keyed, async |server| {
        let options = server.options().provider(Provider::LlamaCpp).base_url(&server.base_url);
        let options = options.prompt_progress(true).max_tokens(3).seed(11);
        let mut client = Client::new(options.build().unwrap()).unwrap();
        // Several batches of the server.
        let (progress, late) = told(&mut client, &"word ".repeat(5_000)).await;
        println!("{} reports, the last after {:?}", progress.len(), progress.last());
        assert!(progress.len() > 1 && late == 0, "{late} came late");
        let usage = client.usage().expect("it tells its usage");
        for pair in progress.windows(2) {
            assert!(pair[0].processed <= pair[1].processed && pair[0].elapsed <= pair[1].elapsed);
        }
        for told in &progress {
            assert!(told.cached <= told.processed && told.processed <= told.total, "{told:?}");
            assert_eq!(Some(told.total), usage.prompt_tokens);
        }
        let last = progress.last().unwrap();
        assert_eq!(last.processed, last.total);
    });
}

#[test]
fn progress_must_be_requested() {
    check(Wanted::Tiny, async |server| {
        let options = server.options().provider(Provider::LlamaCpp).base_url(&server.base_url);
        let mut client = Client::new(options.max_tokens(3).build().unwrap()).unwrap();
        assert_eq!(told(&mut client, &"word ".repeat(300)).await, (Vec::new(), 0));
        // Without a provider the client does not know that the server supports it.
        let options = server.options().prompt_progress(true).max_tokens(3);
        let mut client = Client::new(options.build().unwrap()).unwrap();
        assert_eq!(told(&mut client, &"word ".repeat(300)).await, (Vec::new(), 0));
    });
}
