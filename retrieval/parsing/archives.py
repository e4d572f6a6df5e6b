"""Zip archives that documents are made of, looked at before anything in them is unpacked."""

import io
import zipfile

from retrieval.parsing.parsed import Limits, Refused

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # how files of Office before 2007 begin, and locked ones since
_LOCKED = "EncryptedPackage".encode("utf-16-le")
SHARE = 4  # of the memory, one part for what is unpacked: what is parsed takes several times its bytes
ENTRIES = 10_000


def checked(content: bytes, limits: Limits) -> zipfile.ZipFile:
    """The archive. Raises Refused when it is locked, damaged, or would unpack to more than memory can hold.

    Sizes are those the archive states: zipfile reads no entry beyond its stated size.
    """
    if content.startswith(OLE):
        if _LOCKED in content:
            raise Refused("password_required", "is locked with a password: save a copy without one, or leave it out")
        raise Refused("damaged", "has the format of Office before 2007: save it as .docx, .pptx or .xlsx")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except NotImplementedError as error:  # zipfile's word for an archive that states a newer version than it knows
        raise Refused("damaged", f"is an archive of a kind that is not read here ({error}): save it anew") from None
    except (zipfile.BadZipFile, ValueError):
        raise Refused("damaged", "is no archive, or a damaged one: open it and save it anew") from None
    entries = archive.infolist()
    if any(entry.flag_bits & 1 for entry in entries):
        raise Refused("password_required", "is locked with a password: save a copy without one, or leave it out")
    size, room = sum(entry.file_size for entry in entries), limits.memory_mb * 1_000_000 // SHARE
    if size > room or len(entries) > ENTRIES:
        raise Refused(
            "too_big",
            f"would unpack to {size / 1e6:,.0f} MB in {len(entries)} entries, at most {room / 1e6:,.0f} MB in "
            f"{ENTRIES} are read: take out what is not text, or raise ingestion.memory_mb",
        )
    return archive


def entry(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """The content of an entry, None when there is none by that name."""
    try:
        return archive.read(name)
    except KeyError:
        return None
