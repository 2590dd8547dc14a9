import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.kernels.row_products import cosine_score


def plainly(H: Tensor, G: Tensor, negatives: Tensor) -> Tensor:
    """Eq. 18 as it is written: every node with itself, and with every negative."""
    H, G = F.normalize(H, dim=-1), F.normalize(G, dim=-1)
    chosen = torch.stack([g[index] for g, index in zip(G, negatives.expand(len(G), -1), strict=True)])
    return ((H * G).sum(-1) - (H @ chosen.transpose(1, 2)).mean(-1)).mean(-1)


@pytest.mark.parametrize("index", [[3, 0, 3], [[3, 0, 3], [1, 1, 1]]])
def test_equals_the_equation_and_its_gradient(kernels: str, index):
    torch.manual_seed(0)
    H, G = (torch.randn(2, 6, 5).index_fill(1, torch.tensor([2]), 0.0) for _ in range(2))  # with a zero row
    negatives, weights = torch.tensor(index), torch.tensor([1.0, -3.0])
    results = []
    for score in (cosine_score, plainly):
        h, g = H.clone().requires_grad_(), G.clone().requires_grad_()
        scores = score(h, g, negatives)
        by_h, by_g = torch.autograd.grad((scores * weights).sum(), (h, g))
        others = torch.tensor([0, 1, 3, 4, 5])  # what the gradient of a zero row is, is a matter of taste
        results.append((scores, by_h[:, others], by_g[:, others]))
        assert by_h.isfinite().all()
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_gradcheck():
    torch.manual_seed(1)
    H, G = (torch.randn(7, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda h, g: cosine_score(h, g, torch.tensor([1, 5, 1])), (H, G))
