//! The doctor's findings on a real server.

use open_agent::{
    AgentOptions, Client, Probe, Provider, ServerProfile, ToolChoice, Verdict, doctor, json, tool,
};

use crate::server::{Wanted, check};

#[test]
fn all_findings_are_ok() {
    check(Wanted::Tiny, async |server| {
        let report = doctor(&server.options().seed(2).build().unwrap()).await.unwrap();
        println!("{report}");
        assert_eq!(report.findings.len(), Probe::ALL.len());
        assert_eq!(report.provider, Some(Provider::LlamaCpp));
        // The number of calls is up to the model.
        let others = report.findings.iter().filter(|it| it.probe != Probe::ParallelCalls);
        for finding in others {
            assert_eq!(finding.verdict, Verdict::Ok, "{finding}");
        }
        let profile = &report.profile;
        assert_eq!((profile.tools, profile.schema), (Some(true), Some(true)));
        assert_eq!(profile.ask_for_usage, Some(true));
        assert!(profile.context_tokens.is_some());
    });
}

#[test]
fn the_profile_configures_an_agent() {
    check(Wanted::Tiny, async |server| {
        let report = doctor(&server.options().seed(3).build().unwrap()).await.unwrap();
        let profile = ServerProfile::from_json(&report.profile.to_json()).unwrap();
        let look = tool("look", "Looks somewhere").param("where", "string");
        let look = look.build(|_| async { Ok(json!("a cat")) });
        let options = AgentOptions::builder().profile(profile).seed(3).max_tokens(200).tool(look);
        let options = options.tool_choice(ToolChoice::Required).build().unwrap();
        let mut client = Client::new(options).unwrap();
        let reply = client.ask("Look around.").await.unwrap();
        assert!(reply.message.is_some_and(|message| !message.content.is_empty()));
    });
}

#[test]
fn keys_are_requested_but_not_shown() {
    check(Wanted::Keyed, async |server| {
        let without = AgentOptions::builder().base_url(&server.base_url).model(&server.model);
        let report = doctor(&without.build().unwrap()).await.unwrap();
        assert_eq!(report.verdict(), Verdict::Fail);
        let streaming = report.finding(Probe::Streaming).unwrap();
        assert!(streaming.seen.contains("401"), "{streaming}");
        assert!(streaming.advice.as_deref().unwrap_or_default().contains("api_key"), "{streaming}");

        let report = doctor(&server.options().seed(2).build().unwrap()).await.unwrap();
        assert_eq!(report.finding(Probe::AutoCalls).unwrap().verdict, Verdict::Ok, "{report}");
        let shown = format!("{report} {report:?} {} {}", report.profile.to_json(), json!(report));
        assert!(!shown.contains(&server.key), "a key shows");
    });
}

#[test]
fn broken_calls_are_found() {
    check(Wanted::Broken, async |server| {
        let mut broken = 0;
        for seed in 1..=3 {
            let report = doctor(&server.options().seed(seed).build().unwrap()).await.unwrap();
            let calls = report.finding(Probe::AutoCalls).unwrap();
            broken += usize::from(calls.verdict == Verdict::Fail);
            println!("{calls}");
        }
        assert!(broken > 0, "nothing was broken");
    });
}

#[test]
fn any_server_gets_a_full_report() {
    check(Wanted::Any, async |server| {
        let report = doctor(&server.options().build().unwrap()).await.unwrap();
        println!("{report}");
        assert_eq!(report.findings.len(), Probe::ALL.len());
        assert_eq!(report.finding(Probe::Reach).unwrap().verdict, Verdict::Ok);
    });
}
