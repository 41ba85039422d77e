"""Configuration of the documentation: Sphinx with Markdown pages and executed notebooks."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))
sys.path.insert(0, str(HERE.parent / "scripts"))

from write_reference import write_api, write_measured  # noqa: E402

from oclok import __version__  # noqa: E402

project = "oclok"
author = "The oclok developers"
copyright = "The oclok developers"  # noqa: A001
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",  # the site loads nothing from elsewhere
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
suppress_warnings = ["mystnb.unknown_mime_type"]

# Markdown and notebooks. Notebooks keep their outputs, which tests/test_examples.py reproduces.
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True

# API pages, one per class.
default_role = "literal"
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name for name in ("ArrayLike", "ArmId", "BoolArray", "FloatArray", "IntArray")
}
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = f"oclok {version}"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["version"],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}

# What is made from other files of the repository before a build.
EXAMPLES = HERE / "examples"
for notebook in (HERE.parent / "examples").glob("*.ipynb"):
    shutil.copy2(notebook, EXAMPLES / notebook.name)
write_api(HERE / "reference" / "api.md")
write_measured(HERE / "reference" / "measured.md")


def setup(app):
    """Escape bars in docstrings, which stand for norms; show aliases of types by their names."""

    def escape(app, what, name, obj, options, lines):
        lines[:] = [line if ">>>" in line else line.replace("|", "\\|") for line in lines]

    def unwrap(app, what, name, obj, options, signature, returned):
        alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
        return tuple(alias.sub(r"\1", text) if text else text for text in (signature, returned))

    app.connect("autodoc-process-docstring", escape, priority=600)
    app.connect("autodoc-process-signature", unwrap)
