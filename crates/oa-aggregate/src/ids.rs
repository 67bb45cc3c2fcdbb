/// A generator of ids for calls without one: nine letters and digits, the only form that every server accepts (QUIRKS
/// rows 12 and 91).
#[derive(Clone, Debug)]
pub struct MadeUpIds {
    state: u64,
    taken: Vec<String>,
}

impl MadeUpIds {
    /// Creates a generator. The same seed gives the same ids, none of which is in `taken`.
    #[must_use]
    pub fn new(seed: u64, taken: Vec<String>) -> Self {
        Self { state: seed, taken }
    }

    /// Returns the next id.
    pub fn next_id(&mut self) -> String {
        const ALPHABET: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        loop {
            let mut number = self.next_number();
            let id: String = (0..9)
                .map(|_| {
                    let letter = ALPHABET[(number % 62) as usize];
                    number /= 62;
                    char::from(letter)
                })
                .collect();
            if !self.taken.contains(&id) {
                self.taken.push(id.clone());
                return id;
            }
        }
    }

    /// SplitMix64: every state gives a different number, so the loop above ends.
    fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// One id after the other, without end.
impl Iterator for MadeUpIds {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        Some(self.next_id())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_one_by_one_and_in_a_row() {
        let mut ids = MadeUpIds::new(7, Vec::new());
        let first = [ids.next_id(), ids.next_id()];
        assert!(MadeUpIds::new(7, Vec::new()).take(2).eq(first.clone()));
        assert!(MadeUpIds::new(7, first.to_vec()).take(2).all(|id| !first.contains(&id)));
    }
}
