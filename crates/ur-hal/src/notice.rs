//! How serious it is what a driver tells the user where no call can return it as an error: in destructors, on threads of its
//! own, and while it looks for devices. The crate of a backend sends it to the adapter's log.

/// How serious a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// Worth knowing, and nothing wrong.
    Note,
    /// Something that did not work, which the program may survive.
    Warning,
    /// Something that has to work.
    Error,
    /// A mistake in the environment of the process: a warning, which is also for those who listen later.
    Environment,
}
