use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The sessions of a service, by id. The time is an argument.
#[derive(Debug)]
pub struct ClientSessions<T> {
    open: HashMap<String, Session<T>>,
    most: usize,
    idle: Duration,
}

#[derive(Debug)]
struct Session<T> {
    client: T,
    used: Instant,
}

/// The error that no session can be added because all are busy.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to say about it")]
pub struct Full;

impl<T: Clone> ClientSessions<T> {
    /// Creates room for `most` sessions, which end after being idle for this time.
    #[must_use]
    pub fn new(most: usize, idle: Duration) -> Self {
        Self { open: HashMap::new(), most, idle }
    }

    /// Returns the client of a session and marks the session as used.
    pub fn get(&mut self, id: &str, now: Instant, is_busy: impl Fn(&T) -> bool) -> Option<T> {
        self.expire(now, is_busy);
        let session = self.open.get_mut(id)?;
        session.used = now;
        Some(session.client.clone())
    }

    /// Marks a session as used, if it is open.
    pub fn touch(&mut self, id: &str, now: Instant) {
        if let Some(session) = self.open.get_mut(id) {
            session.used = now;
        }
    }

    /// Adds a session. If there is no room, the session that has been idle for longest ends.
    ///
    /// # Errors
    ///
    /// If all are busy.
    pub fn add(
        &mut self,
        id: String,
        client: T,
        now: Instant,
        is_busy: impl Fn(&T) -> bool,
    ) -> Result<(), Full> {
        self.expire(now, &is_busy);
        if self.open.len() >= self.most {
            let idle = self.open.iter().filter(|(_, session)| !is_busy(&session.client));
            let oldest = idle.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone());
            // Its client gets a 404 for the next request, and begins a new session.
            self.open.remove(&oldest.ok_or(Full)?);
        }
        self.open.insert(id, Session { client, used: now });
        Ok(())
    }

    /// Ends a session and returns its client.
    pub fn remove(&mut self, id: &str) -> Option<T> {
        self.open.remove(id).map(|session| session.client)
    }

    /// Returns the number of open sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns true if no session is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn expire(&mut self, now: Instant, is_busy: impl Fn(&T) -> bool) {
        // There is no timer: idle sessions end when the next request of any client arrives.
        self.open.retain(|_, session| {
            now.saturating_duration_since(session.used) < self.idle || is_busy(&session.client)
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    /// Clients are numbers; odd ones are busy.
    fn is_busy(client: &u32) -> bool {
        client % 2 == 1
    }

    #[test]
    fn idle_sessions_expire_unless_busy() {
        let start = Instant::now();
        let mut sessions = ClientSessions::new(3, IDLE);
        sessions.add("a".into(), 0, start, is_busy).unwrap();
        sessions.add("b".into(), 1, start, is_busy).unwrap();
        let half = start + IDLE / 2;
        assert_eq!(sessions.get("a", half, is_busy), Some(0));
        assert_eq!(sessions.get("a", half + IDLE - Duration::from_nanos(1), is_busy), Some(0));
        assert_eq!(sessions.get("a", half + 3 * IDLE, is_busy), None);
        assert_eq!(sessions.get("b", half + 3 * IDLE, is_busy), Some(1));
        assert_eq!(sessions.remove("b"), Some(1));
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn new_session_evicts_the_longest_idle() {
        let start = Instant::now();
        let second = |count: u64| start + Duration::from_secs(count);
        let mut sessions = ClientSessions::new(2, IDLE);
        sessions.add("a".into(), 0, start, is_busy).unwrap();
        sessions.add("b".into(), 2, second(1), is_busy).unwrap();
        sessions.touch("a", second(2));
        sessions.add("c".into(), 4, second(3), is_busy).unwrap();
        assert_eq!(sessions.get("b", second(3), is_busy), None);
        assert_eq!(sessions.get("a", second(3), is_busy), Some(0));
        let mut busy = ClientSessions::new(1, IDLE);
        busy.add("a".into(), 1, start, is_busy).unwrap();
        assert!(busy.add("b".into(), 0, start, is_busy).is_err());
    }

    proptest! {
        #[test]
        fn session_count_stays_within_the_limit(
            steps in proptest::collection::vec((0..8_u32, 0..8_u32, 0..40_u64), 0..100),
        ) {
            let mut now = Instant::now();
            let mut sessions = ClientSessions::new(4, IDLE);
            for (id, client, seconds) in steps {
                now += Duration::from_secs(seconds);
                let added = sessions.add(id.to_string(), client, now, is_busy);
                prop_assert!(sessions.len() <= 4);
                if added.is_ok() {
                    prop_assert_eq!(sessions.get(&id.to_string(), now, is_busy), Some(client));
                }
            }
        }
    }
}
