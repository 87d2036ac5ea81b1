"""The package: public names, import time, documentation."""

import doctest
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leafkernel
import leafkernel.explorer
import leafkernel.plots
import leafkernel.tasks

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(leafkernel.__path__, "leafkernel.")
    if not module.name.endswith("._native")
)


def test_public_names():
    assert leafkernel.__all__ == [
        "Batches",
        "Forecast",
        "ForestProximity",
        "LeafkernelWarning",
        "WeightScheme",
        "show_versions",
    ]
    public = {
        name
        for name in dir(leafkernel)
        if not name.startswith("_") and not inspect.ismodule(getattr(leafkernel, name))
    }
    assert public == set(leafkernel.__all__)


def test_version_is_the_installed_one():
    assert importlib.metadata.version("leafkernel") == leafkernel.__version__


def test_import_brings_no_optional_library():
    script = (
        "import sys; from leafkernel import *; "
        "print([m for m in ('tqdm', 'matplotlib', 'pandas', 'polars', 'lightgbm', 'xgboost', "
        "'catboost', 'umap') if m in sys.modules])"
    )
    # scikit-learn imports pandas for its own checks on some versions: compare with it alone.
    plain = script.replace("leafkernel", "sklearn.ensemble")
    run = [sys.executable, "-c"]
    with_us = subprocess.run([*run, script], capture_output=True, text=True, check=True).stdout
    without = subprocess.run([*run, plain], capture_output=True, text=True, check=True).stdout
    assert with_us == without


def test_types_are_shipped():
    assert (Path(leafkernel.__file__).parent / "py.typed").exists()


def has_examples(name):
    return ">>> " in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in MODULES if has_examples(name)])
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert result.attempted > 0


def sections(docstring):
    return {
        line.strip()
        for line, under in zip(docstring.splitlines(), docstring.splitlines()[1:], strict=False)
        if set(under.strip()) == {"-"}
    }


PUBLIC_METHODS = sorted(
    name
    for name in vars(leafkernel.ForestProximity)
    if not name.startswith("_") and not name.startswith("set_")
)


def test_all_of_the_front_door_is_there():
    assert set(PUBLIC_METHODS) == {
        *("fit", "reweigh", "transform", "fit_transform", "get_feature_names_out", "from_leaves"),
        *("proximity", "iter_proximity", "kneighbors", "kneighbors_graph", "forecast"),
        *("query_map", "reference_map", "operator", "weighted_average", "weighted_sums"),
        *("proximity_to", "neighbors_frame", "explore", "save", "load"),
        *("extend", "write_neighbors", "write_proximity", "base_score_", "tree_weights_"),
    }


def test_only_the_inside_reaches_into_a_fit():
    """Tasks, plots and pages use `Inside`, so that the contents of a fit can change."""
    package = Path(leafkernel.__file__).parent
    reaching = re.compile(r"\.kernel_\b|prox(imity)?_?\._(?!figures)[a-z]")
    for path in package.rglob("*.py"):
        if path.name not in ("proximity.py", "inside.py") or path.parent != package:
            found = [line for line in path.read_text("utf-8").splitlines() if reaching.search(line)]
            assert not found, f"{path.name}: {found}"


def public_callables():
    """Every public function and method of the package's front doors, by name."""
    found = {}
    for owner in (leafkernel, leafkernel.tasks, leafkernel.plots, leafkernel.explorer):
        for name in owner.__all__:
            value = getattr(owner, name)
            if inspect.isclass(value) and hasattr(value, "fit"):
                for method in vars(value):
                    if not method.startswith(("_", "set_")) and callable(getattr(value, method)):
                        found[f"{name}.{method}"] = getattr(value, method)
            elif inspect.isfunction(value):
                found[name] = value
    return found


@pytest.mark.parametrize("name", sorted(public_callables()))
def test_docstrings_cover_every_parameter(name):
    """Numpydoc sections, and every parameter named in them."""
    method = public_callables()[name]
    docstring = inspect.getdoc(method)
    parameters = [p for p in inspect.signature(method).parameters if p not in ("self", "params")]
    found = sections(docstring)
    assert "Returns" in found or "Yields" in found
    assert not parameters or "Parameters" in found
    listed = re.findall(r"^(\*{0,2}\w+(?:, \w+)*) : ", docstring, flags=re.MULTILINE)
    assert set(parameters) <= {name.strip() for names in listed for name in names.split(",")}


ESTIMATORS = [
    leafkernel.ForestProximity,
    *(
        value
        for name in leafkernel.tasks.__all__
        if hasattr(value := getattr(leafkernel.tasks, name), "fit")
    ),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constructors_are_documented(estimator):
    docstring = inspect.getdoc(estimator)
    for parameter in inspect.signature(estimator).parameters:
        assert f"{parameter} : " in docstring
    assert "Examples\n--------" in docstring


def test_every_scheme_documents_its_formula():
    from leafkernel import schemes

    for name in schemes.__all__:
        value = getattr(schemes, name)
        if inspect.isclass(value) and issubclass(value, leafkernel.WeightScheme):
            assert ".. math::" in value.__doc__, name


def test_a_library_that_is_missing_is_named_with_its_extra():
    code = """
import sys
sys.modules["lightgbm"] = None  # as where it is not installed
from leafkernel import ForestProximity
Model = type("LGBMClassifier", (), {"__module__": "lightgbm.sklearn"})
try:
    ForestProximity(Model(), "kerf").fit([[0.0], [1.0]], [0, 1])
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "leafkernel[boosting]"' in found.stdout
