use std::fmt;
use std::ops::{Deref, DerefMut};

/// A box that hides from other crates how its contents are dropped.
///
/// The compiler generates the code that drops a value in every crate, and every codegen unit, that drops one. For a
/// connection, a parser or a whole agent, those copies are hundreds of kilobytes of a program, and seconds of each build.
/// The contents of this box are dropped by a call to code that exists once, in the crate that made the box. Reading them
/// costs such a call, too, so code in a loop takes its reference once.
pub struct Erased<T>(Box<dyn Held<T>>);

trait Held<T>: Send {
    fn get(&self) -> &T;
    fn get_mut(&mut self) -> &mut T;
}

impl<T: Send> Held<T> for T {
    fn get(&self) -> &T {
        self
    }

    fn get_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: Send + 'static> Erased<T> {
    /// Boxes a value. The code that drops it is compiled where this is called.
    pub fn new(value: T) -> Self {
        Self(Box::new(value))
    }
}

impl<T> Deref for Erased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        (*self.0).get()
    }
}

impl<T> DerefMut for Erased<T> {
    fn deref_mut(&mut self) -> &mut T {
        (*self.0).get_mut()
    }
}

impl<T: fmt::Debug> fmt::Debug for Erased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
