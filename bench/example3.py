"""Measures the rollouts of Example 3: simulations side by side against one environment at a time."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

EPISODES = 60
HORIZON = 100


def bench_example3(report: Callable[[str, str, str, bool], None], cpu: Callable[..., float]) -> None:
    """Steps per CPU second on InvertedPendulum, stochastic SAC: the same episodes, in batches and one by one."""
    print("Example 3: rollouts on InvertedPendulum")
    if find_spec("pybullet_envs_gymnasium") is None or find_spec("stable_baselines3") is None:
        print("        left out: pip install 'podium[rl]'")
        return
    import numpy as np

    from podium.experiments.rl.rollouts import Simulations
    from podium.experiments.rl.training import make_environment, make_model, one_thread, silence

    resets = np.arange(EPISODES)
    with one_thread(), silence():
        env = make_environment("InvertedPendulum")
        model = make_model("SAC", env, "paper", seed=0)
        model.learn(300)
        with Simulations("InvertedPendulum") as simulations:
            lengths = simulations.run(model, resets, HORIZON, draws=0).lengths
            batched = cpu(lambda: simulations.run(model, resets, HORIZON, draws=0), repeat=3)
        alone: list[int] = []
        single = cpu(lambda: alone.append(one_by_one(env, model, resets)), repeat=3)
        env.close()
    rates = lengths.sum() / batched, float(np.median(alone)) / single
    print(f"        {rates[0]:,.0f} steps per CPU s in batches, {rates[1]:,.0f} one by one")
    report("batched rollouts, steps per CPU s", f"{rates[0] / rates[1]:.1f}x", "at least 3x", rates[0] / rates[1] >= 3)


def one_by_one(env: Any, model: Any, resets: Any) -> int:
    """The usual loop; how many steps it took."""
    steps = 0
    for seed in resets:
        observation, _ = env.reset(seed=int(seed))
        for _ in range(HORIZON):
            action, _ = model.predict(observation)
            observation, _, done, _, _ = env.step(action)
            steps += 1
            if done:
                break
    return steps
