/// The longest tool name that model servers accept.
const LENGTH: usize = 64;
/// The longest prefix, which leaves room for readable tool names.
const PREFIX: usize = 24;
/// `_` and 8 hexadecimal digits.
const MARK: usize = 9;

/// Returns the name under which a model sees a tool: `prefix__name`.
///
/// It depends only on its arguments. If a character had to be replaced or the name is too long, the tool's part is cut
/// and a hash of the original name is appended.
///
/// ```
/// assert_eq!(oa_mcp_data::tool_name("github", "create_issue"), "github__create_issue");
/// ```
#[must_use]
pub fn tool_name(prefix: &str, name: &str) -> String {
    let head = name_head(prefix);
    let room = LENGTH - head.len();
    head + &part(name, room, true)
}

/// Returns the beginning of all names with a prefix: `prefix__`, or nothing for an empty one.
fn name_head(prefix: &str) -> String {
    let prefix = part(prefix, PREFIX, false);
    if prefix.is_empty() { prefix } else { format!("{prefix}__") }
}

/// The owners of tool names, by the prefixes of servers.
///
/// A server may list any name, at any time, and rules such as `x__*` trust the server that has the prefix. So a name belongs to
/// the server with the longest prefix that it begins with, whether that one has such a tool or not, or could be reached.
/// Otherwise a server without a prefix could offer any tool, and `a` those of `a__b`.
///
/// ```
/// use oa_mcp_data::NameOwners;
///
/// let owners = NameOwners::new([("", "tools"), ("x", "vault")]);
/// assert_eq!(owners.check("", "echo"), Ok(()));
/// assert_eq!(owners.check("x", "x__open"), Ok(()));
/// assert_eq!(owners.check("", "x__open"), Err("the prefix x__ is that of vault".to_owned()));
/// ```
#[derive(Clone, Debug)]
pub struct NameOwners(Vec<(String, String)>);

impl NameOwners {
    /// Creates the owners from the prefixes and the names of all servers.
    pub fn new<'a>(servers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owner = |(prefix, server): (&str, &str)| (name_head(prefix), server.to_owned());
        Self(servers.into_iter().map(owner).collect())
    }

    /// Checks that a server with this prefix may offer a tool under this name.
    ///
    /// # Errors
    ///
    /// The reason why it may not, if the name belongs to another server.
    pub fn check(&self, prefix: &str, name: &str) -> Result<(), String> {
        let own = name_head(prefix).len();
        let is_of = |(head, _): &&(String, String)| head.len() > own && name.starts_with(head);
        let owner = self.0.iter().find(is_of);
        owner.map_or(Ok(()), |(head, server)| Err(format!("the prefix {head} is that of {server}")))
    }
}

/// Returns the text with allowed characters only, in at most `room` bytes.
fn part(text: &str, room: usize, marks_changes: bool) -> String {
    let plain: String = text.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if plain.len() <= room && (plain == text && !plain.is_empty() || !marks_changes) {
        return plain;
    }
    // `files.read` becomes `files_read_059c287d` and `files/read` becomes `files_read_6d45e1c1`. The hash is
    // that of the whole original, so names that differ only behind the cut stay different. The text is ASCII,
    // so it can be cut anywhere, and `room` is at least `PREFIX`, which is more than `MARK`.
    let kept = plain.len().min(room - MARK);
    format!("{}_{:08x}", &plain[..kept], hash(text))
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// FNV-1a, folded to 32 bits: the same on every machine and in every version.
fn hash(text: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_are_kept() {
        assert_eq!(tool_name("github", "create_issue"), "github__create_issue");
        assert_eq!(tool_name("", "echo"), "echo");
        assert_eq!(tool_name("my server", "a-b"), "my_server__a-b");
        let dotted = tool_name("s", "files.read");
        assert!(dotted.starts_with("s__files_read_"), "{dotted}");
        assert_ne!(dotted, tool_name("s", "files/read"));
        let long = tool_name("s", &"x".repeat(100));
        assert_eq!(long.len(), 64);
        assert_ne!(long, tool_name("s", &"x".repeat(101)));
    }

    #[test]
    fn random_names_are_valid_and_unique() {
        // A generator of the same names each time.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let letters: Vec<char> =
            "abcXYZ019_-./: \u{e9}\u{4e2d}\u{1f980}\u{200b}\n\"\\".chars().collect();
        let mut word = |longest: usize| -> String {
            (0..=random(longest)).map(|_| letters[random(letters.len())]).collect()
        };
        let servers: Vec<_> = (0..100).map(|n| format!("{n}{}", word(40))).collect();
        let mut raw = std::collections::HashSet::new();
        let mut made = std::collections::HashSet::new();
        while raw.len() < 10_000 {
            let (server, tool) = (&servers[raw.len() % servers.len()], word(120));
            if !raw.insert((server.clone(), tool.clone())) {
                continue;
            }
            let name = tool_name(server, &tool);
            assert!((1..=LENGTH).contains(&name.len()), "{name}");
            assert!(name.chars().all(is_allowed), "{name}");
            assert_eq!(name, tool_name(server, &tool));
            assert!(made.insert(name), "{server:?} {tool:?} has the name of another tool");
        }
    }

    proptest! {
        #[test]
        fn names_are_valid_and_stable(prefix in any::<String>(), name in any::<String>()) {
            let made = tool_name(&prefix, &name);
            prop_assert!((1..=LENGTH).contains(&made.len()), "{made}");
            prop_assert!(made.chars().all(is_allowed), "{made}");
            prop_assert_eq!(made, tool_name(&prefix, &name));
        }

        #[test]
        fn different_names_stay_different(one in any::<String>(), other in any::<String>()) {
            prop_assume!(one != other);
            prop_assert_ne!(tool_name("s", &one), tool_name("s", &other));
        }
    }
}
