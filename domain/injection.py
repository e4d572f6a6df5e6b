"""Sources as a model may read them: without sentences that give it orders, and without what looks like our own signs.

A source is material to judge. Whoever can write one may try to speak to the model through it, so before a prompt is
planned its passages lose: characters nobody can see, sentences addressed to an assistant, markers and delimiters that
look like ours, addresses of images. What readers are shown and what is searched stays as it is, and a claim that only
such a sentence states counts as unsupported (grounding.py). Rules over English wordings: no list is complete, which is
why the policies on the answer do not rely on this one.
"""

import re
import unicodedata
from dataclasses import replace
from functools import lru_cache

from domain.types import Evidence

LEFT_OUT = "\u2026"


def guarded(evidence: Evidence) -> Evidence:
    """The evidence with title, heading and text made harmless; the same object where nothing had to be."""
    chunk = evidence.chunk
    title, heading, text = harmless(chunk.source.title), harmless(chunk.heading), harmless(chunk.text)
    if (title, heading, text) == (chunk.source.title, chunk.heading, chunk.text):
        return evidence
    source = replace(chunk.source, title=title)
    return replace(evidence, chunk=replace(chunk, source=source, heading=heading, text=text))


@lru_cache(maxsize=4096)  # passages come back often, and are long
def harmless(text: str) -> str:
    """`text` without what could pass for an instruction or for a sign of ours; ordinary prose is left as it is."""
    seen = _UNSEEN.sub("", text)
    kept = "".join(LEFT_OUT if commands(piece) else piece for piece in _PIECE.findall(seen))
    kept = _IMAGE.sub(r"\1", kept)
    kept = _MARKER.sub(lambda found: f"({found[1]})", kept)
    return _DELIMITER.sub(lambda found: found[0].translate(_BLUNT), kept)


def commands(sentence: str) -> bool:
    """True for a sentence that speaks to a model instead of to a reader."""
    plain = " ".join(unicodedata.normalize("NFKC", sentence).casefold().split())
    return any(rule.search(plain) for rule in _RULES)


# ---------------------------------------------------------------------------------------------- tables

# Zero-width characters, controls of writing direction, and the tag characters that spell ASCII without being seen.
_UNSEEN = re.compile("[\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_PIECE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*(?:[.!?]+[\"'\u201d\u2019)\]]*|\n|$)[ \t]*")
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_MARKER = re.compile(r"[\[\uff3b\u3010]\s*([Ss\uff33\uff53]-?\d[\dSs,;\s-]*?)\s*[\]\uff3d\u3011]")
_DELIMITER = re.compile(
    r"<\|[^|>\n]{0,40}\|>|</?\s*(?:sources?|system|user|assistant|instructions?|inst|prompt|s|im_start|im_end)\b[^>\n]*>"
    r"|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
_BLUNT = str.maketrans("<>[]|", "()()/")

_MODEL = (
    r"(?:a\.?i\.?|assistants?|(?:large )?language models?|llms?|chat ?bots?|models?|agents?|gpt\S*|summari[sz]ers?)"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directives?|polic(?:y|ies)|constraints?|restrictions?|safeguards?|"
    r"programming|training|filters?|told|above|previous|prior|preceding|earlier)"
)
_REPLY = r"(?:repl(?:y|ies)|answers?|responses?|respon[ds]|outputs?|summar(?:y|ies)|messages?)"
# An order begins a clause.
_HEAD = (
    r"(?:^|[,;:\u2014(\"'\u201c*_>#\])-] ?"
    r"|\b(?:please|must|should|shall|always|then|now|and|instead|just|only|to|you|will) )"
)
_ROLES = (
    rf"(?:{_MODEL}|dan|no (?:rules|limits|restrictions|filters?)|unrestricted|without|evil|pirate|villain|expert"
    r"|character|persona|admin\w*|developer|jailbroken|hacker|oracle|actor)"
)
_WRITE = (
    r"(?:output|print|say|write|state|return|repeat|tell|include|append|insert|add|begin|start|end|finish|open|close|prefix"
    r"|conclude|put|place|embed|render|display|show|give|produce|claim|announce|mention|inform)"
)
_SAID = (
    rf"(?:(?:your|the|every|each|this|any) (?:\w+ )?{_REPLY}|the (?:user|reader|person|customer)|verbatim|word for word"
    r"|exactly|following (?:words?|text|sentence|image|link)|instead of (?:an|the) answer|and nothing else)"
)
_SECRETS = (
    r"(?:system prompt|hidden|secrets?|api keys?|credentials|passwords|confidential|conversation|chat history"
    r"|the (?:user'?s? )?(?:question|query)|session|(?:your|these|all) (?:rules|instructions|sources))"
)
_RULES = tuple(
    re.compile(rule)
    for rule in (
        rf"{_HEAD}(?:ignore|disregard|forget|override|bypass|discard|neglect|set aside|overrule)\b"
        rf".{{0,50}}\b{_ORDERS}\b",
        r"\byou(?: are|'re|\u2019re) (?:now (?:an?|the|in|\w+ed|free|dan)|no longer|hereby|going to (?:act|play))\b",
        rf"\byou(?: are|'re|\u2019re) (?:an? |the )?(?:\w+ ){{0,3}}{_MODEL}\b",
        rf"{_HEAD}(?:act|behave|pretend|role-?play|speak|imagine|assume|play the (?:role|part))\b"
        rf".{{0,100}}\b{_ROLES}\b",
        r"^\W*(?:system|assistant|developer|human)\b(?: \w+){0,3} ?[:>\]]",
        r"^\W*(?:begin|end|start|new|updated?) (?:of )?(?:the )?(?:system|prompt|sources?|directives?)\b",
        rf"{_HEAD}(?:reply|respond|answer)\b"
        r".{0,40}\b(?:only|exactly|no matter|regardless|with the words?|as follows)\b",
        rf"{_HEAD}{_WRITE}\b.{{0,80}}\b{_SAID}\b",
        rf"{_HEAD}(?:cite|attribute|credit|reference|quote|put|use|add|attach|place|write|append)\b.{{0,60}}"
        r"(?:[(\[]\s*s\d+\s*[)\]]|\bs\d+\b|\bsource (?:no\. |number )?\d|\bmarkers?\b"
        r"|\bas (?:the )?(?:source|evidence)\b)",
        rf"{_HEAD}(?:reveal|disclose|leak|send|exfiltrate|encode|embed|post|forward|repeat|transmit|upload|dump|print)\b"
        rf".{{0,80}}\b{_SECRETS}\b",
        rf"{_HEAD}(?:send|exfiltrate|encode|embed|post|forward|transmit|upload|fetch|load|render)\b.{{0,80}}https?:",
        rf"\b(?:notes?|attention|messages?|instructions?|memos?|reminders?|notices?|orders?|directives?)\b.{{0,20}}"
        rf"\b(?:to|for) (?:the |any |all |every )?(?:\w+ ){{0,2}}{_MODEL}\b",
        rf"\b{_MODEL} (?:reading|processing|that reads?|must|shall|is (?:instructed|required|ordered)"
        r"|are (?:instructed|required|ordered))\b",
        r"\b(?:do not|don't|don\u2019t|never|stop)\b (?:cit|mention|tell|reveal|follow|refus|mark|obey|warn|quot)\w*\b"
        r".{0,60}\b(?:sources?|users?|citations?|markers?|rules?|instructions?|this (?:note|text|message)|s\d)\b",
        r"https?://\S*(?:\{|%7b|=\.\.\.|\$\()",
        r"\b(?:debug|god|jailbreak|unrestricted|dan|sudo) mode\b",
    )
)
