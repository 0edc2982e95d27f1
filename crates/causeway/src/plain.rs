//! The types whose values can be in device memory.
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Values that consist only of their bytes: every bit pattern is valid, and there is no padding. This holds for all
/// integers and floats, arrays of them, and `#[repr(C)]` structs of them that derive the three `zerocopy` traits below.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// # let context = causeway::Context::new(&causeway::Device::first()?)?;
/// let pixels = causeway::Buffer::<[u8; 4]>::new(&context, 1920 * 1080)?;
/// # Ok(()) }
/// # check().unwrap();
/// ```
/// A struct of your own derives three traits of the re-exported [`zerocopy`](crate::zerocopy):
/// ```
/// # fn check() -> causeway::Result<()> {
/// # let context = causeway::Context::new(&causeway::Device::first()?)?;
/// use causeway::zerocopy::{self, FromBytes, Immutable, IntoBytes};
///
/// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
/// #[repr(C)]
/// struct Particle {
///     position: [f32; 3],
///     mass: f32,
/// }
/// let particles = causeway::Buffer::<Particle>::new(&context, 1000)?;
/// # Ok(()) }
/// # check().unwrap();
/// ```
/// A type with invalid bit patterns, such as `bool` or a reference, does not compile:
/// ```compile_fail,E0277
/// # let context = causeway::Context::new(&causeway::Device::first().unwrap()).unwrap();
/// let flags = causeway::Buffer::<bool>::new(&context, 8);
/// ```
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}
impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Plain for T {}
