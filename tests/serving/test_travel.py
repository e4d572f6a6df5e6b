"""Hits written compactly are read back the same, also by a process that knows nothing of it."""

import copyreg
import pickle
import subprocess
import sys

from domain.types import Mode, Query, Retrieval
from serving.travel import CARRIED, travel_light
from tests.fakes import PUBLIC, hits
from tests.serving.service import BELL, TIDE

FOUND = Retrieval(hits(TIDE, BELL), "v1", ("a note",))


def test_what_travels_light_is_read_back_the_same() -> None:
    travel_light()
    assert set(CARRIED) <= set(copyreg.dispatch_table)
    for value in (FOUND, Query("gate", ("lock",)), PUBLIC, Mode.HYBRID):
        assert pickle.loads(pickle.dumps(value)) == value


def test_every_kind_that_travels_has_fields_enough_to_be_a_tuple() -> None:
    assert all(len(kind.__dataclass_fields__) >= 2 for kind in CARRIED)


def test_a_process_without_it_reads_it_too() -> None:
    travel_light()
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).hits[0].chunk.id)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(FOUND), capture_output=True, check=True)
    assert done.stdout.strip() == b"tides#0"
