//! Images by address, by data and by path.

use std::fs;

use oa_types::{ErrorKind, ImageBlock, ImageDetail};

#[test]
fn an_address_is_http_https_or_data() {
    for url in ["http://host/a.png", "HTTPS://host/a", "data:image/png;base64,AAAA"] {
        assert_eq!(ImageBlock::from_url(url).unwrap().url, url);
    }
    for url in ["", "a.png", "file:///a.png", "javascript:x", "http://a b", "http://a\n"] {
        assert_eq!(
            ImageBlock::from_url(url).unwrap_err().kind(),
            ErrorKind::InvalidInput,
            "{url:?}"
        );
    }
}

#[test]
fn data_is_base64_of_an_image_type() {
    let image =
        ImageBlock::from_base64("AAAA", "image/svg+xml").unwrap().with_detail(ImageDetail::Low);
    assert_eq!((&*image.url, image.detail), ("data:image/svg+xml;base64,AAAA", ImageDetail::Low));
    for (data, media_type) in [
        ("", "image/png"),
        ("A A", "image/png"),
        ("AA===", "image/png"),
        ("AAAA", "text/html"),
        ("AAAA", "image/"),
        ("AAAA", "image/a,b"),
    ] {
        assert!(ImageBlock::from_base64(data, media_type).is_err(), "{data:?} {media_type:?}");
    }
}

#[test]
fn a_file_is_told_by_its_first_bytes() {
    let path = std::env::temp_dir().join(format!("oa-types-image-{}", std::process::id()));
    fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
    assert_eq!(
        ImageBlock::from_file_path(&path).unwrap().url,
        "data:image/png;base64,iVBORw0KGgo="
    );
    fs::write(&path, b"#!/bin/sh").unwrap();
    let error = ImageBlock::from_file_path(&path).unwrap_err();
    assert!(error.to_string().ends_with("is no PNG, JPEG, GIF, WebP or BMP image"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = ImageBlock::from_file_path(&path).unwrap_err();
    assert!(std::error::Error::source(&error).is_some());
}
