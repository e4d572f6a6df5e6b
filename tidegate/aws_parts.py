"""The local-to-AWS map as data: what each part is here, what it becomes on AWS, and what that asks of an account.

One row a part. `switch` is the setting that decides; with `to` it switches to AWS by that value, without by being set
at all. A part without `actions` needs no permission of ours: it is reached by an address, a mount or a machine.
Reading the rows against settings is preflight.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A port, its adapter here, the service in its place, and what is worth knowing before the first call.

    `actions` are IAM actions on what `model` names, `everywhere` those that IAM cannot bind to a resource. `by_hand` is
    true where no setting can tell whether the other end is AWS. `region` is the setting that is stronger than the
    client's own configuration.
    """

    name: str
    here: str
    aws: str
    switch: str
    to: str = ""
    model: str = ""
    actions: tuple[str, ...] = ()
    everywhere: tuple[str, ...] = ()
    quota: str = ""
    ask: str = ""
    by_hand: bool = False
    region: str = "generation.region"


MODEL_OFFERED = "Is the model offered in this region, and has the account access to it?"

PARTS: tuple[Part, ...] = (
    Part(
        "writing",
        "quoted sentences (generation/extractive.py), or a server of chat completions",
        "Amazon Bedrock, ConverseStream",
        "generation.backend",
        "bedrock",
        "generation.model_id",
        ("bedrock:InvokeModelWithResponseStream",),
        quota="requests and tokens per minute of the model; of an inference profile, those of its regions together",
        ask=MODEL_OFFERED,
    ),
    Part(
        "rewriting",
        "rules (generation/rewriting.py)",
        "Amazon Bedrock, Converse",
        "rewriting.backend",
        "bedrock",
        "rewriting.model_id",
        ("bedrock:InvokeModel",),
        quota="requests and tokens per minute of the model; one call for each follow-up",
        ask=MODEL_OFFERED,
    ),
    Part(
        "embedding",
        "an encoder in this process (retrieval/neural.py)",
        "Amazon Bedrock, InvokeModel of Titan or Cohere",
        "embedding.backend",
        "bedrock",
        "embedding.model_id",
        ("bedrock:InvokeModel",),
        quota="requests and tokens per minute of the model: a build sends every new passage, Titan one a request",
        ask=MODEL_OFFERED,
    ),
    Part(
        "reranking",
        "features or a cross-encoder in this process (retrieval/reranking.py)",
        "Amazon Bedrock, Rerank",
        "rerank.backend",
        "bedrock",
        "rerank.model_id",
        ("bedrock:InvokeModel",),
        ("bedrock:Rerank",),
        quota="requests per minute of the model; 1,000 passages a request",
        ask="Is Rerank with this model offered in this region? It is in fewer than the models that write.",
    ),
    Part(
        "retrieval",
        "the index of a version (retrieval/library.py)",
        "Amazon Bedrock Knowledge Bases, Retrieve",
        "retrieval.knowledge_base",
        "",
        "retrieval.knowledge_base",
        ("bedrock:Retrieve",),
        quota="Retrieve requests per second of the account; 100 passages a request",
        ask="Is the knowledge base in this region, with doc_id, tenant and groups as metadata of every document?",
    ),
    Part(
        "judging",
        "rules (eval/rules_judge.py), or a server of chat completions",
        "Amazon Bedrock, ConverseStream",
        "judge.backend",
        "bedrock",
        "judge.model_id",
        ("bedrock:InvokeModelWithResponseStream",),
        quota="requests and tokens per minute of the model; one call for each judged answer",
        ask=MODEL_OFFERED,
        region="judge.region",
    ),
    Part(
        "conversations",
        "carried by the client, or a SQLite file (serving/session_sql.py)",
        "Amazon RDS or Aurora for PostgreSQL",
        "sessions.url",
        quota="connections of the instance: each gateway keeps some",
        ask="Is the instance in the network of the service, and open to it alone?",
        by_hand=True,
    ),
    Part(
        "tracking",
        "MLflow on a SQLite file (eval/tracking.py)",
        "MLflow on a machine of yours",
        "tracking.uri",
        ask="Can the machine that evaluates reach it?",
        by_hand=True,
    ),
    Part(
        "versions",
        "a folder (retrieval/registry.py)",
        "Amazon S3 (retrieval/s3_registry.py)",
        "registry.url",
        "",
        "registry.url",
        (
            "s3:ListBucket",
            "s3:ListBucketMultipartUploads",
            "s3:GetObject",
            "s3:PutObject",
            "s3:DeleteObject",
            "s3:AbortMultipartUpload",
            "s3:ListMultipartUploadParts",
        ),
        quota="5,500 reads a second of a prefix: every serving process reads three small objects a second or two",
        ask="Is versioning on, does no rule expire objects below the prefix, and may this identity use the KMS key "
        "(kms:GenerateDataKey, kms:Decrypt)?",
        region="registry.region",
    ),
    Part(
        "records",
        "a folder",
        "Amazon EFS, mounted by every machine of the service; without registry.url versions lie there too",
        "data_dir",
        quota="throughput of the file system while replicas open a version",
        ask="Is the file system in the zones of the machines?",
        by_hand=True,
    ),
)
