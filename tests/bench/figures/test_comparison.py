from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from oclok.bench import figures
from oclok.bench.analysis import compare
from oclok.errors import InputError


def test_points_and_intervals_are_those_of_the_comparison(make_results):
    results = make_results("crowdsourcing", repeats=4)
    (axes,) = figures.paired_regret(results, reference="ACC-UCB")
    compared = compare(results, "ACC-UCB")
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == list(compared.index.get_level_values("policy"))
    points = np.concatenate([c.lines[0].get_xydata() for c in axes.containers])
    found = points[np.argsort(points[:, 1]), 0]
    np.testing.assert_allclose(found, compared["ratio"])
    ends = np.concatenate([np.array(c.lines[2][0].get_segments()) for c in axes.containers])
    ends = ends[np.argsort(ends[:, 0, 1])][:, :, 0]
    np.testing.assert_allclose(ends, compared[["ratio_low", "ratio_high"]])


def test_every_line_and_marker_is_explained(make_results):
    (axes,) = figures.paired_regret(make_results("crowdsourcing", repeats=3))
    (legend,) = axes.figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words[0] == "As O'CLOK-UCB"
    assert len(axes.get_lines()) - len(axes.containers) == 1
    assert any("Holm" in word for word in words)


def test_without_oclok_ucb_the_first_policy_is_the_reference(make_results):
    results = make_results("movies", repeats=3)
    (axes,) = figures.paired_regret(results)
    assert axes.get_xlabel() == "Regret / that of SO'CLOK-UCB 4"


def test_differences_are_drawn_where_ratios_make_no_sense(make_results):
    results = make_results("movies", repeats=3)
    results["regret"] -= 0.5
    (axes,) = figures.paired_regret(results, scale="difference")
    assert axes.get_xscale() == "linear"
    assert axes.get_xlabel() == "Regret − that of SO'CLOK-UCB 4"


def test_panels_of_variants_share_one_label_that_overlaps_nothing(make_results):
    panels = figures.paired_regret(make_results("codependency", repeats=3), size="two-column")
    assert len(panels) == 5
    labels = [axes.xaxis.label for axes in panels if axes.get_xlabel()]
    assert len(labels) == 1
    figure = panels[0].figure
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert not labels[0].get_window_extent().overlaps(legend.get_window_extent())


def test_ratios_that_hardly_differ_from_1_have_an_axis_that_can_be_read(make_results):
    results = make_results("movies", repeats=4)
    results["regret"] = 1 + 0.01 * np.random.default_rng(0).random(len(results))
    (axes,) = figures.paired_regret(results)
    FigureCanvasAgg(axes.figure).draw()
    low, high = axes.get_xlim()
    assert high / low < 1.1
    shown = [t for t in axes.get_xticks() if low <= t <= high]
    assert len({axes.xaxis.get_major_formatter()(tick) for tick in shown}) >= 2


def test_nothing_to_compare_is_an_error(make_results):
    results = make_results("movies", repeats=2)
    with pytest.raises(InputError, match="no policy to compare with ACC-UCB"):
        figures.paired_regret(results[results["policy"] == "ACC-UCB"])
    with pytest.raises(InputError, match="no policy 'UCB' to compare with"):
        figures.paired_regret(results, reference="UCB")
    with pytest.raises(InputError, match="scale must be"):
        figures.paired_regret(results, scale="log")
