//! Requests from a server in place of a result, as in version 2026-07-28, within a turn.

use oa_client::AgentOptionsBuilder;
use oa_hooks::{HookDecision, Hooks, ToolRule};
use oa_mcp::ElicitationAnswer;
use oa_types::FinishReason;
use serde_json::json;

use crate::questions::{host, painter, turn};
use crate::support::{result, server_of_rounds};

#[tokio::test]
async fn sampling_uses_the_budget_of_the_turn() {
    let painter = painter();
    let host = host(&painter, Hooks::new());
    let sampling = || server_of_rounds().on_sampling(host.sampling());
    let (client, _) = turn(sampling(), "model", |it| it).await;
    assert_eq!(result(&client), "the model says Blue.");
    let requests = painter.requests();
    assert_eq!(requests[0].json()["messages"][0]["content"], "You paint.");
    // 10 tokens of its own, and 100 of the painter's.
    for (most, reason) in [(200, FinishReason::Stop), (100, FinishReason::MaxRunTokens)] {
        let (client, _) = turn(sampling(), "model", |options| options.max_run_tokens(most)).await;
        assert_eq!(client.finish_reason(), Some(&reason), "{most}");
    }
}

#[tokio::test]
async fn forbidden_sampling_is_an_error_result() {
    let painter = painter();
    let host = host(&painter, Hooks::new());
    let server = server_of_rounds().on_sampling(host.sampling());
    let rule = |options: AgentOptionsBuilder| options.tool_rule(ToolRule::deny("s__sampling"));
    let (client, _) = turn(server, "model", rule).await;
    let told = result(&client);
    let why = "the server's request to a model was refused: a permission rule denies this call";
    assert!(told.contains(why), "{told}");
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
    assert_eq!(painter.requests().len(), 0);
}

#[tokio::test]
async fn elicitation_needs_permissions_and_hooks() {
    let ask = async |hooks: Hooks, change: fn(AgentOptionsBuilder) -> AgentOptionsBuilder| {
        let host = host(&painter(), hooks);
        let server =
            server_of_rounds().on_elicitation(host.elicitation(|question, _| async move {
                assert_eq!(question.message, "Which color?");
                ElicitationAnswer::Accept(json!({ "color": "green" }))
            }));
        result(&turn(server, "person", change).await.0)
    };
    assert_eq!(ask(Hooks::new(), |it| it).await, "the person says green");
    let denied = ask(Hooks::new(), |it| it.tool_rule(ToolRule::deny("s__elicit*"))).await;
    assert_eq!(denied, "the person declines");
    let blocked =
        Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::block("no questions")) });
    assert_eq!(ask(blocked, |it| it).await, "the person declines");
}
