"""Documents sent in over HTTP, for the operator: a job for each upload, and how far it is.

A file is sent as JSON with its text, or as a form with as many files as wanted. Nothing is read or indexed here: the
reply says where to ask, and the work is done elsewhere, on the way that every change of the library takes. The key
must be the operator's, because a file may say itself whose it is and who may read it.
"""

import asyncio
import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.errors import BadRequest, Forbidden
from domain.ports import Uploads
from domain.uploading import Upload, UploadJob
from serving import schemas
from serving.admission import operator
from serving.edge import json_response, read_up_to
from serving.service import Service
from serving.wire import scrubbed

FORM, JSON = "multipart/form-data", "application/json"
MOST_FILES = 100  # in one form


def upload_routes(service: Service) -> list[Route]:
    """The routes of uploads; they stand before those of documents, whose ids may look like anything."""
    of = _Uploads(service)
    return [
        Route("/v1/documents", of.send, methods=["POST"]),
        Route("/v1/documents/jobs/{id}", of.job, methods=["GET"]),
    ]


class _Uploads:
    """The endpoints over one Service."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def send(self, request: Request) -> Response:
        """202 with the job that takes the files in."""
        who = (await operator(request, self.service)).who
        uploads, limits = self._uploads(), self.service.limits
        kind = request.headers.get("content-type", "")
        named = kind.partition(";")[0].strip().lower()
        if named not in (FORM, JSON):
            raise BadRequest(f"Content-Type is {kind[:80]!r}: send {JSON} or {FORM}.", "Content-Type")
        raw = await read_up_to(request, uploads.max_bytes, limits.body_timeout_s)
        files = form_files(kind, raw) if named == FORM else [schemas.read_upload(raw, limits)]
        job = await asyncio.to_thread(uploads.accept, files, who)
        return json_response(self._told(job), 202, {"Location": f"/v1/documents/jobs/{job.id}"})

    async def job(self, request: Request) -> Response:
        """How far a job is."""
        await operator(request, self.service)
        return json_response(self._told(await asyncio.to_thread(self._uploads().job, request.path_params["id"])))

    def _uploads(self) -> Uploads:
        if self.service.uploads is None:
            raise Forbidden("This service takes no documents: use `tidegate sync` on its machine.")
        return self.service.uploads

    def _told(self, job: UploadJob) -> Any:  # what wire.scrubbed gives
        files = [
            {
                "name": file.name,
                "groups": None if file.groups is None else list(file.groups),
                "doc_ids": list(file.doc_ids),
                "status": file.status,
                "code": file.code,
                "reason": file.reason,
            }
            for file in job.files
        ]
        told = {
            "id": job.id,
            "state": job.state.value,
            "at": job.at,
            "started": job.started or None,
            "ended": job.ended or None,
            "files": files,
            "version": job.version or None,
            "decision": job.decision or None,
            "undecided": job.undecided,
            "serving": job.serving or None,
            "error": job.error,
        }
        return scrubbed(told, self.service.naming)


# ---------------------------------------------------------------------------------------------- forms


def form_files(kind: str, raw: bytes) -> list[Upload]:
    """The files of a form, each read by those whom its field `groups` names, comma separated; without it, by whom the
    file and the settings say. Raises BadRequest for what is no form. Source: RFC 7578.
    """
    boundary = re.search(r'boundary="?([^";,\s]{1,70})"?', kind)
    if boundary is None:
        raise BadRequest("The form has no boundary in its Content-Type: let the client that makes it set it.", "body")
    mark = b"--" + boundary[1].encode()
    pieces = (b"\r\n" + raw).split(b"\r\n" + mark)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise BadRequest("The form has no end: it was cut off, or its boundary is another one.", "body")
    files, groups = [], None
    for piece in pieces[1:-1]:
        head, found, content = piece.partition(b"\r\n\r\n")
        field, filename = _disposition(head.decode("utf-8", "replace")) if found else ("", None)
        if filename is not None:
            files.append(Upload(filename, content))
        elif field == "groups" and groups is not None:
            raise BadRequest("The form says 'groups' twice: send one field, with the names comma separated.", "groups")
        elif field == "groups":
            groups = tuple(name for part in content.decode("utf-8", "replace").split(",") if (name := part.strip()))
        else:
            raise BadRequest(f"Form field {field[:80]!r} is not known: send files, and 'groups' if need be.", "body")
    if len(files) > MOST_FILES:
        raise BadRequest(f"The form has {len(files)} files: at most {MOST_FILES} are taken at once.", "file")
    return files if groups is None else [Upload(file.name, file.content, groups) for file in files]


def _disposition(head: str) -> tuple[str, str | None]:
    """The name of a form field, and that of its file, None for one without."""
    line = re.search(r"^content-disposition:[ \t]*form-data(.*)$", head, re.IGNORECASE | re.MULTILINE)
    said = dict(re.findall(r';\s*(name|filename)="((?:[^"\\]|\\.)*)"', line[1] if line else ""))
    # Browsers write quotes and line ends as %22, %0D and %0A, and leave all else as it is: a backslash stays one.
    plain = {key: value.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n") for key, value in said.items()}
    return plain.get("name", ""), plain.get("filename")
