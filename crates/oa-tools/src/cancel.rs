use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// A cancellation signal. Once triggered, it stays triggered.
///
/// Clones share one signal. A [`child`](Self::child) is canceled with its parent, and can be canceled alone.
/// Needs no runtime: `cancel` wakes the waiting tasks directly.
///
/// ```
/// use oa_tools::Cancel;
///
/// let run = Cancel::new();
/// let call = run.child();
/// run.cancel();
/// assert!(call.is_cancelled());
/// ```
#[derive(Clone)]
pub struct Cancel(Arc<Node>);

struct Node {
    is_cancelled: AtomicBool,
    listeners: Mutex<Listeners>,
    /// The parent, and this node's key in its `children`.
    parent: Option<(Arc<Self>, u64)>,
}

#[derive(Default)]
struct Listeners {
    next_key: u64,
    /// Sorted by key; usually just one.
    wakers: Vec<(u64, Waker)>,
    children: BTreeMap<u64, Weak<Node>>,
}

impl Cancel {
    /// Creates a signal that is not triggered.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Node::new(None, false)))
    }

    /// Creates a signal that is also triggered by this one.
    #[must_use]
    pub fn child(&self) -> Self {
        let mut listeners = self.0.lock();
        // Under the lock, where `cancel` sets the flag: a child is triggered by `cancel` or here.
        if self.is_cancelled() {
            return Self(Arc::new(Node::new(None, true)));
        }
        let key = listeners.key();
        let child = Arc::new(Node::new(Some((Arc::clone(&self.0), key)), false));
        listeners.children.insert(key, Arc::downgrade(&child));
        Self(child)
    }

    /// Triggers the signal and all its children. Repeated calls have no effect.
    pub fn cancel(&self) {
        // A list rather than recursion, because chains of children may be long. One lock is held at a time.
        let mut open = vec![Arc::clone(&self.0)];
        while let Some(node) = open.pop() {
            // Wakers may run and drop arbitrary code, so never call them under the lock.
            let listeners = {
                let mut listeners = node.lock();
                // This also resets `next_key`. No key is given twice: nobody registers once the flag is set.
                node.is_cancelled.store(true, Ordering::Release);
                mem::take(&mut *listeners)
            };
            open.extend(listeners.children.values().filter_map(Weak::upgrade));
            listeners.wakers.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }

    /// Returns true if the signal was triggered.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Waits for the signal; ready immediately if it was triggered.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing and unregisters its waker.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { node: Arc::clone(&self.0), key: None }
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

/// A future that resolves when a [`Cancel`] is triggered.
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    node: Arc<Node>,
    /// The key of the registered waker, once polled.
    key: Option<u64>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.node.is_cancelled.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        // Cloned before and dropped after the lock, like every waker here: both may run foreign code.
        let waker = cx.waker().clone();
        let this = &mut *self;
        let mut listeners = this.node.lock();
        // Checked again under the lock, where `cancel` sets the flag: a `cancel` not seen here will find the
        // waker.
        if this.node.is_cancelled.load(Ordering::Acquire) {
            drop(listeners);
            return Poll::Ready(());
        }
        let key = *this.key.get_or_insert_with(|| listeners.key());
        let replaced = match listeners.place(key) {
            Ok(place) => Some(mem::replace(&mut listeners.wakers[place].1, waker)),
            Err(place) => {
                listeners.wakers.insert(place, (key, waker));
                None
            }
        };
        drop(listeners);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let mut listeners = self.node.lock();
            let waker = listeners.place(key).map(|place| listeners.wakers.remove(place));
            drop(listeners);
            drop(waker);
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").finish_non_exhaustive()
    }
}

impl Node {
    fn new(parent: Option<(Arc<Self>, u64)>, is_cancelled: bool) -> Self {
        Self { is_cancelled: is_cancelled.into(), listeners: Mutex::default(), parent }
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listeners {
    fn key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }

    /// Returns the index of this key's waker, or the index at which to insert it.
    fn place(&self, key: u64) -> Result<usize, usize> {
        self.wakers.binary_search_by_key(&key, |(key, _)| *key)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A loop rather than recursion: dropping the last child may free a long chain of parents.
        let mut parent = self.parent.take();
        while let Some((node, key)) = parent {
            node.lock().children.remove(&key);
            // If several threads drop the last children at once, exactly one gets the parent.
            parent = Arc::into_inner(node).and_then(|mut node| node.parent.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_waiters_and_children_unregister() {
        let cancel = Cancel::new();
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            let child = cancel.child();
            let mut waiting = cancel.cancelled();
            for _ in 0..3 {
                assert!(Pin::new(&mut waiting).poll(&mut cx).is_pending());
            }
            assert_eq!(cancel.0.lock().wakers.len(), 1);
            assert_eq!(cancel.0.lock().children.len(), 1);
            drop((child, waiting));
        }
        assert!(cancel.0.lock().wakers.is_empty());
        assert!(cancel.0.lock().children.is_empty());
    }

    /// Both canceling and dropping.
    #[test]
    fn deep_chains_do_not_overflow_the_stack() {
        let first = Cancel::new();
        let mut last = first.child();
        for _ in 0..100_000 {
            last = last.child();
        }
        first.cancel();
        assert!(last.is_cancelled());
        drop(first);
        drop(last);
    }
}
