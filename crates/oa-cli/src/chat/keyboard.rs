//! The mode of the terminal while the program uses it.

#[cfg(unix)]
use std::future::poll_fn;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::sync::{Mutex, PoisonError};
#[cfg(unix)]
use std::task::Poll;

#[cfg(unix)]
use tokio::signal::unix::SignalKind;

use crossterm::{cursor, event, execute, terminal};

use crate::failure::Result;

/// The terminal, in a mode in which typed keys are neither changed nor echoed until they are read.
///
/// The line editor and a turn each enable raw mode. Between them, a terminal would turn Enter into a line feed, echo
/// typed keys, and turn Ctrl-C into a signal that ends the program. The terminal is restored by
/// [`give_back`](Self::give_back), and on drop.
#[derive(Debug)]
pub(super) struct Keyboard {
    #[cfg(unix)]
    before: rustix::termios::Termios,
    #[cfg(unix)]
    during: rustix::termios::Termios,
    /// False while the terminal is given back.
    #[cfg(unix)]
    is_taken: AtomicBool,
    /// Held while a mode is set that was read before.
    #[cfg(unix)]
    changes: Mutex<()>,
}

/// The longest wait until a suspended program has stopped, and the time between two looks at a shell that has it run in the
/// background. Without a shell that could continue it, the program does not stop.
#[cfg(unix)]
const STOPS: std::time::Duration = std::time::Duration::from_millis(500);

/// The time between two looks at whether the terminal is still there.
#[cfg(unix)]
const GONE: std::time::Duration = std::time::Duration::from_secs(2);

impl Keyboard {
    /// Takes the terminal at standard input.
    pub(super) fn take() -> Result<Self> {
        #[cfg(unix)]
        {
            use rustix::termios::{
                InputModes, LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr,
            };

            let io = |error: rustix::io::Errno| std::io::Error::from(error);
            let before = tcgetattr(std::io::stdin()).map_err(io)?;
            let mut during = before.clone();
            // Without `ICRNL`, Enter stays a carriage return: a line feed is Ctrl-J, which begins a new line.
            // Without `IXON`, Ctrl-S does not freeze the screen.
            during.input_modes &=
                !(InputModes::ICRNL | InputModes::IGNCR | InputModes::INLCR | InputModes::IXON);
            during.local_modes &=
                !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG);
            // A read returns with the first byte, and waits for it without a limit.
            during.special_codes[SpecialCodeIndex::VMIN] = 1;
            during.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(std::io::stdin(), OptionalActions::Now, &during).map_err(io)?;
            let (is_taken, changes) = (AtomicBool::new(true), Mutex::new(()));
            Ok(Self { before, during, is_taken, changes })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Suspends the program, with the terminal in its original mode, until a shell continues it. Raw mode must have ended.
    #[cfg(unix)]
    pub(super) async fn suspend(&self) -> Result<()> {
        use rustix::process::{Signal, kill_current_process_group};
        use rustix::termios::{OptionalActions, tcsetattr};
        use tokio::signal::unix::{SignalKind, signal};
        use tokio::time::timeout;

        let io = |error: rustix::io::Errno| std::io::Error::from(error);
        let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        self.give_back();
        // The whole job, as a terminal does: a shell waits for a script that runs the program.
        kill_current_process_group(Signal::TSTP).map_err(io)?;
        loop {
            // Another thread may have taken the signal.
            let _ = timeout(STOPS, continued.recv()).await;
            // After `bg`, it does not learn of `fg`.
            if is_in_foreground() {
                break;
            }
        }
        tcsetattr(std::io::stdin(), OptionalActions::Now, &self.during).map_err(io)?;
        self.is_taken.store(true, Ordering::Release);
        Ok(())
    }

    /// Sets the mode again that the terminal has while the program uses it: a shell that continues the program after
    /// another one has stopped it does not know that mode.
    #[cfg(unix)]
    fn take_again(&self) {
        use rustix::termios::{OptionalActions, tcsetattr};

        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_raw = || terminal::is_raw_mode_enabled().unwrap_or(false);
        while self.is_taken.load(Ordering::Acquire) && is_in_foreground() {
            let was_raw = is_raw();
            let mut mode = self.during.clone();
            if was_raw {
                mode.make_raw();
            }
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &mode);
            // Otherwise, another thread has begun or ended raw mode meanwhile.
            if is_raw() == was_raw {
                break;
            }
        }
    }

    /// Has the reader of keys look again if keys are waiting. It takes at most 1,024 bytes at once, and then waits for the
    /// terminal to report new ones: the rest of a long text that arrived at once, such as a paste that is not bracketed,
    /// would wait for the next key.
    ///
    /// Only the thread that begins and ends raw mode may call this.
    #[cfg(unix)]
    pub(super) fn report_waiting_keys(&self) {
        use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

        let waiting = rustix::io::ioctl_fionread(std::io::stdin()).unwrap_or_default();
        if waiting == 0 || !is_in_foreground() {
            return;
        }
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        // Linux reports waiting keys when a mode is set, even the same one.
        if self.is_taken.load(Ordering::Acquire)
            && let Ok(mode) = tcgetattr(std::io::stdin())
        {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &mode);
        }
    }

    /// Does nothing: each key is an event of its own.
    #[cfg(not(unix))]
    pub(super) fn report_waiting_keys(&self) {}

    /// Does nothing, because there is no shell that could continue the program.
    #[cfg(not(unix))]
    pub(super) async fn suspend(&self) -> Result<()> {
        Ok(())
    }

    /// Restores the terminal's original mode. If that fails, the terminal is gone.
    pub(super) fn give_back(&self) {
        let _ = execute!(std::io::stdout(), event::DisableBracketedPaste, cursor::Show);
        #[cfg(unix)]
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = terminal::disable_raw_mode();
        #[cfg(unix)]
        {
            use rustix::termios::{OptionalActions, tcsetattr};

            self.is_taken.store(false, Ordering::Release);
            // Otherwise it has that mode already.
            if is_in_foreground() {
                let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
            }
        }
    }
}

/// Returns false if the terminal is the shell's or that of another job. A change of its mode would suspend the program, even
/// one that a signal is about to end.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    let foreground = rustix::termios::tcgetpgrp(std::io::stdin());
    foreground.map_or(true, |group| group == rustix::process::getpgrp())
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Raw mode with bracketed paste: keys arrive one by one, and pasted text in one piece, until this is dropped.
#[derive(Debug)]
pub(super) struct RawMode(());

impl RawMode {
    pub(super) fn enter() -> Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self(());
        execute!(std::io::stdout(), event::EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // If that fails, the terminal is gone.
        let _ = execute!(std::io::stdout(), event::DisableBracketedPaste, cursor::Show);
        let _ = terminal::disable_raw_mode();
    }
}

/// Waits until nothing can be read from the terminal any more. A program of which it is not the controlling terminal, as
/// after `setsid`, gets no signal, and the reader of keys would try again without end.
#[cfg(unix)]
async fn terminal_is_gone() {
    let mode = || rustix::termios::tcgetattr(std::io::stdin());
    while mode().err() != Some(rustix::io::Errno::IO) {
        tokio::time::sleep(GONE).await;
    }
}

/// Registers handlers for the signals that end the program. The returned future waits for one, restores the terminal,
/// and exits. Until then, it keeps the mode of the terminal when the program is stopped and continued.
///
/// The handlers are registered here and not in the future, because a busy machine may poll it for the first time long
/// after the terminal was put into raw mode.
pub(super) fn restore_at_termination(
    keyboard: std::sync::Arc<Keyboard>,
) -> Result<impl Future<Output = ()> + Send + 'static> {
    #[cfg(unix)]
    let (mut continued, mut signals) = {
        use rustix::process::Signal;
        use tokio::signal::unix::signal;

        // In raw mode, keys send none of them, but other programs do.
        let interrupts = [SignalKind::interrupt(), SignalKind::quit()];
        let ends = [SignalKind::terminate(), SignalKind::hangup()];
        let kinds = ends.into_iter().chain(interrupts);
        let signals = kinds.map(|kind| Ok((kind, signal(kind)?))).collect::<Result<Vec<_>>>()?;
        (signal(SignalKind::from_raw(Signal::CONT.as_raw()))?, signals)
    };
    Ok(async move {
        #[cfg(unix)]
        {
            let ended = poll_fn(|cx| {
                while let Poll::Ready(Some(())) = continued.poll_recv(cx) {
                    keyboard.take_again();
                }
                let ended = signals
                    .iter_mut()
                    .find_map(|(kind, signal)| signal.poll_recv(cx).is_ready().then_some(*kind));
                ended.map_or(Poll::Pending, Poll::Ready)
            });
            let kind = tokio::select! {
                kind = ended => kind,
                () = terminal_is_gone() => SignalKind::hangup(),
            };
            // While this lock is held, no other thread draws.
            let _still = std::io::stdout().lock();
            keyboard.give_back();
            std::process::exit(128 + kind.as_raw_value());
        }
        #[cfg(not(unix))]
        drop(keyboard);
    })
}
