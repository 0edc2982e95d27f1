//! Accelerators whose memory and events are shared between processes.
//!
//! Two programs that compute on one device usually copy their data through the host to pass it on. With this crate they
//! share the memory itself, and the events that tell when it is ready, without copies, servers or daemons. What one
//! process creates, another opens with a [`Ticket`], a short text that can be passed on by any means. This page is a
//! tour; each type has an example of its own.
//!
//! # A device, a queue, a buffer
//!
//! A [`Context`] is a device in use, a [`Queue`] submits commands to it, and a [`Buffer`] is memory of it:
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
//! [`Buffer::share`] makes an [`Export`]. It contains the ticket, and other processes can open it until it is dropped:
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
//! drop(export);                                    // from here on it cannot be opened …
//! let error = context.open(&ticket).unwrap_err();
//! println!("{error}");                             // … and the error says so
//! assert_eq!(opened.to_vec(&queue)?[0], 9);        // what is open stays open
//! # Ok(()) }
//! # check().unwrap();
//! ```
//!
//! Memory that processes share is never lent as a Rust slice, because another process may write it at any moment:
//! values are copied in and out.
//!
//! # Ordering work between processes
//!
//! An event of [`Context::create_shared_event`] orders the work of queues in different processes. [`Queue::signal`]
//! makes it stand for everything on the queue so far; [`Queue::wait_for`] or [`Event::wait`] waits for the latest
//! signal submitted by then, from whichever process. So submit the signal first, then tell the other process (through a
//! pipe, for example) that it may submit its wait. Neither process has to wait for the work itself:
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
//! A [`HandOver`] does both for two processes that work alternately: it signals the events, and tells the other side.
//!
//! A process must finish its queue before it ends, because its commands, and the signals after them, end with it. The
//! `finish` above does that, and so does dropping the last clone of a queue that has signalled a shared event. A
//! process that ends with `std::process::exit` drops nothing.
//!
//! If the process that is to complete a signal dies, waiting processes get an error at once. If it never does its part,
//! waits end after [`Context::patience`], a minute unless changed: every wait in this crate has a deadline.
//!
//! # Physical memory
//!
//! [`PhysicalMemory`] has no address until it is [mapped](PhysicalMemory::map), for reading or for writing. If it is
//! shared, each process decides that for itself. Use it to share memory with a process that must not access anything
//! else.
//!
//! # Errors
//!
//! Every [`Error`] is a sentence that says what happened and what to do; [`Error::kind`] is for programs, and
//! [`Error::is_transient`] tells whether a call is worth repeating:
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
/// By which a program sees that what it keeps in statics was made by the process that it was forked from: what a forked child
/// inherits of this crate, it must not use ([`ErrorKind::Forked`]).
pub use ur_mapping::fork_count;
/// The crate whose derive macros make a struct [`Plain`].
pub use zerocopy;
