use std::sync::{Mutex, PoisonError};

use oa_types::ImageBlock;

use crate::cancel::Cancel;
use crate::tool_error::ToolError;

/// The largest number of images of one call.
pub(crate) const MAX_IMAGES: usize = 16;

/// The largest size of all images of one call, in bytes of their URLs.
pub(crate) const MAX_IMAGE_BYTES: usize = 32 << 20;

/// The images that a call has attached.
#[derive(Default)]
pub(crate) struct Images(Mutex<Vec<ImageBlock>>);

impl Images {
    pub(crate) fn add(&self, image: ImageBlock, cancel: &Cancel) -> Result<(), ToolError> {
        let mut images = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let size: usize = images.iter().map(|image| image.url.len()).sum();
        // Under the lock: an attempt that timed out may still run, and must not add to the images of the next one.
        let why = if cancel.is_cancelled() {
            "the call was canceled".to_owned()
        } else if images.len() >= MAX_IMAGES {
            format!("a result has at most {} images", MAX_IMAGES)
        } else if size.saturating_add(image.url.len()) > MAX_IMAGE_BYTES {
            format!("the images of a result have at most {} bytes", MAX_IMAGE_BYTES)
        } else {
            images.push(image);
            return Ok(());
        };
        Err(ToolError::new(format!("the image cannot be attached: {why}")).retryable(false))
    }

    pub(crate) fn take(&self) -> Vec<ImageBlock> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
