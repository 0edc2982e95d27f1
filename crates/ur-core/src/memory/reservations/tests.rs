//! Tests of the registry of reservations.
use super::*;
use std::rc::Rc;

const BASE: usize = 0x10_0000;
const G: usize = 0x1000;

fn span(granule: usize, count: usize) -> Span {
    let start = UsmPtr::from_addr(BASE + granule * G).unwrap();
    Span { context: 1, start, bytes: count * G }
}
/// A reservation of eight granules, nothing mapped.
fn reserved() -> Reservations<&'static str, Rc<()>> {
    let all = Reservations::default();
    all.enter(span(0, 8), G, "range");
    all
}
fn code<T>(of: Result<T>) -> Option<ErrorCode> {
    of.err().map(|error| error.code())
}
const REFUSED: Option<ErrorCode> = Some(ErrorCode::InvalidValue);

#[test]
fn a_mapping_keeps_its_memory_until_all_of_it_is_unmapped() {
    let (all, memory) = (reserved(), Rc::new(()));
    all.map(span(2, 3), Access::READ_WRITE, &memory, |_| Ok(())).unwrap();
    assert_eq!(Rc::strong_count(&memory), 2);
    assert_eq!(code(all.map(span(4, 2), Access::NONE, &memory, |_| Ok(()))), REFUSED);
    assert_eq!(code(all.take(span(0, 8))), REFUSED, "memory is mapped there");
    assert_eq!(
        code(all.unmap((span(2, 2), false), || Ok(()), |_, _, _| Ok(()))),
        REFUSED,
        "a part"
    );
    let mut unmapped = vec![];
    let work = |_: &_, _: &Rc<()>, at: ur_hal::Range| {
        unmapped.push((at.start().get(), at.bytes()));
        Ok(())
    };
    all.unmap((span(2, 3), false), || Ok(()), work).unwrap();
    assert_eq!(unmapped, [(BASE + 2 * G, 3 * G)]);
    assert_eq!(Rc::strong_count(&memory), 1);
    assert_eq!(code(all.take(span(0, 4))), REFUSED, "only a part");
    assert_eq!(*all.take(span(0, 8)).unwrap(), "range");
    assert_eq!(code(all.take(span(0, 8))), REFUSED, "it is reserved no more");
}
#[test]
fn a_driver_that_unmaps_parts_keeps_the_rest_of_the_mapping() {
    let (all, memory) = (reserved(), Rc::new(()));
    all.map(span(0, 4), Access::READ_WRITE, &memory, |_| Ok(())).unwrap();
    all.set_access(span(2, 2), Access::READ_ONLY, || Ok(()), |_, _| Ok(())).unwrap();
    let mut unmapped = vec![];
    let work = |_: &_, _: &Rc<()>, at: ur_hal::Range| {
        unmapped.push((at.start().get(), at.bytes()));
        Ok(())
    };
    all.unmap((span(1, 2), true), || Ok(()), work).unwrap();
    assert_eq!(unmapped, [(BASE + G, G), (BASE + 2 * G, G)]);
    assert_eq!(all.access(span(0, 1)).unwrap(), Access::READ_WRITE);
    assert_eq!(all.access(span(3, 1)).unwrap(), Access::READ_ONLY);
    assert_eq!(code(all.access(span(1, 1))), REFUSED, "it is mapped no more");
    for rest in [0, 3] {
        assert!(Rc::strong_count(&memory) > 1);
        all.unmap((span(rest, 1), true), || Ok(()), |_, _, _| Ok(())).unwrap();
    }
    assert_eq!(Rc::strong_count(&memory), 1);
}
#[test]
fn access_is_of_parts_and_what_the_driver_refuses_changes_nothing() {
    let (all, memory) = (reserved(), Rc::new(()));
    let failure = || Err(ErrorCode::OutOfResources.into());
    let failed = all.map(span(0, 4), Access::READ_WRITE, &memory, |_| failure());
    assert_eq!(code(failed), Some(ErrorCode::OutOfResources));
    assert_eq!(Rc::strong_count(&memory), 1);
    all.map(span(0, 4), Access::READ_WRITE, &memory, |_| Ok(())).unwrap();
    all.set_access(span(1, 2), Access::READ_ONLY, || Ok(()), |_, _| Ok(())).unwrap();
    let failed = all.set_access(span(0, 4), Access::NONE, || Ok(()), |_, _| failure());
    assert_eq!(code(failed), Some(ErrorCode::OutOfResources));
    assert_eq!(all.access(span(0, 1)).unwrap(), Access::READ_WRITE);
    assert_eq!(all.access(span(1, 2)).unwrap(), Access::READ_ONLY);
    assert_eq!(all.access(span(3, 1)).unwrap(), Access::READ_WRITE);
    assert_eq!(code(all.access(span(0, 4))), REFUSED, "of different access");
    assert_eq!(code(all.access(span(3, 2))), REFUSED, "not all mapped");
    // It is still one mapping, which is unmapped in one call.
    let mut unmapped = vec![];
    let work = |_: &_, _: &Rc<()>, at: ur_hal::Range| {
        unmapped.push(at.bytes());
        Ok(())
    };
    all.unmap((span(0, 4), false), || Ok(()), work).unwrap();
    assert_eq!((unmapped, Rc::strong_count(&memory)), (vec![4 * G], 1));
}
#[test]
fn while_the_driver_is_at_work_on_a_part_nobody_else_is() {
    let (all, memory) = (reserved(), Rc::new(()));
    all.map(span(0, 2), Access::READ_WRITE, &memory, |_| {
        assert_eq!(code(all.access(span(0, 2))), REFUSED);
        assert_eq!(code(all.unmap((span(0, 2), false), || Ok(()), |_, _, _| Ok(()))), REFUSED);
        Ok(())
    })
    .unwrap();
    let work = |_: &_, _: &Rc<()>, _| {
        assert_eq!(
            code(all.set_access(span(0, 2), Access::NONE, || Ok(()), |_, _| Ok(()))),
            REFUSED
        );
        Err(ErrorCode::DeviceLost.into())
    };
    assert_eq!(code(all.unmap((span(0, 2), false), || Ok(()), work)), Some(ErrorCode::DeviceLost));
    assert_eq!(all.access(span(0, 2)).unwrap(), Access::READ_WRITE, "it is mapped still");
}
#[test]
fn a_right_is_taken_away_when_the_commands_before_are_over_and_given_at_once() {
    use Access as A;
    let (all, memory) = (reserved(), Rc::new(()));
    all.map(span(0, 2), A::READ_WRITE, &memory, |_| Ok(())).unwrap();
    let steps = std::cell::RefCell::new(vec![]);
    let set = |part, access| {
        let step = |what| {
            steps.borrow_mut().push(what);
            Ok(())
        };
        all.set_access(part, access, || step("waits"), |_, _| step("sets")).unwrap();
        steps.take()
    };
    assert_eq!(set(span(1, 1), A::READ_ONLY), ["waits", "sets"]);
    assert_eq!(set(span(0, 2), A::READ_WRITE), ["sets"], "it only adds");
    assert_eq!(set(span(0, 1), A::NONE), ["waits", "sets"]);
    assert_eq!(set(span(0, 2), A::READ_ONLY), ["waits", "sets"], "from the second granule");
    assert_eq!(set(span(0, 2), A::READ_ONLY), ["sets"]);
    let lost = || Err(ErrorCode::DeviceLost.into());
    let kept = all.set_access(span(0, 2), A::NONE, lost, |_, _| panic!("the wait failed"));
    assert_eq!(code(kept), Some(ErrorCode::DeviceLost));
    assert_eq!(all.access(span(0, 2)).unwrap(), A::READ_ONLY);
}
#[test]
fn what_commands_write_is_mapped_for_writing_from_end_to_end() {
    use ur_hal::Access::{Read, ReadWrite};
    let (all, memory) = (reserved(), Rc::new(()));
    all.map(span(0, 4), Access::READ_WRITE, &memory, |_| Ok(())).unwrap();
    all.set_access(span(2, 1), Access::READ_ONLY, || Ok(()), |_, _| Ok(())).unwrap();
    let check = |from: usize, to: usize, needs| {
        let at = UsmPtr::from_addr(BASE + from).unwrap().into();
        code(all.check_mapped(ur_hal::Range::new(at, to - from).unwrap(), needs))
    };
    assert_eq!([check(0, 2 * G, ReadWrite), check(3 * G, 4 * G, ReadWrite)], [None; 2]);
    assert_eq!(check(0, 4 * G, Read), None);
    let refused = [check(0, 2 * G + 1, ReadWrite), check(3 * G - 1, 4 * G, ReadWrite)];
    assert_eq!(refused, [REFUSED; 2]);
}
#[test]
fn what_commands_use_has_no_byte_that_is_reserved_and_not_mapped() {
    let check = |all: &Reservations<_, _>, from: usize, to: usize| {
        let range = ur_hal::Range::new(UsmPtr::from_addr(from).unwrap().into(), to - from);
        code(all.check_mapped(range.unwrap(), ur_hal::Access::Read))
    };
    let none = Reservations::<&'static str, Rc<()>>::default();
    assert_eq!(check(&none, BASE, BASE + 1), None);
    let (all, memory) = (reserved(), Rc::new(()));
    for (granule, count) in [(1, 1), (2, 2), (5, 1)] {
        all.map(span(granule, count), Access::READ_WRITE, &memory, |_| Ok(())).unwrap();
    }
    all.set_access(span(2, 1), Access::READ_ONLY, || Ok(()), |_, _| Ok(())).unwrap();
    let of = |from: usize, to: usize| check(&all, BASE + from, BASE + to);
    assert_eq!([of(G, 4 * G), of(G + 1, 4 * G - 1), of(5 * G, 6 * G)], [None; 3]);
    let refused = [of(0, 1), of(G - 1, G + 1), of(3 * G, 4 * G + 1), of(5 * G, 6 * G + 1)];
    assert_eq!(refused, [REFUSED; 4]);
    assert_eq!([of(4 * G, 5 * G), of(G, 6 * G), of(8 * G - 1, 9 * G)], [REFUSED; 3]);
    assert_eq!(check(&all, BASE - G, BASE), None, "before all");
    assert_eq!(check(&all, BASE - 1, BASE + 1), REFUSED);
    assert_eq!(check(&all, BASE + 8 * G, BASE + 9 * G), None, "behind all");
    all.set_access(span(2, 1), Access::NONE, || Ok(()), |_, _| Ok(())).unwrap();
    assert_eq!([of(G, 2 * G), of(2 * G, 3 * G)], [None, REFUSED], "mapped without access");
}
#[test]
fn ranges_that_are_none_of_a_context_are_refused() {
    let all = reserved();
    let foreign = Span { context: 2, ..span(0, 8) };
    assert_eq!(code(all.take(foreign)), REFUSED);
    assert_eq!(code(all.take(span(7, 2))), REFUSED, "it ends behind");
    let short = Span { bytes: G / 2, ..span(0, 1) };
    assert_eq!(code(all.take(short)), Some(ErrorCode::InvalidSize));
    let start = UsmPtr::from_addr(BASE + 1).unwrap();
    assert_eq!(code(all.take(Span { start, ..span(0, 1) })), REFUSED);
    assert_eq!(code(check_offset((G, G), G, 2 * G)), None);
    assert_eq!(code(check_offset((G, 2 * G), G, 2 * G)), REFUSED);
    assert_eq!(code(check_offset((1, G), G, 2 * G)), REFUSED);
}
