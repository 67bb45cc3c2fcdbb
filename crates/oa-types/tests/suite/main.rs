//! Blocks, media, outcomes, the stored format of messages, their wire format, progress, the inputs that constructors
//! reject, values that are nested too deeply, delays of retries, and notices of proxies.

mod audio;
mod backoff;
mod blocks;
mod cost;
mod demands;
mod error_bodies;
mod error_record;
mod finish;
mod history;
mod images;
mod json_size;
mod loading_notice;
mod nesting;
mod overflow;
mod prompt_progress;
mod result_images;
mod schemas;
mod settings;
mod stored;
mod thinking;
mod transient;
mod wire;
