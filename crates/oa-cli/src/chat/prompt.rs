//! The prompt between two turns: a line editor with a saved history.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use open_agent::redact::printable;
use reedline::{
    Color, ColumnarMenu, Completer, DefaultCompleter, EditCommand, EditMode, Emacs,
    FileBackedHistory, Highlighter, HistoryItem, KeyCode, KeyModifiers, MenuBuilder, Prompt,
    PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, ReedlineRawEvent,
    Signal, Span, StyledText, Suggestion, default_emacs_keybindings,
};

use super::command::COMMANDS;
use super::keyboard::Keyboard;
use crate::failure::{Failure, Result};
use crate::output::write_line;
use crate::places;

/// The outcome of a prompt.
#[derive(Debug)]
pub(super) enum Entry {
    Entered(String),
    Quit,
}

/// The editor of prompts.
pub(super) struct PromptEditor {
    editor: Reedline,
    has_text: Arc<AtomicBool>,
    /// The number of Ctrl-C presses since the current read began.
    interrupts: Arc<AtomicUsize>,
    /// True after Ctrl-C at an empty prompt.
    is_leaving: bool,
}

/// The maximum number of lines in the history, and its file.
const HISTORY: usize = 2_000;
const HISTORY_FILE: &str = "history.txt";
/// The sign before the text.
pub(super) const SIGN: &str = "› ";
const MENU: &str = "commands";
/// Advice for a terminal that does not answer, such as one within an editor.
const NO_TERMINAL: &str = "A conversation needs a terminal that says where its cursor is. In any other, pass a prompt: \
     oa chat --session NAME \"PROMPT\"";
/// The word that the editor reports for Ctrl-Z.
const SUSPEND: &str = "suspend";

impl PromptEditor {
    pub(super) fn new(has_styles: bool, keyboard: Arc<Keyboard>) -> Self {
        let has_text = Arc::new(AtomicBool::new(false));
        let interrupts = Arc::new(AtomicUsize::new(0));
        let mut keys = default_emacs_keybindings();
        let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline());
        if cfg!(unix) {
            let suspend = ReedlineEvent::ExecuteHostCommand(SUSPEND.to_owned());
            keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('z'), suspend);
            // As in shells. A terminal sends the same for all of them.
            for key in ['_', '/', '7'] {
                let undo = ReedlineEvent::Edit(vec![EditCommand::Undo]);
                keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char(key), undo);
            }
        }
        let complete = ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
        let commands = COMMANDS.iter().map(|(name, _, _)| format!("/{name}")).collect();
        let mut completer = DefaultCompleter::with_inclusions(&['/']);
        completer.insert(commands);
        let menu = ReedlineMenu::EngineCompleter(Box::new(
            ColumnarMenu::default().with_name(MENU).with_marker(SIGN),
        ));
        let mut editor = Reedline::create()
            .use_bracketed_paste(true)
            .with_ansi_colors(has_styles)
            .with_edit_mode(Box::new(Watching {
                keys: Emacs::new(keys),
                has_text: Arc::clone(&has_text),
                interrupts: Arc::clone(&interrupts),
                keyboard,
            }))
            .with_completer(Box::new(Names(completer)))
            .with_quick_completions(true)
            .with_menu(menu)
            .with_highlighter(Box::new(AsItIs(Arc::clone(&has_text))));
        // If the history cannot be saved, it lasts as long as the program runs.
        let file = places::data_folder().map(|folder| folder.join(HISTORY_FILE));
        if let Some(history) = file.and_then(|file| {
            make_private(&file);
            FileBackedHistory::with_file(HISTORY, file).ok()
        }) {
            editor = editor.with_history(Box::new(history));
        }
        Self { editor, has_text, interrupts, is_leaving: false }
    }

    /// Adds a line that was entered elsewhere to the history. A failure is ignored: the line is then not saved.
    pub(super) fn remember(&mut self, line: &str) {
        let _ = self.editor.history_mut().save(HistoryItem::from_command_line(line));
        self.save_history();
    }

    /// Writes new lines to the file at once: a program that a signal ends, such as that of a closed window, does not
    /// drop the editor. A failure is ignored: the lines then last as long as the program runs.
    fn save_history(&mut self) {
        let _ = self.editor.sync_history();
    }

    /// Reads a line that starts with the text `begun`. Ctrl-Z calls `suspend`, and keeps the text.
    pub(super) fn read(
        &mut self,
        begun: String,
        suspend: impl Fn() -> Result<()>,
    ) -> Result<Entry> {
        if !begun.is_empty() {
            self.editor.run_edit_commands(&[EditCommand::InsertString(begun)]);
        }
        loop {
            // Relaxed is enough: the editor calls the highlighter and the edit mode on this thread, and owns
            // them, so the flags are shared.
            self.has_text.store(false, Ordering::Relaxed);
            self.interrupts.store(0, Ordering::Relaxed);
            let signal = self.editor.read_line(&Sign);
            match signal.map_err(|error| {
                Failure::new(format!("cannot read from the terminal: {error}")).advise(NO_TERMINAL)
            })? {
                Signal::Success(line) => {
                    self.is_leaving = false;
                    self.save_history();
                    return Ok(Entry::Entered(line));
                }
                Signal::CtrlD => return Ok(Entry::Quit),
                Signal::HostCommand(_) => {
                    // The editor leaves the cursor in the text, and shows all of it again.
                    write_line("\x1b[J")?;
                    suspend()?;
                }
                Signal::CtrlC if self.has_text.load(Ordering::Relaxed) => self.is_leaving = false,
                // Of two that arrive together, the editor reports only the first.
                Signal::CtrlC if self.is_leaving || self.interrupts.load(Ordering::Relaxed) > 1 => {
                    return Ok(Entry::Quit);
                }
                Signal::CtrlC => {
                    self.is_leaving = true;
                    write_line("Press Ctrl-C again to end the program.")?;
                }
                _ => {}
            }
        }
    }
}

/// Makes the history readable only by the user. If this fails, the history is not saved, or the folder's own
/// permissions apply.
fn make_private(file: &Path) {
    #[cfg(unix)]
    {
        use std::fs::{DirBuilder, OpenOptions};
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

        if let Some(folder) = file.parent() {
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
        // The editor would create it with the default mode.
        let _ = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// Completes commands, and the names of files behind `/attach`.
struct Names(DefaultCompleter);

impl Completer for Names {
    fn complete(&mut self, line: &str, position: usize) -> Vec<Suggestion> {
        let typed = line.get(..position).unwrap_or(line);
        let Some(files) = typed.strip_prefix("/attach ") else {
            return self.0.complete(line, position);
        };
        let (begin, names) = oa_files::complete(files, places::expanded);
        let span = Span::new(typed.len() - files.len() + begin, typed.len());
        // The menu would write the others to the terminal as they are.
        let is_shown = |name: &String| harmless(name) == *name && !name.contains(['\n', '\t']);
        let named = |value| Suggestion { value, span, ..Suggestion::default() };
        names.into_iter().filter(is_shown).map(named).collect()
    }
}

struct Sign;

impl Prompt for Sign {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(SIGN)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search {}: ", search.term))
    }

    fn get_prompt_color(&self) -> Color {
        Color::Reset
    }

    fn get_indicator_color(&self) -> Color {
        Color::Green
    }
}

/// Shows text unstyled and harmless, and records whether there is any.
struct AsItIs(Arc<AtomicBool>);

impl Highlighter for AsItIs {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        self.0.store(!line.is_empty(), Ordering::Relaxed);
        let mut text = StyledText::new();
        text.push((Default::default(), harmless(line)));
        text
    }
}

/// Replaces characters that a terminal acts on, which a paste may have. Each has as many bytes as its replacement,
/// because the editor splits the shown text where the cursor is in the entered text.
fn harmless(line: &str) -> String {
    let acts = |c: char| matches!(printable(c.encode_utf8(&mut [0; 4])), Cow::Owned(_));
    let shown = |c: char| match c.len_utf8() {
        _ if !acts(c) => c,
        1 => '?',
        2 => '¿',
        _ => char::REPLACEMENT_CHARACTER,
    };
    line.chars().map(shown).collect()
}

/// The default keys, with a record of the typed text: Ctrl-C clears the text before the editor reports it, and keys
/// that arrive together are not shown in between.
struct Watching {
    keys: Emacs,
    has_text: Arc<AtomicBool>,
    interrupts: Arc<AtomicUsize>,
    keyboard: Arc<Keyboard>,
}

impl EditMode for Watching {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        self.keyboard.report_waiting_keys();
        let event = self.keys.parse_event(event);
        if let ReedlineEvent::Edit(commands) = &event
            && commands.iter().any(|command| {
                matches!(command, EditCommand::InsertChar(_) | EditCommand::InsertString(_))
            })
        {
            self.has_text.store(true, Ordering::Relaxed);
        }
        if matches!(event, ReedlineEvent::CtrlC) {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
        }
        event
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.keys.edit_mode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_is_harmless_and_as_long() {
        for (line, wanted) in [
            ("one\n\ttwo 大 é", "one\n\ttwo 大 é"),
            ("a\x1b[2Jb\rc\x07\x7f", "a?[2Jb?c??"),
            ("a\u{9b}2J\u{85}", "a¿2J¿"),
            ("a\u{202e}b\u{2028}", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(harmless(line), wanted);
        }
        for c in ('\0'..=char::MAX).map(String::from) {
            assert_eq!(harmless(&c).len(), c.len(), "{c:?}");
        }
    }
}
