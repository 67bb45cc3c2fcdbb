//! The programs that are compared.

pub(super) struct Program {
    /// The name in tables.
    pub(super) name: &'static str,
    /// The package in `xtask/peers`.
    pub(super) package: &'static str,
    /// True for other libraries, which ours is compared with.
    pub(super) is_peer: bool,
    /// False for programs that are only built and measured in size.
    pub(super) runs: bool,
}

pub(super) const OURS: &str = "open-agent";

pub(super) const PROGRAMS: [Program; 7] = [
    ours(OURS, "ours"),
    Program { runs: false, ..ours("open-agent with TLS", "ours-tls") },
    ours("hyper and serde by hand", "by-hand"),
    peer("async-openai", "peer-async-openai"),
    peer("genai", "peer-genai"),
    peer("open-agent-sdk", "peer-open-agent-sdk"),
    peer("rig-core", "peer-rig"),
];

impl Program {
    /// Returns true for programs with our client.
    pub(super) fn is_ours(&self) -> bool {
        self.package.starts_with("ours")
    }
}

const fn ours(name: &'static str, package: &'static str) -> Program {
    Program { name, package, is_peer: false, runs: true }
}

const fn peer(name: &'static str, package: &'static str) -> Program {
    Program { name, package, is_peer: true, runs: true }
}

/// Returns the programs that are run.
pub(super) fn running() -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().filter(|program| program.runs)
}

/// Returns the programs of these packages, or all if there are none; `None` if a package is unknown.
pub(super) fn chosen(packages: &[&str]) -> Option<Vec<&'static Program>> {
    if packages.is_empty() {
        return Some(PROGRAMS.iter().collect());
    }
    let find = |package: &&str| PROGRAMS.iter().find(|program| program.package == *package);
    packages.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_chosen_by_package() {
        let names = |packages: &[&str]| {
            let programs = chosen(packages)?;
            Some(programs.iter().map(|program| program.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["peer-rig", "ours"]), Some(vec!["rig-core", OURS]));
        assert_eq!(names(&[]).map(|all| all.len()), Some(PROGRAMS.len()));
        assert_eq!(names(&["--build"]), None);
    }
}
