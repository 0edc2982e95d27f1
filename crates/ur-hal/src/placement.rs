//! Where memory objects are.

/// Where the memory of buffers and images is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// In host memory, which all devices of the context access.
    Host,
    /// On the context's first device, whose memory all others access.
    First,
    /// On each device that uses it.
    Each,
}
