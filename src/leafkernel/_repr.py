"""The representation of fitted objects in terminals and notebooks."""

from __future__ import annotations

from html import escape
from typing import Any


class FittedRepr:
    """Mixin for estimators that show their main figures after fit."""

    def _figures(self) -> dict[str, str]:
        """Return names and figures. Empty before fit."""
        return {}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        figures = ", ".join(f"{name}: {figure}" for name, figure in self._figures().items())
        return f"{text}\nfitted, {figures}" if figures else text

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + self._figures_table()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in shown:
            shown["text/html"] += self._figures_table()
        return shown

    def _figures_table(self) -> str:
        cell = '<td style="text-align: left; padding: 2px 12px 2px 0">'
        rows = "".join(
            f"<tr>{cell}{escape(name)}</td>{cell}{escape(figure)}</td></tr>"
            for name, figure in self._figures().items()
        )
        return f'<table style="margin-top: 6px">{rows}</table>' if rows else ""
