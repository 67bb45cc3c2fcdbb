use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The user that a server runs as: an unprivileged one where this process is root, because servers refuse root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    ids: Option<(u32, u32)>,
}

impl Account {
    /// Returns the user of this process.
    pub(crate) fn ours() -> Self {
        Self { ids: None }
    }

    /// Finds the first of these users that exists, if this process is root.
    pub(crate) fn find(names: &[&str]) -> io::Result<Self> {
        // Without `unsafe`, the user is asked by whom this process is owned.
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        if !is_root {
            return Ok(Self { ids: None });
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let ids = names.iter().find_map(|name| {
            users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find_map(|fields| {
                match fields.as_slice() {
                    [user, _, uid, gid, ..] if user == name => {
                        Some((uid.parse().ok()?, gid.parse().ok()?))
                    }
                    _ => None,
                }
            })
        });
        match ids {
            Some(ids) => Ok(Self { ids: Some(ids) }),
            None => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("this process is root, and there is none of the users {names:?}"),
            )),
        }
    }

    /// Makes a command run as this user, out of reach of the terminal's Ctrl-C.
    pub(crate) fn command(self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.process_group(0);
        if let Some((uid, gid)) = self.ids {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Gives a file or folder to this user.
    pub(crate) fn own(self, path: &Path) -> io::Result<()> {
        match self.ids {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }
}
