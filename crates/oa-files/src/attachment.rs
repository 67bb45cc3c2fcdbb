//! A file as a part of a prompt.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use oa_redact::visible;
use oa_types::{AudioBlock, ContentBlock, Error, ImageBlock, TextBlock};

/// A file that goes with a prompt: an image, audio or text, detected by its content.
///
/// A text becomes part of the prompt, between tags with its name. Where the text has such tags itself, those around it are
/// numbered, so that no text can end before its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    path: PathBuf,
    name: String,
    /// `None` for an image that the server fetches.
    size: Option<usize>,
    block: ContentBlock,
}

/// The kinds of files, for errors.
const KINDS: &str = "PNG, JPEG, GIF, WebP and BMP images, WAV, MP3, FLAC, Ogg, M4A and AAC audio, and text in UTF-8";

impl Attachment {
    /// The largest image or recording: 20 MiB.
    pub const MAX_MEDIA_BYTES: u64 = 20 << 20;
    /// The largest text: 256 KiB, some 60,000 tokens of English.
    pub const MAX_TEXT_BYTES: u64 = 256 << 10;

    /// Reads a file. An address that begins with `http://` or `https://` is an image that the model server fetches. Blocks
    /// while reading.
    ///
    /// A regular file is read as it is now; anything else is rejected before it is opened. If there is no such file, but one
    /// whose name differs only in the kind of its spaces, as those of screenshots on macOS, it is that one.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if there is no such file, or it cannot be read, is empty or too large, or can be no part of a prompt.
    pub fn read(path: &Path) -> Result<Self, Error> {
        if let Some(url) = path.to_str().filter(|it| is_address(it)) {
            let block = ImageBlock::from_url(url)?.into();
            return Ok(Self { path: path.into(), name: visible(url).into(), size: None, block });
        }
        let found = existing(path);
        let path = found.as_deref().unwrap_or(path);
        let wrong = |why: &str| Error::invalid_input(format!("{}: {why}", path.display()));
        let bytes = read_file(path).map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => wrong("this is a folder: attach the files in it"),
            ErrorKind::InvalidInput => wrong("this is not a regular file"),
            ErrorKind::FileTooLarge => wrong(TOO_LARGE),
            _ => wrong(&error.to_string()),
        })?;
        // A relative path says which of two files with the same name it is; an absolute one names the user.
        let last = path.file_name().unwrap_or_else(|| OsStr::new("file"));
        let name = if path.is_relative() { path.as_os_str() } else { last };
        Self::new(path.into(), &name.to_string_lossy(), &bytes)
    }

    /// Makes an attachment of the content of a file.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is empty or too large, or can be no part of a prompt.
    pub fn from_bytes(name: &str, bytes: impl AsRef<[u8]>) -> Result<Self, Error> {
        Self::new(name.into(), name, bytes.as_ref())
    }

    fn new(path: PathBuf, name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |why: &str| Error::invalid_input(format!("{}: {why}", path.display()));
        let name = visible(name).into_owned();
        let block = match text_of(bytes) {
            _ if bytes.is_empty() => return Err(wrong("the file is empty")),
            _ if bytes.len() as u64 > Self::MAX_MEDIA_BYTES => return Err(wrong(TOO_LARGE)),
            Some(_) if bytes.len() as u64 > Self::MAX_TEXT_BYTES => {
                return Err(wrong("larger than 256 KiB, the most for a text"));
            }
            Some("") => return Err(wrong("the file is empty")),
            Some(text) => TextBlock::new(enclosed(&name, text)).into(),
            None => {
                let image = ImageBlock::from_bytes(bytes).map(ContentBlock::from);
                let media = image.or_else(|_| AudioBlock::from_bytes(bytes).map(Into::into));
                media.map_err(|_| wrong(&unfit(bytes)))?
            }
        };
        Ok(Self { path, name, size: Some(bytes.len()), block })
    }

    /// Returns the path, or the name if it was made of bytes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the part of the prompt.
    #[must_use]
    pub fn block(&self) -> &ContentBlock {
        &self.block
    }
}

/// The name, the kind and the size, such as `photo.png (image, 1.2 MiB)`.
impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.block {
            ContentBlock::Audio(_) => "audio",
            ContentBlock::Image(_) => "image",
            _ => "text",
        };
        write!(f, "{} ({kind}", self.name)?;
        match self.size {
            Some(size @ ..1024) => write!(f, ", {size} bytes)"),
            Some(size @ ..0x0010_0000) => write!(f, ", {} KiB)", size.div_ceil(1024)),
            Some(size) => write!(f, ", {:.1} MiB)", size as f64 / f64::from(1 << 20)),
            None => f.write_str(")"),
        }
    }
}

const TOO_LARGE: &str = "larger than 20 MiB";

/// Returns true for an image that the server fetches.
pub(crate) fn is_address(path: &str) -> bool {
    path.starts_with("http://") || path.starts_with("https://")
}

/// Returns the name in a text that [`Attachment::block`] has made; `None` for any other text.
///
/// ```
/// let file = oa_files::Attachment::from_bytes("a.txt", "one")?;
/// assert_eq!(file.block().as_text().and_then(oa_files::name_of), Some("a.txt"));
/// assert_eq!(oa_files::name_of("one"), None);
/// # Ok::<(), oa_types::Error>(())
/// ```
#[must_use]
pub fn name_of(text: &str) -> Option<&str> {
    let (tag, rest) = text.strip_prefix("\n<")?.split_once(" name=\"")?;
    let (name, _) = rest.split_once("\">\n")?;
    (tag.starts_with("file") && text.ends_with(&format!("\n</{tag}>"))).then_some(name)
}

/// Reads a regular file of at most the largest size.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let check = |metadata: Metadata| match metadata.len() {
        _ if metadata.is_dir() => Err(ErrorKind::IsADirectory),
        _ if !metadata.is_file() => Err(ErrorKind::InvalidInput),
        size if size > Attachment::MAX_MEDIA_BYTES => Err(ErrorKind::FileTooLarge),
        _ => Ok(()),
    };
    // Before opening, because opening a FIFO blocks, and again after it, because the path may lead elsewhere by then.
    check(fs::metadata(path)?)?;
    let file = File::open(path)?;
    check(file.metadata()?)?;
    // The file may still grow: one byte more is too large, and reported as such.
    let mut bytes = Vec::new();
    file.take(Attachment::MAX_MEDIA_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Finds the file if it is not at this path: the only one in its folder whose name differs only in the kind of its spaces.
fn existing(path: &Path) -> Option<PathBuf> {
    if fs::symlink_metadata(path).is_ok() {
        return None;
    }
    let plain = |name: &OsStr| -> String {
        let letters = name.to_string_lossy();
        letters.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
    };
    let wanted = plain(path.file_name()?);
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let names = fs::read_dir(folder.unwrap_or_else(|| Path::new("."))).ok()?.flatten();
    let mut names = names.map(|entry| entry.file_name()).filter(|name| plain(name) == wanted);
    let name = names.next()?;
    names.next().is_none().then(|| path.with_file_name(name))
}

/// Returns a text without the byte order mark of editors on Windows; `None` if these are no text.
fn text_of(bytes: &[u8]) -> Option<&str> {
    // Before images and audio: a text may begin with `BM` or `ID3`. A PDF may be without any other byte than those of text.
    let text = std::str::from_utf8(bytes).ok()?;
    let is_text = !text.contains('\0') && !text.starts_with("%PDF-");
    is_text.then(|| text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Says why a file can be no part of a prompt, and what can be.
fn unfit(bytes: &[u8]) -> String {
    let is_utf16 = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
    let what = match bytes {
        [b'%', b'P', b'D', b'F', b'-', ..] => {
            "a PDF cannot be attached, but its text or pictures of its pages can"
        }
        _ if is_utf16 => "this text is in UTF-16",
        _ => "this is a binary file of another kind",
    };
    format!("{what}; what can be attached are {KINDS}")
}

/// Puts a text between tags that it does not have itself.
fn enclosed(name: &str, text: &str) -> String {
    // Models see a tag where a parser does not: spaces and capitals make no difference.
    let mut squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    squeezed.make_ascii_lowercase();
    let has_tag = ["<file", "</file"].iter().any(|tag| squeezed.contains(tag));
    let number = |rest: &str| -> Option<usize> {
        rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    let taken: HashSet<_> = squeezed.split("file-").skip(1).filter_map(number).collect();
    let free = (1..=taken.len() + 1).find(|it| !taken.contains(it)).filter(|_| has_tag);
    let tag = free.map_or_else(|| "file".to_owned(), |free| format!("file-{free}"));
    let escaped = [('&', "&amp;"), ('"', "&quot;"), ('<', "&lt;"), ('>', "&gt;")];
    let name = escaped.iter().fold(name.to_owned(), |name, (c, by)| name.replace(*c, by));
    // The parts of a prompt are put together with a line break, or without one.
    format!("\n<{tag} name=\"{name}\">\n{}\n</{tag}>", text.strip_suffix('\n').unwrap_or(text))
}
