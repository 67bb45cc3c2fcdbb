use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The window in which restarts are counted.
const WITHIN: Duration = Duration::from_secs(300);
/// The longest wait before a restart.
const LONGEST: Duration = Duration::from_secs(60);

/// The rules by which a server that has died is started again.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use oa_mcp_data::Restarts;
///
/// let (mut restarts, now, second) = (Restarts::default(), Instant::now(), Duration::from_secs(1));
/// assert_eq!(restarts.begin(now, 2, second), Ok(second));
/// assert_eq!(restarts.begin(now, 2, second), Ok(2 * second));
/// assert_eq!(restarts.begin(now, 2, second), Err(2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// Counts a restart that begins now, and returns the wait before it: `delay`, doubled for each other restart within
    /// five minutes, up to a minute.
    ///
    /// # Errors
    ///
    /// The number of restarts within five minutes, if there were already `most`.
    pub fn begin(&mut self, now: Instant, most: usize, delay: Duration) -> Result<Duration, usize> {
        self.0.retain(|at| now.saturating_duration_since(*at) < WITHIN);
        let count = self.0.len();
        if count >= most {
            return Err(count);
        }
        self.0.push_back(now);
        let factor = 1_u32.checked_shl(count as u32).unwrap_or(u32::MAX);
        Ok(delay.saturating_mul(factor).min(LONGEST))
    }

    /// Does not count the last restart after all.
    pub fn forgive(&mut self) {
        self.0.pop_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_restarts_are_old() {
        let (mut restarts, start) = (Restarts::default(), Instant::now());
        let second = Duration::from_secs(1);
        let mut at = |after: u64| restarts.begin(start + Duration::from_secs(after), 8, second);
        let waits: Vec<_> = (0..8).map(|_| at(0).unwrap().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((at(0), at(299)), (Err(8), Err(8)));
        assert_eq!(at(300), Ok(second));
        let endless = |restarts: &mut Restarts| restarts.begin(start, usize::MAX, Duration::MAX);
        for _ in 0..100 {
            assert_eq!(endless(&mut restarts), Ok(LONGEST));
        }
    }

    #[test]
    fn forgiven_restarts_do_not_count() {
        let (mut restarts, now) = (Restarts::default(), Instant::now());
        for _ in 0..9 {
            assert_eq!(restarts.begin(now, 1, LONGEST), Ok(LONGEST));
            restarts.forgive();
        }
    }
}
