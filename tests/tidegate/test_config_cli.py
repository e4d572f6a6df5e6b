"""The command line's edge: `config show|check`, exit codes, and terminals, pipes and disks that do not cooperate."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest
import typer

from domain import errors
from tidegate.cli import GROUPS, VERBS, Verbs, explain, hoist, main
from tidegate.console import Code

TIDEGATE = ("-m", "tidegate")


def run(
    *args: str, cwd: Path | None = None, stdout: int | IO[str] = subprocess.PIPE, encoding: str = "utf-8"
) -> subprocess.CompletedProcess[bytes]:
    """One real process, of this interpreter, without TIDEGATE_* variables."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TIDEGATE_")}
    env["PYTHONIOENCODING"] = encoding
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=cwd, env=env, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own and no TIDEGATE_* variable."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.upper().startswith("TIDEGATE_")]:
        monkeypatch.delenv(name)
    return tmp_path


# ---------------------------------------------------------------------------------------------- config show, check


def test_config_show_names_value_and_origin(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "tidegate.yaml").write_text("serving:\n  port: 81\n")
    assert main(["config", "show", "serving.port"]) == 0
    assert capsys.readouterr().out.split() == ["serving.port", "81", "tidegate.yaml:2"]


def test_config_show_as_json_holds_every_value_and_origin(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--json", "--set", "retrieval.k1=1.5"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["values"].keys() == shown["origins"].keys()
    assert (shown["values"]["retrieval.k1"], shown["origins"]["retrieval.k1"]) == (1.5, "--set")
    assert shown["values"]["data_dir"] == str(here / ".tidegate")
    assert shown["file"] is None


def test_config_show_masks_credentials_in_an_address(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ([], ["--json"]):
        assert main(["config", "show", "--set", "generation.endpoint_url=https://me:hunter2@host", *form]) == 0
        out = capsys.readouterr().out
        assert "hunter2" not in out
        assert "https://********@host" in out


def test_config_show_of_an_unknown_key_names_the_nearest(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "retreival"]) == Code.USAGE
    assert "did you mean retrieval?" in capsys.readouterr().err


def test_config_check_says_ok_with_the_digest(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.startswith("ok: no file, 0 of ")


def test_config_check_names_every_problem_and_ends_with_2(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "tidegate.yaml").write_text("gate: {recal_min: 0.9}\nanswering: {k: six}\n")
    assert main(["config", "check"]) == Code.USAGE
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines() == [
        "error: 2 problems in the settings:",
        "  tidegate.yaml:1: gate.recal_min: is not a setting (got 0.9); did you mean evaluation.gates.recall@6.floor?",
        '  tidegate.yaml:2: answering.k: got "six", wanted a whole number from 1 to 1000',
    ]


def test_config_check_as_json_lists_the_problems(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", "--json", "--set", "serving.prt=1"]) == Code.USAGE
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert [(p["place"], p["key"], p["nearest"]) for p in report["problems"]] == [
        ("--set", "serving.prt", "serving.port")
    ]


# ---------------------------------------------------------------------------------------------- options and usage


@pytest.mark.parametrize(
    "args",
    [
        ["--config", "c.yaml", "config", "show", "serving.port"],
        ["config", "--config=c.yaml", "show", "serving.port"],
        ["config", "show", "serving.port", "--config", "c.yaml"],
    ],
)
def test_shared_options_may_stand_anywhere(here: Path, capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    (here / "c.yaml").write_text("serving: {port: 81}")
    assert main(args) == 0
    assert "c.yaml:1" in capsys.readouterr().out


def test_what_follows_two_dashes_is_left_alone() -> None:
    assert hoist(["ask", "--set", "a.b=1", "--", "--set", "--debug"]) == [
        "--set",
        "a.b=1",
        "ask",
        "--",
        "--set",
        "--debug",
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["confg"], "No such command 'confg'. Did you mean 'config'? See: tidegate --help"),
        (["config", "show", "--jsn"], "No such option: --jsn"),
        (["config", "show", "a", "b"], "unexpected extra argument"),
        (["config"], "Missing command. See: tidegate config --help"),
        (["config", "show", "--set"], "Option --set needs a value"),
        (["--set", "k1", "config", "show"], "wanted KEY=VALUE like --set retrieval.k1=0.9"),
        (["config", "check", "--set", "=1"], "--set =1 has no key, wanted KEY=VALUE"),
        (["train-reranker", "--out", "r", "--looks", "0"], "'--looks': got '0', wanted greater than or equal to 1."),
        (["train-reranker", "--out", "r", "--learning-rate", "nan"], "'--learning-rate': got 'nan', wanted less than"),
        (["train-reranker", "--out", "r", "--looks", "a few"], "'--looks': got 'a few', wanted a valid integer"),
        (["bench", "gate", "--simulations", "9" * 99], f"got '{'9' * 59}..., wanted"),
        (["config", "check", "--config", "gone.yaml"], "gone.yaml: cannot be read (No such file or directory)"),
        (["config", "check", "--config", ""], "cannot be read (Is a directory)"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    here: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    assert main(args) == Code.USAGE
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err


def test_without_arguments_the_help_is_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Usage: tidegate" in capsys.readouterr().out


@pytest.mark.parametrize("name", list(VERBS))
def test_a_verb_has_help_with_one_real_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Example: tidegate {name}" in out
    assert out.isascii()


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_the_list_of_verbs_says_what_each_does_in_a_whole_sentence(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*group.split(), "--help"]) == 0
    _, _, verbs = capsys.readouterr().out.partition("Commands:\n")
    assert verbs
    assert "..." not in verbs


def test_every_group_has_a_verb_and_every_verb_its_group() -> None:
    assert {name.rpartition(" ")[0] for name in VERBS} - {""} == set(GROUPS)


# ---------------------------------------------------------------------------------------------- errors to exit codes


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotAdmitted("x"), Code.REFUSED),
        (errors.StageTimeout("x"), Code.REFUSED),
        (errors.TooLong("x"), Code.USAGE),
        (errors.NotFound("x"), Code.REFUSED),
        (errors.ConfigError("x"), Code.USAGE),
        (errors.IncompatibleIndex("x"), Code.REFUSED),
        (errors.AddressTaken("x"), Code.REFUSED),
        (typer.Abort(), Code.REFUSED),
        (typer.BadParameter("x"), Code.USAGE),
        (PermissionError(13, "Permission denied", "/data"), Code.REFUSED),
        (ZeroDivisionError("x"), Code.REFUSED),
    ],
)
def test_an_error_ends_with_the_code_of_its_class_or_nearest_ancestor(error: Exception, code: Code) -> None:
    assert explain(error)[0] == code


def test_only_what_nobody_expected_is_called_a_bug() -> None:
    assert explain(ZeroDivisionError("division by zero"))[1].startswith("This is a bug in Tidegate")
    assert "bug" not in explain(PermissionError(13, "Permission denied", "/data"))[1]
    assert explain(errors.NotAdmitted("No passing decision."))[1] == "No passing decision."


def verb(outcome: Code | BaseException | None) -> Verbs:
    """A command line with one verb, `do`, that ends like this."""

    def do() -> Code | None:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return {"do": (do, "tidegate do")}


@pytest.mark.parametrize("outcome", [*Code, None])
def test_what_a_verb_returns_is_the_exit_code(here: Path, outcome: Code | None) -> None:
    assert main(["do"], verb(outcome)) == (outcome or 0)


def test_an_interrupt_ends_with_130_and_says_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["do"], verb(KeyboardInterrupt())) == Code.INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_one_line_and_with_debug_also_the_trace(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["do"], verb(ZeroDivisionError("two\nlines"))) == Code.REFUSED
    err = capsys.readouterr().err
    assert err == "error: This is a bug in Tidegate, --debug shows where: ZeroDivisionError: two lines\n"
    assert main(["do", "--debug"], verb(ZeroDivisionError("two\nlines"))) == Code.REFUSED
    assert "Traceback" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- the world outside


def test_python_dash_m_gives_the_version(tmp_path: Path) -> None:
    done = run(*TIDEGATE, "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, b"tidegate", b"")


@pytest.mark.parametrize(
    ("does", "without"),
    [
        ("from tidegate.cli import main; main(['--help'])", {"rich", "httpx2", "uvicorn"}),
        ("import tidegate.loading", {"rich", "typer", "httpx2"}),
    ],
)
def test_the_start_is_quick_because_nothing_heavy_is_imported(does: str, without: set[str]) -> None:
    done = run("-c", f"import sys; {does}; print(' '.join(sys.modules), file=sys.stderr)")
    heavy = {"torch", "transformers", "ray", "faiss", "mlflow", "boto3", "numpy", "starlette"}
    assert done.returncode == 0
    assert not set(done.stderr.decode().split()) & (heavy | without)


@pytest.mark.parametrize("encoding", ["ascii:strict", "cp1252", "utf-16"])
def test_no_terminal_encoding_ends_the_program(tmp_path: Path, encoding: str) -> None:
    args = ["config", "show", "access", "--set", "access.tenant=Zürich 港"]
    done = run(*TIDEGATE, *args, cwd=tmp_path, encoding=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "rich" in done.stdout.decode(encoding.partition(":")[0])


def test_control_characters_in_a_value_do_not_steer_the_terminal(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "show", "access", "--set", "access.tenant=a\x1b[31mb"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_reader_who_leaves_early_is_no_drama(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = run(*TIDEGATE, "config", "show", cwd=tmp_path, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (Code.REFUSED, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(*TIDEGATE, "config", "show", cwd=tmp_path, stdout=full)
    assert done.returncode == Code.REFUSED
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.endswith(b"No space left on device.\n")


def test_wrong_settings_are_refused_within_five_seconds(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_text("retrieval: {k1: .nan}")
    began = time.monotonic()
    done = run(*TIDEGATE, "config", "check", cwd=tmp_path)
    assert time.monotonic() - began < 5
    assert done.returncode == Code.USAGE


def test_a_folder_with_spaces_and_letters_of_any_script_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my data ü 港"
    folder.mkdir()
    (folder / "tidegate.yaml").write_text("data_dir: daten ü", "utf-8")
    monkeypatch.chdir(folder)
    assert main(["config", "show", "data_dir", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"]["data_dir"] == str(folder / "daten ü")
