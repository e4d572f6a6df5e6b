"""Settings to the judge, and whose it is beside the generator. Part of compose.py."""

from domain.errors import ConfigError
from domain.judging import NO_MODEL, families, kin
from domain.ports import Judge
from eval.rubric import SHIPPED, Rubric, load
from tidegate import code
from tidegate.settings import Settings
from tidegate.settings_generation import Generation

TOKENS = 400  # of a verdict: one object with one short sentence


def make_rubric(settings: Settings) -> Rubric:
    """The rubric of the settings. Raises ConfigError for one that cannot be judged by."""
    return load(settings.judge.rubric or SHIPPED)


def make_judge(settings: Settings) -> Judge:
    """The judge of the settings. Raises ConfigError for one of the generator's own family."""
    chosen, rubric = settings.judge, make_rubric(settings)
    check_kin(settings)
    if chosen.backend == "rules":
        from eval.rules_judge import RulesJudge

        return RulesJudge(code.judging(), rubric.tag)
    from eval.model_judge import ModelJudge
    from tidegate.compose import make_generator

    generation = Generation(
        backend=chosen.backend,
        model_id=chosen.model_id,
        region=chosen.region,
        endpoint_url=chosen.endpoint_url,
        key_file=chosen.key_file,
        max_tokens=TOKENS,
        temperature=0.0,
        allow_uncached=True,  # a rubric is shorter than most models cache
    )
    generator = make_generator(settings.model_copy(update={"generation": generation}))
    return ModelJudge(generator, judge_name(settings), judge_families(settings), rubric)


def judge_name(settings: Settings) -> str:
    """What judges, with the digest of the code that asks it or is it."""
    chosen = settings.judge
    return f"{chosen.model_id if chosen.backend != 'rules' else 'rules'}@{code.judging()}"


def judge_families(settings: Settings) -> frozenset[str]:
    """Whose model judges; empty when its id does not tell."""
    return NO_MODEL if settings.judge.backend == "rules" else families(settings.judge.model_id or "")


def generator_families(settings: Settings) -> frozenset[str]:
    """Whose model writes the answers; empty when its id does not tell."""
    return families(settings.generation.model_id or "") if settings.generation.hosted else NO_MODEL


def check_kin(settings: Settings) -> None:
    """Raises ConfigError when judge and generator are of one family: models prefer what they would have written."""
    if shared := kin(judge_families(settings), generator_families(settings)):
        raise ConfigError(
            f"The judge {settings.judge.model_id} is of the family {' and '.join(sorted(shared))}, as is the generator "
            f"{settings.generation.model_id}: set judge.model_id to a model of another family, or judge.backend to "
            "rules."
        )


def check_known(settings: Settings) -> None:
    """Raises ConfigError when nobody can tell whether judge and generator are of one family."""
    for key, model, known in (
        ("judge.model_id", settings.judge.model_id, judge_families(settings)),
        ("generation.model_id", settings.generation.model_id, generator_families(settings)),
    ):
        if not known:
            raise ConfigError(
                f"Whose model {key} {model} is cannot be told from its id, so nobody knows whether the judge would "
                "judge its own family: name it by an id with its maker or model in it, like eu.anthropic.claude-..., "
                "or set judge.backend to rules."
            )
