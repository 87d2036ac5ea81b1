"""The explorer: one page on which a person sees a table the way a forest sees it."""

from leafkernel.explorer.report import Report, build_report

__all__ = ["Report", "build_report"]
