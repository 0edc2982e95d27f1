//! Accelerators whose memory and events are shared between processes.
//!
//! Two programs that compute on one device usually copy their data through the host to hand them over. With this
//! crate they share the memory itself, and the events that say when it is ready: no copy, no server, no daemon.
//! What one process creates, another opens with a [`Ticket`], a short text that travels by whatever means you have.
//! This page is a tour; each type has an example of its own.
//!
//! # A device, a queue, a buffer
//!
//! A [`Context`] takes a [`Device`] in use, a [`Queue`] gives it commands, a [`Buffer`] is memory of it:
//!
//! ```
//! # fn check() -> causeway::Result<()> {
//! use causeway::{Buffer, Context, Device, Queue};
//!
//! let device = Device::first()?;
//! println!("computing on {}", device.name()?);
//! let context = Context::new(&device)?;
//! let queue = Queue::new(&context)?;
//!
//! let buffer = Buffer::from_slice(&queue, &[3_u64, 1, 4, 1, 5])?;
//! assert_eq!(buffer.to_vec(&queue)?, [3, 1, 4, 1, 5]);
//! # Ok(()) }
//! # check().unwrap();
//! ```
//!
//! # Memory for another process
//!
//! [`Buffer::share`] makes an [`Export`], which has the ticket and keeps the offer standing until it is dropped:
//!
//! ```
//! # fn check() -> causeway::Result<()> {
//! # use causeway::{Buffer, Context, Device, Queue, Ticket};
//! # let context = Context::new(&Device::first()?)?;
//! # let queue = Queue::new(&context)?;
//! # let buffer = Buffer::from_slice(&queue, &[3_u64, 1, 4, 1, 5])?;
//! let export = buffer.share()?;
//! let text = export.ticket().to_string();          // print it, pipe it, put it in a file
//!
//! // In the other process. Here it is the same one, which works too.
//! let ticket: Ticket<Buffer<u64>> = text.parse()?;
//! let opened = context.open(&ticket)?;
//! opened.slice(0..1)?.copy_from_slice(&queue, &[9])?;
//! assert_eq!(buffer.to_vec(&queue)?[0], 9);        // one memory
//!
//! drop(export);                                    // nobody opens it from here on …
//! let error = context.open(&ticket).unwrap_err();
//! println!("{error}");                             // … and is told so
//! assert_eq!(opened.to_vec(&queue)?[0], 9);        // what is open stays open
//! # Ok(()) }
//! # check().unwrap();
//! ```
//!
//! Memory that several processes have is never a slice of Rust, since another process may write it at any moment:
//! values are copied in and out.
//!
//! # Who waits for whom
//!
//! An event of [`Context::create_shared_event`] orders the work of queues in different processes. A
//! [`Queue::signal`] makes it stand for everything on the queue so far; a [`Queue::wait_for`] or [`Event::wait`]
//! waits for the latest signal submitted by then, by whichever process. So submit the signal, then tell the other
//! side (by a pipe, say) that it may submit its wait; no one needs to wait for the work itself:
//!
//! ```
//! # fn check() -> causeway::Result<()> {
//! # use causeway::{Buffer, Context, Device, Queue};
//! # let context = Context::new(&Device::first()?)?;
//! # let queue = Queue::new(&context)?;
//! # let buffer = Buffer::<u32>::new(&context, 1000)?;
//! let ready = context.create_shared_event()?;
//! let export = ready.share()?;
//! queue.fill(&buffer, 1)?;
//! queue.signal(&ready)?;                           // …then say so to the other process, in which:
//!
//! let ready = context.open(export.ticket())?;
//! let queue = Queue::new(&context)?;
//! queue.wait_for(&[&ready])?;
//! queue.fill(&buffer.slice(..500)?, 2)?;           // runs after the first fill
//! queue.finish()?;
//! # assert_eq!(buffer.to_vec(&queue)?[499..501], [2, 1]);
//! # Ok(()) }
//! # check().unwrap();
//! ```
//!
//! A [`HandOver`] does both for two processes that work in turn: the events, and saying that they were signalled.
//!
//! A process must finish its queue before it ends, for its commands end with it and so do the signals behind them.
//! The `finish` above does that, and so does dropping the last clone of a queue that has signalled a shared event; a
//! process that leaves by `std::process::exit` drops nothing.
//!
//! If the process that owes a signal dies, those who wait are told at once. If it merely never does its part, waits
//! end after [`Context::patience`], a minute unless changed: every wait here has a deadline.
//!
//! # Physical memory
//!
//! [`PhysicalMemory`] has no address until it is [mapped](PhysicalMemory::map), for reading or for writing; shared,
//! it lets each process decide that. It is also what to share with a process that must not reach anything else.
//!
//! # Errors
//!
//! Every [`Error`] is a sentence that says what happened and what to do; [`Error::kind`] is for programs, and
//! [`Error::is_transient`] tells what is worth another try:
//!
//! ```
//! use causeway::{Buffer, Context, ErrorKind, Result, Ticket};
//!
//! fn open(context: &Context, ticket: &Ticket<Buffer<f32>>) -> Result<Option<Buffer<f32>>> {
//!     loop {
//!         match context.open(ticket) {
//!             Ok(buffer) => return Ok(Some(buffer)),
//!             Err(error) if error.is_transient() => continue,    // a program would count its tries
//!             Err(error) if error.kind() == ErrorKind::Withdrawn => return Ok(None),
//!             Err(error) => return Err(error),
//!         }
//!     }
//! }
//! ```

mod backend;
mod buffer;
mod context;
mod device;
mod error;
mod event;
mod ffi;
mod hand_over;
mod names;
mod physical;
mod plain;
mod policy;
mod property;
mod queue;
pub mod text;
mod ticket;
mod wait;

pub use backend::Backend;
pub use buffer::Buffer;
pub use context::Context;
pub use device::{Device, DeviceInfo, DeviceKind, Platform};
pub use error::{Code, Error, ErrorKind, Result};
pub use event::{Event, Status};
pub use hand_over::HandOver;
pub use physical::{Mapping, PhysicalMemory, Rights};
pub use plain::Plain;
pub use policy::{Access, Policy};
pub use property::{Property, Value};
pub use queue::{Download, Queue};
pub use ticket::{Export, Share, Ticket};
/// The crate whose three derives make a struct [`Plain`]; see there.
pub use zerocopy;
