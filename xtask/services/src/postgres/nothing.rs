//! Systems without Debian's packages.

use std::io;
use std::path::{Path, PathBuf};

use super::MISSING;
use crate::Unavailable;

/// Nothing starts here.
#[derive(Debug)]
pub(super) enum Cluster {}

impl Cluster {
    pub(super) fn start(_: &[&str], _: &[(&str, &[u8])]) -> Result<Self, Unavailable> {
        Err(Unavailable::Missing(MISSING.to_owned()))
    }

    pub(super) fn url(&self) -> String {
        match *self {}
    }

    pub(super) fn port(&self) -> u16 {
        match *self {}
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn stop(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn start_again(&mut self) -> Result<(), Unavailable> {
        match *self {}
    }

    pub(super) fn detach(self) -> io::Result<PathBuf> {
        match self {}
    }

    pub(super) fn stop_detached(_: &Path) -> io::Result<()> {
        Ok(())
    }
}
