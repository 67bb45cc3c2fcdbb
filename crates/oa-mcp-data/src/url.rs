/// Splits a URL into its credentials and the rest, without the query and the fragment.
///
/// ```
/// let (credentials, rest) = oa_mcp_data::split_credentials("https://ada:key@host/mcp?k=v");
/// assert_eq!((credentials, &*rest), ("ada:key", "https://host/mcp"));
/// ```
#[must_use]
pub fn split_credentials(url: &str) -> (&str, String) {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return ("", url.to_owned()) };
    let host = rest.split('/').next().unwrap_or_default();
    match host.rsplit_once('@') {
        Some((credentials, _)) => {
            (credentials, format!("{scheme}://{}", &rest[credentials.len() + 1..]))
        }
        None => ("", url.to_owned()),
    }
}
