import re
from collections import Counter
from datetime import date
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from domain.errors import BadRequest, StorageError
from eval import factgraph_contrasts as contrasts
from eval import factgraph_phrases as phrases
from eval import factgraph_walks as walks
from eval.factgraph import Library, dump_documents, generate, write
from eval.factgraph_graph import PERSONAS, Graph, spellings
from eval.factgraph_layouts import LAYOUTS, SOURCES
from eval.factgraph_sentences import STATEMENTS
from eval.factgraph_world import Fact, Said, World
from eval.questions import dump, fingerprint, load, suggestions


@pytest.fixture(scope="module")
def library() -> Library:
    return generate()


def digest(library: Library) -> str:
    return sha256((dump_documents(library.documents) + dump(library.questions)).encode()).hexdigest()


@pytest.fixture(scope="module")
def readable(library: Library) -> dict[str, dict[str, str]]:
    """The texts each persona may read, by document."""
    return {
        name: {d.doc_id: d.text for d in library.documents if scope.may_read(d.tenant, d.groups)}
        for name, scope in PERSONAS.items()
    }


# ---------------------------------------------------------------------------------------------- reproducible


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    once, again, other = (digest(generate(seed, documents=100, questions=300)) for seed in (7, 7, 8))
    assert once == again
    assert once != other


def test_asking_for_more_questions_leaves_the_earlier_ones_as_they_are() -> None:
    few, more = (generate(documents=100, questions=n) for n in (100, 900))
    assert more.questions[:100] == few.questions
    assert more.documents == few.documents


@pytest.mark.parametrize("documents", [100, 150, 400])
def test_a_library_has_exactly_as_many_documents_as_asked_for(documents: int) -> None:
    made = generate(seed=3, documents=documents, questions=200)
    assert len(made.documents) == documents == len({document.doc_id for document in made.documents})
    assert len(made.questions) == 200


def test_counts_that_cannot_be_met_are_refused_with_what_can() -> None:
    with pytest.raises(BadRequest, match="documents = 99: a library has 100 to 1200 documents"):
        generate(documents=99)
    with pytest.raises(BadRequest, match="questions = -1"):
        generate(questions=-1)
    with pytest.raises(BadRequest, match=r"questions = 1000000: 100 documents hold \d{4}, ask for fewer"):
        generate(documents=100, questions=1_000_000)


# ---------------------------------------------------------------------------------------------- true by construction


def test_every_gold_sentence_stands_once_and_whole_in_a_document_its_persona_may_read(
    library: Library, readable: dict[str, dict[str, str]]
) -> None:
    for question in library.questions:
        texts = readable[question.persona]
        for anchor in question.evidence:
            assert texts[anchor.doc_id].count(anchor.text) == 1
            assert "\n" not in anchor.text


def test_every_version_of_every_fact_is_told_by_a_sentence_that_holds_its_value(library: Library) -> None:
    assert len({(fact.subject, fact.relation, fact.period, fact.when) for fact in library.told}) == len(library.told)
    for fact, anchor in library.told.items():
        assert fact.value.casefold() in anchor.text.casefold()


def test_the_answer_of_an_inference_stands_in_its_last_gold_sentence(library: Library) -> None:
    asked = [question for question in library.questions if question.type == "inference"]
    for question in asked:
        assert question.answer.casefold() in question.evidence[-1].text.casefold()


def test_a_latest_value_is_the_latest_its_persona_may_read(library: Library) -> None:
    facts = {anchor: fact for fact, anchor in library.told.items()}
    latest = [q for q in library.questions if q.type == "temporal" and q.hops == 1 and "current" in q.query]
    assert latest
    for question in latest:
        fact = facts[question.evidence[0]]
        versions = [f for f in library.told if (f.subject, f.relation, f.period) == (fact.subject, fact.relation, "")]
        visible = [f for f in versions if question.scope.may_read(f.tenant, f.groups)]
        assert max(visible, key=lambda f: f.when) == fact
        assert len(visible) == 2, "there is a superseded version to be confused by"


def test_a_null_question_asks_for_something_no_readable_fact_says(
    library: Library, readable: dict[str, dict[str, str]]
) -> None:
    facts = {document.doc_id: [] for document in library.documents}
    for fact, anchor in library.told.items():
        facts[anchor.doc_id].append(fact)
    names = {entity.id: entity.name for entity in _entities(library)}
    nulls = [question for question in library.questions if question.type == "null"]
    assert len(nulls) == len(library.absent)
    told = {
        persona: {(names[f.subject], f.relation, f.period) for doc in texts for f in facts[doc]}
        for persona, texts in readable.items()
    }
    for question in nulls:
        absent, said = library.absent[question.id], told[question.persona]
        assert (absent.subject, absent.relation, absent.period) not in said
        assert (question.answer, question.evidence, question.hops) == ("", (), 0)


def test_null_questions_come_in_every_kind(library: Library) -> None:
    names = {entity.name for entity in _entities(library)}
    said = {(fact.relation, fact.period) for fact in library.told}
    kinds = Counter()
    for absent in library.absent.values():
        if absent.relation == "anything":
            kinds["outside"] += 1
        elif absent.subject not in names:
            kinds["unknown name"] += 1
        elif absent.period and (absent.relation, absent.period) not in said:
            kinds["other year"] += 1
        elif absent.relation in STATEMENTS:
            kinds["hidden"] += 1
        else:
            kinds["unstated"] += 1
    assert min(kinds[kind] for kind in ("outside", "unknown name", "other year", "hidden", "unstated")) >= 15


def test_an_unknown_name_stands_in_no_document(library: Library) -> None:
    text = "\n".join(document.text for document in library.documents)
    names = {entity.name for entity in _entities(library)}
    unknown = [a.subject for a in library.absent.values() if a.relation != "anything" and a.subject not in names]
    assert [name for name in unknown if name in text] == []


def test_what_is_never_stated_is_not_even_mentioned(library: Library) -> None:
    text = "\n".join(document.text for document in library.documents).casefold()
    words = [word for entries in contrasts.UNSTATED.values() for word, _ in entries]
    assert [word for word in words if re.search(rf"\b{word}", text)] == []


def _entities(library: Library) -> list:
    from eval.factgraph_coast import build

    return list(build(7, len(library.documents)).entities.values())


# ---------------------------------------------------------------------------------------------- on paper


def small_graph() -> Graph:
    """Two valves, their maker with two chiefs, and nothing else."""
    world = World(1, iter(()))
    maker = world.add("company", "Merrow Pumps", "company", "harbour")
    public = frozenset({"public"})
    world.tell("profile", maker, date(2020, 1, 1), public, Said("chief", "Ada Old"))
    world.tell("appointment", maker, date(2024, 1, 1), public, Said("chief", "Bo New"))
    for name, weight, sold in (("AR-7", 9.0, date(2021, 5, 1)), ("AR-70", 90.0, date(2024, 5, 1))):
        valve = world.add("product", name, "valve", "harbour")
        released = Said("released", str(sold), float(sold.toordinal()))
        weighs = Said("weight", f"{weight:.0f} kilograms", weight)
        world.tell("release", valve, sold, public, Said("maker", maker.name, object=maker.id), released, weighs)
    return Graph(world, 60, "")


def test_a_comparison_is_won_by_the_one_its_wording_asks_for() -> None:
    asked = [draft for seed in range(20) for draft in walks.comparisons(small_graph(), Random(seed))]
    assert {(draft.query.split()[2] if "heavier" in draft.query else "less", draft.answer) for draft in asked} == {
        ("heavier,", "AR-70"),
        ("less", "AR-7"),
    }


def test_what_came_first_and_last_follows_from_the_dates() -> None:
    asked = [draft for seed in range(20) for draft in walks.orders(small_graph(), Random(seed))]
    assert {("later" in d.query or "recently" in d.query, d.answer) for d in asked} == {
        (True, "AR-70"),
        (False, "AR-7"),
    }


def test_the_leader_at_an_event_is_the_one_who_led_then() -> None:
    # AR-7 was released in 2021 under Ada Old, AR-70 in May 2024 under Bo New.
    asked = {
        (re.search(r"AR-\d+", draft.query)[0], draft.answer, len(draft.facts))
        for draft in walks.leaders(small_graph(), Random(1))
    }
    assert asked == {("AR-7", "Ada Old", 3), ("AR-70", "Bo New", 3)}


def test_an_earlier_value_is_asked_for_at_a_time_when_it_held() -> None:
    # Half way between 1 January 2020 and 1 January 2024 is 31 December 2021.
    (draft,) = walks.as_of(small_graph(), Random(1))
    assert (draft.answer, len(draft.facts)) == ("Ada Old", 1)
    assert "December 2021" in draft.query


def test_a_chain_of_two_hops_ends_with_what_its_link_leads_to() -> None:
    asked = {
        (d.answer, d.type, len(d.facts)) for seed in range(9) for d in walks.chains(small_graph(), Random(seed), 2)
    }
    assert asked == {("Bo New", "temporal", 2)}


def test_other_spellings_are_those_a_person_would_accept() -> None:
    assert spellings(Fact("happened", "4 May 2024", float(date(2024, 5, 4).toordinal()))) == (
        "2024-05-04",
        "May 4, 2024",
    )
    assert spellings(Fact("headcount", "1,622 people", 1622.0)) == ("1622 people", "1,622", "1622")
    assert spellings(Fact("warranty", "18 months", 18.0)) == (), "a bare 18 may be the day of any date"
    assert spellings(Fact("chief", "Ada Old")) == ()


# ---------------------------------------------------------------------------------------------- the mix


def test_types_hops_slices_and_personas_are_all_there_in_useful_numbers(library: Library) -> None:
    questions = library.questions
    types, hops = Counter(q.type for q in questions), Counter(q.hops for q in questions)
    assert len(questions) == 1200
    assert min(types[kind] for kind in ("inference", "comparison", "temporal", "null")) >= 150
    assert min(hops[n] for n in (1, 2, 3, 4)) >= 60
    assert Counter(q.slice for q in questions) == {"dev": 300, "frozen": 900}
    assert set(Counter(q.persona for q in questions)) == set(PERSONAS) == set(library.personas)
    assert all(q.scope == PERSONAS[q.persona] for q in questions)


def test_the_dev_slice_has_the_mix_of_the_whole(library: Library) -> None:
    whole, dev = (Counter(q.type for q in part) for part in (
        library.questions, [q for q in library.questions if q.slice == "dev"]
    ))  # fmt: skip
    assert all(abs(dev[kind] / 300 - whole[kind] / 1200) < 0.06 for kind in whole)


def test_most_answerable_questions_are_asked_by_a_public_reader(library: Library) -> None:
    answerable = [question for question in library.questions if question.evidence]
    assert sum(question.persona == "visitor" for question in answerable) >= 0.6 * len(answerable)


def test_no_question_is_asked_twice(library: Library) -> None:
    assert len({(question.query, question.history) for question in library.questions}) == len(library.questions)
    assert len({question.id for question in library.questions}) == len(library.questions)


def test_a_few_questions_follow_up_on_a_conversation(library: Library) -> None:
    assert 20 <= sum(bool(question.history) for question in library.questions) <= 60


def test_hops_count_the_gold_sentences(library: Library) -> None:
    assert all(question.hops == len(set(question.evidence)) for question in library.questions)


def test_documents_have_all_sources_a_believable_length_and_mostly_public_readers(library: Library) -> None:
    documents = library.documents
    sources = Counter(document.source for document in documents)
    assert set(sources) == set(SOURCES)
    assert min(sources.values()) >= 25
    assert sum("public" in document.groups for document in documents) > 0.7 * len(documents)
    assert {document.tenant for document in documents} == {"harbour", "northshore"}
    assert sum(document.tenant == "harbour" for document in documents) > 0.8 * len(documents)
    assert len({document.uri for document in documents}) == len(documents)
    for document in documents:
        assert document.uri.isascii()
        # Japanese has no blanks between words; two characters make about one.
        words = len(document.text) // 2 if "。" in document.text else len(document.text.split())
        assert 120 <= words <= 600, document.title
        assert date(2019, 1, 1) <= date.fromisoformat(document.published) <= date(2026, 1, 31)


def test_sentences_vary_from_document_to_document(library: Library) -> None:
    boilerplate = {"Amounts are in crowns unless stated.", "Times are local.", "Confidential.", "Not for circulation."}
    seen: Counter[str] = Counter()
    for document in library.documents:
        prose = [line for line in document.text.splitlines() if line and not line.startswith(("#", "|", "`"))]
        seen.update({sentence for line in prose for sentence in re.split(r"(?<=[.?!。]) ", line)})
    assert [(text, n) for text, n in seen.most_common(10) if n > 12 and text not in boilerplate] == []


def test_some_names_and_documents_keep_their_own_script(library: Library) -> None:
    text = "\n".join(document.text for document in library.documents)
    for script in ("[぀-ヿ]", "[Ͱ-Ͽ]", "[äöüß]", "[Ѐ-ӿ]"):
        assert re.search(script, text)


def test_every_layout_and_wording_can_be_filled() -> None:
    told = {relation for layout in LAYOUTS.values() for section in layout.sections for relation in section.relations}
    assert told <= STATEMENTS.keys()
    assert {key for key in STATEMENTS if not key.endswith("+")} == phrases.ASK.keys()
    assert all("{v}" in sentence for sentences in STATEMENTS.values() for sentence in sentences)
    assert all("{s}" in query for queries in phrases.ASK.values() for query in queries)


def test_six_suggestions_are_answered_from_public_documents(library: Library) -> None:
    texts = {document.doc_id: document for document in library.documents}
    offered = suggestions(library.questions, library.personas["visitor"])
    assert len({question.query for question in offered}) == 6
    for question in offered:
        assert question.evidence
        assert not question.history
        assert all("public" in texts[anchor.doc_id].groups for anchor in question.evidence)


# ---------------------------------------------------------------------------------------------- on disk


def test_a_written_library_is_read_back_unchanged_and_may_be_replaced(tmp_path: Path, library: Library) -> None:
    folder = tmp_path / "ein Ordner" / "bücher"
    write(library, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["README", "documents.jsonl", "questions.jsonl"]
    assert load(folder / "questions.jsonl") == tuple(library.questions)
    smaller = generate(documents=100, questions=20)
    write(smaller, folder)
    assert fingerprint(load(folder / "questions.jsonl")) == fingerprint(smaller.questions)
    assert len((folder / "documents.jsonl").read_text(encoding="utf-8").splitlines()) == 100
    assert [path.name for path in folder.parent.iterdir()] == ["bücher"], "nothing is left beside it"


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(tmp_path: Path, library: Library) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(StorageError, match=r"holds thesis\.txt, which is not ours"):
        write(library, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, library: Library) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot be written to .*file"):
        write(library, tmp_path / "file" / "below")
