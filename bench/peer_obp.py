"""Times Open Bandit Pipeline (OBP) on a log given as .npz and prints its values and CPU seconds as JSON.

Runs in the environment that `make bench` builds for it:

    .bench/obp/bin/python bench/peer_obp.py log.npz [--bootstrap 1000] [--seed 0]

Arrays in the file, for N rows, A actions and K policies:

    reward (N,), action (N,) as integers 0..A-1, pscore (N,)
    names (K,), action_dist_0 ... action_dist_<K-1> (N, A)
    estimated_rewards: (N, A), or anything that broadcasts to it; a single number is a constant baseline

OBP's `dr` with the mean reward as estimated rewards is podium's DRE with the mean baseline and
duplicates="all"; its `ipw` is podium's IPS with duplicates="all".
"""

import os

# Before NumPy loads: CPU seconds of one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import resource
import time

import numpy as np
import obp
from obp.ope import DirectMethod, DoublyRobust, InverseProbabilityWeighting, OffPolicyEvaluation

ESTIMATORS = (InverseProbabilityWeighting, DirectMethod, DoublyRobust)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time Open Bandit Pipeline on a log.")
    parser.add_argument("log")
    parser.add_argument("--bootstrap", type=int, default=1000, help="number of bootstrap samples")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    data = np.load(options.log)
    names = [str(name) for name in data["names"]]
    rows, actions = data["action_dist_0"].shape
    feedback = {
        "action": data["action"],
        "reward": data["reward"],
        "pscore": data["pscore"],
        "position": None,
        "context": np.zeros((rows, 1)),
    }
    estimated_rewards = np.array(np.broadcast_to(data["estimated_rewards"], (rows, actions)))[:, :, None]

    values: dict[str, dict[str, float]] = {}
    intervals: dict[str, dict[str, dict[str, float]]] = {}
    value_seconds: dict[str, float] = {}
    interval_seconds: dict[str, float] = {}
    for k, name in enumerate(names):
        action_dist = data[f"action_dist_{k}"][:, :, None]
        for estimator in ESTIMATORS:
            evaluation = OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=[estimator()])
            inputs = {"action_dist": action_dist, "estimated_rewards_by_reg_model": estimated_rewards}
            if k == 0:
                evaluation.estimate_policy_values(**inputs)  # the first call pays for lazy imports

            start = time.process_time()
            [(method, value)] = evaluation.estimate_policy_values(**inputs).items()
            middle = time.process_time()
            found = evaluation.estimate_intervals(
                **inputs, alpha=0.05, n_bootstrap_samples=options.bootstrap, random_state=options.seed
            )[method]
            end = time.process_time()

            values.setdefault(method, {})[name] = float(value)
            intervals.setdefault(method, {})[name] = {
                "low": float(found["95.0% CI (lower)"]),
                "high": float(found["95.0% CI (upper)"]),
            }
            value_seconds[method] = value_seconds.get(method, 0.0) + middle - start
            interval_seconds[method] = interval_seconds.get(method, 0.0) + end - middle

    print(
        json.dumps(
            {
                "obp": obp.__version__,
                "numpy": np.__version__,
                "rows": rows,
                "actions": actions,
                "policies": len(names),
                "bootstrap": options.bootstrap,
                "values": values,
                "intervals": intervals,
                "cpu_seconds": {"values": value_seconds, "intervals": interval_seconds},
                "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
