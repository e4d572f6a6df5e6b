"""Words that ask and words that tell: what a question calls heavy, a source gives in kilograms.

A small list of everyday and business English, one idea a line; a word may stand in several. It widens what counts as
speaking of a thing, at a discount, and never what counts as naming it: entities are not in here. Extend it freely:
order does not matter, and a word is known in all its inflected forms that share its stem.
"""

from functools import lru_cache

IDEAS = """
heavy heavier weigh weight mass kilogram kg gram tonne tons pounds lb
long length last duration took take minutes hours days
far distance near nearest close closest kilometre km mile metres away walk
wide width tall height deep depth high size metres centimetres millimetres
fast speed quick rate knots
hot cold warm temperature degrees celsius fahrenheit
powerful capacity rating output megawatt kilowatt watts handle load
old age founded foundation established origin incorporated history began beginning born created
price cost charge fee tariff pay paid worth expensive cheap cheaper dearer value list crowns euro dollar
budget ceiling expected cost estimate spend funding
revenue turnover turned sales sold sell income earn
profit margin earnings loss
debt borrow owe loan liability
capital expenditure investment capex plant
employee employed workforce staff people payroll headcount jobs workers personnel
hire recruit intake
ceo chief executive helm boss leads led leader head runs
cfo finance financial director treasurer money
chair chairman chairwoman chairperson board
manager charge responsible lead leader led head runs
operator run crew licence
owner owns parent belongs shares shareholder subsidiary held holds wholly group
maker makes made manufacturer produces builds built builder workshop foundry designs behind
contractor contract awarded won bid tender
supplier supplies delivers vendor
customer client buyer
headquarters based seat office located sits stands site address letters home
happen occur place start began begin incident
start begin began commence open launch service operation
end finish close complete handover deadline due
release launch introduced market sale shipped came debut available
replace successor supersedes instead predecessor
fail failure fault faulty broke broken break defect down malfunction
cause reason because due why trigger owing root traced
fix solve resolve remedy cure clear repair help against
restart reboot reset
error message code log raise reports
language programmed written wrote write code
host server machines rack runs
warranty guarantee covered maker
maintain maintenance service inspect interval
limit maximum max minimum most least ceiling cap threshold
author wrote written writer
buy bought acquire acquisition takeover purchase
agree agreement contract deal signed party
travel trip journey
holiday leave vacation absence
rule policy guideline regulation
change amend update new
audit auditor books accounts checked
cash liquid funds deposits
orders backlog
lawyer law lawsuit court sued sue legal
person people who
town city village place
oil lubricant grease
car vehicle automobile
illness disease sickness condition
doctor physician
job work position role post
site place concerns hit struck happened took host
device equipment machine model unit part fault failed
opening opened opens day service inaugurated ribbon operation
release released sale sold launched launch market
counterparty party parties sign signed other
establish established founded register registered entered
debt owe owed borrowings net banks
workforce employed payroll people worked
timeout wait waits drops gave given seconds request call
company operator runs employs licence crew hands
service sender comes raises produces message
alarm start began begin raised happened
meet met
die death dead
win won winner victory
play player
sing sang sung singer song
film movie
""".strip().splitlines()


@lru_cache(maxsize=1)
def ideas() -> dict[str, frozenset[str]]:
    """From the stem of a word to the ideas it may stand for, named `~0`, `~1`, ..."""
    from generation.terms import key

    found: dict[str, set[str]] = {}
    for number, line in enumerate(IDEAS):
        for word in line.split():
            found.setdefault(key(word), set()).add(f"~{number}")
    return {stem: frozenset(numbers) for stem, numbers in found.items()}
