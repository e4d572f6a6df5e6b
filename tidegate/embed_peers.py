"""One contender of `tidegate bench embed` in a process of its own: `python -m tidegate.embed_peers WHO JOB THREADS`.

Every contender embeds the same passages and questions with the same number of threads and says what it took, in seconds
of the CPU and of the clock; its vectors are left beside the job. The peer is run as its own documentation says.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from domain.errors import BadRequest
from tidegate.console import say_json_line

Told = dict[str, Any]  # a JSON object
Embed = Callable[[list[str]], Any]  # texts -> numpy float32 [n, d]
WARM_UP = 16  # passages; some runtimes prepare themselves when they first meet a shape


def main(who: str, job: Path, threads: int) -> Told:
    """What contender `who` took for the passages and questions in `job`."""
    given = json.loads(job.read_text("utf-8"))
    name, embed_passages, embed_questions = CONTENDERS[who](threads)
    embed_passages(given["passages"][:WARM_UP])
    cpu, clock = time.process_time(), time.perf_counter()
    vectors = embed_passages(given["passages"])
    taken = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - clock}
    np.save(job.with_name(f"{who}.npy"), vectors, allow_pickle=False)
    return {
        "name": name,
        "passages": len(given["passages"]),
        **taken,
        **_one_by_one(embed_questions, given["questions"]),
    }


def _one_by_one(embed: Embed, questions: Sequence[str]) -> Told:
    embed([questions[0]])
    walls, cpu = [], time.process_time()
    for question in questions:
        began = time.perf_counter()
        embed([question])
        walls.append(1000 * (time.perf_counter() - began))
    cpu_ms = 1000 * (time.process_time() - cpu) / len(questions)
    return {"query_ms": median(walls), "query_p95_ms": float(np.quantile(walls, 0.95)), "query_cpu_ms": cpu_ms}


def ours(threads: int) -> tuple[str, Embed, Embed]:
    """The encoder as it builds and searches, without the cache in front of it."""
    from retrieval.model_folder import minilm_folder
    from retrieval.neural import SentenceEncoder
    from retrieval.runtimes import Choice

    encoder = SentenceEncoder(minilm_folder(), Choice(threads=threads))
    return encoder.runtime, encoder.embed_documents, encoder.embed_queries


def sentence_transformers(_threads: int) -> tuple[str, Embed, Embed]:  # torch takes them from the environment
    """SentenceTransformer.encode with its defaults: float32, batches of 32. Its vectors are the twin of ours."""
    from sentence_transformers import SentenceTransformer

    from retrieval.model_folder import minilm_folder

    model = SentenceTransformer(str(minilm_folder()), device="cpu")
    return "sentence-transformers", model.encode, model.encode


CONTENDERS: dict[str, Callable[[int], tuple[str, Embed, Embed]]] = {
    "ours": ours,
    "sentence_transformers": sentence_transformers,
}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in CONTENDERS:
        raise BadRequest(f"Name one of {', '.join(CONTENDERS)}, a job file and a number of threads.", "who")
    say_json_line(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
