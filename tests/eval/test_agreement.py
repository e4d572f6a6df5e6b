"""Agreement in order and in labels, on lists short enough to check on paper; kappa against scikit-learn too."""

from random import Random

import pytest

from eval.agreement import kappa, kendall, spearman


def test_the_same_order_agrees_wholly_and_the_reverse_not_at_all() -> None:
    for coefficient in (spearman, kendall):
        assert coefficient([1, 2, 3, 4], [10, 20, 25, 400]) == pytest.approx(1)
        assert coefficient([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)


def test_one_pair_of_neighbours_turned_round() -> None:
    assert spearman([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert kendall([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx((5 - 1) / 6)


def test_tied_values_share_their_ranks() -> None:
    # Ranks 0, 1.5, 1.5, 3 against 0..3: covariance 4.5, variances 4.5 and 5. Five of six pairs are untied on the left.
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert kendall([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / (5 * 6) ** 0.5)


@pytest.mark.parametrize(("one", "other"), [([1], [1]), ([1, 2], [1, 2, 3]), ([1, 1], [1, 2]), ([], [])])
def test_without_two_orders_there_is_nothing_to_agree_on(one: list[float], other: list[float]) -> None:
    for coefficient in (spearman, kendall):
        with pytest.raises(ValueError, match="no orders to compare"):
            coefficient(one, other)


def test_kappa_by_hand() -> None:
    # Three of four agree. By luck: a 3/4 * 2/4 + b 1/4 * 2/4 = 1/2, so (3/4 - 1/2) / (1 - 1/2) = 1/2.
    assert kappa(list("aaab"), list("aabb")) == pytest.approx(0.5)


def test_kappa_punishes_a_judge_that_always_passes() -> None:
    truth = ["right"] * 95 + ["wrong"] * 5
    assert kappa(truth, ["right"] * 100) == pytest.approx(0)


@pytest.mark.parametrize("seed", range(20))
def test_kappa_is_the_one_of_scikit_learn(seed: int) -> None:
    from sklearn.metrics import cohen_kappa_score  # takes seconds to import: not at collection

    rng = Random(seed)
    one, other = ([rng.choice("abcd"[: rng.randint(2, 4)]) for _ in range(50)] for _ in range(2))
    assert kappa(one, other) == pytest.approx(cohen_kappa_score(one, other))


@pytest.mark.parametrize(("one", "other"), [([], []), (["a"], ["a", "b"]), (["a", "a"], ["a", "a"])])
def test_without_two_labels_kappa_is_not_defined(one: list[str], other: list[str]) -> None:
    with pytest.raises(ValueError, match="label"):
        kappa(one, other)
