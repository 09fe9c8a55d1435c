"""What every test shares: Hypothesis profiles and golden files."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

INSTALLED = "ISAMAP_TOOLS_INSTALLED"
"""The variable of the environment that says that no tool of another machine is missing."""

FETCH = "isamap targets install"
"""What a test that is skipped for want of a tool tells to do."""

settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile(
    "ci",
    max_examples=200,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "deep",
    max_examples=10_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
_DEFAULT = "ci" if os.environ.get("CI") == "true" else "dev"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _DEFAULT))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write golden files instead of comparing with them; review the diff",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where all tools were installed, what is skipped for want of one has failed."""
    report = yield
    if report.skipped and os.environ.get(INSTALLED) and FETCH in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{INSTALLED} says that tools are there: {report.longrepr}"
    return report


@pytest.fixture(autouse=True, scope="session")
def _state_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what searches keep out of the user's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


Golden = Callable[[Path, str], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return ``check(path, text)``: the text must be that of the golden file at ``path``."""
    update: bool = request.config.getoption("--update-golden")

    def check(path: Path, text: str) -> None:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{path} does not exist; run pytest --update-golden and review it"
        assert text == path.read_text(encoding="utf-8"), f"{path} differs"

    return check
