//! The behaviour of the crate within one process; `processes` tests two.
use causeway::{
    Buffer, Code, Context, Device, Error, ErrorKind, Event, PhysicalMemory, Queue, Rights, Status,
    Ticket,
};
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

fn start() -> (Context, Queue) {
    let context = Context::new(&Device::first().unwrap()).unwrap();
    let queue = Queue::new(&context).unwrap();
    (context, queue)
}

/// A command that holds `queue` until the sender is used or dropped.
fn hold(queue: &Queue) -> mpsc::Sender<()> {
    let (open, opened) = mpsc::channel();
    queue
        .host_task(move || {
            let _ = opened.recv();
        })
        .unwrap();
    open
}

#[test]
fn values_come_back_as_they_went() {
    let (context, queue) = start();
    let values: Vec<u64> = (0..100_000).map(|n| n * n).collect();
    let buffer = Buffer::from_slice(&queue, &values).unwrap();
    assert_eq!(buffer.to_vec(&queue).unwrap(), values);
    assert_eq!((buffer.len(), buffer.byte_len()), (100_000, 800_000));
    let other = Buffer::new(&context, 100_000).unwrap();
    queue.copy(&buffer, &other).unwrap();
    assert_eq!(other.to_vec(&queue).unwrap(), values);
}

#[test]
fn a_slice_knows_the_allocation_that_it_keeps() {
    let (context, _) = start();
    let buffer = Buffer::<u32>::new(&context, 1000).unwrap();
    let (whole, part) = (buffer.allocation().unwrap(), buffer.slice(10..20).unwrap());
    assert_eq!(part.allocation().unwrap(), whole);
    assert!(
        whole.start <= part.address() && part.address() + 40 <= whole.end && whole.len() >= 4000
    );
}
#[test]
fn what_is_not_another_processs_does_not_stand_for_another_open() {
    let (context, _) = start();
    let export = Buffer::<u32>::new(&context, 1000).unwrap().share().unwrap();
    assert!(!export.ticket().object_stands(), "it is our own");
    assert!(!Ticket::<Buffer<u32>>::from_bytes([7; 100]).object_stands(), "it is no ticket");
}
#[test]
fn slices_of_slices_are_where_they_should_be() {
    let (_, queue) = start();
    let buffer = Buffer::from_slice(&queue, &[0_u16, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    let inner = buffer.slice(2..9).unwrap().slice(1..=3).unwrap();
    assert_eq!(inner.to_vec(&queue).unwrap(), [3, 4, 5]);
    inner.fill(&queue, 99).unwrap();
    assert_eq!(buffer.to_vec(&queue).unwrap(), [0, 1, 2, 99, 99, 99, 6, 7, 8, 9]);
    assert_eq!(buffer.slice(8..).unwrap().cast::<u32>().unwrap().len(), 1);
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "refused")]
fn ranges_that_are_none_are_refused() {
    let (context, _) = start();
    let buffer = Buffer::<u8>::new(&context, 10).unwrap();
    for range in [0..11, 5..5, 11..12, 7..3, 0..usize::MAX] {
        assert_eq!(buffer.slice(range).unwrap_err().kind(), ErrorKind::Length);
    }
    assert_eq!(buffer.slice(..=usize::MAX).unwrap_err().kind(), ErrorKind::Length);
    assert_eq!(buffer.cast::<[u8; 3]>().unwrap_err().kind(), ErrorKind::Length);
    assert_eq!(Buffer::<u8>::new(&context, 0).unwrap_err().kind(), ErrorKind::Length);
    assert_eq!(Buffer::<u64>::new(&context, usize::MAX).unwrap_err().kind(), ErrorKind::Length);
}

#[test]
fn lengths_that_differ_are_refused() {
    let (context, queue) = start();
    let (a, b) = (Buffer::<u8>::new(&context, 4).unwrap(), Buffer::<u8>::new(&context, 5).unwrap());
    let refused: [Error; 4] = [
        queue.copy(&a, &b).unwrap_err(),
        queue.upload(vec![1, 2, 3], &a).unwrap_err(),
        a.copy_from_slice(&queue, &[1; 5]).unwrap_err(),
        a.copy_to_slice(&queue, &mut [1; 3]).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Length, "{error}");
    }
}

#[test]
fn a_buffer_of_another_context_is_refused() {
    let ((context, _), (_, queue)) = (start(), start());
    let buffer = Buffer::<u8>::new(&context, 4).unwrap();
    assert!(buffer.fill(&queue, 1).unwrap_err().to_string().contains("another context"));
}

#[test]
fn commands_keep_what_they_need() {
    let (context, queue) = start();
    let gate = hold(&queue);
    let result = Buffer::<u32>::new(&context, 50_000).unwrap();
    {
        let source = Buffer::<u32>::new(&context, 50_000).unwrap();
        queue.upload(vec![7; 50_000], &source).unwrap();
        queue.copy(&source, &result).unwrap();
    } // dropped while all three commands are still pending
    let download = queue.download(&result).unwrap();
    drop((queue, result));
    assert_ne!(download.event().status().unwrap(), Status::Complete);
    gate.send(()).unwrap();
    assert_eq!(download.wait().unwrap(), [7; 50_000]);
}

#[test]
fn a_wait_ends_at_its_deadline_and_can_be_taken_up_again() {
    let (context, queue) = start();
    let event = context.create_event().unwrap();
    assert_eq!(event.status().unwrap(), Status::Complete);
    event.wait_timeout(Duration::ZERO).unwrap();

    let gate = hold(&queue);
    queue.signal(&event).unwrap();
    assert_ne!(event.status().unwrap(), Status::Complete);
    let begun = Instant::now();
    let error = event.wait_timeout(Duration::from_millis(30)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(begun.elapsed() >= Duration::from_millis(30));

    context.set_patience(Duration::from_millis(5));
    let buffer = Buffer::<u8>::new(&context, 1).unwrap();
    let blocked: [Error; 3] = [
        event.wait().unwrap_err(),
        queue.finish().unwrap_err(),
        buffer.to_vec(&queue).unwrap_err(),
    ];
    for error in blocked {
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }
    gate.send(()).unwrap();
    event.wait_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(event.status().unwrap(), Status::Complete);
}

#[test]
fn a_wait_is_for_what_was_signalled_by_then() {
    let (context, first) = start();
    let (second, third) = (Queue::new(&context).unwrap(), Queue::new(&context).unwrap());
    let event = context.create_shared_event().unwrap();
    let (gate, later_gate) = (hold(&first), hold(&second));
    first.signal(&event).unwrap();
    third.wait_for(&[&event]).unwrap(); // for the first signal …
    let passed = third.marker().unwrap();
    second.signal(&event).unwrap(); // … which this neither changes nor delays
    gate.send(()).unwrap();
    passed.wait().unwrap();
    assert_ne!(event.status().unwrap(), Status::Complete);
    later_gate.send(()).unwrap();
    event.wait().unwrap();
}

/// The object is unsuitable, and the sentence names the Rust call that makes a suitable one, and no C name.
#[track_caller]
fn unsuitable<T: std::fmt::Debug>(result: causeway::Result<T>, names: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsuitable, "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(names) && !sentence.contains("UR_"), "{sentence}");
}

#[test]
fn an_event_of_a_command_cannot_be_signalled_or_shared() {
    let (context, queue) = start();
    let done = queue.fill(&Buffer::<u8>::new(&context, 1).unwrap(), 1).unwrap();
    unsuitable(queue.signal(&done), "Context::create_event");
    unsuitable(done.share(), "Context::create_shared_event");
    unsuitable(context.create_event().unwrap().share(), "Context::create_shared_event");
}

#[test]
fn an_opened_event_cannot_be_shared_again_and_opened_physical_memory_can() {
    let (context, _) = start();
    let event = context.create_shared_event().unwrap().share().unwrap();
    let opened = context.open(event.ticket()).unwrap();
    unsuitable(opened.share(), "the process that created it");

    let memory = PhysicalMemory::shareable(&context, 1).unwrap();
    let opened = context.open(memory.share().unwrap().ticket()).unwrap();
    assert_eq!(opened.size(), memory.size());
    let again = context.open(opened.share().unwrap().ticket()).unwrap();
    assert_eq!(again.size(), memory.size());
    let private = PhysicalMemory::new(&context, 1).unwrap();
    unsuitable(private.share(), "PhysicalMemory::shareable");
    unsuitable(
        memory.map(Rights::Read).unwrap().buffer::<u8>().unwrap().share(),
        "physical_memory",
    );
}

#[test]
fn an_export_keeps_its_memory_and_ends_with_itself() {
    let (context, queue) = start();
    let export = Buffer::from_slice(&queue, b"still here").unwrap().share().unwrap();
    let opened = context.open(export.ticket()).unwrap();
    let ticket = export.ticket().clone();
    drop(export);
    assert_eq!(opened.to_vec(&queue).unwrap(), b"still here");
    let error = context.open(&ticket).unwrap_err();
    assert_eq!(error.code(), Some(Code::ERROR_INVALID_VALUE));
}

#[test]
fn a_ticket_of_another_length_is_refused() {
    let (context, queue) = start();
    let buffer = Buffer::from_slice(&queue, &[0_u8; 10]).unwrap();
    let export = buffer.share().unwrap();
    let text = export.ticket().to_string();
    let words: Ticket<Buffer<u32>> = text.parse().unwrap();
    assert_eq!(context.open(&words).unwrap_err().kind(), ErrorKind::WrongType);
    // A handle from C does not state the type of the values: only the size of the memory is known.
    let from_c = export.ticket().handle_bytes().to_vec();
    let error = context.open(&Ticket::<Buffer<[u8; 3]>>::from_bytes(from_c)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Length, "{error}");

    let mut longer = export.ticket().as_bytes().to_vec();
    let at = longer.len() - 8;
    longer[at..].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let error = context.open(&Ticket::<Buffer<u8>>::from_bytes(longer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ticket, "{error}");
}

#[test]
fn values_are_where_their_type_may_be() {
    let (context, queue) = start();
    let buffer = Buffer::from_slice(&queue, &[0_u8; 16]).unwrap();
    buffer.slice(4..12).unwrap().cast::<u32>().unwrap();
    let odd = buffer.slice(1..9).unwrap();
    assert_eq!(odd.cast::<u32>().unwrap_err().kind(), ErrorKind::WrongType);
    let export = odd.share().unwrap();
    let from_c = export.ticket().handle_bytes();
    let error = context.open(&Ticket::<Buffer<u16>>::from_bytes(from_c)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongType, "{error}"); // at an odd address
    let odd = buffer.slice(3..).unwrap().share().unwrap();
    let from_c = Ticket::<Buffer<[u8; 13]>>::from_bytes(odd.ticket().handle_bytes());
    assert_eq!(context.open(&from_c).unwrap().len(), 1);
}

#[test]
fn bytes_that_are_no_ticket_are_refused_when_opened() {
    let (context, _) = start();
    let export = context.create_shared_event().unwrap().share().unwrap();
    let good = export.ticket().as_bytes();
    let invalid = Some(Code::ERROR_INVALID_VALUE);
    for bytes in
        [&[][..], &[7], &good[..good.len() - 1], &[good, &[0]].concat(), &vec![0; good.len()]]
    {
        let error = context.open(&Ticket::<Event>::from_bytes(bytes)).unwrap_err();
        assert_eq!(error.code(), invalid, "{error}");
    }
    for at in 0..good.len() {
        let mut flipped = good.to_vec();
        flipped[at] ^= 1;
        assert!(context.open(&Ticket::<Event>::from_bytes(flipped)).is_err(), "byte {at}");
    }
    let error = context.open(&Ticket::<Buffer<u8>>::from_bytes(good)).unwrap_err();
    assert_eq!(error.to_string(), "this ticket is an event; memory was asked for");
}

#[test]
fn a_mapping_outlives_its_name_while_buffers_see_it() {
    let (context, queue) = start();
    let memory = PhysicalMemory::new(&context, 1).unwrap();
    assert!(memory.size().is_multiple_of(context.granularity().unwrap()));
    let other = memory.map(Rights::Read).unwrap().buffer::<u8>().unwrap();
    let mapping = memory.map(Rights::ReadWrite).unwrap();
    let buffer = mapping.buffer::<u8>().unwrap();
    drop((memory, mapping));
    buffer.fill(&queue, 5).unwrap();
    assert!(other.to_vec(&queue).unwrap().iter().all(|&byte| byte == 5));
    let error = queue.upload(vec![1], &other.slice(..1).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_host_task_runs_in_its_turn() {
    let (context, queue) = start();
    let buffer = Buffer::<u8>::new(&context, 1).unwrap();
    let (say, said) = mpsc::channel();
    queue.fill(&buffer, 1).unwrap();
    let done = queue.host_task(move || say.send("done").unwrap()).unwrap();
    done.wait().unwrap();
    assert_eq!(said.try_recv(), Ok("done"));
}

#[test]
fn a_device_is_found_by_its_uuid_however_it_is_written() {
    let mut found = 0;
    for device in Device::all().unwrap() {
        let Ok(uuid) = device.uuid() else { continue };
        assert_eq!(uuid.len(), 32);
        let parts = [&uuid[..8], &uuid[8..12], &uuid[12..16], &uuid[16..20], &uuid[20..]];
        let hyphens = parts.join("-");
        let written =
            [uuid.to_uppercase(), format!("GPU-{hyphens}"), format!(" {hyphens}\n"), uuid];
        for uuid in written {
            assert_eq!(Device::with_uuid(&uuid).unwrap(), device, "{uuid:?}");
        }
        found += 1;
    }
    assert!(found > 0, "the CPU has one");
    for stranger in ["", "GPU-", "ffffffffffffffffffffffffffffffff", "no uuid at all"] {
        let error = Device::with_uuid(stranger).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoDevice, "{stranger:?}");
        assert!(error.to_string().contains("causeway info"), "{error}");
    }
}
