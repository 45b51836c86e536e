"""A full disk: how to know it, and what to say of it."""

from __future__ import annotations

import errno

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL = {
    "message": "The disk is full, and nothing of this was kept.",
    "hint": "Free some disk space, and try again; what you had before is still here.",
}


def is_full_disk(error: BaseException) -> bool:
    """Whether an error, or one that caused it, says that there is no space left; some libraries say so in words alone.

    >>> is_full_disk(OSError(errno.ENOSPC, "No space left on device")), is_full_disk(OSError("broken"))
    (True, False)
    """
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    cause = error.__cause__ or error.__context__
    return "no space left on device" in str(error).lower() or (cause is not None and is_full_disk(cause))
