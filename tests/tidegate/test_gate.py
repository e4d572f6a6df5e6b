"""`tidegate gate`: what is decided about a version, on what, and how the program ends."""

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from domain.releases import Decision, Outcome
from eval.questions import dump, fingerprint, load
from tests.tidegate.small import SMALL, small_library
from tests.tidegate.tiny import admit
from tidegate.build import build_version
from tidegate.cli import main
from tidegate.compose import make_registry
from tidegate.console import Code
from tidegate.evaluate import question_set
from tidegate.gate import OUTCOME_CODES
from tidegate.measuring import binding
from tidegate.sample import corpus_path, questions_path
from tidegate.settings import Settings

Capture = pytest.CaptureFixture[str]


def gates(floor: float = 0.05, max_drop: float | None = None) -> list[str]:
    """Gates that 40 questions are enough for: all three metrics of the sample are far above .05."""
    rest = f", max_drop: {max_drop}" if max_drop else ""
    rows = [f"{{metric: {m}, floor: {floor}, min_items: 1{rest}}}" for m in ("recall@6", "citation_recall")]
    return ["--set", f"evaluation.gates=[{', '.join(rows)}]"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, str]:
    """The small sample library, to be copied."""
    return small_library(tmp_path_factory.mktemp("built"))


@pytest.fixture
def library(built: tuple[Settings, str], tmp_path: Path) -> tuple[Settings, str]:
    """A library of its own: decisions are counted and the pointer is moved."""
    settings, version = built
    shutil.copytree(settings.data_dir, tmp_path / "library")
    return settings.model_copy(update={"data_dir": tmp_path / "library"}), version


def to(settings: Settings) -> list[str]:
    pairs = SMALL | {"data_dir": str(settings.data_dir)}
    return [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]


def decisions(settings: Settings, version: str) -> Sequence[Decision]:
    return make_registry(settings).decisions(version)


def worse(settings: Settings) -> str:
    """A second version, of passages too short to hold a whole sentence of evidence."""
    chopped = settings.chunking.model_copy(update={"strategy": "fixed", "tokens": 32, "overlap": 0})
    chopping = settings.model_copy(update={"chunking": chopped})
    return build_version(chopping, corpus_path(settings), lambda *_: None).version.id


# ---------------------------------------------------------------------------------------------- a first version


def test_a_first_version_is_held_to_its_floors_alone(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    assert main(["gate", *gates(max_drop=0.02), *to(settings)]) == Code.DONE
    out, _ = capsys.readouterr()
    assert re.search(r"^PASS +recall@6 floor: 0\.\d+ ", out, re.MULTILINE)
    assert re.search(r"^INCONCLUSIVE +recall@6 max_drop: no baseline: .* \(advisory\)$", out, re.MULTILINE)
    assert f"PASS: version {version}, the first, 40 questions of set " in out
    assert f"Next: give it to people with tidegate promote {version}\n" in out
    (decision,) = decisions(settings, version)
    assert decision.outcome is Outcome.PASS
    assert decision.binding.baseline is None


def test_the_next_command_names_the_question_set_that_was_named(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    questions = shutil.copy(questions_path(settings), here / "my questions.jsonl")
    assert main(["gate", "--questions", str(questions), *gates(), *to(settings)]) == Code.DONE
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("Next: "))
    command = shlex.split(line.partition("tidegate ")[2])
    assert command == ["promote", version, "--questions", str(questions)]
    assert main([*command, *gates(), *to(settings)]) == Code.DONE


def test_a_floor_that_is_missed_ends_with_1_and_is_recorded_too(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    assert main(["gate", version, *gates(floor=1.0), *to(settings)]) == Code.REFUSED
    out = capsys.readouterr().out
    assert re.search(r"^FAIL +recall@6 floor: ", out, re.MULTILINE)
    assert "Next: nobody gets it: mend the corpus" in out
    assert decisions(settings, version)[-1].outcome is Outcome.FAIL


def test_forty_questions_under_the_gates_of_the_settings_are_too_few_and_end_with_3(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    assert main(["gate", *to(settings), "--set", "evaluation.gates.citation_recall.floor=0.0"]) == Code.INCONCLUSIVE
    assert "decided from 50 questions on (min_items)" in capsys.readouterr().out
    assert decisions(settings, version)[-1].outcome is Outcome.INCONCLUSIVE


def test_what_nobody_is_eligible_for_could_not_be_measured_and_ends_with_4(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    everything = load(questions_path(settings))
    Path("nulls.jsonl").write_text(dump(q for q in everything if q.type == "null" and q.slice == "frozen"), "utf-8")
    code = main(["gate", "--questions", "nulls.jsonl", *gates(), *to(settings)])
    assert code == Code.NOT_MEASURED
    assert re.search(r"^ERROR +recall@6 floor: not measured: none of ", capsys.readouterr().out, re.MULTILINE)
    assert decisions(settings, version)[-1].outcome is Outcome.ERROR


def test_when_every_question_fails_the_outcome_is_error_and_never_pass(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    # Every question is longer than the service takes.
    assert main(["gate", *gates(), *to(settings), "--set", "answering.max_question_chars=1"]) == Code.NOT_MEASURED
    out = capsys.readouterr().out
    assert "ERROR        evaluation: All 40 questions failed, the first with too_long" in out
    assert decisions(settings, version)[-1].outcome is Outcome.ERROR


def test_without_the_tracker_nothing_is_admitted_where_it_is_required(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    assert main(["gate", *gates(), *to(settings), "--set", "tracking.required=true"]) == Code.NOT_MEASURED
    assert "ERROR        tracking: tracking.required is set" in capsys.readouterr().out
    assert decisions(settings, version)[-1].outcome is Outcome.ERROR


# ---------------------------------------------------------------------------------------------- against stable


def test_a_worse_version_fails_against_what_people_have(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, first = library
    admit(settings.data_dir)
    second = worse(settings)
    assert main(["gate", second, "--json", *gates(max_drop=0.02), *to(settings)]) == Code.REFUSED
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["version"], told["baseline"], told["n"], told["outcome"]) == (second, first, 40, "FAIL")
    assert f"evaluating {second} ..." in err
    assert f"evaluating {first} ..." in err
    dropped = next(v for v in told["verdicts"] if v["gate"] == "citation_recall max_drop")
    assert dropped["outcome"] == "FAIL"
    assert " against " in dropped["reason"]


def test_what_the_questions_can_detect_is_said_before_the_first_verdict(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, first = library
    admit(settings.data_dir)
    second = worse(settings)
    main(["gate", second, *gates(max_drop=0.02), *to(settings)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"Next: people keep what they have: see what changed with tidegate compare {first} {second}"
    verdicts = [i for i, line in enumerate(lines) if re.match("(PASS|INCONCLUSIVE|ERROR|FAIL) ", line)]
    assert verdicts[0] == 2, "one line per gate with a max_drop"
    assert [line.split()[0].rstrip(":") for line in lines[:2]] == ["recall@6", "citation_recall"]


def test_nothing_is_asked_twice(here: Path, library: tuple[Settings, str], capsys: Capture) -> None:
    settings, first = library
    admit(settings.data_dir)
    second = worse(settings)
    options = [second, "--json", *gates(max_drop=0.02), *to(settings)]
    main(["gate", *options])
    once = capsys.readouterr()
    assert main(["evaluate", first, *to(settings), *gates(max_drop=0.02)]) == 0
    assert "40 of 40 answers were there already" in capsys.readouterr().err
    main(["gate", *options])
    twice = capsys.readouterr()
    assert twice.out == once.out
    assert "evaluating" not in twice.err
    assert len(decisions(settings, second)) == 2, "every decision is recorded, also one that says the same"


def test_a_decision_is_bound_to_everything_it_was_made_on(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, first = library
    admit(settings.data_dir)
    second = worse(settings)
    assert main(["gate", second, "--json", *to(settings)]) == Code.REFUSED
    told = json.loads(capsys.readouterr().out)
    assert list(told) == [
        "version", "baseline", "questions", "n", "failed", "detectable", "verdicts", "outcome", "binding", "run_id",
    ]  # fmt: skip
    asked = question_set(settings, None)
    bound = binding(settings, second, asked, first)
    assert told["binding"] == asdict(bound) == asdict(decisions(settings, second)[-1].binding)
    assert told["questions"] == fingerprint(asked)
    assert {"gate", "outcome", "reason", "advisory"} == set(told["verdicts"][0])


@pytest.mark.slow
def test_another_encoder_is_compared_with_what_people_have_under_their_own(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, first = library
    admit(settings.data_dir)
    other = [*to(settings), "--set", "embedding.dimensions=128", *gates(max_drop=0.5)]
    assert main(["build", str(corpus_path(settings)), *other]) == 0
    second = make_registry(settings).versions()[-1].id
    assert main(["gate", second, *other]) == Code.NOT_MEASURED
    out = capsys.readouterr().out
    assert f"What people get now, {first}, could not be measured: All 40 questions failed" in out
    way_out = f"Measure it to the end on these questions under the settings it was built for, tidegate evaluate {first}"
    assert way_out in out
    assert main(["evaluate", first, *to(settings)]) == 0
    capsys.readouterr()
    assert main(["gate", second, "--json", *other]) == Code.DONE
    out, err = capsys.readouterr()
    assert json.loads(out)["baseline"] == first
    assert f"What people get now, {first}, cannot be opened under these settings: compared with what it" in err


# ---------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["v000000000000"], Code.NOT_MEASURED, "v000000000000"),
        (["--questions", "gone.jsonl"], Code.NOT_MEASURED, "gone.jsonl cannot be read"),
        (["--set", "evaluation.gates=[]"], Code.USAGE, "no citation gate"),
        (["--set", "evaluation.alpha=0.7"], Code.USAGE, "evaluation.alpha"),
    ],
)
def test_only_a_version_that_is_not_good_enough_ends_with_1(
    here: Path, library: tuple[Settings, str], capsys: Capture, args: list[str], code: Code, said: str
) -> None:
    assert main(["gate", *to(library[0]), *args]) == code
    out, err = capsys.readouterr()
    assert said in err
    assert not out
    assert "bug" not in err


def test_a_folder_damaged_after_it_was_measured_passes_no_gate(
    here: Path, library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    assert main(["gate", *gates(), *to(settings)]) == Code.DONE
    damaged = next(path for path in sorted(make_registry(settings).folder(version).rglob("*.npy")))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    capsys.readouterr()
    assert main(["gate", *gates(), *to(settings)]) == Code.NOT_MEASURED
    out, err = capsys.readouterr()
    assert version in err
    assert "PASS" not in out
    assert len(decisions(settings, version)) == 1


def test_each_outcome_has_its_exit_code() -> None:
    assert {outcome.name: int(code) for outcome, code in OUTCOME_CODES.items()} == {
        "PASS": 0,
        "INCONCLUSIVE": 3,
        "ERROR": 4,
        "FAIL": 1,
    }
