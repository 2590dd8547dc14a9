import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.kernels.row_products import cosine_score, row_products


def test_by_hand() -> None:
    H = torch.tensor([[1.0, 2.0], [0.0, 3.0]])
    G = torch.tensor([[4.0, -1.0], [5.0, 0.0]])
    dots, own, other = row_products(H, G)
    assert dots.tolist() == [2, 0]  # 1·4 − 2·1, 0·5 + 3·0
    assert own.tolist() == [5, 9]
    assert other.tolist() == [17, 25]


@pytest.mark.parametrize("shape", [(6, 3), (2, 6, 3)])
def test_gradients(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    H, G = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(row_products, (H, G))


@pytest.mark.parametrize("shape", [(50, 64), (3, 50, 33), (1, 7, 1)])
def test_compiled_loop_equals_float64(shape: tuple[int, ...]) -> None:
    torch.manual_seed(2)
    H = torch.randn(shape).transpose(-1, -2).contiguous().transpose(-1, -2).requires_grad_()  # with gaps in memory
    G = torch.randn(shape, requires_grad=True)
    exact = [part.detach().double().requires_grad_() for part in (H, G)]
    weights = [torch.randn(shape[:-1]) for _ in range(3)]

    def total(*pair: Tensor) -> Tensor:
        return torch.stack(
            [(part * weight).sum() for part, weight in zip(row_products(*pair), weights, strict=True)]
        ).sum()

    for ours, theirs in zip(row_products(H, G), row_products(*exact), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    found, expected = torch.autograd.grad(total(H, G), (H, G)), torch.autograd.grad(total(*exact), exact)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)


def slow_cosine_score(H: Tensor, G: Tensor, negatives: Tensor) -> Tensor:
    """Eq. 18 as the paper writes it: every node with itself, and with every negative."""
    H, G = F.normalize(H, dim=-1), F.normalize(G, dim=-1)
    chosen = torch.stack([g[index] for g, index in zip(G, negatives.expand(len(G), -1), strict=True)])
    return ((H * G).sum(-1) - (H @ chosen.transpose(1, 2)).mean(-1)).mean(-1)


@pytest.mark.parametrize("index", [[3, 0, 3], [[3, 0, 3], [1, 1, 1]]])
def test_cosine_score_equals_the_equation_and_its_gradient(kernels: str, index: list[int] | list[list[int]]) -> None:
    torch.manual_seed(0)
    H, G = (torch.randn(2, 6, 5).index_fill(1, torch.tensor([2]), 0.0) for _ in range(2))  # with a zero row
    negatives, weights = torch.tensor(index), torch.tensor([1.0, -3.0])
    results = []
    for score in (cosine_score, slow_cosine_score):
        h, g = H.clone().requires_grad_(), G.clone().requires_grad_()
        scores = score(h, g, negatives)
        by_h, by_g = torch.autograd.grad((scores * weights).sum(), (h, g))
        others = torch.tensor([0, 1, 3, 4, 5])  # the gradient at a zero row is a convention
        results.append((scores, by_h[:, others], by_g[:, others]))
        assert by_h.isfinite().all()
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_gradcheck_of_the_cosine_score() -> None:
    torch.manual_seed(1)
    H, G = (torch.randn(7, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda h, g: cosine_score(h, g, torch.tensor([1, 5, 1])), (H, G))
