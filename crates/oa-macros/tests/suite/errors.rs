//! Mistakes, as the compiler shows them. One file each, but for mistakes of one kind.

#[test]
fn every_mistake_is_shown_at_its_word() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
