"""Scores with every number worked out."""

import pytest
import torch
from sklearn.metrics import precision_recall_fscore_support

from graphpartner.fitting.scores import calibration_error, score_answers, wilson


def test_wilson():
    low, high = wilson(8, 10)  # the textbook's example
    assert (low, high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(5, 5)[1] == 1.0


def test_calibration_error():
    confidence = torch.tensor([0.9, 0.9, 0.6, 0.6])
    right = torch.tensor([True, True, True, False])
    assert calibration_error(confidence, right) == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)
    assert calibration_error(torch.ones(3), torch.ones(3)) == 0


def test_judge_agrees_with_scikit_learn():
    torch.manual_seed(0)
    p, y = torch.rand(50, 3).softmax(1), torch.randint(0, 3, (50,))
    found = score_answers(p, y, ["a", "b", "c"])
    theirs = precision_recall_fscore_support(y, p.argmax(1), labels=[0, 1, 2], zero_division=0)
    for c, each in enumerate(found.classes):
        assert (each.precision, each.recall, each.f1, each.support) == pytest.approx([part[c] for part in theirs])
    assert found.low < found.accuracy < found.high
    assert found.asdict()["classes"][1]["name"] == "b"
