//! A run: a task that drives a conversation's agent through one turn and tells its viewers.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use oa_session::{Error, Follow, FollowProgress, SavedSession};
use oa_types::Message;
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::sleep;

use crate::conversation::{Run, Seat};
use crate::log::{ConversationEvent, RunEvent, RunState};

/// The first step of a run.
#[derive(Debug)]
pub(crate) enum Start {
    /// With the history as it is: all calls have their answers.
    Continue,
    Prompt(Message),
}

/// The state of the server: open to new runs, or closing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    Open,
    /// Runs may end, within the limit.
    Closing(Duration),
}

/// Drives a turn to its end, or until it is stopped, has no readers for the time `unread`, or the server closes.
pub(crate) async fn drive(
    run: Run,
    mut seat: OwnedMutexGuard<Seat>,
    start: Start,
    unread: Duration,
    mut phase: watch::Receiver<Phase>,
) {
    let interrupt = seat.client.interrupt_handle();
    let mut stop = run.stop.clone();
    let (event, is_stored) = {
        let mut turn = pin!(turn(&run, &mut seat, start));
        let mut stopped = pin!(async {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => {}
                () = run.conversation.unread_for(unread) => {}
                () = closed(&mut phase) => {}
            }
        });
        let mut is_stopped = false;
        poll_fn(|cx| {
            let polled = turn.as_mut().poll(cx);
            if polled.is_pending() {
                is_stopped = is_stopped || stopped.as_mut().poll(cx).is_ready();
                if is_stopped {
                    // An interrupt before the turn has begun does nothing, so each poll repeats it.
                    interrupt.interrupt();
                }
            }
            polled
        })
        .await
    };
    // Whoever reads that the run has ended may begin the next one at once.
    drop(seat);
    run.end(event, is_stored);
}

/// Waits until runs must end because the server shuts down.
async fn closed(phase: &mut watch::Receiver<Phase>) {
    let closing =
        phase.wait_for(|phase| matches!(phase, Phase::Closing(_))).await.map(|phase| *phase);
    if let Ok(Phase::Closing(limit)) = closing {
        sleep(limit).await;
    }
}

/// Carries out a turn, and returns its end and whether all of it is stored.
async fn turn(run: &Run, seat: &mut Seat, start: Start) -> (RunEvent, bool) {
    let Seat { client, saved } = seat;
    let mut saving = Saving { run, saved: saved.as_mut(), error: None };
    let began = match start {
        Start::Continue => client.continue_turn().await,
        Start::Prompt(prompt) => client.send_message(prompt).await,
    };
    let outcome = match began {
        Ok(()) => {
            // The prompt is worth saving, too.
            saving.save(client.history()).await;
            loop {
                match poll_fn(|cx| client.poll_progress(cx)).await {
                    Ok(FollowProgress::Checkpoint) => saving.save(client.history()).await,
                    Ok(FollowProgress::Event(event)) => {
                        run.publish(ConversationEvent::Agent(event));
                    }
                    Ok(FollowProgress::Over) => break Ok(()),
                    Err(error) => break Err(error),
                }
            }
        }
        Err(error) => Err(error),
    };
    // A failure may have taken the prompt back.
    saving.save(client.history()).await;
    let is_stored = saving.error.is_none();
    let unsaved = saving.error.map(|error| format!("the conversation could not be saved: {error}"));
    let mut event = RunEvent { waiting: seat.waiting(), ..RunEvent::default() };
    match outcome {
        Ok(()) => {
            event.state = RunState::Ended;
            event.error = unsaved;
            event.finish_reason =
                seat.client.finish_reason().map(|reason| reason.as_str().to_owned());
            event.usage = seat.client.usage();
        }
        Err(error) => {
            event.state = RunState::Failed;
            event.error = Some(error.to_string());
        }
    }
    (event, is_stored)
}

/// Saves the history of a run.
struct Saving<'a> {
    run: &'a Run,
    saved: Option<&'a mut SavedSession>,
    /// The error of the last attempt. The run goes on, and the next attempt saves everything.
    error: Option<Error>,
}

impl Saving<'_> {
    async fn save(&mut self, history: &[Message]) {
        if let Some(saved) = &mut self.saved {
            let _saving = self.run.conversation.saving.write().await;
            self.error = saved.save_waiting_now(history).await.err();
            if self.error.is_none() {
                self.run.is_stored();
            }
        }
    }
}
