"""Attributes that are computed on first access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801 - a decorator, as functools.cached_property is
    """Turn a method into an attribute that is computed once and stored.

    This is ``functools.cached_property`` without a lock. Before Python 3.12, that one holds a lock
    for the whole class while it computes. If the process forks meanwhile, the child waits for the
    lock forever. Here, two threads may compute the same value, which only costs time.
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
        # Stored in the instance dictionary, so this method is not called again.
        return vars(instance).setdefault(self._name, self._compute(instance))  # type: ignore[no-any-return]
