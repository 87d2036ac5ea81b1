"""The API reference: fail if a public name is missing, and leave out what is not ours."""

import re
from importlib import import_module

from sphinx.util import logging

PUBLIC = (
    "leafkernel",
    "leafkernel.tasks",
    "leafkernel.plots",
    "leafkernel.schemes",
    "leafkernel.explorer",
)
# What users need of other modules: to bring a forest or an engine, and to check a saved folder.
MORE = (
    "leafkernel.forests.Forest",
    "leafkernel.engines.Engine",
    "leafkernel.saving.DamagedError",
    "leafkernel.saving.verify",
)


def public_names():
    """Return the full names that the reference must have."""
    names = [f"{module}.{name}" for module in PUBLIC for name in import_module(module).__all__]
    return sorted({*names, *MORE} - {"leafkernel.schemes.WeightScheme"})


def check(app, env):
    documented = env.domaindata["py"]["objects"]
    for name in public_names():
        if name not in documented:
            logging.getLogger(__name__).warning(f"{name} is public but not in docs/api/index.rst")


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what classes inherit from scikit-learn and others: it is documented there."""
    home = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    module = getattr(home, "__module__", None) or ""
    return None if module.startswith("leafkernel") else True


def tidy(app, what, name, obj, options, lines):
    """Remove markup that Sphinx would read as links or citations.

    ``[2]_`` in a method cites the references of its class, and ``(n_iter_,)`` in a shape is no
    link.
    """
    cites_elsewhere = what == "method" and ".. [1]" not in "\n".join(lines)
    for number, line in enumerate(lines):
        if cites_elsewhere:
            line = re.sub(r"\[(\d+)\]_", r"[\1]", line)  # noqa: PLW2901
        name, colon, kind = line.partition(" : ")
        if colon and re.fullmatch(r"[\w*, ]+", name):
            line = name + colon + re.sub(r"(\w)_(?=\W)", r"\1\\_", kind)  # noqa: PLW2901
        lines[number] = line


def find_home(app, env, node, contnode):
    """Resolve a class or function that is named without the module that documents it."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") == "py":
        homes = [full for full in public_names() if full.endswith(f".{name}")]
        if len(homes) == 1:
            domain, docname = env.get_domain("py"), node["refdoc"]
            return domain.resolve_xref(env, docname, app.builder, "obj", homes[0], node, contnode)
    return None


def setup(app):
    app.connect("missing-reference", find_home)
    app.connect("env-check-consistency", check)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", tidy, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
