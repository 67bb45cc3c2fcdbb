//! Mistakes and their compiler errors. One file each, except for mistakes of the same kind.

#[test]
fn errors_point_at_the_mistake() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
