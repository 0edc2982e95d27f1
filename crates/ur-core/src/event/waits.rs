//! What a wait list stands for at the moment at which a command is submitted, as the driver is told of it.
use super::{Event, Pending, lost};
use crate::queue::HasStreams;
use std::ops::Deref;
use ur_adapter::{
    error::{ErrorCode, Result},
    object::Borrowed,
};
use ur_hal::Wait;
use ur_ipc::arena::Progress;

/// Lists up to this length take no allocation.
const FEW: usize = 8;

/// What a wait list stands for.
pub(crate) enum Waits<'a, D: HasStreams> {
    None,
    One(Pending<'a, D>),
    Few([Option<Pending<'a, D>>; FEW]),
    Many(Vec<Pending<'a, D>>),
}
/// The same, as a submission lends it to the driver.
pub(crate) enum List<'a, D: HasStreams> {
    None,
    One([Wait<'a, D>; 1]),
    Few([Wait<'a, D>; FEW], usize),
    Many(Vec<Wait<'a, D>>),
}
impl<'a, D: HasStreams> Deref for List<'a, D> {
    type Target = [Wait<'a, D>];
    #[inline(always)]
    fn deref(&self) -> &[Wait<'a, D>] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Few(few, count) => &few[..*count],
            Self::Many(many) => many,
        }
    }
}
/// What one event of a wait list stands for; `None` for what is over.
///
/// # Errors
/// `INVALID_EVENT_WAIT_LIST` for one whose shared state is gone, `IN_EVENT_LIST_EXEC_STATUS` for one that will never come.
#[inline]
fn pending<'a, D: HasStreams>(event: &'a Event<D>) -> Result<Option<Pending<'a, D>>> {
    let pending = event.pending().map_err(|error| match error.code() {
        ErrorCode::InvalidEvent => error.with_code(ErrorCode::InvalidEventWaitList),
        _ => error,
    })?;
    let Some(Pending::Word(debt)) = &pending else { return Ok(pending) };
    match debt.progress() {
        Progress::Complete => Ok(None),
        Progress::Pending => Ok(pending),
        Progress::Failed => Err(lost().into()),
    }
}
impl<'a, D: HasStreams> Waits<'a, D> {
    /// What these events stand for now.
    ///
    /// # Errors
    /// As [`pending`] says.
    #[inline(always)]
    pub(crate) fn of(events: &'a [Borrowed<'_, Event<D>>]) -> Result<Self> {
        match events {
            [] => Ok(Self::None),
            [one] => Ok(pending(one)?.map_or(Self::None, Self::One)),
            several => Self::of_several(several),
        }
    }
    fn of_several(events: &'a [Borrowed<'_, Event<D>>]) -> Result<Self> {
        if events.len() > FEW {
            let all = events.iter().filter_map(|event| pending(event).transpose());
            return all.collect::<Result<_>>().map(Self::Many);
        }
        let mut few = [const { None }; FEW];
        for (place, event) in few.iter_mut().zip(events) {
            *place = pending(event)?;
        }
        Ok(Self::Few(few))
    }
    /// As the driver is told of them.
    #[inline(always)]
    pub(crate) fn list(&self) -> List<'_, D> {
        match self {
            Self::None => List::None,
            Self::One(one) => List::One([one.lent()]),
            Self::Few(few) => {
                let mut waits = few.iter().flatten().map(Pending::lent);
                let Some(first) = waits.next() else { return List::None };
                let (mut list, mut count) = ([first; FEW], 1);
                for wait in waits {
                    list[count] = wait;
                    count += 1;
                }
                List::Few(list, count)
            }
            Self::Many(many) => List::Many(many.iter().map(Pending::lent).collect()),
        }
    }
}
impl<D: HasStreams> Pending<'_, D> {
    #[inline]
    fn lent(&self) -> Wait<'_, D> {
        match self {
            Self::Point(point) => Wait::Point(*point),
            Self::Latest(latest) => Wait::Point(&latest.point),
            Self::Captured(point) => Wait::Point(point),
            Self::Word(debt) => Wait::Word(debt),
        }
    }
}
