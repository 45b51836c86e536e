"""Runs inside Open Bandit Pipeline's own environment: its values of policies, on its data or on a log of podium's.

.bench/obp/bin/python bench/obp_values.py OUT.npz               synthetic data of OBP's own, 10 actions
.bench/obp/bin/python bench/obp_values.py OUT.npz IN.npz        a bandit_feedback and action_dists in IN.npz
.bench/obp/bin/python bench/obp_values.py OUT.npz loggers       data of three loggers
.bench/obp/bin/python bench/obp_values.py OUT.npz continuous    data with continuous actions
"""

import json
import sys

import numpy as np
from obp.dataset import (
    SyntheticBanditDataset,
    SyntheticContinuousBanditDataset,
    SyntheticMultiLoggersBanditDataset,
    linear_behavior_policy_continuous,
    linear_reward_funcion_continuous,
    logistic_reward_function,
)
from obp.ope import (
    BalancedInverseProbabilityWeighting,
    DirectMethod,
    DoublyRobust,
    DoublyRobustWithShrinkage,
    InverseProbabilityWeighting,
    KernelizedDoublyRobust,
    KernelizedInverseProbabilityWeighting,
    KernelizedSelfNormalizedInverseProbabilityWeighting,
    MultiLoggersBalancedDoublyRobust,
    MultiLoggersBalancedInverseProbabilityWeighting,
    MultiLoggersNaiveDoublyRobust,
    MultiLoggersNaiveInverseProbabilityWeighting,
    OffPolicyEvaluation,
    RegressionModel,
    SelfNormalizedDoublyRobust,
    SelfNormalizedInverseProbabilityWeighting,
    SubGaussianDoublyRobust,
    SubGaussianInverseProbabilityWeighting,
    SwitchDoublyRobust,
)
from sklearn.linear_model import LogisticRegression

ESTIMATORS = [
    InverseProbabilityWeighting(),
    SelfNormalizedInverseProbabilityWeighting(),
    DirectMethod(),
    DoublyRobust(),
    SelfNormalizedDoublyRobust(),
    *(InverseProbabilityWeighting(lambda_=c, estimator_name=f"ipw:{c:g}") for c in (1.0, 10.0)),
    *(DoublyRobust(lambda_=c, estimator_name=f"dr:{c:g}") for c in (1.0, 10.0)),
    *(SwitchDoublyRobust(lambda_=c, estimator_name=f"switch-dr:{c:g}") for c in (0.0, 1.0, 10.0)),
    *(DoublyRobustWithShrinkage(lambda_=c, estimator_name=f"dr-os:{c:g}") for c in (0.5, 100.0, np.inf)),
    *(SubGaussianInverseProbabilityWeighting(lambda_=c, estimator_name=f"sg-ipw:{c:g}") for c in (0.1, 0.7)),
    *(SubGaussianDoublyRobust(lambda_=c, estimator_name=f"sg-dr:{c:g}") for c in (0.1, 0.7)),
]
BETAS, SHARES = (-2.0, 0.5, 3.0), (0.2, 0.3, 0.5)
KERNELS, BANDWIDTHS = ("gaussian", "epanechnikov", "triangular", "cosine"), (0.3, 1.0)


def random_policies(rows, actions, seed):
    rng = np.random.default_rng(seed)
    dists = {f"policy_{k}": rng.dirichlet(np.full(actions, 0.2 + k), rows)[:, :, None] for k in range(4)}
    dists["chosen"] = np.eye(actions)[rng.integers(actions, size=rows)][:, :, None]
    return dists


def synthetic(rows=1000, actions=10, seed=1):
    dataset = SyntheticBanditDataset(
        n_actions=actions, dim_context=5, reward_function=logistic_reward_function, random_state=seed
    )
    return dataset.obtain_batch_bandit_feedback(n_rounds=rows), random_policies(rows, actions, seed)


def estimated_rewards(feedback):
    model = RegressionModel(n_actions=feedback["n_actions"], base_model=LogisticRegression(max_iter=1000))
    if set(np.unique(feedback["reward"])) <= {0, 1}:
        return model.fit_predict(
            context=feedback["context"], action=feedback["action"], reward=feedback["reward"], n_folds=2, random_state=0
        )
    return np.full((feedback["n_rounds"], feedback["n_actions"], 1), feedback["reward"].mean())


def one_logger(source):
    if source is None:
        feedback, dists = synthetic()
    else:
        given = np.load(source)
        dists = {key.removeprefix("dist/"): given[key] for key in given if key.startswith("dist/")}
        feedback = {key.removeprefix("feedback/"): given[key] for key in given if key.startswith("feedback/")}
        feedback |= {"n_rounds": len(feedback["action"]), "n_actions": int(feedback["n_actions"]), "position": None}
    estimated = estimated_rewards(feedback)
    values = {}
    for name, dist in dists.items():
        evaluation = OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=ESTIMATORS)
        found = evaluation.estimate_policy_values(action_dist=dist, estimated_rewards_by_reg_model=estimated)
        values[name] = {method: float(value) for method, value in found.items()}
        # Its own weights come from a classifier; here they are given.
        values[name]["b-ipw"] = float(
            BalancedInverseProbabilityWeighting(lambda_=np.inf).estimate_policy_value(
                reward=feedback["reward"],
                action=feedback["action"],
                action_dist=dist,
                estimated_importance_weights=classifier_weights(len(feedback["reward"])),
                position=np.zeros(len(feedback["reward"]), dtype=int),
            )
        )
    return values, feedback, {"estimated": estimated, **{f"dist/{k}": v for k, v in dists.items()}}


def classifier_weights(rows):
    return np.random.default_rng(7).lognormal(size=rows)


def several_loggers(rows=1000, actions=10, seed=1):
    dataset = SyntheticMultiLoggersBanditDataset(
        n_actions=actions, dim_context=5, reward_function=logistic_reward_function, betas=list(BETAS),
        rhos=list(SHARES), random_state=seed,
    )  # fmt: skip
    feedback = dataset.obtain_batch_bandit_feedback(n_rounds=rows)
    dists, estimated = random_policies(rows, actions, seed), estimated_rewards(feedback)
    values = {}
    for name, dist in dists.items():
        given = {key: feedback[key] for key in ("reward", "action", "pscore", "pscore_avg", "stratum_idx")}
        given |= {"action_dist": dist, "estimated_rewards_by_reg_model": estimated}
        given["position"] = np.zeros(rows, dtype=int)
        each = {
            "ipw": MultiLoggersBalancedInverseProbabilityWeighting(),
            "dr": MultiLoggersBalancedDoublyRobust(),
            "ipw:10": MultiLoggersBalancedInverseProbabilityWeighting(lambda_=10.0),
            "naive ipw": MultiLoggersNaiveInverseProbabilityWeighting(),
            "naive dr": MultiLoggersNaiveDoublyRobust(),
        }
        values[name] = {method: float(e.estimate_policy_value(**given)) for method, e in each.items()}
    more = {"estimated": estimated, "betas": np.array(BETAS), **{f"dist/{k}": v for k, v in dists.items()}}
    return values, feedback, more


def continuous(rows=1000, seed=1):
    dataset = SyntheticContinuousBanditDataset(
        dim_context=3, reward_function=linear_reward_funcion_continuous,
        behavior_policy_function=linear_behavior_policy_continuous, random_state=seed,
    )  # fmt: skip
    feedback = dataset.obtain_batch_bandit_feedback(n_rounds=rows)
    rng = np.random.default_rng(seed)
    dists = {f"policy_{k}": feedback["context"] @ rng.normal(size=3) / 3 + k / 4 for k in range(3)}
    critic = feedback["reward"].mean() + 0.1 * feedback["context"][:, 0]
    values = {}
    for name, chosen in dists.items():
        values[name] = {}
        for kernel in KERNELS:
            for h in BANDWIDTHS:
                given = {
                    "reward": feedback["reward"], "action_by_behavior_policy": feedback["action"],
                    "pscore": feedback["pscore"], "action_by_evaluation_policy": chosen.copy(),
                    "estimated_rewards_by_reg_model": critic,
                }  # fmt: skip
                each = {
                    "ipw": KernelizedInverseProbabilityWeighting(kernel=kernel, bandwidth=h),
                    "snipw": KernelizedSelfNormalizedInverseProbabilityWeighting(kernel=kernel, bandwidth=h),
                    "dr": KernelizedDoublyRobust(kernel=kernel, bandwidth=h),
                }
                for method, e in each.items():
                    values[name][f"{method} {kernel} {h:g}"] = float(e.estimate_policy_value(**given))
    return values, feedback, {"critic": critic, **{f"dist/{k}": v for k, v in dists.items()}}


def main():
    kind = sys.argv[2] if len(sys.argv) > 2 else None
    if kind == "loggers":
        values, feedback, more = several_loggers()
    elif kind == "continuous":
        values, feedback, more = continuous()
    else:
        values, feedback, more = one_logger(kind)
    kept = {f"feedback/{k}": v for k, v in feedback.items() if isinstance(v, np.ndarray | int)}
    np.savez(sys.argv[1], **more, **kept)
    print(json.dumps(values))


if __name__ == "__main__":
    main()
