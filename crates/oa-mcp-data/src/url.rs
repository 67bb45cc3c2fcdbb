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

/// Returns the parts of a URL that may be keys: the password, or the user name without one, and the values of the query.
///
/// ```
/// let found: Vec<_> = oa_mcp_data::secrets_in_url("https://ada:key@host/mcp?k=v").collect();
/// assert_eq!(found, ["key", "v"]);
/// ```
pub fn secrets_in_url(url: &str) -> impl Iterator<Item = &str> {
    let (credentials, _) = split_credentials(url);
    let password = credentials.split_once(':').map_or(credentials, |(_, password)| password);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let values = query.split('&').filter_map(|pair| Some(pair.split_once('=')?.1));
    std::iter::once(password).chain(values).filter(|part| !part.is_empty())
}
