use std::time::Duration;

/// The pause after the first breaks.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause. A stream that was open for as long counts as whole.
const LONGEST: Duration = Duration::from_secs(30);
/// The number of breaks in a row from which the server may be away for long.
const BREAKS: u32 = 3;

/// The rules by which a broken stream of notifications is opened again.
///
/// ```
/// use std::time::Duration;
///
/// use oa_mcp_data::Reopening;
///
/// let mut reopening = Reopening::default();
/// assert_eq!(reopening.pause(Duration::from_secs(60)), Duration::from_millis(500));
/// assert!(!reopening.needs_answer());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reopening {
    /// The number of breaks in a row.
    breaks: u32,
}

impl Reopening {
    /// Returns the pause after a break of a stream that was open for this long.
    pub fn pause(&mut self, open: Duration) -> Duration {
        // Many proxies cut a stream that is silent for a minute, again and again.
        if open >= LONGEST {
            self.breaks = 0;
        }
        self.breaks = self.breaks.saturating_add(1);
        let doubled = self.breaks.saturating_sub(BREAKS - 1);
        PAUSE.saturating_mul(2_u32.saturating_pow(doubled)).min(LONGEST)
    }

    /// Returns true if the stream is opened again only after the server has answered a request.
    #[must_use]
    pub fn needs_answer(&self) -> bool {
        self.breaks >= BREAKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_stream_lasts() {
        let mut reopening = Reopening::default();
        let mut pause = |open: u64| {
            let pause = reopening.pause(Duration::from_secs(open));
            (pause.as_millis(), reopening.needs_answer())
        };
        assert_eq!([pause(0), pause(29)], [(500, false); 2]);
        for millis in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            assert_eq!(pause(5), (millis, true));
        }
        for _ in 0..40 {
            assert_eq!(pause(5), (30_000, true));
        }
        for _ in 0..10 {
            assert_eq!(
                pause(30),
                (500, false),
                "a stream that lasts may break as often as it likes"
            );
        }
        assert_eq!([pause(0), pause(0)], [(500, false), (1_000, true)]);
    }
}
