"""`deploy/admit.sh`: in which order a payload becomes a version that people get, and that it goes no further."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "admit.sh"
# A tidegate that builds version vnew, serves what STABLE says, and writes down what it was asked.
FAKE = """#!/bin/sh
echo "$TIDEGATE_CONFIG $*" >>"$ASKED"
case "$1" in
  build) echo '{"version": {"id": "vnew"}, "new": true}' ;;
  gate) exit "${GATE:-0}" ;;
  versions) echo '{"versions": [], "rollout": {"stable": '"${STABLE:-null}"'}}' ;;
esac
"""


def asked(folder: Path, **environment: str) -> tuple[int, list[str], str]:
    """The exit code, the verbs with their arguments, and what was said."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "tidegate").write_text(FAKE)
    (tools / "tidegate").chmod(0o755)
    log = folder / "asked"
    done = subprocess.run(
        ["bash", SCRIPT, folder],
        env={"PATH": f"{tools}:{os.environ['PATH']}", "ASKED": str(log), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    settings = f"{folder}/tidegate.yaml "
    lines = log.read_text().splitlines()
    assert all(line.startswith(settings) for line in lines), "every verb sees the payload's settings"
    return done.returncode, [line.removeprefix(settings) for line in lines], done.stdout


def test_the_first_version_that_passes_is_what_people_get(tmp_path: Path) -> None:
    code, verbs, _ = asked(tmp_path)
    assert code == 0
    assert verbs == [f"build {tmp_path}/corpus --json", "gate vnew", "versions --json", "promote vnew"]


def test_a_later_version_waits_for_somebody_to_begin_its_canary(tmp_path: Path) -> None:
    code, verbs, said = asked(tmp_path, STABLE='"vold"')
    assert code == 0
    assert not any(verb.startswith(("promote", "canary")) for verb in verbs)
    assert "tidegate canary vnew --auto" in said


def test_the_same_corpus_again_changes_nothing(tmp_path: Path) -> None:
    code, verbs, said = asked(tmp_path, STABLE='"vnew"')
    assert (code, said) == (0, "")
    assert not any(verb.startswith(("promote", "canary")) for verb in verbs)


@pytest.mark.parametrize("gate", ["1", "3", "4"])
def test_what_does_not_pass_the_gate_goes_no_further(gate: str, tmp_path: Path) -> None:
    code, verbs, _ = asked(tmp_path, GATE=gate)
    assert code == int(gate)
    assert verbs[-1] == "gate vnew"
