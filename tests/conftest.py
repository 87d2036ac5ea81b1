import os
import shutil

# Forests here are small, and threads of several libraries in several processes only wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_diabetes, load_iris

settings.register_profile(
    "default", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", parent=settings.get_profile("default"), max_examples=10)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")
# Graphics in software: a machine that runs tests seldom has a card.
_SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y


@pytest.fixture(scope="session")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:200], y[:200]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def table():
    """120 rows: two numbers with gaps, a category of four, and a target that depends on all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=120),
            "kind": pd.Categorical(rng.choice(list("abcd"), size=120)),
            "age": rng.gamma(2.0, size=120),
        }
    )
    y = X["size"] + X["kind"].isin(["a", "c"]) * 2 + 0.3 * X["age"]
    X.loc[::7, "size"] = np.nan
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def browser():
    """A real browser that opens pages."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="pages are tested with Playwright: pip install playwright"
    )
    wanted = os.environ.get("LEAFKERNEL_BROWSER")
    path = wanted or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(_BROWSERS)}, and no LEAFKERNEL_BROWSER")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=[*_SOFTWARE])
        yield running
        running.close()
