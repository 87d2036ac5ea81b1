"""All files contain the same version, and the recipe lists the same requirements."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import leafkernel

if sys.version_info < (3, 11):
    pytest.skip("reading pyproject.toml needs Python 3.11", allow_module_level=True)
import tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def release(tmp_path):
    """Return packaging/release.py, working on copies of the files."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "packaging" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("SOURCE", "CITATION", "CHANGELOG"):
        copy = tmp_path / getattr(module, name).name
        copy.write_text(getattr(module, name).read_text(encoding="utf-8"), encoding="utf-8")
        setattr(module, name, copy)
    return module


def test_one_version(release):
    assert set(release.versions().values()) == {leafkernel.__version__}
    assert "version" in PROJECT["project"]["dynamic"]


def test_prepare_writes_the_version_everywhere(release):
    with pytest.raises(SystemExit, match=r"expected version 9\.8\.7"):
        release.check("9.8.7")
    release.prepare("9.8.7")
    assert set(release.versions().values()) == {"9.8.7"}
    assert re.search(r"\d{4}-\d\d-\d\d", release.latest_heading())


def test_unreleased_versions_are_not_published(release):
    release.prepare("9.8.7")
    text = release.CHANGELOG.read_text(encoding="utf-8")
    release.CHANGELOG.write_text(re.sub(r"9.8.7 \(.*\)", "9.8.7 (unreleased)", text), "utf-8")
    with pytest.raises(SystemExit, match="no date"):
        release.check("9.8.7")


def test_recipe_requires_the_same_packages():
    recipe = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8")
    listed = {line.strip().removeprefix("- ").replace(" ", "") for line in recipe.splitlines()}
    project = PROJECT["project"]
    wanted = {*project["dependencies"], *project["optional-dependencies"]["cli"]}
    assert wanted | set(PROJECT["build-system"]["requires"]) <= listed
