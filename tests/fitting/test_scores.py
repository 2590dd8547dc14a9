"""Scores with every number worked out by hand, and against scikit-learn."""

import pytest
import torch
from sklearn.metrics import precision_recall_fscore_support

from graphpartner.fitting.scores import calibration_error, score_predictions, wilson


def test_wilson() -> None:
    low, high = wilson(8, 10)  # the textbook's example
    assert (low, high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(5, 5)[1] == 1.0


def test_calibration_error() -> None:
    confidence = torch.tensor([0.9, 0.9, 0.6, 0.6])
    right = torch.tensor([True, True, True, False])
    assert calibration_error(confidence, right) == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)
    assert calibration_error(torch.ones(3), torch.ones(3)) == 0


def test_scores_agree_with_scikit_learn() -> None:
    torch.manual_seed(0)
    p, y = torch.rand(50, 3).softmax(1), torch.randint(0, 3, (50,))
    scores = score_predictions(p, y, ["a", "b", "c"])
    theirs = precision_recall_fscore_support(y, p.argmax(1), labels=[0, 1, 2], zero_division=0)
    for c, each in enumerate(scores["classes"]):
        ours = [each[name] for name in ("precision", "recall", "f1", "support")]
        assert ours == pytest.approx([part[c] for part in theirs])
    assert scores["low"] < scores["accuracy"] < scores["high"]
    assert scores["classes"][1]["name"] == "b"
