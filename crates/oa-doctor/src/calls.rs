//! Probes of tool calls and their results.

use oa_tools::check_arguments;
use oa_types::wire::{ChatParameters, ToolChoice};
use oa_types::{Message, ToolResultBlock, ToolSpec, ToolUseBlock};
use serde_json::{Value, json};

use crate::advice::Lack;
use crate::context::{ProbeContext, count};
use crate::finding::{Finding, Probe, Verdict};
use crate::observed::Observed;

const PROMPT: &str = "What is the weather in Paris? Use the tool.";
const TWO_CITIES: &str =
    "What is the weather in Paris, and what is it in Rome? Call the tool for both cities at once.";
/// A model that is free to choose answers this in text.
const SMALL_TALK: &str = "Name a large city.";

/// The advice for a server that ignores or rejects `tool_choice`.
const NO_CHOICE: &str = "do not rely on .tool_choice(..) here: ask for the tool in the prompt";

/// The advice for a server whose streams lack the calls.
const IN_ONE_PIECE: &str = "ask for answers in one piece: .extra_body(json!({\"stream\": false}))";

/// Starts of calls that the server should have parsed, but left in the text.
const MARKS: [&str; 21] = [
    "<tool_call",
    "<|tool_call",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<function=",
    "<function_call",
    "<invoke",
    "<longcat_tool_call",
    "<minimax:tool_call",
    "]<]minimax[>[",
    "<TOOLCALL>",
    "<start_function_call>",
    "<|tools_prefix|>",
    "<|START_ACTION|>",
    "<|action_start|>",
    "<|channel|>commentary to=",
    "<|open|>tools",
    "<｜tool",
    "<｜DSML｜",
    "functools[",
    "```tool_code",
];

fn weather() -> ToolSpec {
    let city = json!({ "type": "string", "description": "The city" });
    ToolSpec::new(
        "get_weather",
        "Tells the weather in a city",
        json!({
            "type": "object",
            "properties": { "city": city },
            "required": ["city"],
        }),
    )
}

pub(crate) async fn forced(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::ForcedCalls;
    let choose = |request: &mut ChatParameters| {
        request.tools = vec![weather()];
        request.tool_choice = Some(ToolChoice::Required);
    };
    // Not a question for the tool: a call then shows the effect of `tool_choice`, not of the prompt.
    let prompt = [Message::user(SMALL_TALK)];
    let observed = match cx.target.chat(&prompt, choose).await {
        Ok(observed) => observed,
        Err(error) => {
            // If the same tools are accepted without the choice, the server rejects only the choice.
            let offer = |request: &mut ChatParameters| request.tools = vec![weather()];
            if !error.refuses("tool_choice") || cx.target.chat(&prompt, offer).await.is_err() {
                return cx.refused(PROBE, &error, Lack::Tools);
            }
            cx.learned.forced_calls = Some(false);
            let seen = format!("`tool_choice` is rejected: {}", cx.target.quote(&error));
            return Finding::new(PROBE, Verdict::Warn, seen).advise(NO_CHOICE);
        }
    };
    let called = called(cx, &observed);
    if let Some(problem) = faulty(cx, PROBE, &observed, &called) {
        return problem;
    }
    if !called.is_empty() {
        cx.learned.forced_calls = Some(true);
        learn(cx, &called);
        return Finding::new(PROBE, Verdict::Ok, described(cx, &observed, &called));
    }
    // Some servers parse calls only without streaming.
    let whole = |request: &mut ChatParameters| {
        choose(request);
        request.extra_body.insert("stream".to_owned(), Value::Bool(false));
    };
    if let Ok(whole) = cx.target.chat(&prompt, whole).await
        && whole.calls().next().is_some()
    {
        return Finding::new(PROBE, Verdict::Fail, "calls arrive only without streaming")
            .advise(IN_ONE_PIECE);
    }
    cx.learned.forced_calls = Some(false);
    Finding::new(PROBE, Verdict::Warn, "no call, though one was required").advise(NO_CHOICE)
}

pub(crate) async fn auto(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::AutoCalls;
    let offer = |request: &mut ChatParameters| request.tools = vec![weather()];
    let observed = match cx.target.chat(&[Message::user(PROMPT)], offer).await {
        Ok(observed) => observed,
        Err(error) => {
            // The error is about tools, because a request without them was answered.
            let is_about_tools = matches!(cx.plain, Some(Ok(_)))
                && cx.learned.tools.is_none()
                && cx.is_refusal(&error);
            if is_about_tools {
                cx.learned.tools = Some(false);
                (cx.learned.forced_calls, cx.learned.parallel_calls) = (None, None);
            }
            return cx.refused(PROBE, &error, Lack::Tools);
        }
    };
    let called = called(cx, &observed);
    if let Some(problem) = faulty(cx, PROBE, &observed, &called) {
        return problem;
    }
    if called.is_empty() {
        return Finding::new(PROBE, Verdict::Fail, "no call: the model answered in words")
            .advise(cx.advice(Lack::Tools));
    }
    learn(cx, &called);
    Finding::new(PROBE, Verdict::Ok, described(cx, &observed, &called))
}

pub(crate) async fn parallel(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::ParallelCalls;
    let ask = async |parallel: Option<bool>| {
        let offer = |request: &mut ChatParameters| {
            request.tools = vec![weather()];
            request.parallel_tool_calls = parallel;
        };
        cx.target.chat(&[Message::user(TWO_CITIES)], offer).await
    };
    let mut asked = ask(Some(true)).await;
    let mut refusal = None;
    if let Err(error) = &asked
        && error.refuses("parallel_tool_calls")
    {
        // Some models may make several calls, but know no setting for it.
        refusal = Some(cx.target.quote(error));
        asked = ask(None).await;
    }
    let observed = match asked {
        Ok(observed) => observed,
        Err(error) => return cx.refused(PROBE, &error, Lack::Tools),
    };
    let called = called(cx, &observed);
    if let Some(problem) = faulty(cx, PROBE, &observed, &called) {
        return problem;
    }
    if called.is_empty() {
        return Finding::new(PROBE, Verdict::Fail, "no call: the model answered in words")
            .advise(cx.advice(Lack::Tools));
    }
    learn(cx, &called);
    let refusal = refusal.map(|refusal| format!("; `parallel_tool_calls` is rejected: {refusal}"));
    if called.len() > 1 {
        let seen = described(cx, &observed, &called);
        return match refusal {
            None => Finding::new(PROBE, Verdict::Ok, seen),
            Some(refusal) => Finding::new(PROBE, Verdict::Warn, seen + &refusal)
                .advise("do not set .parallel_tool_calls(..) here"),
        };
    }
    // Another answer may have had several calls.
    cx.learned.parallel_calls.get_or_insert(false);
    let seen = match refusal {
        None => "one call for two cities; the other one would need another round".to_owned(),
        Some(refusal) => format!("one call for two cities{refusal}"),
    };
    Finding::new(PROBE, Verdict::Warn, seen)
        .advise("allow more rounds with .max_tool_iterations(..)")
}

pub(crate) async fn results(cx: &ProbeContext) -> Finding {
    const PROBE: Probe = Probe::ToolResults;
    const ID: &str = "doctor001";
    let call = ToolUseBlock::new(ID, weather().name, json!({ "city": "Paris" }));
    let mut result = ToolResultBlock::new(ID, json!({ "sky": "clear", "celsius": 21 }));
    result.name = Some((*call.name).into());
    let history =
        [Message::user(PROMPT), Message::assistant(vec![call.into()]), Message::tool(result)];
    let offer = |request: &mut ChatParameters| request.tools = vec![weather()];
    let observed = match cx.target.chat(&history, offer).await {
        Ok(observed) => observed,
        Err(error) => return cx.refused(PROBE, &error, Lack::Tools),
    };
    if !observed.visible_text().is_empty() {
        return Finding::new(PROBE, Verdict::Ok, "a call and its result are accepted and answered");
    }
    if observed.calls().next().is_some() {
        return Finding::new(
            PROBE,
            Verdict::Ok,
            "a call and its result are accepted; another call follows",
        );
    }
    if observed.is_cut() {
        return cx.cut(PROBE, &observed);
    }
    Finding::new(PROBE, Verdict::Warn, "a call and its result are accepted, but not answered")
}

/// A call, and the problem with its name or arguments.
struct Called {
    call: ToolUseBlock,
    problem: Option<String>,
}

fn called(cx: &ProbeContext, observed: &Observed) -> Vec<Called> {
    let spec = weather();
    let problem = |call: &ToolUseBlock| {
        if call.name != spec.name {
            return Some(format!("it calls {:?}", cx.target.quotes.quote(&call.name)));
        }
        // Masked before the excerpt is cut, so that no part of a key is shown.
        let mut input = call.input.clone();
        cx.target.quotes.secrets().clean_json(&mut input);
        let checked = check_arguments(&spec.parameters, input);
        checked.err().map(|error| cx.target.quotes.quote(&error.to_string()))
    };
    observed.calls().map(|call| Called { call: call.clone(), problem: problem(call) }).collect()
}

/// Records that the model made calls, and whether it made several at once.
fn learn(cx: &mut ProbeContext, called: &[Called]) {
    cx.learned.tools = Some(true);
    if called.len() > 1 {
        cx.learned.parallel_calls = Some(true);
    }
}

/// Returns a finding for faults beyond the number of calls.
fn faulty(
    cx: &ProbeContext,
    probe: Probe,
    observed: &Observed,
    called: &[Called],
) -> Option<Finding> {
    let quote = |text: &str| cx.target.quotes.quote(text);
    let fail = |seen: String| {
        Some(Finding::new(probe, Verdict::Fail, seen).advise(cx.advice(Lack::Tools)))
    };
    let cut = || {
        let finding = cx.cut(probe, observed);
        if finding.verdict == Verdict::Fail { fail(finding.seen) } else { Some(finding) }
    };
    if let Some(broken) = observed.broken_call() {
        if observed.is_cut() {
            return cut();
        }
        return fail(format!(
            "a broken call: {}: {}",
            quote(&broken.error),
            quote(&broken.raw_data)
        ));
    }
    if let Some(problem) = called.iter().find_map(|called| called.problem.as_deref()) {
        return fail(format!("a call that does not match the tool: {problem}"));
    }
    if called.is_empty() {
        // No call was parsed, and its markup is still in the text: the server lacks the parser of this model.
        let text = observed.text();
        if let Some(at) = MARKS.into_iter().filter_map(|mark| text.find(mark)).min() {
            let seen = format!("the call is in the text: {}", quote(&text[at..]));
            let advice = cx.advice(Lack::Tools);
            let advice = format!("{advice}, or read such calls with .recognize_calls(true)");
            return Some(Finding::new(probe, Verdict::Fail, seen).advise(advice));
        }
        if observed.is_cut() {
            return cut();
        }
    }
    None
}

/// Describes the calls, and anything odd about their format.
fn described(cx: &ProbeContext, observed: &Observed, called: &[Called]) -> String {
    const SHOWN: usize = 2;
    let calls = called.iter().take(SHOWN);
    let calls: Vec<_> =
        calls.map(|Called { call, .. }| format!("{}({})", call.name, call.input)).collect();
    let mut calls = cx.target.quotes.quote(&calls.join(", "));
    if called.len() > SHOWN {
        calls += &format!(" and {} more", called.len() - SHOWN);
    }
    let bytewise = &observed.bytewise;
    let mut notes = Vec::new();
    if bytewise.is_document {
        notes.push("not streamed".to_owned());
    } else if bytewise.calls.count > 0 {
        notes.push(format!("in {}", count(bytewise.calls.count, "fragment")));
        if bytewise.calls.ids == 0 {
            notes.push("without ids".to_owned());
        }
        if bytewise.calls.without_index {
            notes.push("without indices".to_owned());
        }
        if bytewise.calls.with_objects {
            notes.push("with arguments that are not strings".to_owned());
        }
    }
    let reason = observed.message.finish_reason.as_str();
    if reason != "tool_calls" {
        notes.push(format!("finish reason {}", cx.target.quotes.quote(reason)));
    }
    format!("{calls}, {}", notes.join(", "))
}
