//! Images from URLs, data and files.

use std::fs;
use std::path::PathBuf;

use oa_types::{ErrorKind, ImageBlock, ImageDetail};

#[test]
fn image_urls_are_http_https_or_data() {
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
    for (data, padded) in [("ab", "ab=="), ("ab==", "ab=="), ("abc", "abc="), ("abc=", "abc=")] {
        let url = ImageBlock::from_base64(data, "image/png").unwrap().url;
        assert_eq!(url, format!("data:image/png;base64,{padded}"));
    }
    for (data, media_type) in [
        ("", "image/png"),
        ("A A", "image/png"),
        ("AA===", "image/png"),
        ("ab=", "image/png"),
        ("abc==", "image/png"),
        ("AAAA=", "image/png"),
        ("abcde", "image/png"),
        ("====", "image/png"),
        ("AAAA", "text/html"),
        ("AAAA", "image/"),
        ("AAAA", "image/a,b"),
    ] {
        assert!(ImageBlock::from_base64(data, media_type).is_err(), "{data:?} {media_type:?}");
    }
}

#[test]
fn file_type_is_detected_from_bytes() {
    let path = std::env::temp_dir().join(format!("oa-types-image-{}", std::process::id()));
    fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
    assert_eq!(
        ImageBlock::from_file_path(&path).unwrap().url,
        "data:image/png;base64,iVBORw0KGgo="
    );
    fs::write(&path, b"#!/bin/sh").unwrap();
    let error = ImageBlock::from_file_path(&path).unwrap_err();
    assert!(error.to_string().ends_with("is not a PNG, JPEG, GIF, WebP or BMP image"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = ImageBlock::from_file_path(&path).unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(error.to_string(), format!("cannot read {}: {why}", path.display()));
}

#[test]
fn oversized_file_is_rejected() {
    let path = scratch("large");
    let picture = b"\x89PNG\r\n\x1a\n";
    fs::write(&path, picture).unwrap();
    let size = picture.len() as u64;
    assert!(ImageBlock::from_file_path_with_limit(&path, size).is_ok());
    let error = ImageBlock::from_file_path_with_limit(&path, size - 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().ends_with("is larger than 7 bytes"), "{error}");
    // A sparse file, which takes no disk space.
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(ImageBlock::MAX_FILE_BYTES + 1)
        .unwrap();
    let error = ImageBlock::from_file_path(&path).unwrap_err();
    assert!(error.to_string().ends_with("is larger than 20971520 bytes"), "{error}");
    fs::remove_file(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    let (fifo, to_zero) = (scratch("fifo"), scratch("to-zero"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink("/dev/zero", &to_zero).unwrap();
    let paths = [fifo.clone(), to_zero.clone(), "/dev/zero".into(), std::env::temp_dir()];
    for path in paths {
        let (send, receive) = mpsc::channel();
        let tried = path.clone();
        thread::spawn(move || send.send(ImageBlock::from_file_path(tried)));
        let result = receive.recv_timeout(Duration::from_secs(10));
        let error = result.unwrap_or_else(|_| panic!("{path:?} blocks")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().ends_with("is not a regular file"), "{error}");
    }
    fs::remove_file(fifo).unwrap();
    fs::remove_file(to_zero).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn file_of_unknown_size_is_read_to_the_limit() {
    // Reports a size of zero but has content.
    let error = ImageBlock::from_file_path_with_limit("/proc/self/status", 8).unwrap_err();
    assert!(error.to_string().ends_with("is larger than 8 bytes"), "{error}");
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("oa-types-image-{name}-{}", std::process::id()))
}

#[test]
fn bytes_are_images_of_their_type() {
    let url = |bytes: &[u8]| ImageBlock::from_bytes(bytes).map(|image| image.url);
    let expected = "data:image/jpeg;base64,/9j/AA==";
    assert_eq!(url(&[0xFF, 0xD8, 0xFF, 0]).ok().as_deref(), Some(expected));
    for bytes in [&b""[..], b"%PDF-1.7", b"<svg/>"] {
        let error = url(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "the data is not a PNG, JPEG, GIF, WebP or BMP image");
    }
}
