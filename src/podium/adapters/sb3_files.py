"""Files of Stable-Baselines3 without unpickling: the policy of a model that holds nothing unusual.

Such a file keeps its spaces and the class of its policy as pickles. Here these are only spelled out: whatever a pickle
names becomes a `Symbol`, which stands for it and does nothing, and podium builds the few things that it knows from
symbols. So no code from the file runs. Weights are read by PyTorch's loader of plain weights.
"""

from __future__ import annotations

import base64
import io
import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPACES = {"Box", "Discrete"}
LAYERS = {"FlattenExtractor", "NatureCNN"}
FOR_TRAINING = ("device", "optimizer_class", "optimizer_kwargs")


class Unusual(Exception):
    """A file holds something that only its own pickles can build."""


class Symbol:
    """What a pickle names: its class is the name, an instance is what a call would have made."""

    module = ""

    def __new__(cls, *arguments: Any, **named: Any) -> Symbol:
        made = super().__new__(cls)
        made.arguments, made.state = arguments, None
        return made

    arguments: tuple[Any, ...]
    state: Any

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Speller(pickle.Unpickler):
    """Reads a pickle as data: no name in it is looked up."""

    def find_class(self, module: str, name: str) -> Any:
        return type(name, (Symbol,), {"module": module})


def read_policy(path: Path, algorithm: Any) -> Any:
    """The policy of a model, ready to predict.

    Parameters
    ----------
    path : a file that `model.save` wrote
    algorithm : the class that trained it, such as `stable_baselines3.PPO`

    Raises
    ------
    Unusual : if the file holds other spaces, classes or layers than those that podium knows
    """
    import torch

    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data"))
        weights = torch.load(io.BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True)
    options = policy_options(spelled(data, "policy_kwargs"))
    if "use_sde" in data and issubclass(algorithm, on_policy()):
        options["use_sde"] = bool(data["use_sde"])
    build = policy_class(spelled(data, "policy_class"), algorithm)
    observations, actions = (space_of(spelled(data, name)) for name in ("observation_space", "action_space"))
    policy = build(observations, actions, lambda _: 0.0, **options)
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    return policy


def on_policy() -> type:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

    kind: type = OnPolicyAlgorithm
    return kind


def spelled(data: Mapping[str, Any], name: str) -> Any:
    """An entry of a file as plain data and symbols."""
    entry = data[name]
    if not (isinstance(entry, dict) and ":serialized:" in entry):
        return entry
    try:
        return Speller(io.BytesIO(base64.b64decode(entry[":serialized:"]))).load()
    except Exception as error:  # a pickle that calls what symbols cannot stand for
        raise Unusual(f"its {name} cannot be spelled out") from error


def policy_class(symbol: Any, algorithm: Any) -> Any:
    """One of the policies that Stable-Baselines3 has for an algorithm."""
    for known in algorithm.policy_aliases.values():
        if is_named(symbol, known.__module__, known.__name__):
            return known
    raise Unusual("its policy is not one of Stable-Baselines3's own")


def policy_options(options: Any) -> dict[str, Any]:
    """The options of a policy, without those that only training needs."""
    if not isinstance(options, dict):
        raise Unusual("its policy_kwargs are not a dictionary")
    return {str(name): plain(value) for name, value in options.items() if name not in FOR_TRAINING}


def plain(value: Any) -> Any:
    """A value that consists of numbers, texts, lists, and layers that podium knows."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    if isinstance(value, dict):
        return {str(name): plain(x) for name, x in value.items()}
    if isinstance(value, type) and issubclass(value, Symbol):
        from stable_baselines3.common import torch_layers
        from torch.nn.modules import activation

        if value.module == activation.__name__ and value.__name__ in activation.__all__:
            return getattr(activation, value.__name__)
        if value.module == torch_layers.__name__ and value.__name__ in LAYERS:
            return getattr(torch_layers, value.__name__)
    raise Unusual("its policy_kwargs hold objects of other packages")


def space_of(symbol: Any) -> Any:
    """A space of numbers or of single choices."""
    from gymnasium import spaces

    kind = type(symbol)
    state = getattr(symbol, "state", None)
    if not (kind.__name__ in SPACES and is_named(kind, f"gymnasium.spaces.{kind.__name__.lower()}", kind.__name__)):
        raise Unusual("its spaces are not Box or Discrete")
    if not isinstance(state, dict):
        raise Unusual("its spaces are written in another way")
    if kind.__name__ == "Discrete":
        return spaces.Discrete(int(number_of(state["n"])), start=int(number_of(state.get("start", 0))))
    low, high = array_of(state["low"]), array_of(state["high"])
    return spaces.Box(low, high, dtype=low.dtype.type)


def number_of(value: Any) -> Any:
    """A number, also one that NumPy wrote."""
    if isinstance(value, int | float):
        return value
    if is_one_of(value, "scalar") and len(value.arguments) == 2 and isinstance(value.arguments[1], bytes):
        return np.frombuffer(value.arguments[1], dtype_of(value.arguments[0]))[0].item()
    raise Unusual("its spaces are written in another way")


def array_of(value: Any) -> NDArray[Any]:
    """An array that NumPy wrote, in either of its two ways."""
    if is_one_of(value, "_frombuffer"):
        content, kind, shape, order = value.arguments
    elif is_one_of(value, "_reconstruct") and isinstance(value.state, tuple):
        _, shape, kind, fortran, content = value.state
        order = "F" if fortran else "C"
    else:
        raise Unusual("its spaces are written in another way")
    return np.frombuffer(bytes(content), dtype_of(kind)).reshape(shape, order=order)


def dtype_of(symbol: Any) -> np.dtype[Any]:
    """The type of an array of numbers."""
    if is_one_of(symbol, "dtype") and isinstance(symbol.arguments[0], str) and isinstance(symbol.state, tuple):
        kind = np.dtype(symbol.arguments[0])
        if kind.kind in "biuf":
            return kind.newbyteorder(symbol.state[1])
    raise Unusual("its spaces are not of numbers")


def is_one_of(value: Any, name: str) -> bool:
    """Whether a symbol stands for what a function or class of NumPy made."""
    return isinstance(value, Symbol) and type(value).__name__ == name and type(value).module.split(".")[0] == "numpy"


def is_named(symbol: Any, module: str, name: str) -> bool:
    """Whether a symbol is the name of a class."""
    known = isinstance(symbol, type) and issubclass(symbol, Symbol)
    return known and (symbol.module, symbol.__name__) == (module, name)
