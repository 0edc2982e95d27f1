//! Signals of other processes that out-of-order commands wait for: a command is released when its signal comes or fails.
use super::{command::ended, out_of_order::Job};
use std::sync::Arc;
use ur_hal::Result;
use ur_ipc::arena::Progress;
use ur_mapping::PerProcess;
use ur_system::owed::{self, Awaits, Watch};

static WATCH: PerProcess<Watch<Job>> = PerProcess::new();

/// Proof that the thread that waits for them runs.
pub(super) type Promise = owed::Promise<Job>;

/// Starts the thread, if it does not run.
///
/// # Errors
/// `OUT_OF_RESOURCES` if it cannot be started.
pub(super) fn ready() -> Result<Promise> {
    WATCH.get().ready("ur-cpu-remote")
}
impl Awaits for Job {
    fn ended(self: Arc<Self>, progress: Progress) {
        let failure = ended(progress).and_then(std::result::Result::err);
        self.released(failure.as_ref());
    }
}
