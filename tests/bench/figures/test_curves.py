from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection

from oclok.bench import Crowdsourcing, figures
from oclok.bench.analysis import compare, measures
from oclok.bench.simulation import simulate
from oclok.errors import InputError
from oclok.policies import CUCB

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


def bands_of(axes):
    return [found for found in axes.collections if not isinstance(found, PathCollection)]


def test_each_policy_has_a_curve_that_ends_at_its_average_reward(results):
    drawn = lines(figures.average_reward(results)[0])
    ends = measures.spread(measures.at_the_end(measures.reward_over_benchmark(results)))["mean"]
    assert set(drawn) == {*results["policy"], "Benchmark"}
    for (_, policy), end in ends.items():
        assert drawn[policy].get_xdata()[-1] == 250
        assert drawn[policy].get_ydata()[-1] == pytest.approx(end)


def test_regret_has_a_marked_point_for_every_horizon(results):
    drawn = lines(figures.cumulative_regret(results)[0])
    for policy in ("ACC-UCB", "O'CLOK-UCB"):
        assert drawn[policy].get_xdata().tolist() == [50, 100, 150, 200, 250]
        assert drawn[policy].get_markevery() == slice(None)


def test_curves_with_many_points_put_their_markers_apart(results):
    axes = figures.average_reward(results)[0]
    curves = [line for line in axes.lines if line.get_label() != "Benchmark"]
    marked = [x for line in curves for x in line.get_xdata()[line.get_markevery()]]
    assert len(marked) == len(set(marked))
    assert all(len(line.get_xdata()[line.get_markevery()]) >= 5 for line in curves)


def test_time_is_on_a_log_scale_in_milliseconds(results):
    axes = figures.time_per_round(results)[0]
    assert axes.get_yscale() == "log"
    assert "ms" in axes.get_ylabel()
    assert np.median(lines(axes)["O'CLOK-UCB"].get_ydata()) == pytest.approx(0.3, rel=0.2)


def test_each_lengthscale_has_a_panel_in_order(make_results):
    results = make_results("codependency", repeats=2)
    for draw in (figures.average_reward, figures.cumulative_regret):
        panels = draw(results)
        titles = [axes.get_title() for axes in panels]
        assert titles == ["l = 0.01", "l = 0.05", "l = 0.1", "l = 0.5", "l = 1"]
        assert all(len(axes.lines) >= 6 for axes in panels)


def test_regret_is_drawn_with_both_bounds_for_policies_that_have_them(results):
    (axes,) = figures.regret_and_bounds(results)
    assert axes.get_title() == "O'CLOK-UCB"
    assert axes.get_yscale() == "log"
    regret, widths, information = (line.get_ydata()[-1] for line in axes.lines)
    assert 0 < regret < widths < information


def test_a_negative_alpha_regret_is_not_hidden(results):
    (axes,) = figures.regret_and_bounds(results.assign(alpha_regret=-1.0))
    assert axes.get_yscale() == "symlog"


def test_coverage_is_the_share_of_repeats_without_a_failure(results):
    (axes,) = figures.coverage(results.assign(delta=0.2))
    assert lines(axes)["O'CLOK-UCB"].get_ydata()[-1] == pytest.approx(2 / 3)
    assert lines(axes)["Promised: 0.8"].get_ydata()[0] == pytest.approx(0.8)
    (axes,) = figures.coverage(results)
    assert list(lines(axes)) == ["O'CLOK-UCB"]


@pytest.mark.parametrize("size", ["one-column", "two-column"])
@pytest.mark.parametrize("draw", ALL, ids=lambda draw: draw.__name__)
def test_axes_are_named_text_is_readable_and_the_legend_covers_no_curve(results, draw, size):
    (axes,) = draw(results, size=size)
    figure = axes.figure
    FigureCanvasAgg(figure).draw()
    assert figure.get_figwidth() == {"one-column": 3.4, "two-column": 7.0}[size]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    texts = [*legend.get_texts(), axes.xaxis.label, *axes.get_xticklabels()]
    assert min(text.get_fontsize() for text in texts) >= 8
    # No legend takes width away: curves have most of it.
    assert axes.get_window_extent().width > 0.78 * figure.bbox.width


def test_names_at_lines_stand_beside_their_ends_and_do_not_overlap(results):
    (axes,) = figures.average_reward(results, legend="lines")
    FigureCanvasAgg(axes.figure).draw()
    assert not axes.figure.legends
    names = {text.get_text(): text for text in axes.texts}
    assert set(names) == {*results["policy"], "Benchmark"}
    boxes = sorted((text.get_window_extent() for text in names.values()), key=lambda box: box.y0)
    assert all(a.y1 <= b.y1 and a.y0 + 0.7 * a.height <= b.y0 for a, b in pairwise(boxes))
    assert all(box.x0 >= axes.get_window_extent().x1 for box in boxes)
    assert all(box.x1 <= axes.figure.bbox.width for box in boxes)


def test_names_of_lines_along_the_bottom_stay_clear_of_the_axis_below(results):
    close = results.assign(regret=results["regret"] * 1e-3)
    close.loc[close["policy"] == close["policy"].iloc[-1], "regret"] = 1.0
    (axes,) = figures.cumulative_regret(close, legend="lines", size="one-column")
    FigureCanvasAgg(axes.figure).draw()
    ticks = [label.get_window_extent().y1 for label in axes.get_xticklabels()]
    middles = [np.mean(text.get_window_extent().intervaly) for text in axes.texts]
    assert min(middles) > max(ticks)


def test_policies_are_shown_in_the_order_asked_for_and_no_others(results):
    order = ["CC-MAB", "O'CLOK-UCB"]
    (axes,) = figures.cumulative_regret(results, order=order)
    assert [line.get_label() for line in axes.lines] == order
    with pytest.raises(InputError, match="order names 'UCB', which is not in the table"):
        figures.cumulative_regret(results, order=["UCB"])


@pytest.mark.parametrize("wrong", [{"band": "sd"}, {"size": "poster"}, {"legend": "right"}])
def test_options_that_do_not_exist_are_errors_that_name_those_that_do(results, wrong):
    with pytest.raises(InputError, match=r"must be .*(std|one-column|below).*got '"):
        figures.average_reward(results, **wrong)


@pytest.mark.parametrize(("band", "factor"), [("std", 1), ("stderr", 3**-0.5), ("ci95", 2.48414)])
def test_a_band_is_what_it_says(results, band, factor):
    (axes,) = figures.cumulative_regret(results, band=band, order=["ACC-UCB"])
    (band,) = bands_of(axes)
    points = band.get_paths()[0].vertices
    ends = points[points[:, 0] == 250][:, 1]
    chosen = results[(results["policy"] == "ACC-UCB") & (results["horizon"] == 250)]
    std = chosen.groupby("repeat")["regret"].sum().std()
    assert np.ptp(ends) / 2 == pytest.approx(factor * std, rel=1e-4)


def test_a_table_of_simulate_can_be_drawn_as_it_is(tmp_path):
    table = simulate(CUCB(3, cells=3, seed=0), Crowdsourcing(rounds=6), seed=0)
    (axes,) = figures.cumulative_regret(table)
    assert axes.lines[0].get_label() == "CUCB"
    np.testing.assert_allclose(axes.lines[0].get_ydata(), table["regret"].cumsum())
    labelled = pd.concat([table.assign(policy=label) for label in ("A", "B")])
    (axes,) = figures.average_reward(labelled)
    assert [line.get_label() for line in axes.lines] == ["A", "B", "Benchmark"]


def test_repeats_make_bands_and_one_repeat_makes_none(make_results):
    for repeats, bands in ((1, 0), (3, 4)):
        axes = figures.average_reward(make_results("movies", repeats=repeats))[0]
        assert len(bands_of(axes)) == bands


@pytest.mark.parametrize("draw", [figures.regret_and_bounds, figures.coverage])
def test_what_was_not_measured_cannot_be_drawn(make_results, draw):
    with pytest.raises(InputError, match="no rows with"):
        draw(make_results("movies", repeats=1))


def test_long_runs_are_thinned_but_keep_both_ends(make_results):
    line = figures.average_reward(make_results("movies", repeats=1))[0].lines[0]
    assert len(line.get_xdata()) == 200
    assert line.get_xdata()[[0, -1]].tolist() == [1, 400]


def test_files_are_fine_enough_searchable_and_the_same_each_time(make_results, tmp_path):
    results = make_results("movies", repeats=2)
    for name in ("a", "b"):
        files = figures.save(figures.average_reward(results), str(tmp_path / name))
        assert [file.name for file in files] == [f"{name}.{kind}" for kind in KINDS]
    height, width, _ = matplotlib.image.imread(tmp_path / "a.png").shape
    assert min(width / 7.0, height / 3.4) >= 150
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"SO'CLOK-UCB 4", "ACC-UCB", "Round t"} <= texts
    assert b"/Type3" not in (tmp_path / "a.pdf").read_bytes()
    for kind in KINDS:
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


KINDS = ("pdf", "svg", "png")


def test_an_ending_says_which_file_is_wanted(make_results, tmp_path):
    axes = figures.average_reward(make_results("movies", repeats=1))
    assert figures.save(axes, tmp_path / "a.pdf") == [tmp_path / "a.pdf"]
    assert figures.save(axes[0], tmp_path / "b=0.5") == [
        tmp_path / f"b=0.5.{kind}" for kind in KINDS
    ]
    assert figures.save(axes[0].figure, tmp_path / "c.png") == [tmp_path / "c.png"]
    assert len(list(tmp_path.iterdir())) == 5
    with pytest.raises(InputError, match="expected a Matplotlib figure or axes"):
        figures.save([], tmp_path / "d")


def test_drawing_leaves_matplotlibs_settings_as_they_were(results):
    before = matplotlib.rcParams.copy()
    figures.average_reward(results)
    assert matplotlib.rcParams.copy() == before


def test_figures_do_not_need_pyplot():
    code = "import sys, oclok.bench.figures; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_policy_looks_the_same_in_all_figures_of_a_table(results):
    known = results["policy"].replace({"O'CLOK-UCB": "Mine", "ACC-UCB": "Theirs", "CC-MAB": "Old"})
    table = results.assign(policy=known, delta=0.1)
    drawn = [
        lines(figures.average_reward(table)[0])["Mine"],
        lines(figures.cumulative_regret(table, order=["Old", "Mine"])[0])["Mine"],
        lines(figures.coverage(table)[0])["Mine"],
    ]
    assert len({(line.get_color(), line.get_marker()) for line in drawn}) == 1


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
