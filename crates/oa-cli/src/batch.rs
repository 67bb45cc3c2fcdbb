//! `oa batch`.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use indicatif::ProgressBar;
use oa_files::{Prompt, Prompts};
use open_agent::{
    BatchLog, BatchOptions, BatchProgress, Error, ErrorKind, Message, json, run_batch,
};

use crate::agent::{self, Person};
use crate::args::BatchArgs;
use crate::failure::{Failure, Result};
use crate::figure::{left_over, rate};
use crate::output::{progress_bar, tell};
use crate::places;
use crate::runtime::{Interrupts, runtime};
use crate::settings::Settings;

/// Advice if a prompt is not the one that was answered.
const CHANGED: &str = "The input has changed since an earlier run. Choose another output, or delete the log to ask again.";

/// Runs the command.
pub(crate) fn run(args: &BatchArgs, settings: &Settings) -> Result<()> {
    runtime()?.block_on(answer(args, settings))
}

async fn answer(args: &BatchArgs, settings: &Settings) -> Result<()> {
    let input = &args.input;
    let at_input = |error: io::Error| Failure::usage(error.to_string()).at(input.display());
    let target = args.output.canonicalize().unwrap_or_else(|_| args.output.clone());
    check_files(input, &args.output, &target)?;
    let mut file = File::open(input).map_err(at_input)?;
    // Check every line before sending the first prompt.
    let count = checked(&file, input)?;
    file.rewind().map_err(at_input)?;

    let agent = agent::build(settings, Person::Nobody).await?;
    let log = beside(&args.output, "log");
    let replies = BatchLog::open(&log).await?;
    if replies.replies() > 0 {
        let (count, log) = (replies.replies(), log.display());
        tell(&format!(
            "{count} replies are in the log of an earlier run, and are used whatever the settings are now; to ask again, \
             delete {log}"
        ));
    }
    let options = BatchOptions::new(agent.options).concurrency(args.at_once).in_input_order(true);
    // Files are read again when their prompt is sent, so that only a few are in memory.
    let (lost, folder) = (Arc::new(OnceLock::new()), folder_of(input));
    let prompts = Prompts::new(BufReader::new(file)).map_while({
        let lost = Arc::clone(&lost);
        move |prompt| prompt.and_then(|it| message(&it, &folder)).map_err(|why| lost.set(why)).ok()
    });
    let prompts = Counted { prompts, left: count };
    let mut batch = run_batch(prompts, options.log(replies))?;

    // Ids are read again along with the replies, so that they need not be kept in memory.
    let mut lines = Prompts::new(BufReader::new(File::open(input).map_err(at_input)?));
    let part = beside(&target, "part");
    let at_part = |error: io::Error| Failure::new(error.to_string()).at(part.display());
    let mut output = BufWriter::new(File::create(&part).map_err(at_part)?);
    let bar = progress_bar(count as u64, "{bar:30} {pos}/{len}  {msg}");
    let mut interrupts = Interrupts::new()?;
    loop {
        let next = tokio::select! {
            biased;
            () = interrupts.next() => {
                bar.finish_and_clear();
                drop(batch);
                // A reply is logged before it counts as progress.
                let done = BatchLog::open(&log).await?.replies();
                let why = format!("stopped: {done} of {count} replies are in the log");
                // The log has all complete replies.
                let _ = fs::remove_file(&part);
                return Err(Failure::interrupted(why).advise("Run the same command again to continue."));
            }
            next = batch.next() => next,
        };
        let Some((index, reply)) = next else { break };
        // Replies come in the order of the input, so the next prompt in it is that of this reply.
        let id = lines.next().and_then(|prompt| prompt.ok()?.id);
        let mut line = json!({ "index": index });
        match reply {
            Ok(reply) => {
                line["text"] = json!(reply.text);
                line["finish_reason"] = json!(reply.finish_reason.as_str());
                if let Some(usage) = reply.usage {
                    line["prompt_tokens"] = json!(usage.prompt_tokens);
                    line["completion_tokens"] = json!(usage.completion_tokens);
                }
            }
            // The earlier output stays: it fits the earlier input.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                bar.finish_and_clear();
                let _ = fs::remove_file(&part);
                return Err(Failure::usage(error.to_string()).at(log.display()).advise(CHANGED));
            }
            Err(error) => line["error"] = json!(crate::failure::with_causes(&error)),
        }
        // As it is written in the input: a number of any length keeps its digits.
        let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
        writeln!(output, "{{{id}{}", &line.to_string()[1..]).map_err(at_part)?;
        show(&bar, &batch.progress());
    }
    bar.finish_and_clear();
    if let Some(why) = lost.get() {
        let _ = fs::remove_file(&part);
        return Err(Failure::usage(why.to_string()).at(input.display()));
    }
    output.flush().map_err(at_part)?;
    drop(output);
    // Only now, so that an output file is always complete.
    fs::rename(&part, &target).map_err(at_part)?;
    let BatchProgress { done, failed, .. } = batch.progress();
    drop(batch);
    #[cfg(feature = "mcp")]
    if let Some(mcp) = agent.mcp {
        mcp.close().await;
    }
    if failed > 0 {
        let output = args.output.display();
        let why = format!("{failed} of {count} prompts failed: their errors are in {output}");
        return Err(Failure::new(why).advise("Run the same command again to retry them."));
    }
    tell(&format!("{done} replies are in {}", args.output.display()));
    Ok(())
}

/// Returns a path with another suffix appended.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Rejects a pipe as the input, which is read twice; a device as the output, whose `target` behind links is replaced by
/// a file; and an output with a file that is the input.
fn check_files(input: &Path, output: &Path, target: &Path) -> Result<()> {
    if let Some(path) = [input, target].into_iter().find(|path| path.exists() && !path.is_file()) {
        return Err(Failure::usage("this is not a regular file").at(path.display()));
    }
    for path in [target.to_owned(), beside(output, "log"), beside(target, "part")] {
        if matches!((path.canonicalize(), input.canonicalize()), (Ok(a), Ok(b)) if a == b) {
            let why = "the input would be overwritten: choose another name for the output";
            return Err(Failure::usage(why).at(path.display()));
        }
    }
    Ok(())
}

/// Returns the folder of a file, in which the paths in it begin.
fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Returns the message of a prompt, with its files.
fn message(prompt: &Prompt, folder: &Path) -> Result<Message, open_agent::types::Error> {
    prompt.message(|path| folder.join(places::expanded(path)))
}

/// Checks every line and its files, and returns the number of prompts.
fn checked(file: &File, path: &Path) -> Result<usize> {
    let (mut prompts, folder) = (Prompts::new(BufReader::new(file)), folder_of(path));
    let count = prompts.try_fold(0, |count, it| Ok(message(&it?, &folder).map(|_| count + 1)?));
    let count = count.map_err(|why: Error| Failure::from(why).at(path.display()))?;
    if count == 0 {
        return Err(Failure::usage("the file contains no prompts").at(path.display()));
    }
    Ok(count)
}

/// An iterator over prompts with a known length.
struct Counted<I> {
    prompts: I,
    left: usize,
}

impl<I: Iterator> Iterator for Counted<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let next = self.prompts.next();
        self.left = if next.is_some() { self.left.saturating_sub(1) } else { 0 };
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

fn show(bar: &ProgressBar, progress: &BatchProgress) {
    bar.set_position(progress.done + progress.failed);
    let mut message = rate(progress.per_second);
    if progress.failed > 0 {
        message.push_str(&format!("  {} failed", progress.failed));
    }
    if let Some(left) = progress.time_left() {
        message.push_str(&format!("  {} left", left_over(left)));
    }
    bar.set_message(message);
}
