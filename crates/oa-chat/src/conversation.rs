use std::fmt;

use bytes::Bytes;
use oa_types::History;

use crate::any_chat::AnyChat;
use crate::prepared::PreparedOptions;
use crate::request::{ChatRequest, Written};
use crate::retry_config::random;
use crate::transcript::Transcript;
use crate::wire_format::WireFormat;

/// Makes the requests of one conversation, serializing each message only once.
///
/// Messages are serialized for the first server; if a service such as a router chooses the server, for one
/// without quirks. For a server that needs another format they are serialized again.
pub struct Conversation {
    id: u64,
    requests: u64,
    transcript: Transcript,
}

impl Conversation {
    /// Creates a conversation with a new number.
    #[must_use]
    pub fn new() -> Self {
        Self::with_id(random())
    }

    /// Creates a conversation with a number of your choice, so that its requests can be reproduced exactly.
    #[must_use]
    pub fn with_id(id: u64) -> Self {
        Self { id, requests: 0, transcript: Transcript::new(WireFormat::default()) }
    }

    /// Returns the number of the conversation.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Makes the next request from a valid history; also returns the size of its messages, in bytes.
    ///
    /// `revisions` has a number for each message: equal revisions mean equal messages.
    pub fn request(
        &mut self,
        options: &PreparedOptions,
        service: &AnyChat,
        history: &History,
        revisions: &[u64],
    ) -> (ChatRequest, usize) {
        self.requests = self.requests.wrapping_add(1);
        // Made-up call ids differ from answer to answer.
        let request = ChatRequest::of(options.clone(), history.clone(), self.id)
            .with_id_seed(self.id.wrapping_add(self.requests));
        let format = service.endpoint().map_or_else(WireFormat::default, |endpoint| {
            options.wire_format(&endpoint.0, options.first_way(&endpoint.0), true)
        });
        if format != *self.transcript.format() {
            self.transcript = Transcript::new(format.clone());
        }
        self.transcript.follow(history, revisions);
        let (segments, last) = self.transcript.bytes();
        let instructions = format.instructions(history).map_or(0, |text| text.len());
        let bytes = segments.iter().map(Bytes::len).sum::<usize>() + last.len() + instructions;
        (request.with_written(Written { format, segments, last }), bytes)
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("id", &self.id).finish_non_exhaustive()
    }
}
