/// Who is asked first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// The first server that is healthy and has room, in the order in which they were named: the others
    /// are for when it cannot answer. A conversation is not kept where it moved to unless
    /// [`sticky`](crate::RouterBuilder::sticky) says so.
    #[default]
    Failover,
    /// Of two that are drawn among those that are healthy and have room, the one with fewer answers in
    /// progress, as a share of its cap if every server has one. A conversation stays with the server that
    /// answered it last.
    LeastBusy,
}
