"""How much a studio takes on: bytes, rows, columns, memory, time."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What one upload, one job and one session may use."""

    upload_bytes: int = 512 * MB
    form_bytes: int = 1 * MB  # a form without a file
    rows: int = 5_000_000
    columns: int = 2_000
    header_bytes: int = 1 * MB  # the first line of a text file
    name_length: int = 200  # of a column
    policies: int = 50
    memory_bytes: int = 4096 * MB  # address space of a job
    job_seconds: float = 900.0
    stall_seconds: float = 30.0  # between two parts of a request's body
    slowest_bytes: int = 1024  # of a request's body in a second, on average
    jobs: int = 2  # at once, for all sessions together
    waiting_jobs: int = 8
    workspaces: int = 4  # of one session; the least recently used goes
    sessions: int = 20  # that hold logs; the least recently used goes, once it is idle
    idle_seconds: float = 3600.0  # after which a session may give way
    visitors: int = 1_000  # sessions without a log, which cost nothing
    answers: int = 5  # kept of one workspace
