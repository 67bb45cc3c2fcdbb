//! Systems without the server.

use std::io;
use std::path::{Path, PathBuf};

use super::MISSING;
use crate::Unavailable;

/// Nothing starts here.
#[derive(Debug)]
pub(super) enum Node {}

impl Node {
    pub(super) fn start(_: &str) -> Result<Self, Unavailable> {
        Err(Unavailable::Missing(MISSING.to_owned()))
    }

    pub(super) fn admin(&self) -> u16 {
        match *self {}
    }

    pub(super) fn ingress(&self) -> u16 {
        match *self {}
    }

    pub(super) fn log(&self) -> String {
        match *self {}
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
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
