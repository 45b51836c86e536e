"""Runs inside Open Bandit Pipeline's own environment: its values of policies, on its data or on a log of podium's.

.bench/obp/bin/python bench/obp_values.py OUT.npz          synthetic data of OBP's own, 10 actions
.bench/obp/bin/python bench/obp_values.py OUT.npz IN.npz   a bandit_feedback and action_dists in IN.npz
"""

import json
import sys

import numpy as np
from obp.dataset import SyntheticBanditDataset, logistic_reward_function
from obp.ope import (
    DirectMethod,
    DoublyRobust,
    InverseProbabilityWeighting,
    OffPolicyEvaluation,
    RegressionModel,
    SelfNormalizedDoublyRobust,
    SelfNormalizedInverseProbabilityWeighting,
)
from sklearn.linear_model import LogisticRegression

ESTIMATORS = (
    InverseProbabilityWeighting,
    SelfNormalizedInverseProbabilityWeighting,
    DirectMethod,
    DoublyRobust,
    SelfNormalizedDoublyRobust,
)


def synthetic(rows=1000, actions=10, seed=1):
    dataset = SyntheticBanditDataset(
        n_actions=actions, dim_context=5, reward_function=logistic_reward_function, random_state=seed
    )
    feedback = dataset.obtain_batch_bandit_feedback(n_rounds=rows)
    rng = np.random.default_rng(seed)
    dists = {f"policy_{k}": rng.dirichlet(np.full(actions, 0.2 + k), rows)[:, :, None] for k in range(4)}
    dists["chosen"] = np.eye(actions)[rng.integers(actions, size=rows)][:, :, None]
    return feedback, dists


def main():
    if len(sys.argv) == 2:
        feedback, dists = synthetic()
    else:
        given = np.load(sys.argv[2])
        dists = {key.removeprefix("dist/"): given[key] for key in given if key.startswith("dist/")}
        feedback = {key.removeprefix("feedback/"): given[key] for key in given if key.startswith("feedback/")}
        feedback |= {"n_rounds": len(feedback["action"]), "n_actions": int(feedback["n_actions"]), "position": None}
    model = RegressionModel(n_actions=feedback["n_actions"], base_model=LogisticRegression(max_iter=1000))
    binary = set(np.unique(feedback["reward"])) <= {0, 1}
    estimated = (
        model.fit_predict(
            context=feedback["context"], action=feedback["action"], reward=feedback["reward"], n_folds=2, random_state=0
        )
        if binary
        else np.full((feedback["n_rounds"], feedback["n_actions"], 1), feedback["reward"].mean())
    )
    values = {}
    for name, dist in dists.items():
        evaluation = OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=[e() for e in ESTIMATORS])
        found = evaluation.estimate_policy_values(action_dist=dist, estimated_rewards_by_reg_model=estimated)
        values[name] = {method: float(value) for method, value in found.items()}
    kept = {f"feedback/{k}": v for k, v in feedback.items() if isinstance(v, np.ndarray | int)}
    np.savez(sys.argv[1], estimated=estimated, **{f"dist/{k}": v for k, v in dists.items()}, **kept)
    print(json.dumps(values))


if __name__ == "__main__":
    main()
