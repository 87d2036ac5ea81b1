"""Attributes that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801 - a decorator, as functools.cached_property is
    """A method as an attribute that is computed once and kept.

    It is ``functools.cached_property`` without a lock. Before Python 3.12 that one holds a lock for
    the whole class while it computes. A process that forks meanwhile leaves its child waiting for
    the lock forever. Two threads may compute the same value here, which costs time only.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Value | lazy[Value]:
        if instance is None:
            return self
        # Found in the object's own dictionary from now on: this method is not called again.
        return vars(instance).setdefault(self._name, self._compute(instance))  # type: ignore[no-any-return]
