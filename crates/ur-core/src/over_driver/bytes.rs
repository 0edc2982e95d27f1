//! Memory of buffers for drivers whose devices use the host's addresses.
use super::{
    block::Block,
    mem::Storage,
    usm_pool::{Context, HasUsm},
};
use ur_adapter::{
    error::{ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_sys::ur_mem_flags_t;

/// The bytes of a buffer at an address that host and devices use: the caller's memory, or host USM.
#[derive(Debug)]
pub struct Bytes<D: HasUsm> {
    context: Owned<Context<D>>,
    at: UsmPtr,
    _block: Option<Block<D>>,
}
impl<D: HasUsm> Bytes<D> {
    /// Memory as the flags say: the caller's own, a copy of that, or new memory.
    ///
    /// # Errors
    /// `INVALID_BUFFER_SIZE`; otherwise as for USM.
    pub fn new(
        context: Owned<Context<D>>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<Self> {
        D::check_size(context.devices()[0].driver(), bytes)
            .map_err(|error| error.with_code(ErrorCode::InvalidBufferSize))?;
        if let Some(at) = host.filter(|_| flags.contains(ur_mem_flags_t::USE_HOST_POINTER)) {
            at.offset(bytes)?;
            return Ok(Self { context, at, _block: None });
        }
        let block = Block::new(&context, None, bytes)?;
        host.map_or(Ok(()), |host| D::copy(context.borrow(), block.at(), host, bytes))?;
        Ok(Self { context, at: block.at(), _block: Some(block) })
    }
}
impl<D: HasUsm> Storage<D> for Bytes<D> {
    fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    fn host(&self) -> Option<UsmPtr> {
        Some(self.at)
    }
}
