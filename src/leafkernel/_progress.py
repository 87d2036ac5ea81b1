"""Optional progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from leafkernel._optional import require

Item = TypeVar("Item")
OnProgress = Callable[[int], None]
#: Starts a progress display, given a description and the total.
Show = Callable[[str, int | None], OnProgress]

_SHOW: ContextVar[Show | None] = ContextVar("show", default=None)


@contextmanager
def progress_shown_by(show: Show) -> Iterator[None]:
    """Show progress with a function instead of tqdm, if progress is enabled."""
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


@contextmanager
def progress_bar(
    description: str, total: int | None, *, enabled: bool, unit: str = "row"
) -> Iterator[OnProgress | None]:
    """Yield a function that takes the amount done so far, or None if disabled."""
    if not enabled:
        yield None
        return
    if (show := _SHOW.get()) is not None:
        yield show(description, total)
        return
    bar = _open_bar(description, total, unit)
    try:
        yield lambda done: bar.update(done - bar.n)
    finally:
        bar.close()


def track(
    items: Iterable[Item], description: str, total: int, *, enabled: bool = False
) -> Iterator[Item]:
    """Iterate over items, with a progress bar if enabled."""
    with progress_bar(description, total, enabled=enabled, unit="step") as on_progress:
        for done, item in enumerate(items, start=1):
            yield item
            if on_progress is not None:
                on_progress(done)


def _open_bar(description: str, total: int | None, unit: str) -> Any:
    tqdm = require("tqdm.auto", extra="progress").tqdm
    return tqdm(desc=description, total=total, unit=unit, unit_scale=True)
