//! Files for language models: attached to a prompt, read by tools, or full of prompts.
//!
//! # When to use this crate directly
//!
//! Use it for a program in which people name files, such as a chat. The types of images and audio are in `oa-types`, and
//! the facade `open-agent` has them, too.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod attachment;
mod folder;
mod paths;
mod prompts;

pub use crate::attachment::{Attachment, name_of};
pub use crate::folder::tools;
pub use crate::paths::{complete, paths};
pub use crate::prompts::{Prompt, Prompts};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
