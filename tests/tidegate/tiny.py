"""Three documents, built into a version without any model: small enough for every test to have its own."""

from collections.abc import Sequence
from pathlib import Path

from domain.releases import Binding, Decision, Move, Verb
from domain.rollout import promote
from retrieval.registry import FolderRegistry
from tidegate.cli import main
from tidegate.loading import load
from tidegate.settings import Settings

NO_MODEL = {
    "embedding.backend": "hashing",
    "rerank.backend": "none",
    "access.default_groups": "public",
    "tracking.enabled": "false",
}
FILES = {
    "crane.md": "# The crane\n\nThe blue crane was built in 1931. It lifts four tonnes.\n",
    "gate.md": "# The gate\n\nThe sea gate closes at a tide of six metres. Two keepers close it by hand.\n",
    "pump.txt": "Pump P3 needs oil of grade ISO 46. It is changed every spring.\n",
}


def sets(data_dir: Path, **others: str) -> list[str]:
    """`--set` options for settings without a model over this data folder; `section__key` names another setting."""
    changes = {key.replace("__", "."): value for key, value in others.items()}
    pairs = {**NO_MODEL, "data_dir": str(data_dir), **changes}
    return [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]


def settings(data_dir: Path, **others: str) -> Settings:
    """What `sets` gives, loaded."""
    pairs = dict(word.split("=", 1) for word in sets(data_dir, **others)[1::2])
    return load(None, {}, pairs).settings


def write_corpus(folder: Path, files: dict[str, str] | None = None) -> Path:
    """The folder with these files in it, or the three documents."""
    folder.mkdir(parents=True)
    for name, text in (FILES if files is None else files).items():
        (folder / name).write_text(text, "utf-8")
    return folder


def admit(data_dir: Path) -> str:
    """The newest version, made stable by a decision that was forced."""
    registry = FolderRegistry(data_dir / "registry")
    version = registry.versions()[-1].id
    binding = Binding(version, "", "", "", "")
    decision = Decision(binding, (), "", "2026-01-01T00:00:00+00:00", forced="a test")
    rollout = registry.rollout()
    after = promote(rollout, decision, binding)
    registry.move(Move(Verb.PROMOTE, "2026-01-01T00:00:00+00:00", "a test", rollout, after, decision=decision))
    return version


def served(folder: Path, more: Sequence[str] = ()) -> tuple[Path, str]:
    """A data folder below `folder` with the three documents built and admitted, and the version."""
    data_dir = folder / "data"
    assert main(["build", str(write_corpus(folder / "corpus")), *sets(data_dir), *more]) == 0
    return data_dir, admit(data_dir)
