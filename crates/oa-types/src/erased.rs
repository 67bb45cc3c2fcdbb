use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// A box that hides from other crates how its contents are dropped.
///
/// The compiler generates the code that drops a value in every crate, and every codegen unit, that drops one. For a
/// connection, a parser or a whole agent, those copies are hundreds of kilobytes of a program, and seconds of each build.
/// The contents of this box are dropped by a call to code that exists once, in the crate that made the box. Reading them
/// costs such a call, too, so code in a loop takes its reference once.
pub struct Erased<T>(Box<dyn Held<T>>);

trait Held<T>: Send + Sync {
    fn get(&self) -> &T;
    fn get_mut(&mut self) -> &mut T;
}

impl<T: Send + Sync> Held<T> for T {
    fn get(&self) -> &T {
        self
    }

    fn get_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: Send + Sync + 'static> Erased<T> {
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

/// A value that only its owner uses, so that what contains it can be shared between threads.
///
/// Futures, bodies and callbacks of users are often not `Sync`. Without this, neither would be an answer that holds
/// one, a client that reads the answer, nor an application's map of clients. The mutex is never locked.
#[derive(Default)]
pub struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Returns the value.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Exclusive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exclusive(..)")
    }
}
