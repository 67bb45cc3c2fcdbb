use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Decides which call may start next, from order, limits, barriers and dependencies. Does no work itself.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The calls, sorted so that each follows its dependencies; otherwise in the given order.
    order: Vec<usize>,
    /// The dependencies of each call.
    after: Vec<Vec<usize>>,
    is_barrier: Vec<bool>,
    phase: Vec<Phase>,
    most: usize,
    running: usize,
    /// For each call, the index of the cap that it shares with others, if any.
    shares: Vec<Option<usize>>,
    caps: Vec<Cap>,
    /// All calls before this index in `order` have ended.
    head: usize,
}

/// The limit on parallel calls of one tool, and how many are running.
#[derive(Debug)]
struct Cap {
    most: usize,
    running: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Ended,
    Running,
    Waiting,
}

impl Schedule {
    /// Creates a schedule from the barrier flags and the dependencies of all calls, which must be acyclic.
    pub(crate) fn new(is_barrier: Vec<bool>, after: Vec<Vec<usize>>, most: Option<usize>) -> Self {
        let count = after.len();
        Self {
            order: order(&after),
            phase: vec![Phase::Waiting; count],
            after,
            is_barrier,
            most: most.unwrap_or(usize::MAX),
            running: 0,
            shares: vec![None; count],
            caps: Vec::new(),
            head: 0,
        }
    }

    /// Limits these calls to `most` running at once, but at least one. A call has at most one cap.
    pub(crate) fn cap(&mut self, calls: impl IntoIterator<Item = usize>, most: usize) {
        for call in calls {
            self.shares[call] = Some(self.caps.len());
        }
        self.caps.push(Cap { most: most.max(1), running: 0 });
    }

    /// Starts and returns the next call that may start.
    ///
    /// A barrier starts when everything before it in the order has ended, and nothing after it starts before it
    /// ends. A call whose cap is reached is skipped and keeps its position.
    pub(crate) fn begin_next(&mut self) -> Option<usize> {
        if self.running >= self.most {
            return None;
        }
        // True as long as all calls before this one have ended. `head` skips most of those, but ended calls
        // may also stand behind a running one.
        let mut is_first = true;
        for at in self.head..self.order.len() {
            let call = self.order[at];
            match (self.phase[call], self.is_barrier[call]) {
                (Phase::Ended, _) => continue,
                // Barriers are judged by `order`, not by call order. A call that depends on a later one
                // stands behind it there, so a barrier between the two cannot make them wait for each other.
                (Phase::Running, true) => return None,
                (Phase::Waiting, true) if !is_first => return None,
                (Phase::Waiting, _) if self.has_waited(call) && self.has_room(call) => {
                    self.begin(call);
                    return Some(call);
                }
                (Phase::Running | Phase::Waiting, _) => is_first = false,
            }
        }
        None
    }

    /// Marks a call as started, regardless of limits.
    pub(crate) fn begin(&mut self, call: usize) {
        self.phase[call] = Phase::Running;
        self.running += 1;
        if let Some(cap) = self.shares[call] {
            self.caps[cap].running += 1;
        }
    }

    /// Marks a started call as ended.
    pub(crate) fn end(&mut self, call: usize) {
        self.phase[call] = Phase::Ended;
        self.running -= 1;
        if let Some(cap) = self.shares[call] {
            self.caps[cap].running -= 1;
        }
        while self.order.get(self.head).is_some_and(|call| self.phase[*call] == Phase::Ended) {
            self.head += 1;
        }
    }

    pub(crate) fn has_begun(&self, call: usize) -> bool {
        self.phase[call] != Phase::Waiting
    }

    pub(crate) fn has_ended(&self, call: usize) -> bool {
        self.phase[call] == Phase::Ended
    }

    pub(crate) fn running(&self) -> usize {
        self.running
    }

    pub(crate) fn is_over(&self) -> bool {
        self.head == self.order.len()
    }

    fn has_room(&self, call: usize) -> bool {
        self.shares[call].map(|cap| &self.caps[cap]).is_none_or(|cap| cap.running < cap.most)
    }

    fn has_waited(&self, call: usize) -> bool {
        self.after[call].iter().all(|other| self.has_ended(*other))
    }
}

/// Sorts topologically; among calls that are ready, the lowest index comes first.
fn order(after: &[Vec<usize>]) -> Vec<usize> {
    let mut open: Vec<usize> = after.iter().map(Vec::len).collect();
    let mut before = vec![Vec::new(); after.len()];
    for (call, others) in after.iter().enumerate() {
        others.iter().for_each(|other| before[*other].push(call));
    }
    let is_free = |call: &usize| open[*call] == 0;
    // Kahn's algorithm, with a heap so that ties keep the order in which the model made the calls.
    let mut free: BinaryHeap<_> = (0..after.len()).filter(is_free).map(Reverse).collect();
    let mut order = Vec::with_capacity(after.len());
    while let Some(Reverse(call)) = free.pop() {
        order.push(call);
        for next in &before[call] {
            open[*next] -= 1;
            if open[*next] == 0 {
                free.push(Reverse(*next));
            }
        }
    }
    debug_assert_eq!(order.len(), after.len(), "dependencies are never a circle");
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a schedule in waves: starts everything that may start, then ends all of it.
    #[track_caller]
    fn waves(barriers: &[usize], after: &[&[usize]], most: Option<usize>) -> Vec<Vec<usize>> {
        let is_barrier = (0..after.len()).map(|call| barriers.contains(&call)).collect();
        let after = after.iter().map(|others| others.to_vec()).collect();
        let mut schedule = Schedule::new(is_barrier, after, most);
        let mut waves = Vec::new();
        while !schedule.is_over() {
            let wave: Vec<usize> = std::iter::from_fn(|| schedule.begin_next()).collect();
            assert!(!wave.is_empty(), "stuck after {waves:?}");
            wave.iter().for_each(|call| schedule.end(*call));
            waves.push(wave);
        }
        waves
    }

    #[test]
    fn waves_follow_limits_and_dependencies() {
        assert_eq!(waves(&[], &[&[], &[], &[]], None), [[0, 1, 2]]);
        assert_eq!(waves(&[], &[&[], &[], &[]], Some(2)), [vec![0, 1], vec![2]]);
        assert_eq!(waves(&[1], &[&[], &[], &[], &[]], None), [vec![0], vec![1], vec![2, 3]]);
        assert_eq!(waves(&[0, 1, 2], &[&[], &[], &[]], None), [[0], [1], [2]]);
        assert_eq!(waves(&[], &[&[2], &[], &[1]], None), [[1], [2], [0]]);
        assert_eq!(waves(&[], &[&[], &[0], &[]], None), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn capped_calls_do_not_block_others() {
        let mut schedule = Schedule::new(vec![false; 6], vec![Vec::new(); 6], Some(4));
        schedule.cap([0, 1, 2, 4], 2);
        let mut begun = |ended: &[usize]| -> Vec<usize> {
            ended.iter().for_each(|call| schedule.end(*call));
            std::iter::from_fn(|| schedule.begin_next()).collect()
        };
        assert_eq!(begun(&[]), [0, 1, 3, 5]);
        assert_eq!(begun(&[3, 5]), [0; 0]);
        assert_eq!(begun(&[1]), [2]);
        assert_eq!(begun(&[0, 2]), [4]);
    }

    #[test]
    fn barrier_waits_for_capped_calls() {
        let mut schedule = Schedule::new(vec![false, false, true], vec![Vec::new(); 3], None);
        schedule.cap([0, 1], 0);
        for call in 0..3 {
            assert_eq!((schedule.begin_next(), schedule.begin_next()), (Some(call), None));
            schedule.end(call);
        }
        assert!(schedule.is_over());
    }

    #[test]
    fn barriers_and_dependencies_never_deadlock() {
        assert_eq!(waves(&[1], &[&[2], &[], &[]], None), [[1], [2], [0]]);
        assert_eq!(waves(&[1], &[&[], &[2], &[0]], None), [[0], [2], [1]]);
        assert_eq!(waves(&[0, 1, 2], &[&[2], &[], &[]], None), [[1], [2], [0]]);
    }
}
