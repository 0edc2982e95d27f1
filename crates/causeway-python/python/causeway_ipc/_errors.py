"""The exceptions of this module. Each is a sentence that says what happened and what to do."""


class CausewayError(Exception):
    """What all of them are."""

    is_transient: bool = False
    """Whether the same call may succeed later without anybody changing the program."""


class InvalidTicket(CausewayError, ValueError):
    """The ticket is none, is damaged, or is for something else."""


class InvalidUse(CausewayError, ValueError):
    """What was asked for cannot be, with this object or these values."""


class WrongDevice(CausewayError, ValueError):
    """The ticket is for another device, or there is no such device."""


class OtherHost(CausewayError):
    """The ticket was made on another machine."""


class Withdrawn(CausewayError):
    """The process that shared the object has closed its export."""


class Freed(CausewayError):
    """The process that shared the object has freed it."""


class ExporterGone(CausewayError):
    """The other process has ended."""


class Closed(CausewayError):
    """The channel was closed."""


class Unreachable(CausewayError, ConnectionError):
    """There is no way to the other process: containers need a directory that both see (CAUSEWAY_DIR)."""


class Timeout(CausewayError, TimeoutError):
    """The deadline passed. What was waited for may still happen, and can be waited for again."""


class Busy(Timeout):
    """The other process did not answer in time, or has reached its own limits."""


class NotPermitted(CausewayError, PermissionError):
    """The ticket is not for this process."""


class LimitReached(CausewayError):
    """A limit of this process or of the system is reached."""


class OutOfMemory(CausewayError, MemoryError):
    """The host or the device lacks memory."""


class Unsupported(CausewayError, NotImplementedError):
    """The device, its driver or the kernel cannot do this."""


class Forked(CausewayError):
    """The object belongs to the parent of this forked process."""


class DriverError(CausewayError, RuntimeError):
    """The driver refused, for a reason that has no class of its own."""
