//! A copy editor: the model reads a text and replaces paragraphs with a tool. Changes are shown word by word,
//! and nothing is written without `--write`.
//!
//!     cargo run --example copy_editor
//!     cargo run --example copy_editor -- --file letter.txt
//!     cargo run --example copy_editor -- --file letter.txt --write "Mend spelling only."

use std::error::Error;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{Client, FnTool, json, tool};

const TEXT: &str = "The ferry leaves at noon, and teh crew is never late.\n\n\
                    We will recieve guests from the the mainland. Bring alot of blankets.\n\n\
                    Nothing needs to be changed here.\n";
const WISH: &str = "Mend spelling and grammar, and leave everything else as it is.";
/// The longest text, in bytes: about as much as fits the context of a typical model.
const LONGEST: u64 = 64 * 1024;

/// The largest product of the word counts of two paragraphs that are compared word by word.
const COMPARED: usize = 4_000_000;

/// The current paragraphs, shared by the tool and the program.
#[derive(Clone)]
struct Draft(Arc<Mutex<Vec<String>>>);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("copy_editor.rs"));
    let (file, write) = (arguments.value("--file")?, arguments.flag("--write"));
    let wish = Some(arguments.words()?).filter(|wish| !wish.is_empty());
    let text = match &file {
        None if write => return Err("--write needs a --file to write to".into()),
        None => TEXT.to_owned(),
        Some(file) if fs::metadata(file)?.len() > LONGEST => {
            return Err(format!("{file} is longer than {LONGEST} bytes").into());
        }
        Some(file) => fs::read_to_string(file)?,
    };
    // Joining them with the same separator always restores the text.
    let paragraphs: Vec<_> = text.split("\n\n").map(str::to_owned).collect();
    let draft = Draft(Arc::new(Mutex::new(paragraphs.clone())));

    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let options = model
        .options()
        .system_prompt(
            "You are a copy editor. Replace the paragraphs that need it, all in one answer, and then \
             say in a sentence what you did.",
        )
        .tool(replace())
        .state(draft.clone())
        .auto_execute_tools(true)
        .build()?;

    let wish = wish.as_deref().unwrap_or(WISH);
    terminal.prompt(wish);
    let numbered = paragraphs.iter().enumerate().map(|(at, text)| format!("[{}] {text}", at + 1));
    let numbered = numbered.collect::<Vec<_>>().join("\n\n");
    let mut client = Client::new(options)?;
    client.send(&format!("{wish} The paragraphs, with their numbers:\n\n{numbered}")).await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }

    let edited = draft.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    terminal.title("Changes");
    for (at, (old, new)) in paragraphs.iter().zip(&edited).enumerate() {
        if old != new {
            terminal.line(&format!("[{}] {}", at + 1, difference(old, new)));
        }
    }
    match (edited == paragraphs, file) {
        (true, _) => terminal.line("  none"),
        (false, Some(file)) if write => {
            if fs::read_to_string(&file)? != text {
                return Err(format!("{file} has changed on disk and was not overwritten").into());
            }
            fs::write(&file, edited.join("\n\n"))?;
            terminal.note(&format!("{file} is written."));
        }
        (false, Some(_)) => terminal.note("Nothing is written without --write."),
        (false, None) => terminal.note("Name a --file to edit your own text."),
    }
    Ok(())
}

fn replace() -> FnTool {
    tool("replace", "Replaces a paragraph")
        .param_with("paragraph", json!({ "type": "integer", "minimum": 1 }))
        .param("text", "string")
        .describe("text", "The whole new paragraph, without its number")
        .build_with_context(|args, cx| async move {
            let Draft(paragraphs) = cx.state().ok_or("there is no text")?;
            let text = args["text"].as_str().unwrap_or_default();
            // The numbers of other paragraphs must not change.
            if text.trim().is_empty() || text.contains("\n\n") {
                return Err("the replacement must be exactly one paragraph".into());
            }
            let place = args["paragraph"].as_u64().and_then(|number| number.checked_sub(1));
            let mut paragraphs = paragraphs.lock().unwrap_or_else(PoisonError::into_inner);
            let place = usize::try_from(place.ok_or("numbers begin at 1")?)?;
            let old = paragraphs.get_mut(place).ok_or("there is no such paragraph")?;
            // Models trim their output, so keep the whitespace around a paragraph.
            *old = old.replacen(old.trim(), text.trim(), 1);
            Ok(json!("replaced"))
        })
}

/// Shows removed and added words: `at [-teh-] {+the+} sea`.
fn difference(old: &str, new: &str) -> String {
    let old: Vec<_> = old.split_whitespace().collect();
    let new: Vec<_> = new.split_whitespace().collect();
    if old == new {
        return "(spaces and line breaks only)".to_owned();
    }
    if old.len() * new.len() > COMPARED {
        return format!("[-{}-] {{+{}+}}", old.join(" "), new.join(" "));
    }
    // common[i][j] is the length of the longest common subsequence of old[i..] and new[j..].
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut shown) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        let same = i < old.len() && j < new.len() && old[i] == new[j];
        if same {
            shown.push(old[i].to_owned());
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            shown.push(format!("[-{}-]", old[i]));
            i += 1;
        } else {
            shown.push(format!("{{+{}+}}", new[j]));
            j += 1;
        }
    }
    shown.join(" ")
}

/// The stand-in without a model: it corrects a few misspellings and repeated words.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let calls: Vec<_> = chat.calls().collect();
    if !calls.is_empty() {
        let done = calls.iter().filter(|call| call.result.is_ok()).count();
        return Reply::text(format!("Paragraphs replaced: {done}."));
    }
    let mends = chat.prompt().split("\n\n").filter_map(|paragraph| {
        let (number, text) = paragraph.strip_prefix('[')?.split_once("] ")?;
        let mended = mend(text);
        Some((number.parse::<u64>().ok()?, mended)).filter(|(_, mended)| mended != text.trim_end())
    });
    let mends: Vec<_> = mends.collect();
    match mends.len() {
        0 => Reply::text("I found nothing to mend, but I know a few words only."),
        count => mends.into_iter().fold(
            Reply::text(format!("Paragraphs to mend: {count}.")),
            |reply, (paragraph, text)| {
                reply.call("replace", json!({ "paragraph": paragraph, "text": text }))
            },
        ),
    }
}

fn mend(text: &str) -> String {
    const WORDS: [(&str, &str); 5] = [
        ("alot", "a lot"),
        ("definately", "definitely"),
        ("recieve", "receive"),
        ("seperate", "separate"),
        ("teh", "the"),
    ];
    let is_letter = |c: char| c.is_alphabetic();
    let (mut mended, mut before) = (String::new(), "");
    for piece in text.trim_end().split_inclusive(|c| !is_letter(c)) {
        let end = piece.trim_start_matches(is_letter);
        let word = &piece[..piece.len() - end.len()];
        let word = WORDS.iter().find(|(wrong, _)| *wrong == word).map_or(word, |(_, right)| right);
        if !word.is_empty() && word == before && mended.ends_with(' ') {
            mended.pop();
        } else {
            mended.push_str(word);
        }
        mended.push_str(end);
        before = word;
    }
    mended
}
