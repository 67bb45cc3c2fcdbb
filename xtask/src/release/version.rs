//! Versions, and which one may follow which.

use std::fmt;

use super::surface_change::Bump;

/// A version without a pre-release: major, minor, patch.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Version(u64, u64, u64);

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let version = Self(numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(version)
    }

    /// Returns the lowest version that may follow. Before 1.0, Cargo takes a new minor version for a breaking one, and a new
    /// patch version for any other.
    pub(crate) fn after(self, bump: Bump) -> Self {
        let Self(major, minor, patch) = self;
        match (bump, major) {
            (Bump::Major, 0) => Self(0, minor + 1, 0),
            (Bump::Minor | Bump::Patch, 0) | (Bump::Patch, _) => Self(major, minor, patch + 1),
            (Bump::Minor, _) => Self(major, minor + 1, 0),
            (Bump::Major, _) => Self(major + 1, 0, 0),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(major, minor, patch) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaking_changes_need_incompatible_version() {
        for (last, patch, minor, major) in
            [("0.1.0", "0.1.1", "0.1.1", "0.2.0"), ("1.4.2", "1.4.3", "1.5.0", "2.0.0")]
        {
            let last = Version::parse(last).unwrap();
            let next =
                [Bump::Patch, Bump::Minor, Bump::Major].map(|bump| last.after(bump).to_string());
            assert_eq!(next, [patch, minor, major]);
        }
        assert!(Version::parse("0.10.0") > Version::parse("0.9.9"));
        for text in ["", "1.2", "1.2.3.4", "1.2.x", "1.2.3-rc.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
