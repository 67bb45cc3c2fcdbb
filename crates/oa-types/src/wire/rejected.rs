/// Words with which servers reject a member.
pub(super) const REJECTED: [&str; 8] = [
    "cannot represent",
    "extra inputs",
    "extra_forbidden",
    "not supported",
    "unknown",
    "unrecognized",
    "unsupported",
    "not_supported",
];
