"""The versions of a registry on S3: one object that decides all about a version, and its files below one upload.

A version's object goes uploading -> there -> leaving and is swapped each time. An upload has a name that never comes
again and stands in that object before its first file is sent, so files below an upload that the object does not name
belong to nobody for ever. The two things that must not happen at once - the pointer comes to a version, and the version
leaves - are kept apart by turning the pointer (s3_pointer.py). Why that suffices: docs/adr/0057.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from domain.errors import BadRequest, NotFound, StorageError
from domain.releases import IndexVersion, Rollout
from domain.rollout import check_removable
from retrieval.fingerprint import check_seal, differing
from retrieval.jsonrecords import encoded, plain
from retrieval.s3_cache import Cache
from retrieval.s3_entries import VERSIONS, Entry, Stage, body_of, key_of, read_entry, version_of
from retrieval.s3_objects import NOTHING, Objects
from retrieval.s3_pointer import S3Ledger
from retrieval.s3_records import TURNS, busy
from retrieval.s3_transfer import File, Transfer, files_of, unfinished
from retrieval.version_folders import VERSION_FILE, checked_version


class S3Versions:
    """The versions among `objects`; this machine's copies are in `cache`."""

    def __init__(self, objects: Objects, ledger: S3Ledger, transfer: Transfer, cache: Cache) -> None:
        self._objects, self._ledger, self._transfer, self._cache = objects, ledger, transfer, cache

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        """Make a staged folder a version, all or nothing; `staged` is moved. False when that version was there already.

        What a killed upload of it brought is not sent again. Raises StorageError when S3 does not take it.
        """
        key = key_of(checked_version(version.id))
        files: dict[str, File] | None = None
        for _ in range(TURNS):
            there, etag = self._entry(key)
            if there is not None and self._is_there(there):
                return False
            if there is not None and there.stage is Stage.LEAVING:
                self._finish_leaving(there, etag)
                continue
            files = files or files_of(staged, frozenset({VERSION_FILE}))  # now: reading it all may take minutes
            upload = there.upload if there is not None else uuid4().hex
            mine = Entry(Stage.UPLOADING, upload, uuid4().hex, version)
            if not self._objects.swap(key, body_of(mine), etag):
                continue
            self._transfer.upload(staged, files, mine.under)
            done = self._finish_upload(key, replace(mine, stage=Stage.THERE, files=files))
            if done is not None:
                if done:
                    self._keep(staged, replace(mine, files=files))
                return done
        raise busy(self._objects.place(key))

    def _finish_upload(self, key: str, mine: Entry) -> bool | None:
        """True when the version is there by us, False by somebody else, None when our upload was given up meanwhile."""
        for _ in range(TURNS):
            there, etag = self._entry(key)
            if there is None or there.upload != mine.upload:
                return None
            if there.stage is not Stage.UPLOADING:
                return False if self._is_there(there) else None
            if self._objects.swap(key, body_of(mine), etag):
                return True
        raise busy(self._objects.place(key))

    def folder(self, version: str) -> Path:
        """The version's folder on this machine, fetched if need be. Raises NotFound, naming the versions there are."""
        entry = self.existing(version)

        def fill(into: Path) -> None:
            self._transfer.download(entry.under, entry.files, into)
            (into / VERSION_FILE).write_bytes(encoded(plain(entry.version)))

        return self._cache.folder(entry.upload, version, entry.bytes, self._pointed_to, fill)

    def versions(self) -> tuple[IndexVersion, ...]:
        """All versions, oldest first, built at the same time by id. Damaged ones are in `damaged`."""
        found = [entry.version for entry in self._all()[0]]
        return tuple(sorted(found, key=lambda version: (version.built_at, version.id)))

    def damaged(self) -> Mapping[str, str]:
        """Why a version cannot be used, by its id."""
        return self._all()[1]

    def remove(self, version: str) -> None:
        """Remove a version; its decisions stay. Raises BadRequest for stable, previous and canary.

        Gone for everybody by one write; processes that have it open keep what they opened.
        """
        if version in self.damaged():
            self._remove_damaged(version)
            return
        entry = self.existing(version)
        check_removable(version, self._ledger.read().rollout)
        there, etag = self._entry(key_of(version))
        if there is not None and there.upload == entry.upload and there.stage is Stage.THERE:
            leaving = replace(there, stage=Stage.LEAVING, writer=uuid4().hex)
            if not self._objects.swap(key_of(version), body_of(leaving), etag):
                self.remove(version)
                return
            there, etag = self._entry(key_of(version))
        if there is not None and there.upload == entry.upload and there.stage is Stage.LEAVING:
            self._finish_leaving(there, etag)  # else somebody else was faster, and what is there now is another one

    def _remove_damaged(self, version: str) -> None:
        """The object goes; the files, whose upload it may have named, are then nobody's."""
        there = self._ledger.read()
        check_removable(version, there.rollout)
        if not self._ledger.turn(there):
            self._remove_damaged(version)
            return
        self._objects.delete(key_of(version))

    def check(self, version: str) -> None:
        """Raises StorageError when the manifest of this machine's copy is not the one that was published."""
        entry = self.existing(version)
        check_seal(self.folder(version), entry.seal)

    def verify(self, version: str) -> None:
        """Raises StorageError naming the files that are not what was published. Reads the whole copy of this machine,
        fetching it if need be, and looks whether S3 still has every file; a damaged copy is removed.
        """
        entry = self.existing(version)
        there = {each.key: each.bytes for each in self._objects.listed(entry.under)}
        lost = sorted(n for n, file in entry.files.items() if there.get(f"{entry.under}{file.sha256}") != file.bytes)
        folder = self.folder(version)
        wrong = differing(folder, entry.seal)
        if wrong:
            self._cache.drop(entry.upload)
            told = "; ".join(f"{name}: {why}" for name, why in sorted(wrong.items()))
            raise StorageError(
                f"The copy of index version {version} is not what was published under that name, it is damaged or was "
                f"tampered with ({told}): {folder} was removed, and is fetched again when it is needed."
            )
        if lost:
            raise StorageError(
                f"Index version {version} is not what was published under that name: {', '.join(lost)} missing below "
                f"{self._objects.place(entry.under)}: restore earlier versions of these objects, or remove it and "
                "build again."
            )

    # ------------------------------------------------------------------------------------------ the object of a version

    def _entry(self, key: str) -> tuple[Entry | None, str]:
        stored = self._objects.get(key)
        return (read_entry(self._objects, key, stored), stored.etag) if stored is not None else (None, NOTHING)

    def _all(self) -> tuple[list[Entry], dict[str, str]]:
        """The entries of all versions that are there, and what is wrong with the others."""
        keys = [each.key for each in self._objects.listed(VERSIONS)]
        found: list[Entry] = []
        wrong: dict[str, str] = {}
        for key, stored in zip(keys, self._objects.get_all(keys), strict=True):
            try:
                found += [read_entry(self._objects, key, stored)] if stored is not None else []
            except StorageError as error:
                wrong[version_of(key)] = str(error)
        return [entry for entry in found if self._is_there(entry)], wrong

    def entries(self) -> Iterator[tuple[Entry, datetime]]:
        """Every entry that can be read, at whatever stage, and when it was written; a version that is leaving and that
        the pointer names is there.
        """
        for each in list(self._objects.listed(VERSIONS)):
            with suppress(StorageError):
                entry, _ = self._entry(each.key)
                if entry is not None:
                    there = self._is_there(entry)
                    yield (replace(entry, stage=Stage.THERE) if there else entry), each.modified

    def give_up(self, under: str) -> bool:
        """Remove what lies below an upload that is no version, and the version's object that names it if one does.

        False when it has become a version, or goes on, meanwhile.
        """
        key = key_of(version_of(under))
        entry, etag = self._entry(key)
        if entry is not None and entry.under == under:
            if entry.stage is Stage.LEAVING:
                with suppress(BadRequest):
                    self._finish_leaving(entry, etag)
                    return True
                return False
            if entry.stage is Stage.THERE or not self._objects.delete(key, etag):
                return False
        self.delete_files(under)
        return True

    def existing(self, version: str, rollout: Rollout | None = None) -> Entry:
        """The entry of a version that is there. Raises NotFound, naming those there are."""
        try:
            entry, _ = self._entry(key_of(checked_version(version)))
        except NotFound:
            entry = None
        if entry is not None and self._is_there(entry, rollout):
            return entry
        known = ", ".join(sorted(each.version.id for each in self._all()[0])) or "none yet"
        raise NotFound(f"Index version '{version}' does not exist; there are: {known}.", "version")

    def _is_there(self, entry: Entry, rollout: Rollout | None = None) -> bool:
        """A version that is leaving is there as long as the pointer names it: then its removal was overtaken."""
        if entry.stage is Stage.LEAVING:
            return entry.version.id in _named(rollout or self._ledger.read().rollout)
        return entry.stage is Stage.THERE

    def _finish_leaving(self, entry: Entry, etag: str) -> None:
        """Take a version away whose removal has begun, or bring it back if a move was faster."""
        key = key_of(entry.version.id)
        for _ in range(TURNS):
            there = self._ledger.read()
            try:
                check_removable(entry.version.id, there.rollout)
            except BadRequest:
                self._objects.swap(key, body_of(replace(entry, stage=Stage.THERE, writer=uuid4().hex)), etag)
                raise
            if self._ledger.turn(there):  # from now on no move that saw the version can be made
                if self._objects.delete(key, etag):
                    self.delete_files(entry.under)
                    self._cache.drop(entry.upload)
                return
        raise busy(self._objects.place(key))

    def delete_files(self, under: str) -> None:
        """Delete everything below `under`, uploads that were never completed too."""
        for each in list(unfinished(self._objects, under)):
            with suppress(StorageError):
                self._objects.call("abort_multipart_upload", each.key, UploadId=each.upload)
        for listed in list(self._objects.listed(under)):
            self._objects.delete(listed.key)

    # ------------------------------------------------------------------------------------------ this machine

    def _keep(self, staged: Path, entry: Entry) -> None:
        (staged / VERSION_FILE).write_bytes(encoded(plain(entry.version)))
        self._cache.take(entry.upload, entry.version.id, staged, self._pointed_to)

    def _pointed_to(self) -> frozenset[str]:
        """The uploads of the versions that people get or could go back to."""
        uploads: set[str] = set()
        for name in _named(self._ledger.read().rollout):
            with suppress(StorageError):
                entry, _ = self._entry(key_of(name))
                uploads |= {entry.upload} if entry is not None else set()
        return frozenset(uploads)


def _named(rollout: Rollout) -> frozenset[str]:
    return frozenset(name for name in (rollout.stable, rollout.canary, rollout.previous) if name)
