//! The start and the end of the loader. Starts are counted: the first finds the adapters, the last end stops
//! using them, and after it every call returns `UNINITIALIZED`.
use crate::{
    adapters, config, discover,
    failure::{Failure, enter},
    held::Held,
    layers, library, log,
    state::{self, State},
};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use ur_adapter::error::ErrorCode;
use ur_sys::*;

/// The number of starts without an end. Relaxed: it is changed only under the lock.
static STARTS: AtomicU32 = AtomicU32::new(0);
/// Held while adapters are found, so that a concurrent start returns only when they are there. False in a
/// child forked meanwhile: files that were being opened must not be used there.
static TURN: Held<bool> = Held::new(true);

/// Starts the loader. The device flags filter nothing; `ONEAPI_DEVICE_SELECTOR` decides which devices a
/// program sees.
pub extern "C" fn loader_init(
    device_flags: ur_device_init_flags_t,
    loader_config: ur_loader_config_handle_t,
) -> ur_result_t {
    enter("urLoaderInit", || {
        if device_flags.unknown_bits() != 0 {
            let sentence = format!("{device_flags:?} has bits that are no flags");
            return Err(Failure::new(ErrorCode::InvalidEnumeration, sentence));
        }
        let asked = config::asked(loader_config)?;
        let mut turn = TURN.lock();
        if !std::mem::replace(&mut *turn, true) {
            library::forget();
        }
        let starts = STARTS.load(Relaxed);
        if starts == 0 {
            adapters::start(&discover::candidates(asked.mock));
            let layered = layers::start(&asked.layers, asked.code_location);
            state::set(if layered { State::Layered } else { State::Plain });
            log::debug("the loader is up");
        }
        STARTS.store(starts.checked_add(1).ok_or(ErrorCode::OutOfResources)?, Relaxed);
        Ok(())
    })
}

/// Ends the loader, if this is the end that matches the first start.
pub extern "C" fn loader_tear_down() -> ur_result_t {
    enter("urLoaderTearDown", || {
        let _turn = TURN.lock();
        let starts = STARTS.load(Relaxed).checked_sub(1).ok_or(ErrorCode::Uninitialized)?;
        STARTS.store(starts, Relaxed);
        if starts == 0 {
            // The state changes first, so that a call that begins while the layers stop is refused instead of
            // bypassing them.
            state::set(State::Down);
            layers::stop();
            adapters::stop();
            log::debug("the loader is down");
        }
        Ok(())
    })
}
