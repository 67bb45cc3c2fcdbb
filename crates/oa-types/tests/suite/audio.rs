//! Recordings from data, URLs, bytes and files.

use std::fs;

use oa_types::{AudioBlock, ErrorKind};

#[test]
fn formats_have_the_names_of_the_protocol() {
    for (media_type, format) in [
        ("audio/wav", "wav"),
        ("audio/x-wav", "wav"),
        ("audio/vnd.wave", "wav"),
        ("Audio/MPEG", "mp3"),
        ("audio/mp3", "mp3"),
        ("audio/mp4", "m4a"),
        ("audio/x-m4a", "m4a"),
        ("audio/x-flac", "flac"),
        // As browsers record.
        ("audio/webm;codecs=opus", "webm"),
    ] {
        let audio = AudioBlock::from_base64("aGk", media_type).unwrap();
        assert_eq!((&*audio.data, &*audio.format), ("aGk=", format), "{media_type}");
    }
    for media_type in ["", "wav", "audio", "audio/", "audio/a b", "video/mp4", "text/audio"] {
        let error = AudioBlock::from_base64("aGk=", media_type).unwrap_err();
        let message =
            format!("the media type must be an audio type such as audio/wav, not {media_type:?}");
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, message));
    }
    for data in ["", "a", "a b=", "aGk=="] {
        let error = AudioBlock::from_base64(data, "audio/wav").unwrap_err();
        assert_eq!(error.to_string(), "the audio data is not valid base64");
    }
}

#[test]
fn only_data_urls_are_audio() {
    let audio = AudioBlock::from_data_url("DATA:audio/ogg;codecs=opus;base64,aGk=").unwrap();
    assert_eq!((&*audio.data, &*audio.format), ("aGk=", "ogg"));
    for url in ["", "data", "dätä:x", "https://host/a.wav", "data:audio/wav,aGk="] {
        let error = AudioBlock::from_data_url(url).unwrap_err();
        assert_eq!(error.to_string(), "the URL of audio must be a data: URL of base64", "{url}");
    }
}

#[test]
fn bytes_are_audio_of_their_format() {
    let format = |bytes: &[u8]| AudioBlock::from_bytes(bytes).map(|audio| audio.format);
    for (bytes, expected) in [
        (&b"RIFF\x24\0\0\0WAVEfmt "[..], "wav"),
        (b"ID3\x04", "mp3"),
        (&[0xFF, 0xFB, 0x90, 0x64], "mp3"),
        (&[0xFF, 0xF3, 0x40, 0xC4], "mp3"),
        (b"fLaC\0", "flac"),
        (b"OggS\0", "ogg"),
        (b"\0\0\0\x20ftypM4A ", "m4a"),
        (&[0xFF, 0xF1, 0x50, 0x80], "aac"),
    ] {
        assert_eq!(format(bytes).ok().as_deref(), Some(expected));
    }
    // A picture, a film, text, silence, and what is too short to tell.
    for bytes in [
        &[0xFF, 0xD8, 0xFF, 0xE0][..],
        b"\0\0\0\x20ftypisom",
        b"RIFF\x24\0\0\0WEBP",
        b"hello",
        &[0; 64],
        &[0xFF, 0xFF],
        b"RIFF",
        b"",
    ] {
        let error = format(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let expected = "the data is not a WAV, MP3, FLAC, Ogg, M4A or AAC file";
        assert_eq!(error.to_string(), expected, "{bytes:?}");
    }
}

#[test]
fn audio_files_are_read_up_to_the_limit() {
    let path = std::env::temp_dir().join(format!("oa-types-audio-{}", std::process::id()));
    fs::write(&path, b"OggS").unwrap();
    assert_eq!(AudioBlock::from_file_path(&path).unwrap().format, "ogg");
    let error = AudioBlock::from_file_path_with_limit(&path, 3).unwrap_err();
    assert!(error.to_string().ends_with("is larger than 3 bytes"), "{error}");
    fs::write(&path, b"#!/bin/sh").unwrap();
    let error = AudioBlock::from_file_path(&path).unwrap_err();
    let expected = "is not a WAV, MP3, FLAC, Ogg, M4A or AAC file";
    assert!(error.to_string().ends_with(expected), "{error}");
    fs::remove_file(&path).unwrap();
    assert!(AudioBlock::from_file_path(&path).is_err());
}

#[test]
fn size_is_that_of_the_file() {
    for size in 4..20 {
        let mut bytes = b"OggS".to_vec();
        bytes.resize(size, b'x');
        assert_eq!(AudioBlock::from_bytes(bytes).unwrap().size(), size);
    }
    let read = |json: &str| serde_json::from_str::<AudioBlock>(json).unwrap().size();
    // Stored data may be anything.
    assert_eq!(read(r#"{"data":"","format":"wav"}"#), 0);
    assert_eq!(read(r#"{"data":"====","format":"wav"}"#), 0);
}
