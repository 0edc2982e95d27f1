//! The entries of queues.
use super::{Context, Device, HasStreams, Queue};
use crate::over_driver::{OverDriver, own_handle, usm_pool::sweep_after_wait};
use ur_adapter::{
    api::QueueApi,
    chain,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_hal::{DefaultStream, NativeHandle, Priority, StreamRequest};
use ur_sys::*;

/// The stream request for a queue with these properties.
///
/// # Errors
/// `INVALID_QUEUE_PROPERTIES` for flags that no queue has, and for a compute engine that the device does not have.
/// Contradictory flags have been refused before.
fn request<D: HasStreams>(
    context: &Owned<Context<D>>,
    device: &Owned<Device<D>>,
    properties: Option<&ur_queue_properties_t>,
) -> Result<StreamRequest> {
    use ur_queue_flags_t as F;
    let refused = |why: String| Error::refuse(ErrorCode::InvalidQueueProperties, why);
    let context = context.as_handle().addr();
    let Some(properties) = properties else {
        return Ok(StreamRequest { context, ..StreamRequest::default() });
    };
    let flags = properties.flags;
    if flags.intersects(F::ON_DEVICE | F::ON_DEVICE_DEFAULT) {
        return refused("this device has no queues of its own: leave ON_DEVICE out".into());
    }
    let engine = match chain::extension::<ur_queue_index_properties_t>(properties)? {
        None => None,
        Some(index) => {
            let engines = D::engines(device)?;
            if index.computeIndex >= engines {
                return refused(format!(
                    "there is no compute engine {}: this device has {engines}, counted from 0",
                    index.computeIndex
                ));
            }
            Some(index.computeIndex)
        }
    };
    Ok(StreamRequest {
        is_out_of_order: flags.contains(F::OUT_OF_ORDER_EXEC_MODE_ENABLE),
        is_profiled: flags.contains(F::PROFILING_ENABLE),
        priority: match () {
            () if flags.contains(F::PRIORITY_LOW) => Priority::Low,
            () if flags.contains(F::PRIORITY_HIGH) => Priority::High,
            () => Priority::Normal,
        },
        is_batched: flags.contains(F::SUBMISSION_BATCHED),
        default_stream: match () {
            () if flags.contains(F::USE_DEFAULT_STREAM) => Some(DefaultStream::Is),
            () if flags.contains(F::SYNC_WITH_DEFAULT_STREAM) => Some(DefaultStream::InStep),
            () => None,
        },
        engine,
        context,
        is_told_by_points: false,
    })
}

impl<D: HasStreams> QueueApi for OverDriver<D> {
    fn queue_create(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue<D>>> {
        context.check(device)?;
        let (context, device) = (context.own()?, device.own()?);
        let request = request::<D>(&context, &device, properties)?;
        let stream = D::stream(context.driver(), device.driver(), request)?;
        let flags = properties.map_or(ur_queue_flags_t::default(), |p| p.flags);
        Ok(Queue::make(context, device, flags, stream))
    }
    fn queue_get_info(
        queue: Borrowed<'_, Queue<D>>,
        name: ur_queue_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_queue_info_t as I;
        match name {
            I::CONTEXT => answer.handle(&queue.context),
            I::DEVICE => answer.handle(&queue.device),
            I::FLAGS => answer.value(&queue.flags.bits()),
            I::REFERENCE_COUNT => answer.value(&queue.api_refs()),
            I::EMPTY => answer.bool(D::is_idle(&queue.stream)?),
            I::SIZE => {
                let why = "only queues made with ON_DEVICE have a size";
                Error::refuse(ErrorCode::InvalidQueue, why)
            }
            _ => Error::no_answer("a queue", name),
        }
    }
    fn queue_get_native_handle(
        queue: Borrowed<'_, Queue<D>>,
        desc: Option<&ur_queue_native_desc_t>,
    ) -> Result<ur_native_handle_t> {
        if !D::HAS_NATIVE_HANDLES {
            return own_handle::of(&queue);
        }
        let asked = desc.and_then(|desc| UsmPtr::new(desc.pNativeData).ok());
        if let (Some(form), Some(asked)) = (D::STREAM_FORM, asked) {
            asked.write(form);
        }
        Ok(D::native_stream(&queue.stream)?.0 as ur_native_handle_t)
    }
    /// A queue over a native stream is in-order, unless the driver reports otherwise.
    fn queue_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
        properties: Option<&ur_queue_native_properties_t>,
    ) -> Result<Owned<Queue<D>>> {
        if !D::HAS_NATIVE_HANDLES {
            let queue: Owned<Queue<D>> = own_handle::find(native)?;
            own_handle::check_context(&queue.context, &context)?;
            return match device {
                Some(device) if !queue.device.same(&device) => {
                    let why = "the native handle is that of a queue of another device";
                    Error::refuse(ErrorCode::InvalidDevice, why)
                }
                _ => Ok(queue),
            };
        }
        device.map_or(Ok(()), |device| context.check(device))?;
        let desc = properties.map(chain::extension::<ur_queue_native_desc_t>).transpose()?;
        let form = desc.flatten().and_then(|desc| UsmPtr::new(desc.pNativeData).ok());
        if let (Some(of_queues), Some(form)) = (D::STREAM_FORM, form)
            && (form.read_i32() == 0) != (of_queues == 0)
        {
            let why =
                "a queue is made over an immediate command list here, not over a command queue";
            return Error::refuse(ErrorCode::UnsupportedFeature, why);
        }
        let wished = device.map(|device| device.own()).transpose()?;
        let context = context.own()?;
        let from = (context.driver_devices(), wished.as_ref().map(|one| one.driver()));
        let is_owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let request =
            StreamRequest { context: context.as_handle().addr(), ..StreamRequest::default() };
        let native = NativeHandle(native as u64);
        let driver = context.driver();
        let (device, stream) = D::adopt_stream(driver, from, native, is_owned, request)?;
        let device = crate::over_driver::Device::of(&device)?;
        let flags = match D::is_out_of_order(&stream) {
            true => ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE,
            false => ur_queue_flags_t::default(),
        };
        Ok(Queue::make(context, device, flags, stream))
    }
    fn queue_finish(queue: Owned<Queue<D>>) -> Result<()> {
        if D::is_recording(&queue, &[])? {
            return Error::refuse(
                ErrorCode::GraphCaptureUnsupported,
                "the queue records commands, which run nowhere: end the capture first",
            );
        }
        let finished = D::finish(&queue.stream);
        sweep_after_wait::<D>();
        queue.note(finished)
    }
    fn queue_flush(queue: Borrowed<'_, Queue<D>>) -> Result<()> {
        Ok(D::flush(&queue.stream)?)
    }
}
