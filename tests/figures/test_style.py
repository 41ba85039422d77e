from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oclok.figures.style import styles

PAPER = [
    *("O'CLOK-UCB", "SO'CLOK-UCB 100", "SO'CLOK-UCB 50", "SO'CLOK-UCB 20", "SO'CLOK-UCB 10"),
    *("SO'CLOK-UCB 4", "SO'CLOK-UCB 2", "SO'CLOK-UCB 1", "ACC-UCB", "CC-MAB", "Random"),
]
OTHERS = ["Thompson sampling", "Bayes-UCB", "CUCB", "SO'CLOK-UCB 30", "SO'CLOK-UCB 20 greedy"]


@given(st.sets(st.sampled_from(PAPER + OTHERS)))
def test_no_two_policies_in_a_figure_look_alike_in_black_and_white(labels):
    markers = [style.marker for style in styles(labels).values()]
    assert len(markers) == len(labels) == len(set(markers))


@given(st.sets(st.sampled_from(PAPER + OTHERS)))
def test_the_papers_policies_look_the_same_in_every_figure(labels):
    everywhere = styles(PAPER)
    for label, style in styles(labels).items():
        assert label not in everywhere or everywhere[label] == style


def test_curves_known_to_coincide_differ_in_width_and_dashes():
    looks = styles(["ACC-UCB", "CC-MAB"])
    wide, thin = looks["CC-MAB"], looks["ACC-UCB"]
    assert wide.width >= 2 * thin.width
    assert wide.zorder < thin.zorder
    assert wide.dashes != thin.dashes


@given(st.permutations(PAPER + OTHERS))
def test_styles_come_in_the_order_of_the_labels(labels):
    assert list(styles(labels)) == labels
