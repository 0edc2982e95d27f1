//! Streams for work of the adapter itself, apart from the queues' streams: one for each key, created at first
//! use and kept.
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
    stream::Stream,
};
use std::sync::Arc;
use ur_hal::Result;
use ur_lock::PerKey;

/// The streams of other devices that execute commands of one stream, by the device's number. They are ordered
/// by that stream, and are dropped with it.
pub type PeerStreams<D> = PerKey<i32, Arc<Stream<D>>>;
/// Streams for filling memory with zeros, for blocking copies and for frees to driver pools, by context.
/// Their commands are not ordered with the default stream: they neither wait for it nor make streams of other
/// code wait, which would invalidate captures.
pub type UtilityStreams<D> = PerKey<RawContext, Arc<Stream<D>>>;

/// The utility stream of `context`, which is current.
///
/// # Errors
/// Returns the driver's error, if the stream must be created.
pub fn utility<D: Dialect>(on: &Entered<D>, context: RawContext) -> Result<Arc<Stream<D>>> {
    D::statics().utility.get(context, || Stream::create(on).map(Arc::new))
}
