//! Mistakes and their compiler errors. One file each, except for mistakes of the same kind.

#[test]
fn every_mistake_is_shown_at_its_word() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
