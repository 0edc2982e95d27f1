//! What the events of a wait list represent when a command is submitted, as the driver needs it.
use super::{Event, Pending, lost};
use crate::queue::HasStreams;
use smallvec::SmallVec;
use ur_adapter::{
    error::{ErrorCode, Result},
    object::Borrowed,
};
use ur_hal::Wait;
use ur_ipc::arena::Progress;

/// The captured wait list. Up to 8 events need no allocation. It is filled in place, because moving it costs more than
/// a barrier.
pub(crate) type Waits<'a, D> = SmallVec<[Pending<'a, D>; 8]>;

/// Appends what each of these events represents now. Events over a word that are complete already are left out.
///
/// # Errors
/// `INVALID_EVENT_WAIT_LIST` for an event whose shared word no longer exists; `IN_EVENT_LIST_EXEC_STATUS` for one that
/// will never be signalled.
#[inline(always)]
pub(crate) fn capture<'a, D: HasStreams>(
    events: &'a [Borrowed<'_, Event<D>>],
    waits: &mut Waits<'a, D>,
) -> Result<()> {
    match events {
        [] => Ok(()),
        several => capture_each(several, waits),
    }
}
fn capture_each<'a, D: HasStreams>(
    events: &'a [Borrowed<'_, Event<D>>],
    waits: &mut Waits<'a, D>,
) -> Result<()> {
    for event in events {
        let pending = event.pending().map_err(|error| match error.code() {
            ErrorCode::InvalidEvent => error.with_code(ErrorCode::InvalidEventWaitList),
            _ => error,
        })?;
        if let Some(Pending::Word(debt)) = &pending {
            match debt.progress() {
                Progress::Complete => continue,
                Progress::Pending => {}
                Progress::Failed => return Err(lost().into()),
            }
        }
        waits.extend(pending);
    }
    Ok(())
}
impl<D: HasStreams> Pending<'_, D> {
    /// The wait in the driver's terms.
    #[inline]
    pub(crate) fn lent(&self) -> Wait<'_, D> {
        match self {
            Self::Point(point) => Wait::Point(*point),
            Self::Latest(latest) => Wait::Point(&latest.point),
            Self::Captured(point) => Wait::Point(point),
            Self::Word(debt) => Wait::Word(debt),
        }
    }
}
