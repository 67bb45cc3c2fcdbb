//! The idempotency keys of calls that an agent behind a tool makes.

use std::collections::HashSet;
use std::future::ready;
use std::sync::{Arc, Mutex};

use oa_agents::AgentTool;
use oa_client::{AgentOptions, Client};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::tool;
use serde_json::json;

#[tokio::test]
async fn sub_agent_keys_repeat_with_the_call() {
    let run = async |prefix: &str| {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let keys = Arc::clone(&seen);
        let pay = tool("pay", "Pays").build_with_context(move |_, cx| {
            let key = cx.idempotency_key().expect("each call has a key").to_owned();
            keys.lock().expect("no test panics").push(key);
            ready(Ok(json!("paid")))
        });
        let call = |reply: Reply, id: &str| reply.call_with_id(id, "pay", json!({}));
        let two = call(call(Reply::new(), "call_0"), "call_1");
        let pays = MemoryServer::new([two, call(Reply::new(), "call_0"), Reply::text("Done.")]);
        let options = AgentOptions::builder().model("any").transport(pays);
        let options = options.tool(pay).auto_execute_tools(true).build().unwrap();
        let helper = AgentTool::new("helper", "Pays", options).unwrap();
        let calls = Reply::new().call_with_id("call_0", "helper", json!({ "prompt": "Pay." }));
        let model = MemoryServer::new([calls, Reply::text("Done.")]);
        let options = AgentOptions::builder().model("any").transport(model).tool(helper);
        let options = options.auto_execute_tools(true).build().unwrap();
        let mut client = Client::new(options).unwrap();
        client.set_key_prefix(prefix);
        client.ask("Have it paid.").await.unwrap();
        seen.lock().unwrap().clone()
    };
    let keys = run("a").await;
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 3, "{keys:?}");
    assert_eq!(keys, run("a").await);
    assert_ne!(keys, run("b").await);
    assert_ne!(run("").await, run("").await);
}
