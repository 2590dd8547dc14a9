import pytest
import torch

from graphpartner.kernels.adam import Adam

RATES, DECAYS = torch.tensor([0.01, 0.1, 0.0, 0.3]), torch.tensor([0.0, 0.01, 1.0, 0.5])


def gradients(step: int, weight: torch.Tensor) -> torch.Tensor:
    """That of a bowl with a wobble, with an entry that is never pulled."""
    gradient = weight.double() * 2 + torch.sin(torch.arange(weight[0].numel()).reshape(weight[0].shape) + step)
    gradient[:, 0, 0] = 0
    return gradient


def test_one_step_by_hand(kernels: str) -> None:
    # The first step is lr · g / (|g| + ε) with g = gradient + decay · weight: the sign of g.
    weight = torch.tensor([[[1.0, -2.0]], [[1.0, -2.0]]])
    adam = Adam(weight, torch.tensor([0.5, 0.25]), torch.tensor([0.0, 1.0]))
    adam.step(torch.tensor([[[3.0, 0.0]], [[-3.0, 0.0]]]))
    # replica 0: g = 3, 0; replica 1: g = −3 + 1 = −2, 0 − 2 = −2.
    torch.testing.assert_close(adam.weight, torch.tensor([[[0.5, -2.0]], [[1.25, -1.75]]]))


@pytest.mark.parametrize("shape", [(5, 3), (1, 1), (40, 17)])
def test_equals_torch(kernels: str, shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    start = torch.randn(4, *shape)
    adam = Adam(start.clone(), RATES, DECAYS)
    singles = [start[r].double().requires_grad_() for r in range(4)]
    theirs = [
        torch.optim.Adam([single], lr=rate, weight_decay=decay)
        for single, rate, decay in zip(singles, RATES.tolist(), DECAYS.tolist(), strict=True)
    ]
    for step in range(20):
        adam.step(gradients(step, adam.weight).float())
        for single, optimizer in zip(singles, theirs, strict=True):
            single.grad = gradients(step, single.detach()[None])[0]
            optimizer.step()
        torch.testing.assert_close(adam.weight.double(), torch.stack(singles).detach(), rtol=1e-4, atol=5e-5)


def test_gradients_that_do_not_lie_in_order(kernels: str) -> None:
    torch.manual_seed(1)
    start, gradient = torch.randn(2, 4, 6, 5)
    straight, turned = (Adam(start.clone(), RATES, DECAYS) for _ in range(2))
    straight.step(gradient)
    turned.step(gradient.transpose(1, 2).contiguous().transpose(1, 2))
    assert torch.equal(straight.weight, turned.weight)


def test_the_weight_is_updated_in_place(kernels: str) -> None:
    weight = torch.ones(4, 2, 2)
    adam = Adam(weight, RATES, DECAYS)
    adam.step(torch.ones(4, 2, 2))
    assert torch.equal(adam.weight, weight)
    assert not torch.equal(weight[0], torch.ones(2, 2))


def test_keep_goes_on_with_some(kernels: str) -> None:
    torch.manual_seed(2)
    start = torch.randn(4, 6, 5)
    whole, cut = (Adam(start.clone(), RATES, DECAYS) for _ in range(2))
    kept = torch.tensor([3, 1])
    for step in range(10):
        if step == 5:
            cut.keep(kept)
        gradient = gradients(step, whole.weight).float()
        whole.step(gradient)
        cut.step(gradient if step < 5 else gradient[kept])
    assert cut.weight.shape == (2, 6, 5)
    assert torch.equal(cut.weight, whole.weight[kept])
