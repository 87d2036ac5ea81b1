"""Interactive HTML pages that show a table with the proximities of a forest."""

from leafkernel.explorer.report import Report, build_report

__all__ = ["Report", "build_report"]
