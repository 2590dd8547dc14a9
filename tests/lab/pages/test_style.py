"""Four colours, told apart by every eye and on grey paper."""

from itertools import combinations

import numpy as np
import pytest

from graphpartner.lab.pages.figures import COLOURS, LINES, MARKS, PAPER

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
# What is left of linear red, green and blue: Machado, Oliveira and Fernandes (2009), the severest of each kind.
EYES = {
    "all colours": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> np.ndarray:
    shares = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB: lightness, green to red, blue to yellow."""
    x, y, z = np.cbrt(TO_XYZ @ rgb.clip(1e-4, 1) / TO_XYZ.sum(1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", list(EYES))
def test_no_two_colours_look_alike(eye):
    seen = [lab(EYES[eye] @ linear(colour)) for colour in COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 20


def test_no_two_colours_are_alike_in_grey_and_all_stand_out_from_the_paper():
    *own, paper = (lab(linear(colour))[0] for colour in (*COLOURS, PAPER))
    assert min(abs(a - b) for a, b in combinations(own, 2)) > 9
    assert all(paper - lightness > 35 for lightness in own)


def test_every_colour_has_a_mark_and_a_line_of_its_own():
    assert len(set(COLOURS)) == len(set(MARKS)) == len(set(LINES)) == len(COLOURS)
