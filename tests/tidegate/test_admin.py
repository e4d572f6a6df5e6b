"""The admin key: made once, closed to others, and refused where it protects nothing."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.errors import ConfigError, StorageError
from tests.tidegate.tiny import settings
from tidegate.admin import key_path, make_key, read_key


def test_a_key_is_made_once_beside_the_versions_and_only_its_owner_may_read_it(here: Path) -> None:
    ours = settings(here / "data")
    assert read_key(ours) is None
    path = make_key(ours)
    assert path == here / "data" / "admin.key"
    assert path.stat().st_mode & 0o777 == 0o600
    key = read_key(ours)
    assert key is not None
    assert len(key) == 43  # 32 bytes in base 64, without padding
    assert make_key(ours) == path
    assert read_key(ours) == key
    assert [file.name for file in (here / "data").iterdir()] == ["admin.key"]


def test_two_libraries_have_two_keys(here: Path) -> None:
    keys = set()
    for name in ("a", "b"):
        make_key(settings(here / name))
        keys.add(read_key(settings(here / name)))
    assert len(keys) == 2


def test_of_many_that_make_it_at_once_all_read_the_same(here: Path) -> None:
    ours = settings(here / "data")

    def made(_: int) -> str | None:
        make_key(ours)
        return read_key(ours)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(made, range(16)))) == 1


def test_a_key_of_the_operators_own_is_taken_and_none_is_made(here: Path) -> None:
    own = here / "own.key"
    own.write_text("correct-horse-battery\n")
    own.chmod(0o640)  # a mounted secret is often readable by a group
    ours = settings(here / "data", access__admin_key_file=str(own))
    assert make_key(ours) == own
    assert read_key(ours) == "correct-horse-battery"
    assert not (here / "data").exists()


def test_a_key_that_was_named_and_is_not_there_is_an_error(here: Path) -> None:
    ours = settings(here / "data", access__admin_key_file=str(here / "gone.key"))
    for use in (make_key, read_key):
        with pytest.raises(ConfigError, match=r"gone\.key does not exist: make it, or remove the setting"):
            use(ours)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"short", "is no key: wanted are at least 16"),
        (b"two words are no key", "is no key"),
        (b"0123456789\n0123456789", "is no key"),
        ("schlüssel-schlüssel".encode(), "cannot be read .it is not ASCII text"),
    ],
)
def test_what_is_no_key_is_refused(here: Path, content: bytes, said: str) -> None:
    ours = settings(here / "data")
    key_path(ours).parent.mkdir()
    key_path(ours).write_bytes(content)
    key_path(ours).chmod(0o600)
    with pytest.raises(ConfigError, match=said):
        make_key(ours)


@pytest.mark.parametrize("mode", [0o644, 0o606, 0o601])
def test_a_key_that_is_open_to_everybody_is_refused_with_the_way_out(here: Path, mode: int) -> None:
    ours = settings(here / "data")
    path = make_key(ours)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=rf"open to every user of this machine .mode {mode:04o}.: chmod 600 {path}"):
        read_key(ours)


def test_the_key_is_never_in_an_error(here: Path) -> None:
    ours = settings(here / "data")
    path = make_key(ours)
    key = path.read_text().strip()
    path.write_text(f"{key} {key}")
    with pytest.raises(ConfigError) as caught:
        read_key(ours)
    assert key not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_named(here: Path) -> None:
    (here / "data").write_text("")
    with pytest.raises(StorageError, match=f"Cannot write {here / 'data'}"):
        make_key(settings(here / "data"))
