"""Four layers become settings or one list of every problem; nothing is ignored and nothing is half applied."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tidegate.loading import InvalidSettings, Loaded, Problem, load


def from_yaml(folder: Path, text: str | bytes, env: Mapping[str, str] | None = None) -> Loaded:
    file = folder / "tidegate.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(None, env or {}, {}, cwd=folder)


def refused(folder: Path, text: str | bytes) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        from_yaml(folder, text)
    return [str(problem) for problem in caught.value.problems]


def refused_env(folder: Path, **env: str) -> list[Problem]:
    with pytest.raises(InvalidSettings) as caught:
        load(None, env, {}, cwd=folder)
    return list(caught.value.problems)


# ---------------------------------------------------------------------------------------------- layers


def test_each_layer_wins_over_the_one_before_and_the_origin_says_which(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_text("retrieval:\n  k1: 1.1\n  b: 0.1\n  rrf_k: 10\n")
    env = {"TIDEGATE_RETRIEVAL__B": "0.2", "TIDEGATE_RETRIEVAL__RRF_K": "20"}
    loaded = load(None, env, {"retrieval.rrf_k": "30"}, cwd=tmp_path)
    assert (loaded.settings.retrieval.k1, loaded.settings.retrieval.b, loaded.settings.retrieval.rrf_k) == (
        1.1,
        0.2,
        30,
    )
    assert loaded.origins["retrieval.k1"] == "tidegate.yaml:2"
    assert loaded.origins["retrieval.b"] == "TIDEGATE_RETRIEVAL__B"
    assert loaded.origins["retrieval.rrf_k"] == "--set"
    assert loaded.origins["retrieval.dense"] == "default"


def test_the_file_is_the_named_one_else_the_variables_else_the_one_at_hand(tmp_path: Path) -> None:
    for number, name in enumerate(("named.yaml", "variable.yaml", "tidegate.yaml"), start=1):
        (tmp_path / name).write_text(f"answering: {{k: {number}, trigger_min_chunks: 0}}")
    env = {"TIDEGATE_CONFIG": "variable.yaml"}
    assert load(Path("named.yaml"), env, {}, cwd=tmp_path).settings.answering.k == 1
    assert load(None, env, {}, cwd=tmp_path).settings.answering.k == 2
    assert load(None, {}, {}, cwd=tmp_path).settings.answering.k == 3


def test_one_stage_value_keeps_the_rest_of_that_stage(tmp_path: Path) -> None:
    loaded = from_yaml(tmp_path, "serving: {stages: {gateway: {max_replicas: 8}}}")
    assert (
        loaded.settings.serving.stages.gateway.min_replicas,
        loaded.settings.serving.stages.gateway.max_replicas,
    ) == (2, 8)


TWO_GATES = "[{metric: recall@6, floor: 0.5}, {metric: citation_recall, floor: 0.1, min_items: 1}]"


@pytest.mark.parametrize("layer", ["file", "variable", "--set"])
def test_a_list_of_gates_replaces_the_default_wherever_it_is_written(tmp_path: Path, layer: str) -> None:
    env = {"TIDEGATE_EVALUATION__GATES": TWO_GATES} if layer == "variable" else {}
    over = {"evaluation.gates": TWO_GATES} if layer == "--set" else {}
    if layer == "file":
        (tmp_path / "tidegate.yaml").write_text(f"evaluation: {{gates: {TWO_GATES}}}")
    gates = load(None, env, over, cwd=tmp_path).settings.evaluation.gates
    assert [(gate.metric, gate.floor, gate.min_items) for gate in gates] == [
        ("recall@6", 0.5, 50),
        ("citation_recall", 0.1, 1),
    ]


def test_one_bound_is_amended_and_the_other_gates_stay(tmp_path: Path) -> None:
    loaded = from_yaml(tmp_path, "evaluation:\n  gates:\n    recall@6: {floor: 0.5}\n    ndcg@10: {floor: 0.4}\n")
    gates = {gate.metric: gate for gate in loaded.settings.evaluation.gates}
    assert (gates["recall@6"].floor, gates["recall@6"].max_drop) == (0.5, 0.02)
    assert gates["citation_recall"].floor == 0.56
    assert (gates["ndcg@10"].floor, list(gates)[-1]) == (0.4, "ndcg@10")
    assert loaded.origins["evaluation.gates"] == "tidegate.yaml:4"


def test_an_amendment_is_made_to_the_list_below_it_and_lost_under_a_list_above_it(tmp_path: Path) -> None:
    amendment = {"TIDEGATE_EVALUATION__GATES__RECALL@6__FLOOR": "0.6"}
    (tmp_path / "tidegate.yaml").write_text(f"evaluation: {{gates: {TWO_GATES}}}")
    below = load(None, amendment, {}, cwd=tmp_path).settings.evaluation.gates
    above = load(None, amendment, {"evaluation.gates": TWO_GATES}, cwd=tmp_path).settings.evaluation.gates
    assert [len(below), below[0].floor, above[0].floor] == [2, 0.6, 0.5]


def test_a_wrong_amendment_is_named_where_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_text(f"evaluation: {{gates: {TWO_GATES}}}")
    with pytest.raises(InvalidSettings) as caught:
        load(None, {}, {"evaluation.gates.recall@6.floor": "1.4"}, cwd=tmp_path)
    assert str(caught.value) == "--set: evaluation.gates[1].floor: got 1.4, wanted a number from 0 to 1, or null"


def test_every_problem_of_a_gate_list_is_named_at_its_own_line(tmp_path: Path) -> None:
    text = """evaluation:
  gates:
    - {metric: recal@6, floor: 0.5}
    - {metric: citation_recall, flor: 0.1}
    - metric: recall@6
      floor: 1.4
      slice: tipe=x
    - {floor: 0.5}
    - {metric: answered, floor: 0.5, min_items: 0, advisory: maybe}
"""
    assert [problem.partition(", wanted ")[0].partition(" (got")[0] for problem in refused(tmp_path, text)] == [
        'tidegate.yaml:3: evaluation.gates[1].metric: got "recal@6"',
        "tidegate.yaml:4: evaluation.gates[2].flor: is not a key of a gate",
        "tidegate.yaml:6: evaluation.gates[3].floor: got 1.4",
        'tidegate.yaml:7: evaluation.gates[3].slice: got "tipe=x"',
        "tidegate.yaml:8: evaluation.gates[4].metric: is missing",
        "tidegate.yaml:9: evaluation.gates[5].min_items: got 0",
        'tidegate.yaml:9: evaluation.gates[5].advisory: got "maybe"',
    ]


@pytest.mark.parametrize(
    ("gates", "missing"),
    [
        ("[]", ["no recall gate", "no citation gate"]),
        ("[{metric: recall@6, floor: 0.5}]", ["no citation gate"]),
        ("[{metric: recall@6, floor: 0.5}, {metric: citation_recall, max_drop: 0.1}]", ["no citation gate"]),
        ("[{metric: recall@6, floor: 0.5, advisory: true}, {metric: citation_recall, floor: 0.1}]", ["no recall gate"]),
        ("{citation_precision: {floor: null}, citation_recall: {advisory: true}}", ["no citation gate"]),
    ],
)
def test_a_list_that_guards_nothing_is_refused(tmp_path: Path, gates: str, missing: list[str]) -> None:
    said = refused(tmp_path, f"evaluation: {{gates: {gates}}}")
    assert len(said) == len(missing)
    assert all(text in problem for text, problem in zip(missing, said, strict=True))


def test_paths_in_the_file_start_at_the_file_and_others_at_the_working_directory(tmp_path: Path) -> None:
    folder = tmp_path / "my köfig"
    folder.mkdir()
    file = folder / "c.yaml"
    file.write_text("embedding: {folder: ../models}")
    loaded = load(file, {"TIDEGATE_ANSWERING__FORBIDDEN_TERMS_FILE": "terms.txt"}, {}, cwd=tmp_path)
    assert loaded.settings.embedding.folder == tmp_path / "models"
    assert loaded.settings.answering.forbidden_terms_file == tmp_path / "terms.txt"
    assert loaded.settings.data_dir == folder / ".tidegate"
    assert load(None, {}, {}, cwd=tmp_path).settings.data_dir == tmp_path / ".tidegate"


# ---------------------------------------------------------------------------------------------- the file's text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "retrieval:\n  kk1: 0.9",
            "tidegate.yaml:2: retrieval.kk1: is not a setting (got 0.9); did you mean retrieval.k1?",
        ),
        (
            "gate: {recal_min: 0.9}",
            "tidegate.yaml:1: gate.recal_min: is not a setting (got 0.9); "
            "did you mean evaluation.gates.recall@6.floor?",
        ),
        ("port: 80", "tidegate.yaml:1: port: is not a setting (got 80); did you mean serving.port?"),
        ("on: 3", "tidegate.yaml:1: on: is not a setting (got 3)"),
        (
            "answering:\n  k: six",
            'tidegate.yaml:2: answering.k: got "six", wanted a whole number from 1 to 1000',
        ),
        ("retrieval: {k1: .nan}", "tidegate.yaml:1: retrieval.k1: got .nan, wanted a number from 0 to 10"),
        ("retrieval: {k1: -.inf}", "tidegate.yaml:1: retrieval.k1: got -.inf, wanted a number from 0 to 10"),
        ("retrieval: {k1: 1e999}", "tidegate.yaml:1: retrieval.k1: got .inf, wanted a number from 0 to 10"),
        ("retrieval: {k1:}", "tidegate.yaml:1: retrieval.k1: got nothing, wanted a number from 0 to 10"),
        ("answering: {k: 2.5}", "tidegate.yaml:1: answering.k: got 2.5, wanted a whole number from 1 to 1000"),
        ("answering: {k: true}", "tidegate.yaml:1: answering.k: got true, wanted a whole number from 1 to 1000"),
        ("serving: {port: 1e3}", "tidegate.yaml:1: serving.port: got 1000.0, wanted a whole number from 1 to 65535"),
        ('serving: {port: "80"}', 'tidegate.yaml:1: serving.port: got "80", wanted a whole number from 1 to 65535'),
        (
            "evaluation: {gates: {recall@6: {floor: 1.5}}}",
            "tidegate.yaml:1: evaluation.gates[1].floor: got 1.5, wanted a number from 0 to 1, or null",
        ),
        (
            "evaluation: {gates: {}}",
            "tidegate.yaml:1: evaluation.gates: got {}, wanted a list of gates like "
            "[{metric: recall@6, floor: 0.7, max_drop: 0.02}]",
        ),
        (
            "evaluation: {gates: [3]}",
            "tidegate.yaml:1: evaluation.gates[1]: got 3, wanted a gate like {metric: recall@6, floor: 0.7}",
        ),
        (
            "evaluation: {gates: {recal@10: {flor: 0.5}}}",
            "tidegate.yaml:1: evaluation.gates.recal@10.flor: is not a setting (got 0.5); "
            "did you mean evaluation.gates.recall@10.floor?",
        ),
        (
            "evaluation: {floors: {recall@6: 0.5}}",
            "tidegate.yaml:1: evaluation.floors.recall@6: is not a setting (got 0.5); "
            "did you mean evaluation.gates.recall@6.floor?",
        ),
        (
            "chunking:\n  tokens: 64\n  overlap: 64",
            "tidegate.yaml:3: chunking.overlap: got 64, wanted less than chunking.tokens (64), "
            "or chunking would never advance",
        ),
        (
            "embedding: {backend: minlm}",
            'tidegate.yaml:1: embedding.backend: got "minlm", wanted one of minilm, hashing, folder, bedrock; '
            "did you mean minilm?",
        ),
        (
            "generation: {allow_uncached: ture}",
            'tidegate.yaml:1: generation.allow_uncached: got "ture", wanted true or false; did you mean true?',
        ),
        (
            "retrieval.k1: 1",
            "tidegate.yaml:1: retrieval.k1: has a dot in it, wanted `retrieval:` with `k1:` below it",
        ),
        (
            "answering:\n  k: 3\n  k: 4",
            "tidegate.yaml:3: key 'k' is given twice, first on line 2: keep one",
        ),
        ("access: {groups: staff}", 'tidegate.yaml:1: access.groups: got "staff", wanted a list of names'),
        ("access: {groups: [a, 1]}", 'tidegate.yaml:1: access.groups: got ["a", 1], wanted a list of names'),
        (
            "serving: 5",
            "tidegate.yaml:1: serving: is a section (got 5), wanted a key below it: host, port, haproxy, rewrite_s, "
            "retrieve_s, rerank_s, first_token_s, idle_s, write_s, max_body_bytes, stages",
        ),
        ("- a", "tidegate.yaml:1: the file holds a list, wanted `section:` with keys below it"),
        ("six", "tidegate.yaml:1: the file holds a single value, wanted `section:` with keys below it"),
        ("a: &x {b: 1}\nc: *x", "tidegate.yaml:2: not YAML: aliases are not used here: write the value out"),
        ("a: 1\n---\nb: 2", "tidegate.yaml:2: not YAML: expected a single document in the stream, "
         "but found another document"),
        (
            "generation: {model_id: !!python/name:os.system x}",
            "tidegate.yaml:1: the tag 'tag:yaml.org,2002:python/name:os.system' does not fit its value: "
            "write a plain value",
        ),
        ("[" * 5000, "tidegate.yaml: nested too deeply, wanted sections with keys below them"),
        ("", "tidegate.yaml: is empty: write `{}` for the defaults, or start from examples/tidegate.yaml"),
        ("\n \n", "tidegate.yaml: is empty: write `{}` for the defaults, or start from examples/tidegate.yaml"),
        (b"\xff\xfe\x00", "tidegate.yaml: is not UTF-8 text (byte 0), wanted a settings file"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_place_key_value_and_way_out(
    tmp_path: Path, text: str | bytes, problem: str
) -> None:
    assert refused(tmp_path, text) == [problem]


def test_all_problems_are_named_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = "retrieval:\n  k1: .nan\n  fusoin: rrf\nanswering:\n  k: six\nchunking: {tokens: 64, overlap: 64}\n"
    assert [line.split(": ")[:2] for line in refused(tmp_path, text)] == [
        ["tidegate.yaml:2", "retrieval.k1"],
        ["tidegate.yaml:3", "retrieval.fusoin"],
        ["tidegate.yaml:5", "answering.k"],
        ["tidegate.yaml:6", "chunking.overlap"],
    ]


def test_a_file_of_comments_means_the_defaults_and_says_so(tmp_path: Path) -> None:
    loaded = from_yaml(tmp_path, "# nothing yet\n")
    assert set(loaded.origins.values()) == {"default"}
    assert "sets nothing" in loaded.notes[0]


def test_a_section_with_all_keys_commented_out_sets_nothing(tmp_path: Path) -> None:
    assert set(from_yaml(tmp_path, "retrieval:\n  # k1: 1\nserving: {port: 81}").origins.values()) == {
        "default",
        "tidegate.yaml:3",
    }


@pytest.mark.parametrize("word", ["on", "off", "auto"])
def test_on_and_off_are_words_where_words_are_wanted(tmp_path: Path, word: str) -> None:
    assert from_yaml(tmp_path, f"serving: {{haproxy: {word}}}").settings.serving.haproxy == word


@pytest.mark.parametrize(("written", "number"), [("1e1", 10.0), ("1", 1.0), (".5", 0.5), ("5.", 5.0), ("2.5E-1", 0.25)])
def test_numbers_are_read_as_yaml_1_2_reads_them(tmp_path: Path, written: str, number: float) -> None:
    assert from_yaml(tmp_path, f"retrieval: {{k1: {written}}}").settings.retrieval.k1 == number


@pytest.mark.parametrize("written", ["010", "1_000", "0x10", "1:30"])
def test_a_number_that_readers_of_yaml_disagree_about_is_refused(tmp_path: Path, written: str) -> None:
    assert "wanted a whole number" in refused(tmp_path, f"serving: {{port: {written}}}")[0]


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path: Path) -> None:
    assert from_yaml(tmp_path, b"\xef\xbb\xbfserving: {port: 81}").settings.serving.port == 81


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    for name, reason in (("gone.yaml", "No such file"), (".", "Is a directory")):
        with pytest.raises(InvalidSettings, match=reason):
            load(Path(name), {}, {}, cwd=tmp_path)


def test_a_file_with_the_other_ending_is_not_overlooked(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yml").write_text("serving: {port: 81}")
    with pytest.raises(InvalidSettings, match=r"rename it to tidegate\.yaml"):
        load(None, {}, {}, cwd=tmp_path)


def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path) -> None:
    problems = refused(tmp_path, "aws_secret_access_key: hunter2\ngeneration: {endpoint_url: 'ftp://me:hunter2@host'}")
    assert len(problems) == 2
    assert not any("hunter2" in problem for problem in problems)


@pytest.mark.parametrize("key", ["judge.endpoint_url", "generation.endpoint_url", "registry.endpoint_url"])
@pytest.mark.parametrize(
    "address",
    [
        "http://[::1", "http://[::g]/", "http://h:99999/v1", "http://h:port/v1", "http://a..b/v1", "http://-/",
        "http://h:0/v1", "http://:80/v1", "http://h/v1?x=1", "http://h/v1#part", "ftp://h", "http://", "h:80",
    ],
)  # fmt: skip
def test_an_address_that_nobody_could_call_is_refused_when_settings_load(key: str, address: str) -> None:
    with pytest.raises(InvalidSettings, match=rf"{key}: got .*, wanted an http\(s\) address"):
        load(None, {}, {key: address})


@pytest.mark.parametrize("address", ["http://[::1]:80/v1", "https://my_vllm.default.svc:8000/v1", "http://ü.example"])
def test_an_address_that_can_be_called_is_taken_as_it_is(address: str) -> None:
    assert load(None, {}, {"judge.endpoint_url": address}).settings.judge.endpoint_url == address


def test_a_control_character_cannot_reach_the_terminal_through_a_message(tmp_path: Path) -> None:
    assert all(problem.isprintable() for problem in refused(tmp_path, '"a\\e[31m": "b\\e[0m"'))


# ---------------------------------------------------------------------------------------------- variables and --set


@pytest.mark.parametrize("text", ["true", "1", "yes", "on", "True", "YES", " On "])
def test_every_spelling_of_true_is_true(tmp_path: Path, text: str) -> None:
    loaded = load(None, {"TIDEGATE_GENERATION__ALLOW_UNCACHED": text}, {}, cwd=tmp_path)
    assert loaded.settings.generation.allow_uncached is True


@pytest.mark.parametrize("text", ["false", "0", "no", "off", "False", "NO", " Off "])
def test_every_spelling_of_false_is_false(tmp_path: Path, text: str) -> None:
    loaded = load(None, {"TIDEGATE_GENERATION__ALLOW_UNCACHED": text}, {}, cwd=tmp_path)
    assert loaded.settings.generation.allow_uncached is False


@pytest.mark.parametrize("text", ["ture", "", " ", "2", "y", "null"])
def test_nonsense_for_a_boolean_is_an_error_that_names_the_variable(tmp_path: Path, text: str) -> None:
    (problem,) = refused_env(tmp_path, TIDEGATE_GENERATION__ALLOW_UNCACHED=text)
    assert problem.place == "TIDEGATE_GENERATION__ALLOW_UNCACHED"
    assert "wanted true or false" in problem.text


@pytest.mark.parametrize("text", ["", "six", "true", "null", "[1]", "9" * 5000])
def test_nonsense_for_a_number_is_an_error_that_names_the_variable(tmp_path: Path, text: str) -> None:
    (problem,) = refused_env(tmp_path, TIDEGATE_ANSWERING__K=text)
    assert (problem.place, problem.key) == ("TIDEGATE_ANSWERING__K", "answering.k")


def test_an_unknown_variable_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (problem,) = refused_env(tmp_path, TIDEGATE_SERVNG__PORT="81")
    assert problem.nearest == "TIDEGATE_SERVING__PORT"
    (problem,) = refused_env(tmp_path, tidegate_serving__port="81")
    assert problem.nearest == "TIDEGATE_SERVING__PORT"


def test_a_section_cannot_be_set_by_one_variable(tmp_path: Path) -> None:
    (problem,) = refused_env(tmp_path, TIDEGATE_RETRIEVAL="{}")
    assert "is a section" in problem.text


def test_variables_that_are_not_settings_are_left_alone(tmp_path: Path) -> None:
    kubernetes = {
        "TIDEGATE_PORT": "tcp://10.0.0.1:8000",
        "TIDEGATE_PORT_8000_TCP_ADDR": "10.0.0.1",
        "TIDEGATE_SERVICE_HOST": "10.0.0.1",
        "TIDEGATE_HEAD_SVC_SERVICE_PORT_DASHBOARD": "8265",
    }
    loaded = load(None, {"TIDEGATE_DATA": "/x", "HOME": "/root", **kubernetes}, {}, cwd=tmp_path)
    assert set(loaded.origins.values()) == {"default"}
    (problem,) = refused_env(tmp_path, TIDEGATE_PORT="81")
    assert problem.nearest == "TIDEGATE_SERVING__PORT"


@pytest.mark.parametrize("text", ["a,b", " a , b ", "[a, b]", '["a", "b"]'])
def test_a_list_may_be_written_with_or_without_brackets(tmp_path: Path, text: str) -> None:
    assert load(None, {}, {"access.groups": text}, cwd=tmp_path).settings.access.groups == ("a", "b")


def test_text_stays_text_whatever_it_looks_like(tmp_path: Path) -> None:
    assert load(None, {}, {"access.tenant": "12"}, cwd=tmp_path).settings.access.tenant == "12"
    assert load(None, {}, {"access.tenant": "no"}, cwd=tmp_path).settings.access.tenant == "no"


def test_null_unsets_what_may_be_absent(tmp_path: Path) -> None:
    loaded = load(None, {"TIDEGATE_EMBEDDING__FOLDER": "x"}, {"embedding.folder": "null"}, cwd=tmp_path)
    assert loaded.settings.embedding.folder is None


def test_values_from_python_need_no_text(tmp_path: Path) -> None:
    loaded = load(None, {}, {"serving.port": 81, "data_dir": tmp_path / "x", "access.groups": ["g"]}, cwd=tmp_path)
    assert (loaded.settings.serving.port, loaded.settings.data_dir) == (81, tmp_path / "x")
    assert loaded.settings.access.groups == ("g",)


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ({"generation.backend": "bedrock"}, "generation.model_id"),
        ({"rewriting.backend": "bedrock"}, "rewriting.model_id"),
        ({"embedding.backend": "folder"}, "embedding.folder"),
        ({"rerank.backend": "cross_encoder"}, "rerank.folder"),
        ({"embedding.backend": "bedrock"}, "embedding.model_id"),
        ({"embedding.backend": "bedrock", "embedding.model_id": "anthropic.claude-v2"}, "embedding.model_id"),
        (
            {"embedding.backend": "bedrock", "embedding.model_id": "cohere.embed-multilingual-v3"},
            "embedding.dimensions",
        ),
        ({"rerank.backend": "bedrock"}, "rerank.model_id"),
        (
            {"retrieval.knowledge_base": "ABCDEFGHIJ", "retrieval.shards": "2", "retrieval.dense": "exact"},
            "retrieval.shards",
        ),
        ({"retrieval.knowledge_base": "ABCDEFGHIJ", "answering.calibration": "c.json"}, "answering.calibration"),
        ({"answering.k": "13"}, "answering.wide_k"),
        ({"answering.pool_cap": "11"}, "answering.pool_cap"),
        ({"retrieval.max_k": "101"}, "retrieval.max_k"),
        ({"rerank.depth": "101"}, "rerank.depth"),
        ({"chunking.tokens": "7000"}, "answering.evidence_token_cap"),
        ({"serving.stages.gateway.min_replicas": "5"}, "serving.stages.gateway.max_replicas"),
        ({"serving.stages.gateway.num_cpus": "1.5"}, "serving.stages.gateway.num_cpus"),
        (
            {"rerank.backend": "cross_encoder", "rerank.folder": "m", "rerank.device": "cuda"},
            "serving.stages.reranker.num_gpus",
        ),
        ({"embedding.device": "cuda"}, "serving.stages.retriever.num_gpus"),
        ({"retrieval.dense": "gpu"}, "serving.stages.retriever.num_gpus"),
        ({"rerank.backend": "embedded", "serving.rerank_s": "2"}, "rerank.within_ms"),
        (
            {
                "rerank.backend": "embedded",
                "rerank.batch_tokens": "32768",
                "rerank.depth": "5",
                "serving.stages.reranker.max_ongoing_requests": "8",
            },
            "serving.stages.reranker.max_ongoing_requests",
        ),
    ],
)
def test_values_that_cannot_both_stand_are_refused(tmp_path: Path, overrides: Mapping[str, str], key: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load(None, {}, overrides, cwd=tmp_path)
    assert [problem.key for problem in caught.value.problems] == [key]


@pytest.mark.parametrize("blank", ['""', '" "'])
def test_a_blank_path_is_refused_and_never_means_the_folder_one_stands_in(tmp_path: Path, blank: str) -> None:
    (told,) = refused(tmp_path, f"data_dir: {blank}\n")
    assert told == f"tidegate.yaml:1: data_dir: got {blank}, wanted a path"


@pytest.mark.parametrize("price", ["{}", "{model: x}", "{model: x, input_usd: -1}"])
def test_a_wrong_field_of_an_item_is_a_problem_of_the_key_that_holds_the_list(tmp_path: Path, price: str) -> None:
    told = refused(tmp_path, f"costs:\n  prices: [{price}]")
    assert told
    assert all("costs.prices" in line for line in told)
