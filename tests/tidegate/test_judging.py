"""Whether a judge may gate, what it does to a decision, and the verbs that calibrate it and let it score."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from domain.errors import ConfigError
from domain.judging import Grade
from domain.releases import Decision, Outcome
from eval.judge_calibration import Figure, Record
from eval.model_judge import ModelJudge
from eval.observed import Observed
from tests.eval.replies import QUESTION, answer
from tests.fakes import ScriptedGenerator
from tests.stubs.openai import OpenAIStub
from tests.tidegate.small import SMALL, small_library
from tidegate.cli import main
from tidegate.compose import make_registry
from tidegate.compose_judge import judge_name, make_judge, make_rubric
from tidegate.console import Code
from tidegate.judge_records import _name, read, write
from tidegate.judging import bound, check_gating, judgements
from tidegate.loading import load
from tidegate.measuring import binding
from tidegate.settings import Settings
from tidegate.settings_judge import Judge

Capture = pytest.CaptureFixture[str]
CLAUDE, NOVA = "eu.anthropic.claude-sonnet-4-20250514-v1:0", "amazon.nova-pro-v1:0"
GOOD = {
    "kappa": Figure(0.95, 0.92, 0.97, 600),
    "retest": Figure(1.0, 0.99, 1.0, 600),
    "caught": Figure(1.0, 0.99, 1.0, 600),
    "position": Figure(0.0, -0.01, 0.01, 600),
    "verbosity": Figure(0.0, -0.01, 0.01, 600),
}


def settings_with(folder: Path, **values: str) -> Settings:
    """Settings of a judge that gates; keys of other sections with __ for the dot."""
    pairs = {key.replace("__", ".") if "__" in key else f"judge.{key}": value for key, value in values.items()}
    return load(None, {}, {"data_dir": str(folder)} | pairs, cwd=folder).settings


def recorded(settings: Settings, folder: Path, **changes: object) -> Path:
    """A calibration on record that passes, of this judge unless `changes` say otherwise."""
    record = Record(judge_name(settings), ("no model",), make_rubric(settings).tag, "cases", GOOD)
    return write(folder / "judges", replace(record, **changes))  # type: ignore[arg-type] # names of fields


# ---------------------------------------------------------------------------------------------- may it gate?


def test_a_judge_without_a_calibration_is_refused_as_a_gate_when_settings_are_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.calibration.*before its calibration is recorded"):
        settings_with(tmp_path, floor="0.5")


def test_the_gate_does_not_rely_on_the_settings_for_that(tmp_path: Path) -> None:
    unread = Settings().model_copy(update={"judge": Judge.model_construct(floor=0.5)})
    with pytest.raises(ConfigError, match="No judge may gate before its calibration is recorded"):
        check_gating(unread)


def test_a_judge_with_a_calibration_that_passes_may_gate(tmp_path: Path) -> None:
    path = recorded(Settings(), tmp_path)
    check_gating(settings_with(tmp_path, floor="0.5", calibration=str(path)))


@pytest.mark.parametrize("figure", list(GOOD))
def test_a_calibration_that_does_not_pass_is_refused_by_the_figure(tmp_path: Path, figure: str) -> None:
    short = Figure(0.97, 0.7, 0.98, 600) if figure in ("kappa", "retest", "caught") else Figure(0.1, 0.05, 0.2, 600)
    path = recorded(Settings(), tmp_path, figures=GOOD | {figure: short})
    with pytest.raises(ConfigError, match=rf"may not gate.*{figure} "):
        check_gating(settings_with(tmp_path, floor="0.5", calibration=str(path)))


@pytest.mark.parametrize(("field", "value"), [("judge", "rules@00000000"), ("rubric", "answers-0@000000000000")])
def test_a_calibration_of_another_judge_or_rubric_is_refused(tmp_path: Path, field: str, value: str) -> None:
    path = recorded(Settings(), tmp_path, **{field: value})
    with pytest.raises(ConfigError, match=f"is of the {field} {value}"):
        check_gating(settings_with(tmp_path, max_drop="0.05", calibration=str(path)))


def test_a_calibration_that_was_changed_afterwards_is_refused(tmp_path: Path) -> None:
    path = recorded(Settings(), tmp_path, figures=GOOD | {"kappa": Figure(0.5, 0.4, 0.6, 600)})
    path.write_text(path.read_text().replace("0.4,", "0.9,"))
    with pytest.raises(ConfigError, match="was changed after it was written"):
        check_gating(settings_with(tmp_path, floor="0.5", calibration=str(path)))


@pytest.mark.parametrize("content", ["", "[]", "{}", "nonsense", '{"figures": 3}', "[" * 100_000, '{"a":' * 100_000])
def test_a_file_that_holds_no_calibration_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "judge-0.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"judge\.calibration"):
        read(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("judge", 7), ("judge", ""), ("rubric", None), ("cases", ["x"]), ("families", "meta"), ("families", [1]),
        ("figures", []), ("kappa", {}), ("kappa", {"value": "x", "low": 0.9, "high": 1.0, "n": 600}),
        ("kappa", {"value": 0.95, "low": 0.97, "high": 0.9, "n": 600}),
        ("kappa", {"value": 0.95, "low": 0.9, "high": 7.0, "n": 600}),
        ("kappa", {"value": float("nan"), "low": 0.9, "high": 1.0, "n": 600}),
        ("kappa", {"value": True, "low": True, "high": True, "n": 600}),
        ("kappa", {"value": 0.95, "low": 0.9, "high": 1.0, "n": -1}),
        ("kappa", {"value": 0.95, "low": 0.9, "high": 1.0, "n": 1.5}),
        ("more", 1),
    ],
)  # fmt: skip
def test_a_record_of_nonsense_under_the_right_name_is_refused_by_the_field(
    tmp_path: Path, field: str, value: object
) -> None:
    told = json.loads(write(tmp_path, Record("rules@1", ("no model",), "answers-1@2", "cases", GOOD)).read_text())
    (told["figures"] if field == "kappa" else told)[field] = value
    path = tmp_path / _name(told)
    path.write_text(json.dumps(told))
    with pytest.raises(ConfigError, match=rf"is no calibration \(.*({field}|exactly the fields)"):
        read(path)


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    record = Record("rules@1", ("no model",), "answers-1@2", "cases", GOOD)
    assert asdict(read(write(tmp_path, record))) == asdict(record)


# ---------------------------------------------------------------------------------------------- whose judge?


def hosted(folder: Path, judge: str, generator: str, **more: str) -> Settings:
    return settings_with(
        folder,
        backend="bedrock",
        model_id=judge,
        generation__backend="bedrock",
        generation__model_id=generator,
        **more,
    )


@pytest.mark.parametrize(
    ("judge", "generator"), [(CLAUDE, "anthropic.claude-3-haiku-20240307-v1:0"), (NOVA, "amazon.nova-lite-v1:0")]
)
def test_a_judge_of_the_generators_family_is_refused(tmp_path: Path, judge: str, generator: str) -> None:
    with pytest.raises(ConfigError, match=r"of the family (anthropic|amazon), as is the generator"):
        make_judge(hosted(tmp_path, judge, generator))


@pytest.mark.parametrize(("judge", "generator"), [("my-finetune", NOVA), (NOVA, "my-finetune")])
def test_where_nobody_knows_whose_it_is_a_judge_may_not_gate(tmp_path: Path, judge: str, generator: str) -> None:
    unknown = hosted(tmp_path, judge, generator)
    path = recorded(unknown, tmp_path)
    gating = hosted(tmp_path, judge, generator, floor="0.5", calibration=str(path))
    with pytest.raises(ConfigError, match="my-finetune is cannot be told from its id"):
        check_gating(gating)


def test_a_judge_of_another_family_may_gate(tmp_path: Path) -> None:
    path = recorded(hosted(tmp_path, NOVA, CLAUDE), tmp_path)
    check_gating(hosted(tmp_path, NOVA, CLAUDE, floor="0.5", calibration=str(path)))


# ---------------------------------------------------------------------------------------------- what was said


def test_a_model_is_asked_once_about_a_reply(tmp_path: Path) -> None:
    settings = hosted(tmp_path, NOVA, CLAUDE)
    generator = ScriptedGenerator(('{"grade": "wrong", "reason": "so"}',))
    judge = ModelJudge(generator, judge_name(settings), frozenset({"amazon"}), make_rubric(settings))
    replies = [Observed(QUESTION, answer(text="High water is at ten.")), Observed(QUESTION, answer(text="At nine."))]
    first = judgements(settings, judge, replies[:1], lambda *_: None)
    again = judgements(settings, judge, replies[:1], lambda *_: None)
    assert first["q1"].grade is Grade.WRONG
    assert (first, len(generator.plans)) == (again, 1)
    judgements(settings, judge, replies[1:], lambda *_: None)
    assert len(generator.plans) == 2, "another reply to the same question is another case"


# ---------------------------------------------------------------------------------------------- the verbs


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, str]:
    return small_library(tmp_path_factory.mktemp("judged"))


def options(settings: Settings, **more: str) -> list[str]:
    rows = ", ".join(f"{{metric: {m}, floor: 0.05, min_items: 1}}" for m in ("recall@6", "citation_recall"))
    pairs = SMALL | {"data_dir": str(settings.data_dir), "evaluation.gates": f"[{rows}]"}
    pairs |= {f"judge.{key}": value for key, value in more.items()}
    return [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]


def decided(settings: Settings, version: str) -> Decision:
    return make_registry(settings).decisions(version)[-1]


def test_a_judge_that_is_calibrated_has_its_say_in_the_decision(library: tuple[Settings, str], capsys: Capture) -> None:
    settings, version = library
    path = str(recorded(settings, settings.data_dir))
    assert main(["gate", version, *options(settings)]) == 0
    without = decided(settings, version)
    assert main(["gate", version, *options(settings, calibration=path, floor="0.05", min_items="1")]) == 0
    low = decided(settings, version)
    assert [v.outcome for v in low.verdicts if v.gate == "judged floor"] == [Outcome.PASS]
    assert main(["gate", version, *options(settings, calibration=path, floor="0.999", min_items="1")]) == 1
    high = decided(settings, version)
    assert [v.outcome for v in high.verdicts if v.gate == "judged floor"] == [Outcome.FAIL]
    bindings = {without.binding.gates, low.binding.gates, high.binding.gates}
    assert len(bindings) == 3, "a decision is bound to the judge and its bounds"
    capsys.readouterr()


def test_the_gate_refuses_a_judge_whose_calibration_does_not_pass(
    library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    before = len(make_registry(settings).decisions(version))
    path = str(recorded(settings, settings.data_dir, figures=GOOD | {"kappa": Figure(0.7, 0.6, 0.8, 600)}))
    assert main(["gate", version, *options(settings, calibration=path, floor="0.05")]) == 2
    assert "may not gate" in capsys.readouterr().err
    assert len(make_registry(settings).decisions(version)) == before


def test_a_binding_without_a_judge_is_what_it_was(library: tuple[Settings, str]) -> None:
    settings, version = library
    plain = binding(settings, version, ())
    assert bound(settings, plain) == plain


def test_the_judge_scores_the_answers_of_an_evaluation(library: tuple[Settings, str], capsys: Capture) -> None:
    settings, version = library
    assert main(["judge", "score", version, "--json", *options(settings)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["judge"] == judge_name(settings)
    assert sum(told["grades"].values()) == told["judged"]["n"] == len(told["verdicts"])
    assert told["judged"]["low"] <= told["judged"]["mean"] <= told["judged"]["high"]


@pytest.mark.slow
def test_a_calibration_is_measured_recorded_and_lets_the_rules_gate(tmp_path: Path, capsys: Capture) -> None:
    size = ["--set", "sample.documents=100", "--set", "sample.questions=440", "--set", f"data_dir={tmp_path}"]
    assert main(["judge", "calibrate", "--questions", "80", "--json", *size]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passes"]
    assert set(told["figures"]) == set(GOOD)
    assert told["rubric"] == make_rubric(Settings()).tag
    check_gating(settings_with(tmp_path, floor="0.5", calibration=told["file"]))


NOBODY = {
    "backend": "openai_compatible", "model_id": "qwen3", "endpoint_url": "http://127.0.0.1:9/v1",
}  # fmt: skip


@pytest.mark.slow
def test_a_judge_that_nobody_answers_for_is_given_up_soon_and_nothing_is_recorded(
    tmp_path: Path, capsys: Capture
) -> None:
    size = ["--set", "sample.documents=100", "--set", "sample.questions=440", "--set", f"data_dir={tmp_path}"]
    nobody = [word for key, value in NOBODY.items() for word in ("--set", f"judge.{key}={value}")]
    assert main(["judge", "calibrate", "--questions", "80", *size, *nobody]) == Code.NOT_MEASURED
    said = capsys.readouterr().err
    assert "could not be asked about" in said
    assert "cannot be reached" in said
    assert list((tmp_path / "judges").iterdir()) == []


def test_a_data_folder_that_cannot_be_written_is_found_before_anybody_is_asked(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "judges").write_text("a file where the folder has to be")
    with OpenAIStub([]) as stub:
        judge = NOBODY | {"endpoint_url": f"{stub.url}/v1"}
        hosted = [word for key, value in judge.items() for word in ("--set", f"judge.{key}={value}")]
        assert main(["judge", "calibrate", "--set", f"data_dir={tmp_path}", *hosted]) == Code.REFUSED
        assert stub.requests == []
    assert "judges cannot be written" in capsys.readouterr().err


def test_a_hosted_judge_that_is_not_there_leaves_the_gate_unmeasured(
    library: tuple[Settings, str], capsys: Capture
) -> None:
    settings, version = library
    nobody = {"backend": "openai_compatible", "model_id": "qwen3", "endpoint_url": "http://127.0.0.1:9/v1"}
    pairs = {f"judge.{key}": value for key, value in nobody.items()}
    there = load(None, {}, pairs | {"data_dir": str(settings.data_dir)}).settings
    path = str(recorded(there, settings.data_dir))
    few = ["--set", "evaluation.questions=2"]
    assert main(["gate", version, *options(settings, calibration=path, floor="0.05", **nobody), *few]) == 4
    verdicts = {v.gate: v for v in decided(settings, version).verdicts}
    assert verdicts["judged"].outcome is Outcome.ERROR
    assert "were not judged" in verdicts["judged"].reason
    capsys.readouterr()
