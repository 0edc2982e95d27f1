//! How the host waits for the driver: it looks for a short while, for most waits are short, then it naps
//! between looks, for the device's interrupt takes longer than a nap, and then it sleeps until the device wakes it. The driver's own waits would spin: whether they do is said once for a whole context, which
//! is others' too. So the sleep is in an event of ours that is made for it; one that is waited for is
//! not, as what such events cost the device would be paid for each command.
use super::{
    Device,
    driver::Dialect,
    native::{
        context::Entered,
        event::{NativeEvent, Pooled},
        stream::Stream,
    },
};
use std::{
    hint,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};
use ur_adapter::error::Result;

/// For so long the host looks before it sleeps.
const LOOKS: Duration = Duration::from_micros(50);
/// For so long, with the looks, it only naps: copies of some hundred microseconds took 150 more when the host slept
/// in an event (NVIDIA H200, driver 580).
const NAPS: Duration = Duration::from_millis(2);
/// What a nap asks for; the kernel makes about 70 microseconds of it.
const NAP: Duration = Duration::from_micros(20);

/// What one thread at a time sleeps in.
#[derive(Debug)]
struct Sleeper<D: Dialect> {
    /// Has nothing in it but what is waited for.
    stream: Stream<D>,
    event: NativeEvent<D>,
}
/// Those of a device that nobody sleeps in.
#[derive(Debug)]
pub struct Sleepers<D: Dialect>(Mutex<Vec<Sleeper<D>>>);
impl<D: Dialect> Sleepers<D> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn with(&self, on: &Entered<D>, sleep: impl FnOnce(&Sleeper<D>) -> Result<()>) -> Result<()> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let sleeper = match idle {
            Some(sleeper) => sleeper,
            None => Sleeper { stream: Stream::create(on, 0)?, event: NativeEvent::blocking(on)? },
        };
        sleep(&sleeper)?; // of one that failed nobody knows what is in it
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sleeper);
        Ok(())
    }
}

/// Looks for a while; whether it was enough.
fn look(mut is_over: impl FnMut() -> Result<bool>) -> Result<bool> {
    if is_over()? {
        return Ok(true);
    }
    let begun = Instant::now();
    while begun.elapsed() < LOOKS {
        hint::spin_loop();
        if is_over()? {
            return Ok(true);
        }
    }
    while begun.elapsed() < NAPS {
        thread::sleep(NAP);
        if is_over()? {
            return Ok(true);
        }
    }
    Ok(false)
}
/// Waits until everything before the point that `event` marks is done, on a stream of `device` sleeping.
///
/// # Errors
/// The driver's own: those of the commands before it, and for an event whose record is part of a graph.
pub(super) fn wait_for<D: Dialect>(event: &NativeEvent<D>, device: &Device<D>) -> Result<()> {
    if look(|| event.has_happened())? {
        return Ok(());
    }
    let on = device.enter()?;
    device.sleepers().with(&on, |sleeper| {
        sleeper.stream.wait_for(event)?;
        sleeper.event.record(&sleeper.stream)?;
        sleeper.event.synchronize()
    })
}
impl<D: Dialect> Pooled<D> {
    /// The same for an event of a pool, whose device is known.
    ///
    /// # Errors
    /// As for [`wait_for`].
    pub(super) fn wait(&self) -> Result<()> {
        wait_for(self, self.device()?)
    }
}
/// Waits until everything in `stream`, one of `device`'s, is done.
///
/// # Errors
/// The driver's own, those of its commands among them.
pub(super) fn finish<D: Dialect>(stream: &Stream<D>, device: &Device<D>) -> Result<()> {
    let on = device.enter()?; // the default stream is that of the current context
    if look(|| stream.is_idle())? {
        return Ok(());
    }
    device.sleepers().with(&on, |sleeper| {
        sleeper.event.record(stream)?;
        sleeper.event.synchronize()
    })
}
