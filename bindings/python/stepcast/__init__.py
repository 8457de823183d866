# SPDX-License-Identifier: Apache-2.0
"""Forecasts one training step of a transformer on a GPU cluster.

    import stepcast

    forecast = stepcast.predict(model="llama-3.1-70b", cluster="dgx-h100x4", global_batch=64,
                                tp=8, pp=4)
    forecast["step_time_s"], forecast["mfu"]
    forecast.picture("pipeline")                 # in a notebook

    plan = stepcast.plan(model="llama-3.1-70b", cluster="dgx-h100x4", global_batch=64)
    pandas.DataFrame(plan.rows)
    stepcast.predict(plan.scenario(0))

A scenario is a dict with the keys of docs/formats/scenario.md, or the path of a file. Keyword
arguments set keys by their last part ("tp", "global_batch") or by the word of the program's flag
("seq"); `set` has dotted paths: {"layout.tp": 8}. Wrong input raises `stepcast.Error`, which lists
every problem with its path, value and hint. Ctrl-C interrupts whatever runs.
"""

import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _core
from .errors import Error, Problem, problems_of
from .results import CheckOutcome, Comparison, Picture, Plan, Prediction, Result
from .scenarios import ScenarioLike, data_at, scenario_of

__version__ = _core.__version__
__all__ = [
    "CheckOutcome", "Comparison", "Error", "Picture", "Plan", "Prediction", "Problem", "Result",
    "check", "clusters", "compare", "gpus", "keys", "lint", "models", "plan", "predict",
    "schedules", "suites"
]

_Folder = Union[str, "os.PathLike[str]", None]


def predict(scenario: Optional[ScenarioLike] = None, *, set: Optional[Mapping[str, Any]] = None,
            what_if: Sequence[str] = (), explain: bool = False, unfolded: bool = False,
            contention: bool = True, causal_flops: bool = False, prices: _Folder = None,
            seed: int = 0, data: _Folder = None, **keys: Any) -> Prediction:
    """Forecasts one step. Keys that the scenario leaves out have defaults, which stand under
    `forecast["resolved"]`.

    `what_if` changes resources of the cluster: ["nic=+20%"]. `explain` says what each cost rests
    on. `unfolded` replays every rank, not one of each class. Without `contention` transfers move as
    if alone. With `causal_flops` attention counts half in FLOPs. `prices` is a file that goes
    before the shipped ones, `data` a folder in the place of the data that the module carries.
    """
    stated = scenario_of(scenario, set, keys, data_at(data))

    def forecast(timeline: bool) -> _core.Prediction:
        return _core.predict(stated, what_if=list(what_if), timeline=timeline, explain=explain,
                             unfolded=unfolded, contention=contention, causal_flops=causal_flops,
                             prices=os.fspath(prices or ""), seed=seed)

    return Prediction(forecast(False), lambda: forecast(True))


def plan(scenario: Optional[ScenarioLike] = None, *, set: Optional[Mapping[str, Any]] = None,
         top: int = 10, replays: int = 256, front: int = 0, prove: bool = False,
         time_limit_s: Optional[float] = None, objective: str = "",
         memory_margin: Optional[float] = None, risk: Optional[float] = None,
         why_not: Sequence[Mapping[str, Any]] = (), threads: Optional[int] = None,
         progress: Optional[Callable[[Dict[str, Any]], Any]] = None, prices: _Folder = None,
         data: _Folder = None, **keys: Any) -> Plan:
    """Searches the best values of all layout keys that the scenario leaves out.

    `top` places are to be certain after `replays` forecasts at most; `prove` searches on until they
    are. `front` adds so many layouts that need less memory, under `plan["pareto"]`. `objective` is
    "step_time", "cost" or "goodput". `why_not` lists layouts to explain: [{"tp": 4, "pp": 8}].
    `threads` (all cores) changes no result. `progress` is called some times a second, on the
    calling thread, with a dict of `elapsed_s`, `bounded`, `replayed`, `best_step_time_s` and
    `bound_step_time_s`; where it returns False the search ends with what it has found. Other Python
    threads run meanwhile.
    """
    words = [{key: str(value) for key, value in one.items()} for one in why_not]
    stated = scenario_of(scenario, set, keys, data_at(data))
    return Plan(_core.plan(stated, top=top, replays=replays, front=front, prove=prove,
                           time_limit_s=time_limit_s or 0, objective=objective,
                           memory_margin=-1 if memory_margin is None else memory_margin,
                           risk=risk or 0, prices=os.fspath(prices or ""), why_not=words,
                           threads=threads or _cores(), progress=progress))


def compare(scenarios: Union[Mapping[str, ScenarioLike], Sequence[ScenarioLike]], *,
            set: Optional[Mapping[str, Any]] = None, threads: Optional[int] = None,
            data: _Folder = None, **keys: Any) -> Comparison:
    """Forecasts several scenarios side by side: by name, or files that their names tell apart.
    Keyword arguments and `set` hold for all of them."""
    source = data_at(data)
    named = scenarios.items() if isinstance(scenarios, Mapping) else (
        (os.fspath(one) if isinstance(one, (str, os.PathLike)) else f"scenario {place}", one)
        for place, one in enumerate(scenarios, 1))
    stated = [scenario_of(one, set, keys, source, name).named(name) for name, one in named]
    return Comparison(_core.compare(stated, threads or _cores()))


def check(*names: Union[str, "os.PathLike[str]"], tolerances: Sequence[str] = (),
          threads: Optional[int] = None, data: _Folder = None) -> CheckOutcome:
    """Forecasts the recorded runs of suites, by name or file; all shipped ones unless told.
    `tolerances` are limits: ["step_time.mean_abs_error=0.10"]."""
    source = data_at(data)
    wanted = [os.fspath(name) for name in names] or source.suites()
    return CheckOutcome(_core.check(source, wanted, list(tolerances), threads or _cores()))


def lint(scenario: Optional[ScenarioLike] = None, *, set: Optional[Mapping[str, Any]] = None,
         data: _Folder = None, **keys: Any) -> List[Problem]:
    """Everything that is wrong with a scenario; an empty list where nothing is."""
    try:
        stated = scenario_of(scenario, set, keys, data_at(data))
    except Error as error:
        return list(error.problems)
    return problems_of(stated.errors(), stated.json())


def _listed(topic: str, filter: str, data: _Folder) -> List[Dict[str, Any]]:
    out: List[Dict[str, Any]] = json.loads(data_at(data).list(topic, filter))
    return out


def models(filter: str = "", *, data: _Folder = None) -> List[Dict[str, Any]]:
    """Models that ship and whose name contains `filter`, with exact parameter counts."""
    return _listed("models", filter, data)


def clusters(filter: str = "", *, data: _Folder = None) -> List[Dict[str, Any]]:
    """Clusters that ship."""
    return _listed("clusters", filter, data)


def gpus(filter: str = "", *, data: _Folder = None) -> List[Dict[str, Any]]:
    """Accelerators that ship."""
    return _listed("gpus", filter, data)


def schedules(filter: str = "", *, data: _Folder = None) -> List[Dict[str, Any]]:
    """Pipeline schedules."""
    return _listed("schedules", filter, data)


def keys(filter: str = "", *, data: _Folder = None) -> List[Dict[str, Any]]:
    """Keys of training and layout, with what they accept and their defaults."""
    return _listed("keys", filter, data)


def suites(*, data: _Folder = None) -> List[str]:
    """Names of the suites of recorded runs that ship."""
    return data_at(data).suites()


def _cores() -> int:
    return len(os.sched_getaffinity(0))
