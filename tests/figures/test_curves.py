from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import matplotlib.image
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from oclok import figures
from oclok.analysis import measures
from oclok.errors import InputError

ALL = [
    figures.average_reward,
    figures.cumulative_regret,
    figures.time_per_round,
    figures.regret_and_bounds,
    figures.coverage,
]


@pytest.fixture(scope="module")
def results(make_results):
    return make_results("crowdsourcing", repeats=3, certificates=True)


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


def test_each_policy_has_a_curve_that_ends_at_its_average_reward(results):
    drawn = lines(figures.average_reward(results).axes[0])
    ends = measures.spread(measures.at_the_end(measures.reward_over_benchmark(results)))["mean"]
    assert set(drawn) == {*results["policy"], "Benchmark"}
    for (_, policy), end in ends.items():
        assert drawn[policy].get_xdata()[-1] == 250
        assert drawn[policy].get_ydata()[-1] == pytest.approx(end)


def test_regret_has_a_marked_point_for_every_horizon(results):
    drawn = lines(figures.cumulative_regret(results).axes[0])
    for policy in ("ACC-UCB", "O'CLOK-UCB"):
        assert drawn[policy].get_xdata().tolist() == [50, 100, 150, 200, 250]
        assert drawn[policy].get_markevery() == slice(None)


def test_curves_with_many_points_put_their_markers_apart(results):
    axes = figures.average_reward(results).axes[0]
    curves = [line for line in axes.lines if line.get_label() != "Benchmark"]
    marked = [x for line in curves for x in line.get_xdata()[line.get_markevery()]]
    assert len(marked) == len(set(marked))
    assert all(len(line.get_xdata()[line.get_markevery()]) >= 5 for line in curves)


def test_time_is_on_a_log_scale_in_milliseconds(results):
    axes = figures.time_per_round(results).axes[0]
    assert axes.get_yscale() == "log"
    assert "ms" in axes.get_ylabel()
    assert np.median(lines(axes)["O'CLOK-UCB"].get_ydata()) == pytest.approx(0.3, rel=0.2)


def test_each_lengthscale_has_a_panel_in_order(make_results):
    results = make_results("codependency", repeats=2)
    for draw in (figures.average_reward, figures.cumulative_regret):
        figure = draw(results)
        titles = [axes.get_title() for axes in figure.axes]
        assert titles == ["l = 0.01", "l = 0.05", "l = 0.1", "l = 0.5", "l = 1"]
        assert all(len(axes.lines) >= 6 for axes in figure.axes)


def test_regret_is_drawn_with_both_bounds_for_policies_that_have_them(results):
    figure = figures.regret_and_bounds(results)
    (axes,) = figure.axes
    assert axes.get_title() == "O'CLOK-UCB"
    assert axes.get_yscale() == "log"
    regret, widths, information = (line.get_ydata()[-1] for line in axes.lines)
    assert 0 < regret < widths < information


def test_a_negative_alpha_regret_is_not_hidden(results):
    figure = figures.regret_and_bounds(results.assign(alpha_regret=-1.0))
    assert figure.axes[0].get_yscale() == "symlog"


def test_coverage_is_the_share_of_repeats_without_a_failure(results):
    axes = figures.coverage(results).axes[0]
    assert lines(axes)["O'CLOK-UCB"].get_ydata()[-1] == pytest.approx(2 / 3)
    assert "Promised: 0.95" in lines(axes)


@pytest.mark.parametrize("draw", ALL, ids=lambda draw: draw.__name__)
def test_axes_are_named_text_is_readable_and_the_legend_covers_no_curve(results, draw):
    figure = draw(results)
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    texts = [*legend.get_texts(), axes.xaxis.label, *axes.get_xticklabels()]
    assert min(text.get_fontsize() for text in texts) >= 8


def test_repeats_make_bands_and_one_repeat_makes_none(make_results):
    for repeats, bands in ((1, 0), (3, 4)):
        axes = figures.average_reward(make_results("movies", repeats=repeats)).axes[0]
        assert len(axes.collections) == bands


@pytest.mark.parametrize("draw", [figures.regret_and_bounds, figures.coverage])
def test_what_was_not_measured_cannot_be_drawn(make_results, draw):
    with pytest.raises(InputError, match="no rows with"):
        draw(make_results("movies", repeats=1))


def test_long_runs_are_thinned_but_keep_both_ends(make_results):
    line = figures.average_reward(make_results("movies", repeats=1)).axes[0].lines[0]
    assert len(line.get_xdata()) == 200
    assert line.get_xdata()[[0, -1]].tolist() == [1, 400]


def test_files_are_fine_enough_searchable_and_the_same_each_time(make_results, tmp_path):
    results = make_results("movies", repeats=2)
    for name in ("a", "b"):
        figures.save(figures.average_reward(results), tmp_path / name)
    height, width, _ = matplotlib.image.imread(tmp_path / "a.png").shape
    assert min(width / 6.4, height / 3.4) >= 150
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"SO'CLOK-UCB 4", "ACC-UCB", "Round t"} <= texts
    for kind in ("png", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_drawing_leaves_matplotlibs_settings_as_they_were(results):
    before = matplotlib.rcParams.copy()
    figures.average_reward(results)
    assert matplotlib.rcParams.copy() == before


def test_figures_do_not_need_pyplot():
    code = "import sys, oclok.figures; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
