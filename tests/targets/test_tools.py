"""Where tools are found, whether they will do, and how they are fetched."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from isamap.cli.group import group
from isamap.diagnostics import HardwareError, ToolError
from isamap.hw.catalogue import Tool, catalogue
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.native import remedy
from isamap.hw.needed import needed
from isamap.hw.tools import find_tool, located, tools_folder
from isamap.targets import debian, install
from isamap.targets.state import asked, targets


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools, and nothing on the PATH but what scripts need."""
    (tmp_path / "tools" / "bin").mkdir(parents=True)
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("ISAMAP_TOOLS", str(tmp_path / "tools"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin:/usr/bin")
    return tmp_path


def script(path: Path, version: str, status: int = 0) -> None:
    path.write_text(f"#!/bin/sh\necho '{path.name} version {version} (Debian)'\nexit {status}\n")
    path.chmod(0o755)


def test_the_folder_is_where_users_keep_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISAMAP_TOOLS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert tools_folder() == Path("/data/isamap/tools")


def test_the_own_folder_comes_before_the_path(folder: Path) -> None:
    assert find_tool("qemu-nothing") is None
    assert located(["qemu-nothing", "-cpu", "max"]) == ["qemu-nothing", "-cpu", "max"]
    script(folder / "path" / "qemu-nothing", "1.0")
    assert find_tool("qemu-nothing") == str(folder / "path" / "qemu-nothing")
    own = folder / "tools" / "bin" / "qemu-nothing"
    script(own, "1.0")
    assert located(["qemu-nothing", "x"]) == [str(own), "x"]
    assert located([]) == []


@pytest.mark.parametrize(
    ("version", "there"), [("10.0.2", True), ("10.0", True), ("7.2.13", False), ("11.1", True)]
)
def test_a_tool_of_the_path_will_do_if_it_is_not_too_old(
    folder: Path, version: str, there: bool
) -> None:
    script(folder / "path" / "zig", "0.17.0")
    script(folder / "path" / "qemu-aarch64", version)
    zig, emulator = needed(load_hardware("aarch64_neon"))
    assert zig.is_there
    assert (emulator.version, emulator.is_there) == (version, there)
    (target,) = (one for one in targets() if one.name == "aarch64_neon")
    assert bool(target.missing) != there
    assert target.remedy == ("" if there else "isamap targets install aarch64_neon")


MINE = Path(__file__).parents[2] / "examples" / "machines" / "power8.yaml"


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("aarch64_neon", "aarch64_neon"),
        ("aarch64_sve2:VL=512", "aarch64_sve2"),
        ("tpp@aarch64_neon", "aarch64_neon"),
        (str(MINE), str(MINE)),
        ("portable_c", None),
        ("gemm16", None),
    ],
)
def test_the_command_that_fetches_tools_is_told(folder: Path, name: str, asked: str | None) -> None:
    machine = load_hardware(name, trust=True)
    assert remedy(machine) == ("" if asked is None else f"isamap targets install {asked}")
    if asked is not None:
        script(folder / "path" / "zig", "0.17.0")
        for emulator in ("qemu-aarch64", "qemu-ppc64"):
            script(folder / "path" / emulator, "10.0.2")
        assert remedy(machine) == ""


@pytest.mark.parametrize("name", ["mips_msa", str(MINE)])
def test_what_is_simulated_for_want_of_tools_says_how_to_have_them(folder: Path, name: str) -> None:
    script(folder / "path" / "zig", "0.17.0")
    kernel = folder / "add.ir"
    kernel.write_text("kernel add { in x : f32[5]  out y : f32[5]  y[i] = x[i] + 1 }")
    words = ["map", str(kernel), "--hw", name, "--trust", "--no-proof"]
    told = CliRunner().invoke(group, words)
    assert told.exit_code == 0
    flat = " ".join(told.output.split())
    assert f"is not installed (isamap targets install {name})" in flat
    test = CliRunner().invoke(group, ["targets", "test", name, "--trust"])
    assert isinstance(test.exception, ToolError)
    assert f"help: isamap targets install {name}" in str(test.exception)


def test_a_tool_that_is_too_old_runs_nothing(folder: Path) -> None:
    script(folder / "path" / "zig", "0.17.0")
    script(folder / "path" / "qemu-aarch64", "7.2.13")
    kernel = folder / "add.ir"
    kernel.write_text("kernel add { in x : f32[5]  out y : f32[5]  y[i] = x[i] + 1 }")
    told = CliRunner().invoke(group, ["map", str(kernel), "--hw", "aarch64_neon", "--no-proof"])
    assert told.exit_code == 0
    flat = " ".join(told.output.split())
    assert "run simulated" in flat
    assert "qemu-aarch64 7.2.13 is too old, 10 or later is needed" in flat
    assert "(isamap targets install aarch64_neon)" in flat


def test_what_does_not_run_is_not_there(folder: Path) -> None:
    script(folder / "path" / "zig", "0.17.0", status=1)
    zig, emulator = needed(load_hardware("aarch64_neon"))
    assert zig.version is None
    assert not zig.is_there
    assert emulator.path is None


def test_a_machine_of_this_cpu_needs_no_tools() -> None:
    assert needed(load_hardware("x86_avx2")) == ()
    assert needed(load_hardware("gemm16")) == ()


def test_every_machine_is_listed(folder: Path) -> None:
    script(folder / "path" / "zig", "0.17.0")
    listed = {target.name: target for target in targets()}
    assert list(listed) == list(shipped_names())
    assert listed["gemm16"].by == "simulator"
    assert (listed["portable_c"].by, listed["portable_c"].missing) == ("this CPU", "")
    neon = listed["aarch64_neon"]
    assert neon.by == "qemu-aarch64"
    assert "not installed" in neon.missing
    told = CliRunner().invoke(group, ["targets", "list", "--json"])
    documents = {document["name"]: document for document in json.loads(told.output)}
    assert documents["aarch64_neon"]["enable"] == "isamap targets install aarch64_neon"
    assert not documents["aarch64_neon"]["runnable"]
    assert documents["gemm16"] == {
        "name": "gemm16",
        "title": load_hardware("gemm16").title,
        "runnable": True,
        "version": "simulator",
        "tools": {},
        "missing": None,
        "enable": None,
    }


def test_a_command_that_nothing_fetches_is_told(folder: Path) -> None:
    path = folder / "mine.yaml"
    path.write_text(
        "format: 1\nname: mine\ntitle: mine\nextends: portable_c\nsource: none\n"
        "toolchain: {runner: [qemu-arm9]}\n"
    )
    told = CliRunner().invoke(group, ["targets", "install", str(path)])
    assert isinstance(told.exception, ToolError)
    assert "'qemu-arm9' is not here" in str(told.exception)
    assert "all tools" not in told.output


def test_a_tool_may_be_asked_for_by_its_name(folder: Path) -> None:
    (tool,) = asked("bochs-x86_64")
    assert (tool.name, tool.is_there) == ("bochs-x86_64", False)
    script(folder / "path" / "bochs-x86_64", "3.0")
    told = CliRunner().invoke(group, ["targets", "install", "bochs-x86_64"])
    assert told.output == "all tools are there\n"
    assert [tool.name for tool in asked("aarch64_neon")] == ["zig", "qemu-aarch64"]
    with pytest.raises(HardwareError, match="no description 'bochs'"):
        asked("bochs")


def test_machines_are_listed_without_their_instructions(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("an instruction is read")

    monkeypatch.setattr("isamap.hw.entries.parse_instructions", read)
    assert [target.name for target in targets()] == list(shipped_names())


def test_every_tool_says_where_it_is_from() -> None:
    for name, tool in catalogue().items():
        assert bool(tool.pip) != bool(tool.debian), name
        assert bool(tool.debian) == bool(tool.suites), name
        assert bool(tool.debian) == (bool(tool.file) != bool(tool.tree)), name
        assert bool(tool.pip or tool.tree) >= bool(tool.command), name
        assert tool.what, name


def test_programs_of_one_package_are_tools_of_their_own() -> None:
    one, other = (catalogue()[name] for name in ("qemu-aarch64", "qemu-s390x"))
    assert (one.what, one.file) == ("Arm, 64 bits", "usr/bin/qemu-aarch64")
    assert (other.debian, other.file) == (one.debian, "usr/bin/qemu-s390x")
    assert "qemu" not in catalogue()


def test_on_another_system_the_message_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "release", lambda: "noble")
    with pytest.raises(ToolError, match="qemu-aarch64 is fetched on Debian") as caught:
        install.install(["qemu-aarch64"], lambda _: None)
    assert "on the PATH" in (caught.value.diagnostics[0].hint or "")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb makes the package")
def test_a_package_is_unpacked_checked_and_recorded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN" / "control").write_text(
        "Package: qemu-user\nVersion: 10.0\nArchitecture: all\nMaintainer: nobody\nDescription: x\n"
    )
    (package / "usr" / "bin").mkdir(parents=True)
    script(package / "usr" / "bin" / "qemu-aarch64", "10.0.9")
    archive = folder / "qemu-user_10.0_all.deb"
    subprocess.run(["dpkg-deb", "-b", package, archive], check=True, capture_output=True)
    monkeypatch.setattr(debian, "release", lambda: "bookworm")
    monkeypatch.setattr(debian, "KEYRING", archive)
    monkeypatch.setattr(debian, "fetched", lambda *_: (archive,))
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/apt-get")
    (found,) = install.install(["qemu-aarch64"], lambda _: None)
    assert (found.name, found.version) == ("qemu-aarch64", "10.0.9")
    assert json.loads((folder / "tools" / "installed.json").read_text()).keys() == {"qemu-aarch64"}
    assert subprocess.run([folder / "tools" / "bin" / "qemu-aarch64"], check=False).returncode == 0


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb makes the package")
def test_a_tree_is_kept_in_part_completed_and_run_where_it_lies(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN" / "control").write_text(
        "Package: one\nVersion: 3\nArchitecture: all\nMaintainer: nobody\nDescription: x\n"
    )
    for name in ("bin", "lib/deep", "doc"):
        (package / name).mkdir(parents=True)
        (package / name / "file").write_text(name)
    archive = folder / "one_3_all.deb"
    subprocess.run(["dpkg-deb", "-b", package, archive], check=True, capture_output=True)
    beside = folder / "hwdesc" / "tools" / "more"
    beside.mkdir(parents=True)
    (beside / "run.sh").write_text('[ "$2" = tell ] && echo one $(cat "$1/made") "$3"\n')
    tool = Tool.model_validate(
        {
            "what": "x",
            "least": "3",
            "version": ["tell", "3.1"],
            "debian": "one",
            "suites": {"bookworm": "trixie"},
            "command": ["sh", "{tree}/run.sh", "{tree}"],
            "tree": {
                "keep": ["bin/file", "lib"],
                "beside": "more",
                "make": [["cp", "bin/file", "{tree}/made"]],
            },
        }
    )
    monkeypatch.setattr(install, "catalogue", lambda: {"one": tool})
    monkeypatch.setattr(debian, "shipped", lambda name: folder / name)
    monkeypatch.setattr(debian, "release", lambda: "bookworm")
    monkeypatch.setattr(debian, "KEYRING", archive)
    asked: list[tuple[object, ...]] = []

    def fetched(*given: object) -> tuple[Path, ...]:
        asked.append(given)
        return (archive,)

    monkeypatch.setattr(debian, "fetched", fetched)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/apt-get")
    tree = folder / "tools" / "one"
    for _ in range(2):  # the second time in place of the first
        (found,) = install.install(["one"], lambda _: None)
        assert (found.version, found.source) == ("3.1", "one_3_all.deb, Debian trixie")
        kept = {str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_file()}
        assert kept == {"bin/file", "lib/deep/file", "made", "run.sh"}
        assert found.bytes == sum((tree / name).stat().st_size for name in kept)
        (tree / "old").write_text("left")
    assert [(given[0], given[1], given[3]) for given in asked] == [("one", "trixie", True)] * 2
    told = subprocess.run([folder / "tools/bin/one", "tell", "x"], capture_output=True, check=True)
    assert told.stdout == b"one bin x\n"


def test_a_command_that_fails_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool(what="x", least="1", version=("v",), pip="no-such-package-of-anybody")
    monkeypatch.setattr(install, "catalogue", lambda: {"x": tool})
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ToolError, match="E540"):
        install.install(["x"], lambda _: None)


def test_the_size_of_a_package_is_that_of_its_own_files() -> None:
    script = [sys.executable, "-c", install._PACKAGE_SIZE]
    sizes = [int(subprocess.check_output([*script, name])) for name in ("click", "numpy")]
    folders = [Path(sys.modules[name].__path__[0]) for name in ("click", "numpy")]
    code = [sum(p.stat().st_size for p in folder.rglob("*.py")) for folder in folders]
    assert code[0] < sizes[0] < code[1] < sizes[1]


def test_what_was_fetched_before_stays_recorded(folder: Path) -> None:
    one, other = (install.Installed(name, "1", "here", 1) for name in ("a", "b"))
    install._record(tools_folder(), [one])
    install._record(tools_folder(), [other])
    assert json.loads((tools_folder() / "installed.json").read_text()).keys() == {"a", "b"}
