/// What stands in the place of a secret.
const MASK: &str = "****";

/// How much of a secret's beginning is one too where a text was cut off in it, in bytes.
const TELLING: usize = 8;

/// Takes a secret out of a text: whole wherever it stands, and its beginning at the end of a text that
/// was cut off there.
///
/// ```
/// use oa_types::mask_secret;
///
/// let secret = "sk-0123456789abcdef";
/// let mut text = format!("wrong key {secret}, use another than sk-012345678...");
/// mask_secret(&mut text, secret);
/// assert_eq!(text, "wrong key ****, use another than ****...");
/// ```
pub fn mask_secret(text: &mut String, secret: &str) {
    if text.contains(secret) {
        *text = text.replace(secret, MASK);
    }
    let end = text.trim_end_matches('.').len();
    let longest = secret.len().min(end);
    let cut = (TELLING..=longest).rev().find(|&length| {
        secret.is_char_boundary(length) && text[..end].ends_with(&secret[..length])
    });
    if let Some(length) = cut {
        text.replace_range(end - length..end, MASK);
    }
}
