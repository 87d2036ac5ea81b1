"""The pages of the documentation: examples run, links are valid, commands exist."""

import doctest
import re
from pathlib import Path

import pytest
import typer.main

from leafkernel.cli.app import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE = ("_build", "gallery", "generated")  # by the build of the site
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if not set(MADE) & {*page.parts}),
]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
FENCES = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
# These run with the oldest versions too.
WITH_ALL_VERSIONS = ("README.md", "docs/boosted.md")


def with_examples():
    for name, text in TEXTS.items():
        if ">>> " in text:
            marks = () if name in WITH_ALL_VERSIONS else (pytest.mark.pages,)
            yield pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [*with_examples()])
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=options)
    assert result.failed == 0
    assert result.attempted == len(re.findall(r"^>>> ", TEXTS[name], flags=re.MULTILINE))


@pytest.mark.parametrize("name", [*TEXTS])
def test_python_is_written_as_examples(name):
    """Code without prompts would not be tested."""
    blocks = [code for language, code in FENCES.findall(TEXTS[name]) if language == "python"]
    assert all(code.startswith(">>> ") for code in blocks)


@pytest.mark.parametrize("name", [*TEXTS])
def test_links_lead_somewhere(name):
    """Links to pages and pictures of the project. Links to the web are not requested."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", TEXTS[name])
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    here = (ROOT / name).parent
    missing = [link for link in local if not (here / link).exists() and not is_made(here, link)]
    assert not missing


def is_made(here, link):
    """Whether a link leads to a page that only the build of the site makes."""
    parts = (here / link).resolve().relative_to(DOCS).parts
    return parts == ("gallery", "index.rst")


def commands():
    """Every line of a page that calls the command or a script."""
    for name, text in TEXTS.items():
        for language, block in FENCES.findall(text):
            if language in ("sh", "console", "text"):
                for line in block.splitlines():
                    words = line.removeprefix("$ ").partition("  #")[0].split()
                    if words[:1] in (["leafkernel"], ["python"]):
                        yield pytest.param(words, id=f"{name}: {' '.join(words)}")


@pytest.mark.parametrize("words", [*commands()])
def test_commands_exist(words):
    program, first, *rest = words
    if program == "python":
        if rest[:1] == ["pip"]:
            return
        path = ROOT / (rest[0].replace(".", "/") if first == "-m" else first)
        assert path.exists() or path.with_suffix(".py").exists()
        return
    command = typer.main.get_command(app).commands[first]
    known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    assert {word.strip("[]") for word in rest if word.startswith("-")} <= known


# The web addresses of the project's pages, files and pictures, and their sources.
PLACES = {
    "https://leafkernel.readthedocs.io/en/latest/": "docs",
    "https://github.com/leafkernel/leafkernel/blob/main/": ".",
    "https://raw.githubusercontent.com/leafkernel/leafkernel/main/": ".",
}


@pytest.mark.parametrize("name", [*TEXTS])
def test_absolute_links_lead_to_files_of_the_project(name):
    for link in re.findall(r"https://[^)\s]*leafkernel[^)\s`\"]*", TEXTS[name]):
        found = [(ROOT / PLACES[place], link[len(place) :]) for place in PLACES if place in link]
        for folder, path in found:
            source = folder / path.partition("#")[0]
            made_from = [source.with_suffix(end) for end in (".md", ".rst")]
            made = path == "gallery/index.html"  # by the build of the site
            assert made or any(file.exists() for file in (source, *made_from)), link


def test_links_of_the_readme_are_absolute():
    """The README is also shown on the package index, which has no other files."""
    links = re.findall(r"\]\(([^)\s]+)\)", TEXTS["README.md"])
    assert len(links) > 20
    assert all(link.startswith("https://") for link in links)
