//! What a graph keeps that other code captures from a stream: its commands run again at each launch of the graph, and use
//! their memory and call their functions then, as long as the graph and what was made of it exist.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Dialect, RawGraph},
    calls::Number,
    stream::{Stream, run, taking},
};
use std::{ffi::c_void, ptr::null_mut};
use ur_hal::{Error, ErrorKind, HostCall, Result, made};

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, which must be set: the driver does not wait for the destructor.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: the caller's reference becomes the graph's.
const MOVE: u32 = 1;

impl<D: Dialect> Stream<D> {
    /// The number of the capture that it is in, unique in the process, and the capture's graph.
    ///
    /// # Errors
    /// `INVALID_OPERATION` if the capture is broken or has ended; else the driver's.
    fn capture(&self) -> Result<(u64, RawGraph)> {
        let (mut status, mut number, mut graph) = (0, 0, None);
        // SAFETY: the stream is live, all three are writable, and the driver writes nothing where it gets null.
        let told = unsafe {
            let (status, number, graph) = (&raw mut status, &raw mut number, &raw mut graph);
            let none = (null_mut(), null_mut());
            D::driver().stream_capture_info(self.raw(), status, number, graph, none.0, none.1)
        };
        told.ok()?;
        graph.map(|graph| (number, graph)).ok_or_else(|| {
            let why = "the capture of the queue's stream was broken by an earlier error or has ended: end it, and begin anew";
            Error::new(ErrorKind::InvalidOperation, why)
        })
    }
    /// The number of the capture that this stream is in: 0 if the driver does not number captures.
    ///
    /// # Errors
    /// `INVALID_OPERATION` if the capture is broken or has ended; else the driver's.
    pub(in super::super) fn capture_number(&self) -> Result<u64> {
        match D::driver().has("stream_capture_info") {
            true => self.capture().map(|(number, _)| number),
            false => Ok(0),
        }
    }
    /// Gives the graph that is captured from this stream something that its commands use; the address at which it stays.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver has no such graphs, `INVALID_OPERATION` if the capture is broken; else the driver's
    /// error.
    pub(super) fn keep_in_graph<T: Send + 'static>(&self, kept: T) -> Result<*mut T> {
        /// Called on a thread of the driver, which must not be called then.
        unsafe extern "C" fn let_go<T>(kept: *mut c_void) {
            // SAFETY: created by `into_raw` below, and passed to one call.
            let kept = unsafe { Box::from_raw(kept.cast::<T>()) };
            let _panicked = ur_lock::caught(|| drop(kept));
        }
        let (_, graph) = self.capture()?;
        let driver = D::driver();
        let at = Box::into_raw(Box::new(kept));
        // SAFETY: `to` is writable, and `at` is what the function takes, once.
        let object = made(|to| unsafe {
            driver.user_object_create(to, at.cast(), let_go::<T>, 1, NO_DESTRUCTOR_SYNC)
        });
        let object = object.inspect_err(|_| {
            // SAFETY: the driver did not take it, so it is still owned here.
            drop(unsafe { Box::from_raw(at) });
        })?;
        // SAFETY: the object is live, and so is the graph of a capture that has not ended.
        let retained = unsafe { driver.graph_retain_user_object(graph, object, 1, MOVE) }.ok();
        retained.inspect_err(|_| {
            // SAFETY: the reference is still this function's. The driver lets go of what it has.
            unsafe { driver.user_object_release(object, 1) }.let_go();
        })?;
        Ok(at)
    }
    /// Captures a call of `call`, each time that the graph runs.
    ///
    /// # Errors
    /// As for [`keep_in_graph`](Self::keep_in_graph).
    pub(super) fn capture_call(&self, call: &HostCall) -> Result<()> {
        let call = Number::again(call.clone());
        let number = call.data();
        self.keep_in_graph(call)?;
        // SAFETY: `run` takes any number.
        taking(unsafe { D::driver().stream_host_fn(self.raw(), run::<D>, number) })
    }
}
