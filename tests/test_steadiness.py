"""Answers hold still when nothing that matters changes: the last digit of the data, the seed, the order of the rows.

`make test-slow` asks for all of it on 20 logs; here are the first few, with fewer seeds and orders.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from samples import degenerate
from steadiness import ROWS, answer, logs, moved_values, perturbed, reordered, reseeded, shuffled

import podium
from podium.data.columns import Column
from podium.experiments.calibration.worlds import Draw
from podium.worlds.simulator import Programme

ANSWER = 1e-8  # how far any number may move with the last digit of the data
CHANCE = 0.01  # how far P(better) may move with the seed or the order of the rows
QUICK = 4  # logs
LOGS = dict(zip(range(len(ROWS)), logs(), strict=True))


@pytest.mark.parametrize("place", range(QUICK))
def test_a_few_answers_hold_still(place: int) -> None:
    hold_still(LOGS[place][1], moves=2, seeds=4, orders=3)


@pytest.mark.slow
@pytest.mark.parametrize("place", LOGS)
def test_every_answer_holds_still(place: int) -> None:
    hold_still(LOGS[place][1], moves=3, seeds=10, orders=10)


def hold_still(draw: Draw, moves: int, seeds: int, orders: int) -> None:
    data = perturbed(draw, moves)
    assert (data.answer < ANSWER, data.verdicts, data.order) == (True, 0, False), data
    for found in (reseeded(draw, seeds), shuffled(draw, orders)):
        assert (found.p_better < CHANCE, found.verdicts) == (True, 0), found


def test_what_is_constant_is_not_told_from_its_rounding() -> None:
    log, policies = degenerate()
    data = perturbed(Draw(log, policies, np.zeros(3)))
    assert (data.answer < ANSWER, data.verdicts, data.order) == (True, 0, False), data


def test_the_demo_moves_no_more_than_its_data() -> None:
    drawn = Programme().draw()
    log = podium.Log(
        drawn.states, drawn.actions, drawn.rewards, behavior=drawn.behavior, action_space=drawn.action_space
    )
    data = perturbed(Draw(log, drawn.distributions, np.zeros(5)))
    assert (data.answer < ANSWER, data.verdicts, data.order) == (True, 0, False), data


def test_the_demo_prints_the_same_in_every_order_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    Programme().draw().write_csv(path)
    head, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    shown = podium.compare(podium.read_log(path)).text()
    for seed in range(2):
        path.write_text("".join([head, *np.random.default_rng(seed).permutation(rows)]), encoding="utf-8")
        assert podium.compare(podium.read_log(path)).text() == shown


def test_the_logs_reach_from_100_to_5000_rows() -> None:
    assert len(LOGS) == 20
    assert sorted(len(draw.log) for _, draw in LOGS.values())[:: len(LOGS) - 1] == [100, 5000]


def test_moved_values_differ_in_the_last_digits_and_stay_equal_where_they_were() -> None:
    _, draw = LOGS[0]
    changed = moved_values(draw, 0)
    assert 0 < np.abs(changed.log.rewards / draw.log.rewards - 1).max() < 3e-15
    assert changed.log.n_states == draw.log.n_states
    assert len(np.unique(changed.log.rewards)) == len(np.unique(draw.log.rewards))
    assert not np.array_equal(changed.policies["policy 0"], draw.policies["policy 0"])


def test_another_order_keeps_every_row_whole() -> None:
    _, draw = LOGS[0]
    changed = reordered(draw, 0)

    def rows(one: Draw) -> set[tuple[float, ...]]:
        columns: list[Column] = [one.log.times, one.log.states[:, 0], one.log.action_codes, one.log.rewards]
        return set(zip(*(c.tolist() for c in columns), one.policies["policy 1"][:, 0].tolist(), strict=True))

    assert rows(changed) == rows(draw)
    assert not np.array_equal(changed.log.times, draw.log.times)


def test_moved_numbers_and_verdicts_are_noticed() -> None:
    from steadiness import moved

    _, draw = LOGS[0]
    first = answer(draw)
    rewards = draw.log.rewards + 0.1 * np.arange(len(draw.log)) % 1
    other = podium.compare(
        podium.Log(draw.log.states, draw.log.actions, rewards, action_space=draw.log.action_space), draw.policies
    )
    found = moved(first, [first, other])
    assert found.answer > 1e-3
    assert found.p_better > 1e-3
    assert moved(first, [first]).answer == 0
