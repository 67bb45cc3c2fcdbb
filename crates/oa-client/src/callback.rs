//! The output of the caller's code for steps.

use oa_hooks::HookError;
use oa_turn::StepContext;

/// The output of [`before_step`](crate::AgentOptionsBuilder::before_step) and
/// [`archive_context`](crate::AgentOptionsBuilder::archive_context): `()`, a [`StepContext`], or a `Result` of one of
/// these. An error ends the turn; everything else is ignored. Sealed.
pub trait CallbackOutput: Sealed + Send {}

impl<T: Sealed + Send> CallbackOutput for T {}

#[diagnostic::on_unimplemented(
    message = "this function cannot return `{Self}`",
    note = "it may return `()`, a `StepContext`, or a `Result` of one of these"
)]
#[expect(unnameable_types, reason = "that is what seals it")]
pub trait Sealed: Sized {
    fn into_result(self) -> Result<(), HookError> {
        Ok(())
    }
}

impl Sealed for () {}
impl Sealed for StepContext {}
impl Sealed for Never {}

impl<T: Sealed, E: Into<HookError>> Sealed for Result<T, E> {
    fn into_result(self) -> Result<(), HookError> {
        self.map_err(Into::into)?.into_result()
    }
}

/// The type `!`, the output of a future that always panics. Stable Rust has no direct name for it.
type Never = <fn() -> ! as Returns>::Output;

trait Returns {
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}
