"""How figures look: one palette, marks, line styles and sizes for all of them."""

PAPER, INK, GREY, BAND, GRID = "#fcfcfb", "#24292f", "#57606a", "#c8ced4", "#e4e4e0"

# Told apart in grey and by colour-blind eyes, too: no two are alike in lightness.
WHOLE, GRAPH, PARTNER, FOURTH = "#0b3d66", "#d9822b", "#b3364a", "#9a66d0"
GRAPH_TEXT = "#a85d12"  # the orange of lines is too light for letters

COLOURS = (WHOLE, GRAPH, PARTNER, FOURTH)
MARKS = ("o", "s", "^", "D")
LINES = ("-", (0, (5, 1.5)), (0, (1.3, 1.3)), (0, (6, 1.5, 1.3, 1.5)))

SIZE = (9.0, 3.9)
WIDTH = 8.6
"""Inches of figures with small letters: pages are no narrower, so that none of them shrinks."""
SMALL = 9

STYLE = {
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8c959f",
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the figure is the same on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "graphpartner",
}
