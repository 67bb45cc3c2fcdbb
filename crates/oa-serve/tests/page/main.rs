//! The page: its files over HTTP, its pure modules in Node, and all of it in a real browser.

mod app;
mod browser;
mod files;
mod proxy;
