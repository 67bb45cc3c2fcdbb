use std::fmt;

/// A function that receives warnings.
pub(crate) type WarningSink = dyn Fn(&WorkerWarning) + Send + Sync;

/// A warning for the operator of a worker.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum WorkerWarning {
    /// The worker continues a turn that another version began, one with different limits, tools or hooks. If the turn
    /// would now take different steps, the engine reports error 570 until the version that began it is back at this
    /// address.
    OtherVersion {
        /// The session.
        session: String,
        /// The number of the turn.
        turn: u64,
        /// The [digest](crate::AgentWorker::digest) of the worker that began the turn.
        begun_by: String,
        /// The digest of this worker.
        digest: String,
    },
}

impl fmt::Display for WorkerWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherVersion { session, turn, begun_by, digest } => write!(
                f,
                "turn {turn} of the session {session:?} was begun by a worker with the digest {begun_by}, but this one \
                 has {digest}: if the engine reports the error 570, start the old version at this address again"
            ),
        }
    }
}
