"""How far Spark is with its tasks, and whether any of them runs."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

PATIENCE = 10.0  # seconds without a running task after which podium says so
IDLE = (
    "podium: Spark has run no task for {seconds:.0f} seconds: no worker is alive, free or large enough. "
    "podium waits until one is; Ctrl-C ends it."
)


@dataclass
class Tasks:
    """The share of finished tasks; that none runs is said once, since podium waits for as long as it takes."""

    tracker: Any
    idle_since: float | None = None
    told: bool = False

    def __call__(self) -> float:
        stages = [s for i in self.tracker.getActiveStageIds() if (s := self.tracker.getStageInfo(i)) is not None]
        self.look(bool(stages), sum(s.numActiveTasks for s in stages))
        return float(sum(s.numCompletedTasks for s in stages) / max(1, sum(s.numTasks for s in stages)))

    def look(self, work: bool, running: int) -> None:
        now = time.monotonic()
        if not work or running:
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = now
        elif not self.told and now - self.idle_since > PATIENCE:
            self.told = True
            print(IDLE.format(seconds=PATIENCE), file=sys.stderr, flush=True)
