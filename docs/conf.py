"""Settings of the documentation site. `python docs/build.py` builds it."""

import os
import sys
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import leafkernel  # noqa: E402

mpl.use("Agg")

project = "leafkernel"
author = "The leafkernel developers"
copyright = f"2026, {author}"  # noqa: A001
version = release = leafkernel.__version__

extensions = [
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "notebooks",
    "public_names",
    "repository_links",
]
exclude_patterns = ["_build", "_ext", "_templates", "forests.template.md"]
exclude_patterns += [
    "tutorials/*.ipynb",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.json",
    "gallery/*.zip",
]
exclude_patterns += ["sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    # The inventories of these libraries are on the web, and the build must not need it.
    (r"py:.*", r"(numpy|scipy|sklearn|pandas|matplotlib|dask|umap)\..*"),
]
smartquotes = False
suppress_warnings = ["config.cache", "myst.header"]  # generated pages skip a level of headings

# Docstrings -----------------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # the Parameters section names types and shapes
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
toc_object_entries_show_parents = "hide"

# Pages and notebooks --------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist", "substitution"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_output_stderr = "warn"  # a warning in a notebook fails the build
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Gallery --------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "gallery_settings.InOrder",
    "reset_modules": ("matplotlib", "gallery_settings.reset"),
    "parallel": 2,
    "matplotlib_animations": False,
    "min_reported_time": 1,
    "thumbnail_size": (480, 300),
    "doc_module": ("leafkernel",),
    "inspect_global_variables": False,
    "reset_modules_order": "before",
}

# Looks ----------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "leafkernel"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "leafkernel"},
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": ["page-toc"],
    "back_to_top_button": True,
}
html_sidebars = {"index": [], "start": [], "theory": []}

# `python docs/build.py --links` asks the web; nothing else does.
linkcheck_timeout = 20
linkcheck_ignore = [r"https?://localhost.*"]
