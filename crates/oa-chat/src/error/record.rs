//! Errors as data.

use std::time::Duration;

use http::StatusCode;
use oa_transport::TimeoutKind;
use oa_types::ErrorRecord;

use super::{Error, ErrorKind};

impl Error {
    /// Returns the error as data, for a journal or another process. The source is dropped, and a delay before a retry
    /// is rounded up to milliseconds. `Error::from` converts back.
    #[must_use]
    pub fn to_record(&self) -> ErrorRecord {
        let inner = &*self.0;
        let mut record = ErrorRecord::new(inner.kind.as_str(), &*inner.message);
        (record.status, record.reported_status) = (self.status(), inner.reported_status);
        (record.code, record.request_id) = (inner.code.clone(), inner.request_id.clone());
        // Round up, because a retry must not come too early.
        let milliseconds = |wait: Duration| wait.as_nanos().div_ceil(1_000_000);
        let milliseconds = inner.retry_after.map(milliseconds);
        record.retry_after_ms = milliseconds.map(|wait| u64::try_from(wait).unwrap_or(u64::MAX));
        record.is_retryable = inner.retryable;
        record.timeout = inner.timeout.map(|kind| kind.as_str().to_owned());
        record.prompt_tokens = inner.context_sizes.map(|(prompt, _)| prompt);
        record.context_tokens = inner.context_size;
        record.received_bytes = inner.received;
        record.model_output.clone_from(&inner.model_output);
        record
    }
}

/// Converts a record back to an error. Its methods return what those of the original did, but there is no source.
///
/// A kind unknown to this version becomes `Api` if there is a status, otherwise `Stream`. An unknown timeout and an
/// invalid status are dropped. Nothing in the message is masked.
impl From<ErrorRecord> for Error {
    fn from(record: ErrorRecord) -> Self {
        let status = record.status.and_then(|status| StatusCode::from_u16(status).ok());
        let kind = record.kind.parse().ok();
        let unknown = if status.is_some() { ErrorKind::Api } else { ErrorKind::Stream };
        let mut error = Self::new(kind.unwrap_or(unknown), record.message);
        let inner = &mut *error.0;
        (inner.status, inner.code, inner.request_id) = (status, record.code, record.request_id);
        inner.reported_status = record.reported_status;
        inner.retry_after = record.retry_after_ms.map(Duration::from_millis);
        inner.retryable = record.is_retryable;
        let timeout = record.timeout.as_deref();
        inner.timeout = TIMEOUTS.into_iter().find(|kind| timeout == Some(kind.as_str()));
        inner.context_sizes = record.prompt_tokens.zip(record.context_tokens);
        inner.context_size = record.context_tokens;
        (inner.received, inner.model_output) = (record.received_bytes, record.model_output);
        error
    }
}

const TIMEOUTS: [TimeoutKind; 6] = {
    use TimeoutKind as T;
    [T::Connect, T::Content, T::End, T::FirstToken, T::Idle, T::Total]
};
