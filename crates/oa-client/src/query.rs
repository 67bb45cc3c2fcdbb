use std::hash::{BuildHasher, RandomState};

use http::Method;
use oa_aggregate::Options;
use oa_hooks::{UserPromptSubmitEvent, Verdict};
use oa_transport::{RequestBody, Watch};
use oa_types::Message;
use oa_types::wire::{Form, write_message};
use tokio::time::sleep;

use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::options::AgentOptions;
use crate::pipeline::{Pipeline, PipelineOptions};
use crate::service::send;
use crate::settings::Settings;
use crate::stream::BlockStream;

/// Asks once and streams the answer; nothing is remembered and no tool is run.
///
/// Hooks are asked before the prompt is sent, and before each call is handed out.
///
/// Resolves when the head of the answer is there, so that errors of the server come from here.
///
/// # Errors
///
/// `InvalidInput` for an empty prompt, `Config` without a model, `Blocked` and `Hook` if a hook does not
/// let the prompt pass, `Connect`, `Timeout`, `Api`, `ContextOverflow`, `Stream`.
///
/// # Cancel safety
///
/// Dropping the future closes the connection, and the server stops.
pub async fn query(prompt: &str, options: &AgentOptions) -> Result<BlockStream> {
    let settings = options.settings();
    if prompt.trim().is_empty() {
        return Err(Error::invalid_input("the prompt is empty"));
    }
    if let Some(why) = &settings.unusable {
        return Err(Error::config(why));
    }
    let prompt = hooked(prompt, settings).await?;
    let message = Message::user(prompt);
    let body = request_body(settings, &message);
    let mut watch = Watch::new(settings.timeouts);
    let response = send(settings, Method::POST, "/chat/completions", body, &mut watch).await?;
    let pipeline = Pipeline::new(pipeline_options(settings));
    let gate = Gate::new(settings.hooks.clone(), message);
    Ok(BlockStream::new(response, pipeline, watch, gate))
}

/// The prompt that is sent: the user's, or what a hook put in its place.
async fn hooked(prompt: &str, settings: &Settings) -> Result<String> {
    if !settings.hooks.has_user_prompt_submit() {
        return Ok(prompt.to_owned());
    }
    let event = UserPromptSubmitEvent::new(prompt, Vec::new());
    match settings.hooks.user_prompt_submit(event, sleep).await.map_err(Error::hook)? {
        Verdict::Allow => Ok(prompt.to_owned()),
        Verdict::Block { reason } => Err(Error::blocked(&reason)),
        Verdict::Modify(change) => Ok(change.value),
    }
}

fn request_body(settings: &Settings, message: &Message) -> RequestBody {
    let form = Form::default();
    let mut bytes = settings.request.head();
    if let Some(prompt) = &settings.system_prompt {
        write_message(&Message::system(prompt), &form, &mut bytes);
    }
    write_message(message, &form, &mut bytes);
    bytes.extend_from_slice(&settings.request.tail());
    RequestBody::new(bytes)
}

fn pipeline_options(settings: &Settings) -> PipelineOptions {
    let mut aggregator = Options::default();
    aggregator.limits = settings.limits.answer;
    aggregator.quirks = settings.quirks;
    // Ids that are made up for calls differ from answer to answer.
    aggregator.id_seed = RandomState::new().hash_one(());
    PipelineOptions { parser: settings.limits.events, aggregator }
}
