from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oclok.bench.figures.style import styles

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


def test_the_headline_method_is_the_thickest_and_on_top():
    looks = styles([*PAPER, *OTHERS])
    headline = looks.pop(PAPER[0])
    assert headline.width > max(look.width for look in looks.values())
    assert headline.zorder > max(look.zorder for look in looks.values())


def lab(color):
    """CIE L*a*b* (D65) of a hexadecimal sRGB colour."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.maximum(np.array(matrix) @ linear / [0.9505, 1, 1.089], 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_twelve_policies_of_ones_own_have_twelve_colours_markers_and_widths_that_are_alike():
    looks = list(styles([f"policy {number}" for number in range(12)]).values())
    distances = [np.linalg.norm(lab(a.color) - lab(b.color)) for a, b in combinations(looks, 2)]
    assert min(distances) > 15
    assert len({look.marker for look in looks}) == 12
    widths = [look.width for look in (*looks, *styles(PAPER[1:]).values())]
    assert max(widths) < 1.6 * min(widths)


@given(st.permutations(PAPER + OTHERS))
def test_styles_come_in_the_order_of_the_labels(labels):
    assert list(styles(labels)) == labels
