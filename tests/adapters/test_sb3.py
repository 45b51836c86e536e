"""Stable-Baselines3 models, Gymnasium rollouts and Minari datasets, with the real packages."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import podium
from podium.adapters.sb3 import load_model, trust
from podium.adapters.sb3_files import Unusual, read_policy
from podium.command.cli import main
from podium.data.errors import PodiumError
from podium.episodes import EpisodeLog, compare, log_proxy, record

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Untrained continuous models: a fixed seed gives each its own behaviour."""
    import gymnasium
    from stable_baselines3 import A2C, DDPG, PPO, SAC, TD3

    env = gymnasium.make("Pendulum-v1")
    algorithms = (A2C, PPO, SAC, DDPG, TD3)
    return {m.__name__: m("MlpPolicy", env, seed=seed, device="cpu") for seed, m in enumerate(algorithms)}


@pytest.fixture(scope="module")
def folder(models: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The saved models, and two with discrete actions."""
    import gymnasium
    from stable_baselines3 import DQN, PPO

    folder = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save(folder / f"{name}.zip")
    cart = gymnasium.make("CartPole-v1")
    for algorithm in (DQN, PPO):
        algorithm("MlpPolicy", cart, seed=1, device="cpu").save(folder / f"{algorithm.__name__}-cart.zip")
    for path in folder.iterdir():
        trust(path)
    return folder


def refused(message: str, hint: str, function: Callable[[], Any]) -> None:
    with pytest.raises(PodiumError) as caught:
        function()
    assert str(caught.value) == f"{message}\n\nHint: {hint}"


# --- episodes ----------------------------------------------------------------------------------------------------


def test_models_and_their_files_give_the_proxy_of_their_deterministic_actions(
    models: dict[str, Any], folder: Path
) -> None:
    recorded = record("Pendulum-v1", models["PPO"], episodes=3, horizon=12, seed=5, name="PPO")
    specs = {name: f"sb3:{name}:{folder / name}.zip" for name in models}
    by_object = EpisodeLog(recorded).interactions(models)
    by_file = EpisodeLog(recorded).interactions(specs)
    for name, model in models.items():
        ours = [model.predict(e.observations, deterministic=True)[0] for e in recorded]
        expected = log_proxy(ours, [e.actions for e in recorded], -2, 2)
        assert_allclose(by_object.log_probabilities[name], expected, rtol=1e-5)
        assert_array_equal(by_file.log_probabilities[name], by_object.log_probabilities[name])
    assert_array_equal(by_object.log_propensities, by_object.log_probabilities["PPO"])
    assert len({values.tobytes() for values in by_object.log_probabilities.values()}) == 5


def test_one_seed_records_the_same_episodes_and_leaves_torch_alone(models: dict[str, Any]) -> None:
    import torch

    before = torch.random.get_rng_state()
    a, b, c = (record("Pendulum-v1", models["SAC"], episodes=2, horizon=5, seed=s) for s in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    for x, y, z in zip(a, b, c, strict=True):
        assert_array_equal(x.actions, y.actions)
        assert_array_equal(x.observations, y.observations)
        assert not np.array_equal(x.actions, z.actions)
    calm = record("Pendulum-v1", models["SAC"], episodes=1, horizon=5, seed=1, deterministic=True)[0]
    assert_allclose(calm.actions, models["SAC"].predict(calm.observations, deterministic=True)[0], rtol=1e-5)


def test_a_recording_knows_its_bounds_steps_and_end() -> None:
    recorded = record("Pendulum-v1", lambda o: [9.0], episodes=1, horizon=7)[0]
    assert (len(recorded), recorded.terminated) == (7, False)
    assert recorded.actions.max() == 2, "the action that the environment got"
    assert recorded.bounds is not None
    assert recorded.bounds.high == 2
    cart = record("CartPole-v1", lambda o: 1, episodes=1)[0]
    assert cart.terminated
    assert len(cart) < 20
    assert cart.actions.dtype.kind == "i"


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [({"episodes": 0}, "episodes must be a whole number from 1 to 1,000,000; it is 0", "use episodes=100."),
     ({"horizon": 0}, "horizon must be a whole number from 1 on; it is 0", "use 100.")],
)  # fmt: skip
def test_bad_recordings(options: dict[str, int], message: str, hint: str) -> None:
    refused(message, hint, lambda: record("Pendulum-v1", lambda o: [0.0], **options))
    refused(
        "a policy that is int cannot act",
        "give a function of an observation, or a model.",
        lambda: record("Pendulum-v1", 7),
    )


def test_a_model_with_discrete_actions_has_no_proxy(folder: Path) -> None:
    recorded = record("CartPole-v1", lambda o: int(o[2] > 0), episodes=2)
    refused(
        "the action space is discrete: Discrete(2)",
        "the proxy is for continuous actions. Give policies that offer log_prob(observations, actions), or one row per "
        "step: podium.Log(observations, actions, rewards).",
        lambda: compare(recorded, {"dqn": f"sb3:DQN:{folder / 'DQN-cart.zip'}"}),
    )


def test_models_of_another_environment_are_refused(models: dict[str, Any]) -> None:
    recorded = record("Pendulum-v1", lambda o: [0.5], horizon=3)
    refused(
        "policy 'sac' was made for other bounds of the action space",
        "compare policies of one environment, and give its bounds.",
        lambda: compare(recorded, {"sac": models["SAC"]}, bounds=(-1, 1)),
    )
    small = [(e.observations[:, :2], e.actions, e.rewards) for e in recorded]
    with pytest.raises(PodiumError, match="policy 'sac' failed on the logged steps: ValueError: Error: Unexpected obs"):
        compare(small, {"sac": models["SAC"]})


def test_a_minari_dataset(models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    import gymnasium
    import minari
    from minari.data_collector import EpisodeBuffer

    env = gymnasium.make("Pendulum-v1")
    recorded = [record(env, lambda o, a=a: [a], horizon=6, seed=s)[0] for s, a in enumerate((0.0, 0.3))]
    buffers = [
        EpisodeBuffer(
            id=n,
            observations=np.vstack([e.observations, e.observations[-1:]]).astype(np.float32),
            actions=e.actions.astype(np.float32),
            rewards=e.rewards.tolist(),
            terminations=[False] * 6,
            truncations=[False] * 5 + [True],
        )
        for n, e in enumerate(recorded)
    ]
    about = dict.fromkeys(("algorithm_name", "author", "author_email", "code_permalink", "description"), "x")
    spaces = {"action_space": env.action_space, "observation_space": env.observation_space}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it asks for an environment to evaluate in
        dataset = minari.create_dataset_from_buffers("pendulum/test-v0", buffers, **about, **spaces)
    made = EpisodeLog(dataset).interactions({"sac": models["SAC"], "zero": lambda o: [0.0]})
    assert_allclose(made.log_probabilities["zero"][1], 6 * (1 - 1 / (1 - (0.3 / 4) ** 2)), rtol=1e-5)
    assert_allclose(made.log.rewards, [e.rewards.sum() for e in dataset])
    assert_allclose(made.log.states, [e.observations[0] for e in dataset])


# --- ordinary logs -----------------------------------------------------------------------------------------------

COLUMNS = ["position", "velocity", "angle", "spin"]


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 1, (40, 4))


def test_a_model_chooses_at_the_states_of_a_log(folder: Path, rows: np.ndarray) -> None:
    from stable_baselines3 import DQN

    expected = DQN.load(folder / "DQN-cart.zip").predict(rows.astype(np.float32), deterministic=True)[0]
    assert set(expected) == {0, 1}
    for actions, labels in (
        (np.arange(40) % 2, (0, 1)),
        (np.where(np.arange(40) % 2, "right", "left"), ("left", "right")),
    ):
        log = podium.Log(rows, actions, rows[:, 0])
        by_file = podium.compare(log, {"dqn": f"sb3:dqn:{folder / 'DQN-cart.zip'}", "any": "uniform"})
        by_hand = podium.compare(log, {"dqn": np.array(labels, dtype=object)[expected].tolist(), "any": "uniform"})
        by_object = podium.compare(log, {"dqn": DQN.load(folder / "DQN-cart.zip"), "any": "uniform"})
        assert by_file.estimates == by_hand.estimates == by_object.estimates


def test_a_stochastic_model_is_asked_for_its_most_likely_action(folder: Path, rows: np.ndarray) -> None:
    log = podium.Log(rows, np.arange(40) % 2, rows[:, 0])
    spec = f"sb3:PPO:{folder / 'PPO-cart.zip'}"
    assert podium.evaluate(log, {"ppo": spec}).values == podium.evaluate(log, {"ppo": spec}).values


def test_models_that_do_not_fit_the_log(models: dict[str, Any], folder: Path, rows: np.ndarray) -> None:
    log = podium.Log(rows, np.arange(40) % 2, rows[:, 0])
    small, named = (podium.Log(s, log.actions, log.rewards) for s in (rows[:, :3], ["x"] * 40))
    cart = f"sb3:DQN:{folder / 'DQN-cart.zip'}"
    refused(
        "policy 'sac' has the action space Box(-2.0, 2.0, (1,), float32), and the log has single actions",
        "compare policies with continuous actions on recorded episodes: podium.episodes.compare(episodes, policies), "
        "or podium compare STEPS --episodes.",
        lambda: podium.compare(log, {"sac": models["SAC"], "any": "uniform"}),
    )
    refused(
        "policy 'dqn' was trained on observations of shape (4,); the log has 3 state columns",
        "choose the columns of its observations, in their order, with state=[...] or --state.",
        lambda: podium.compare(small, {"dqn": cart, "any": "uniform"}),
    )
    refused(
        "policy 'dqn' needs states that are numbers",
        "choose the columns of its observations with state=[...] or --state.",
        lambda: podium.compare(named, {"dqn": cart, "any": "uniform"}),
    )
    texts = np.array(["a", "b", "c", "d"])[np.arange(40) % 4]
    refused(
        "policy 'dqn' chooses among 2 actions; the log has 4",
        "name every action in the model's order with actions=[...] or --actions a,b,c.",
        lambda: podium.compare(podium.Log(rows, texts, log.rewards), {"dqn": cart, "any": "uniform"}),
    )


# --- the command -------------------------------------------------------------------------------------------------


def test_the_command_with_models(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = record("Pendulum-v1", f"sb3:PPO:{folder / 'PPO.zip'}", episodes=2, horizon=5)
    lines = ["episode,cos,sin,speed,action,reward"]
    for n, e in enumerate(recorded):
        lines += [
            f"{n},{','.join(map(repr, map(float, o)))},{float(a[0])!r},{float(r)!r}"
            for o, a, r in zip(e.observations, e.actions, e.rewards, strict=True)
        ]
    steps = tmp_path / "steps.csv"
    steps.write_text("\n".join(lines))
    policies = [f"--policy={name}=sb3:{name}:{folder / name}.zip" for name in ("PPO", "SAC")]
    assert main(["compare", str(steps), "--episodes", "--behavior", "PPO", *policies]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    expected = compare(recorded, {"PPO": f"sb3:PPO:{folder / 'PPO.zip'}", "SAC": f"sb3:SAC:{folder / 'SAC.zip'}"})
    assert "Scores that stand for probabilities (proxies): PPO, SAC" in shown
    assert f"1 (1-2) {expected.best}" in shown


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("sb3:TRPO:model.zip", "unknown policy 'sb3:TRPO:model.zip'",
         "write sb3:ALGO:model.zip, with ALGO one of A2C, DDPG, DQN, PPO, SAC, TD3."),
        ("sb3:PPO", "unknown policy 'sb3:PPO'",
         "write sb3:ALGO:model.zip, with ALGO one of A2C, DDPG, DQN, PPO, SAC, TD3."),
        ("sb3:PPO:none.zip", "there is no file 'none.zip'", "check the path of the model."),
    ],
)  # fmt: skip
def test_bad_specs(spec: str, message: str, hint: str) -> None:
    log = podium.Log([0, 1], [0, 1], [0.0, 1.0])
    refused(message, hint, lambda: podium.compare(log, {"p": spec, "any": "uniform"}))


def test_a_file_that_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.zip").write_text("nothing")
    trust("model.zip")
    with pytest.raises(PodiumError) as caught:
        podium.compare(podium.Log([0, 1], [0, 1], [0.0, 1.0]), {"p": "sb3:PPO:model.zip", "any": "uniform"})
    assert caught.value.message.startswith("model.zip cannot be loaded as a PPO model: ")
    assert caught.value.hint == "save it with model.save(path), and name the algorithm that trained it."


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.zip").write_text("")
    trust("model.zip")
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    refused(
        "stable-baselines3 is not installed; loading an sb3: policy needs it",
        "run: pip install 'podium[rl]'",
        lambda: podium.compare(podium.Log([0, 1], [0, 1], [0.0, 1.0]), {"p": "sb3:PPO:model.zip", "any": "uniform"}),
    )
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    refused(
        "gymnasium is not installed; making an environment by name needs it",
        "run: pip install 'podium[rl]'",
        lambda: record("Pendulum-v1", lambda o: [0.0]),
    )


def test_neither_import_nor_a_comparison_loads_torch(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("state,action,reward,pi_a,pi_b\n0,0,1,0.5,0.1\n1,1,0,0.2,0.3\n")
    code = (
        "import sys, numpy, podium, podium.episodes; from podium.command.cli import main\n"
        "assert main(['compare', 'log.csv']) == 0\n"
        "steps = [([[0.0]], [[0.1]], [1.0]), ([[0.5]], [[0.2]], [2.0])]\n"
        "podium.episodes.compare(steps, {'a': lambda o: o, 'b': lambda o: -o}, bounds=(-1, 1))\n"
        "heavy = {'torch', 'gymnasium', 'stable_baselines3', 'minari'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)


# --- files that run code -----------------------------------------------------------------------------------------


class Touch:
    """Pickled, this makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def poisoned(source: Path, target: Path, entry: str) -> Path:
    """A copy of a model that makes the file `ran` beside it when its `entry` is unpickled."""
    poison = Touch(target.parent / "ran")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == entry:
                content = pickle.dumps(poison, protocol=2)
            elif name == "data":
                data = json.loads(content)
                if not entry.endswith(".pth"):
                    data[entry] = {":type:": "x", ":serialized:": base64.b64encode(pickle.dumps(poison)).decode()}
                content = json.dumps(data).encode()
            new.writestr(name, content)
    return target


@pytest.mark.parametrize(
    "entry",
    ["policy_class", "policy_kwargs", "observation_space", "action_space", "lr_schedule", "extra", "policy.pth",
     "pytorch_variables.pth", "policy.optimizer.pth"],
)  # fmt: skip
def test_no_code_runs_without_trust(
    entry: str, folder: Path, rows: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = poisoned(folder / "PPO-cart.zip", tmp_path / "model.zip", entry)
    log = podium.Log(rows, np.arange(40) % 2, rows[:, 0])
    refused(
        f"{str(model)!r} is not loaded: a Stable-Baselines3 file can run any code that was put into it",
        f"if you know where it comes from, add --trust {model} (in Python: podium.adapters.sb3.trust({str(model)!r}), "
        "or load the model yourself and give the object).",
        lambda: podium.compare(log, {"p": f"sb3:PPO:{model}", "any": "uniform"}),
    )
    (tmp_path / "log.csv").write_text("episode,a,b,c,d,action,reward\n" + "0,1,2,3,4,0,1\n1,2,3,4,5,1,0\n" * 5)
    command = ["compare", str(tmp_path / "log.csv"), "--policy", f"p=sb3:PPO:{model}", "--policy", "u=uniform"]
    for episodes in ([], ["--episodes"]):
        assert main([*command, *episodes, "--trust", str(folder / "PPO.zip")]) == 2
        assert "--trust" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_what_no_prediction_needs_is_not_unpickled_at_all(folder: Path, rows: np.ndarray, tmp_path: Path) -> None:
    """Even of a trusted file, podium reads only the parts that a policy consists of."""
    from stable_baselines3 import PPO

    observations = rows.astype(np.float32)
    expected = PPO.load(folder / "PPO-cart.zip").predict(observations, deterministic=True)[0]
    for entry in ("lr_schedule", "clip_range", "extra", "pytorch_variables.pth"):
        trust(model := poisoned(folder / "PPO-cart.zip", tmp_path / f"{entry}.zip", entry))
        assert_array_equal(load_model(f"sb3:PPO:{model}").predict(observations, deterministic=True)[0], expected)
        assert not (tmp_path / "ran").exists(), entry


def test_ordinary_models_are_read_without_unpickling(
    models: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cloudpickle
    import stable_baselines3

    observations = np.random.default_rng(1).normal(0, 1, (20, 3)).astype(np.float32)
    expected = {name: model.predict(observations, deterministic=True)[0] for name, model in models.items()}
    monkeypatch.setattr(cloudpickle, "loads", lambda *_: pytest.fail("a pickle was loaded"))
    monkeypatch.setattr(pickle, "loads", lambda *_: pytest.fail("a pickle was loaded"))
    for name, model in models.items():
        read = read_policy(folder / f"{name}.zip", getattr(stable_baselines3, name))
        assert_array_equal(read.predict(observations, deterministic=True)[0], expected[name])
        assert (read.action_space, read.observation_space) == (model.action_space, model.observation_space)


def test_other_layers_and_spaces(tmp_path: Path, rows: np.ndarray) -> None:
    """Layers of PyTorch are known; a class of one's own needs its pickle, which runs because the file is trusted."""
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3 import A2C, DQN

    cart = gymnasium.make("CartPole-v1")
    observations = rows.astype(np.float32)
    wide = DQN("MlpPolicy", cart, policy_kwargs={"net_arch": [8, 4], "activation_fn": torch.nn.ELU}, device="cpu")
    own = A2C(own_policy(), cart, device="cpu")
    for model, known in ((wide, True), (own, False)):
        model.save(path := tmp_path / f"{type(model).__name__}.zip")
        trust(path)
        loaded = load_model(f"sb3:{type(model).__name__}:{path}")
        assert_array_equal(*(m.predict(observations, deterministic=True)[0] for m in (loaded, model)))
        assert isinstance(loaded, torch.nn.Module) == known
    with pytest.raises(Unusual, match="its policy is not one of Stable-Baselines3's own"):
        read_policy(tmp_path / "A2C.zip", stable_baselines3.A2C)


def own_policy() -> type:
    from stable_baselines3.common.policies import ActorCriticPolicy

    class Own(ActorCriticPolicy):  # type: ignore[misc]
        """A policy that Stable-Baselines3 does not have."""

    return Own


def test_the_command_trusts_the_file_that_it_is_told_to(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.csv").write_text("a,b,c,d,action,reward\n" + "1,2,3,4,0,1\n2,3,4,5,1,0\n" * 5)
    (tmp_path / "model.zip").write_bytes((folder / "PPO-cart.zip").read_bytes())
    log, model = str(tmp_path / "log.csv"), str(tmp_path / "model.zip")
    policies = ["--policy", f"p=sb3:PPO:{model}", "--policy", "u=uniform"]
    for command in ("compare", "evaluate", "states", "check", "spectrum"):
        assert main([command, log, *policies]) == 2
        assert f"--trust {model}" in capsys.readouterr().err
    for command in ("compare", "evaluate", "states", "check", "spectrum"):
        assert main([command, log, *policies, "--trust", f"{tmp_path}/../{tmp_path.name}/model.zip"]) == 0
