//! The programs that are compared.

pub(super) struct Program {
    /// The name in tables.
    pub(super) name: &'static str,
    /// The package in `xtask/peers`.
    pub(super) package: &'static str,
    /// True for other libraries, which ours is compared with.
    pub(super) is_peer: bool,
}

pub(super) const OURS: &str = "open-agent";

pub(super) const PROGRAMS: [Program; 6] = [
    Program { name: OURS, package: "ours", is_peer: false },
    Program { name: "hyper and serde by hand", package: "by-hand", is_peer: false },
    Program { name: "async-openai", package: "peer-async-openai", is_peer: true },
    Program { name: "genai", package: "peer-genai", is_peer: true },
    Program { name: "open-agent-sdk", package: "peer-open-agent-sdk", is_peer: true },
    Program { name: "rig-core", package: "peer-rig", is_peer: true },
];

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
