/// The policy for choosing a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// The first healthy server with room, in the order in which they were added; the others are fallbacks. A
    /// conversation that moved returns when it can, unless [`sticky`](crate::RouterBuilder::sticky) is set.
    #[default]
    Failover,
    /// Of two random healthy servers with room, the one with fewer answers in progress, relative to its cap if
    /// every server has one. A conversation stays with the server that last answered it.
    LeastBusy,
}
