"""podium's own verdicts on logs of Example 2: how many pairs does it decide, and how often is it right?

The paper's methods always answer. Here the same logs and policies go through `podium.compare`, which may say
"cannot tell".
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.comparison.compare import compare
from podium.data.columns import Codes, Floats
from podium.experiments.runner import Arrays
from podium.worlds.labelled import LabelledBandit


@dataclass(frozen=True)
class VerdictShares:
    """Verdicts on all pairs of the logs that were judged."""

    logs: int
    pairs: int
    right: int  # claims that the better policy is better
    wrong: int  # claims that it is worse, or that one of two equal policies is better

    @property
    def decided(self) -> float:
        return (self.right + self.wrong) / self.pairs

    @property
    def right_among_claims(self) -> float | None:
        claims = self.right + self.wrong
        return self.right / claims if claims else None


def judge_log(bandit: LabelledBandit, behavior: Floats, drawn: Codes) -> tuple[int, int, int]:
    """Pairs of a log, and how many `podium.compare`, with its defaults, decides rightly and wrongly."""
    truth = bandit.values
    result = compare(bandit.log_of(drawn, behavior), bandit.policies)
    gaps = [
        (truth[pair.a] - truth[pair.b]) * (1 if pair.verdict == "better" else -1)
        for pair in result.pairs
        if pair.verdict != "cannot tell"
    ]
    right = sum(gap > 0 for gap in gaps)
    return len(result.pairs), right, len(gaps) - right


def shares_of(arrays: Arrays) -> VerdictShares | None:
    """All verdicts of a run on one dataset; None where none was asked for."""
    judged = arrays["judged"].reshape(-1, 3)
    if not len(judged):
        return None
    pairs, right, wrong = judged.sum(axis=0).tolist()
    return VerdictShares(len(judged), pairs, right, wrong)
