"""Fetches a published file: within a time limit, whole, or with an error that says what to do instead."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request

from podium.data.errors import PodiumError

TIMEOUT = 20.0  # seconds without a sign of the server
DEADLINE = 120.0  # seconds for the whole file
CHUNK = 1 << 16


def download(url: str, *, timeout: float = TIMEOUT, deadline: float = DEADLINE, hint: str) -> bytes:
    """The content of a file on the web.

    Parameters
    ----------
    timeout : seconds to wait for the server to answer, or to go on
    deadline : seconds that the whole may take, however often the server sends a little
    hint : how to go on without it
    """
    end = time.monotonic() + deadline
    parts = []
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            expected = answer.headers.get("Content-Length")
            while part := answer.read1(CHUNK):
                parts.append(part)
                if time.monotonic() > end:
                    raise TimeoutError
    except urllib.error.HTTPError as error:
        error.close()
        raise PodiumError(f"{url} answers {error.code} {error.reason}", hint=hint) from error
    except TimeoutError as error:
        raise PodiumError(f"{url} does not answer in time", hint=hint) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise PodiumError(f"{url} does not answer in time", hint=hint) from error
        raise PodiumError(f"cannot reach {url}: {getattr(reason, 'strerror', None) or reason}", hint=hint) from error
    content = b"".join(parts)
    if expected is not None and len(content) != int(expected):
        message = f"{url} sent {len(content):,} of {int(expected):,} bytes and stopped"
        raise PodiumError(message, hint=f"try again; else {hint}")
    return content
