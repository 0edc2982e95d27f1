//! The loader's start and end. Starts are counted: the first one finds the adapters, the last end
//! lets go of them, and after it every call answers that there is no loader.
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

/// How often the loader was started and not ended. Relaxed: who changes it has the lock.
static STARTS: AtomicU32 = AtomicU32::new(0);
/// Held while adapters are found, so that a second start does not come back before there are any.
/// False in a child of a fork that came meanwhile: files that were being opened are not to be used.
static TURN: Held<bool> = Held::new(true);

/// Starts the loader. The flags rule out nothing: which devices a program sees is the selector's.
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

/// Ends the loader, if it was started once more than ended.
pub extern "C" fn loader_tear_down() -> ur_result_t {
    enter("urLoaderTearDown", || {
        let _turn = TURN.lock();
        let starts = STARTS.load(Relaxed).checked_sub(1).ok_or(ErrorCode::Uninitialized)?;
        STARTS.store(starts, Relaxed);
        if starts == 0 {
            // First: a call that begins while layers stop is refused, and does not pass them unseen.
            state::set(State::Down);
            layers::stop();
            adapters::stop();
            log::debug("the loader is down");
        }
        Ok(())
    })
}
