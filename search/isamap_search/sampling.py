"""Optuna's samplers by name, and the choices of a space as what they draw from."""

import warnings
from collections.abc import Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, NSGAIISampler, RandomSampler, TPESampler

from isamap.diagnostics import ArgumentsError, fail
from isamap.schedule.space import Choice

# Searches have tens to hundreds of trials: generations are small.
_POPULATION = 12


def default_sampler(objectives: Sequence[str]) -> str:
    """Return the sampler for some objectives."""
    return "tpe" if len(objectives) == 1 else "nsga2"


def make_sampler(name: str, seed: int, objectives: Sequence[str]) -> BaseSampler:
    """Return one of :data:`isamap_search.settings.SAMPLERS`.

    ArgumentsError when it cannot follow several objectives.
    """
    if name == "cmaes" and len(objectives) > 1:
        text = f"the sampler cmaes follows one objective, not {' and '.join(objectives)}"
        raise ArgumentsError(fail("E748", text, hint="nsga2 and tpe follow several"))
    with warnings.catch_warnings():
        # What Optuna calls experimental is tested here.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        match name:
            case "nsga2":
                return NSGAIISampler(seed=seed, population_size=_POPULATION)
            case "cmaes":
                # Choices without an order are not its business.
                own = TPESampler(seed=seed, n_startup_trials=0)
                return CmaEsSampler(
                    seed=seed,
                    with_margin=True,
                    independent_sampler=own,
                    warn_independent_sampling=False,
                )
            case "random":
                return RandomSampler(seed=seed)
            case _:
                return TPESampler(seed=seed, n_startup_trials=0, constant_liar=True)


def distributions(choices: Sequence[Choice]) -> dict[str, BaseDistribution]:
    """Return what each choice is drawn from: options that are numbers have an order."""
    found: dict[str, BaseDistribution] = {}
    for choice in choices:
        count = len(choice.options)
        if count > 2 and all(str(option).isdecimal() for option in choice.options):
            found[choice.name] = IntDistribution(0, count - 1)
        else:
            found[choice.name] = CategoricalDistribution(range(count))
    return found
