"""Weight schemes: the rules that define how much each shared leaf counts.

A scheme gives each sample x a query weight q_t(x) and a reference weight w_t(x) in each tree t.
The proximity of x to x' is the sum of q_t(x) w_t(x') over the trees in which both reach the same
leaf. Pass the name of a scheme as ``weight_scheme`` to :class:`leafkernel.ForestProximity`, or
define your own with :class:`WeightScheme`.

==================  ===================================  ==============================  =========
name                query weight q_t(x)                  reference weight w_t(x')        symmetric
==================  ===================================  ==============================  =========
``uniform``         1/√T                                 the same                        yes
``kerf``            1/√(T·M(ℓ_t(x)))                     the same                        yes
``gap``             o_t(x)/S(x)                          c_t(x')/M_in(ℓ_t(x'))           no
``oob``             o_t(x), then divided by S(x, x')     o_t(x')                         yes
``oob_separable``   √T·o_t(x)/S(x)                       the same                        yes
``boosted``         √(w_t/Σw)                            the same                        yes
``ih``              1/T                                  1 − kDN_t(x')                   no
``gradient``        1                                    −η·c·g/(H(ℓ_t(x')) + λ)         no
``purity``          √(u(ℓ_t(x))/T)                       the same                        yes
``learned``         √μ_t                                 the same                        yes
``pbk``             e^(−λ·edges)/√T at each ancestor     the same                        yes
``rpk``             1/√(T·(h + 1)) at each ancestor      the same                        yes
==================  ===================================  ==============================  =========

T is the number of trees and ℓ_t(x) the leaf of x in tree t. M(ℓ) is the number of training samples
in a leaf, and M_in(ℓ) their in-bag weight. c_t(x) is the in-bag weight of x in tree t. o_t(x) is 1
if x is out-of-bag in tree t, else 0. S(x) is the number of trees in which x is out-of-bag, and
S(x, x') the number in which both are. The other symbols are explained in the class of the scheme.

``pbk`` and ``rpk`` compare whole paths: all nodes on the path to a leaf, not only the leaf. See
:class:`PathScheme`. :class:`Collapsed` applies a scheme of leaves to trees with fewer splits.
``original`` is another name for ``uniform``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leafkernel._suggestions import suggest
from leafkernel.leaf_index import ForestStats, Samples
from leafkernel.schemes._base import (
    NEEDS,
    OPTIONAL_NEEDS,
    AnyWeights,
    WeightScheme,
    ratio,
)
from leafkernel.schemes._paths import NodeWeights, PathScheme
from leafkernel.schemes.boosted import Boosted
from leafkernel.schemes.collapsed import Collapsed
from leafkernel.schemes.gap import Gap
from leafkernel.schemes.gradient import Gradient
from leafkernel.schemes.ih import InstanceHardness
from leafkernel.schemes.kerf import Kerf
from leafkernel.schemes.learned import Learned
from leafkernel.schemes.oob import OutOfBag
from leafkernel.schemes.oob_separable import SeparableOutOfBag
from leafkernel.schemes.path_decay import PathDecay
from leafkernel.schemes.purity import Purity
from leafkernel.schemes.random_partition import RandomPartition
from leafkernel.schemes.uniform import Uniform
from leafkernel.tree_nodes import TreeNodes
from leafkernel.weighting import Weighting

__all__ = [
    "Boosted",
    "Collapsed",
    "ForestStats",
    "Gap",
    "Gradient",
    "InstanceHardness",
    "Kerf",
    "Learned",
    "NodeWeights",
    "OutOfBag",
    "PathDecay",
    "PathScheme",
    "Purity",
    "RandomPartition",
    "Samples",
    "SeparableOutOfBag",
    "TreeNodes",
    "Uniform",
    "WeightScheme",
    "Weighting",
    "find_scheme",
    "ratio",
]

_BY_NAME: dict[str, type[WeightScheme]] = {
    "uniform": Uniform,
    "original": Uniform,
    "kerf": Kerf,
    "gap": Gap,
    "oob": OutOfBag,
    "oob_separable": SeparableOutOfBag,
    "boosted": Boosted,
    "ih": InstanceHardness,
    "gradient": Gradient,
    "purity": Purity,
    "learned": Learned,
    "pbk": PathDecay,
    "rpk": RandomPartition,
}


@dataclass(frozen=True)
class _FromFunction(WeightScheme):
    """A scheme from a user's function, with the same weights on both sides."""

    function: Callable[[Samples, ForestStats], AnyWeights]

    @property
    def name(self) -> str:  # type: ignore[override]
        return getattr(self.function, "__name__", repr(self.function))

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(getattr(self.function, "needs", ()))

    def query(self, samples: Samples, forest: ForestStats) -> AnyWeights:
        return self.function(samples, forest)


def find_scheme(weight_scheme: Any) -> WeightScheme:
    """Return the weight scheme for a name, a function or a scheme.

    Parameters
    ----------
    weight_scheme : str, callable or WeightScheme
        The name of a built-in scheme, a function that takes ``(samples, forest)`` and returns
        weights, or a scheme.

    Returns
    -------
    WeightScheme
        The scheme.

    Examples
    --------
    >>> from leafkernel.schemes import find_scheme
    >>> find_scheme("original").name
    'uniform'
    """
    scheme = _find(weight_scheme)
    for name, allowed in (("needs", NEEDS), ("optional_needs", OPTIONAL_NEEDS)):
        given = getattr(scheme, name)
        if given - allowed:
            raise ValueError(
                f"{name}={sorted(given)} of the scheme {scheme.name!r} contains unknown values: "
                f"{sorted(given - allowed)}. The allowed values are {sorted(allowed)}."
            )
    return scheme


def _find(weight_scheme: Any) -> WeightScheme:
    if isinstance(weight_scheme, str):
        if weight_scheme in _BY_NAME:
            return _BY_NAME[weight_scheme]()
        listed = ", ".join(repr(name) for name in _BY_NAME if name != "original")
        raise ValueError(
            f"weight_scheme={weight_scheme!r} is unknown.{suggest(weight_scheme, _BY_NAME)} "
            f"Use one of {listed}, a function or a WeightScheme."
        )
    if isinstance(weight_scheme, WeightScheme):
        return weight_scheme
    if isinstance(weight_scheme, type) and issubclass(weight_scheme, WeightScheme):
        raise TypeError(
            f"weight_scheme is the class {weight_scheme.__name__}. Pass an instance: "
            f"{weight_scheme.__name__}()."
        )
    if callable(weight_scheme):
        return _FromFunction(weight_scheme)
    raise TypeError(
        "weight_scheme must be a name such as 'gap', a WeightScheme, or a function that takes "
        f"(samples, forest) and returns weights; got {weight_scheme!r}."
    )
