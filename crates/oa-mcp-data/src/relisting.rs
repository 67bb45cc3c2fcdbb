use std::time::Duration;

/// The pause after the last notice of a change.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(10);
/// The longest wait after the first notice, in pauses.
const PAUSES: u32 = 20;

/// The rules by which a list is read again after the server has announced that it changed.
///
/// The list is read after a pause, because changes come in bursts, and also if the server never pauses. If the list is
/// the same again and again, the pauses grow: some servers announce a change whenever the list is read.
///
/// ```
/// use std::time::Duration;
///
/// use oa_mcp_data::Relisting;
///
/// let mut relisting = Relisting::default();
/// assert_eq!(relisting.pause(), Duration::from_millis(250));
/// assert_eq!(relisting.longest(), Duration::from_secs(5));
/// relisting.read(true);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Relisting {
    /// The number of consecutive lists that were the same.
    same: u32,
}

impl Relisting {
    /// Returns the time without a notice after which the list is read.
    #[must_use]
    pub fn pause(&self) -> Duration {
        // The list that is read after a connection is usually the same, which says nothing about the server.
        let doubled = self.same.saturating_sub(1);
        PAUSE.saturating_mul(2_u32.saturating_pow(doubled)).min(LONGEST)
    }

    /// Returns the time after the first notice at which the list is read even if there are still notices.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.pause() * PAUSES
    }

    /// Records that the list was read, and whether it had changed.
    pub fn read(&mut self, has_changed: bool) {
        self.same = if has_changed { 0 } else { self.same.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_of_nothing_are_read_more_rarely() {
        let mut relisting = Relisting::default();
        let mut read = |has_changed| {
            relisting.read(has_changed);
            relisting.pause().as_millis()
        };
        assert_eq!([read(false), read(true), read(false)], [250; 3]);
        for millis in [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
            assert_eq!(read(false), millis);
        }
        for _ in 0..40 {
            assert_eq!(read(false), 10_000);
        }
        assert_eq!(read(true), 250);
    }
}
