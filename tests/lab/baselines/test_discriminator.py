import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from graphpartner.kernels import draws
from graphpartner.lab.baselines.pretrain import bilinear_weights, discrimination_loss, prelu, scores, summary, take_rows


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6), st.integers(1, 5))
def test_loss_of_every_replica_equals_torch_modules(seed: int, replicas: int, n: int, width: int) -> None:
    torch.manual_seed(seed)
    true, false = torch.randn(2, replicas, n, width, dtype=torch.float64)
    bilinear = torch.randn(replicas, width, width, dtype=torch.float64)
    bias = torch.randn(replicas, 1, 1, dtype=torch.float64)
    s = summary(true)
    loss = discrimination_loss(scores(true, bilinear, bias, s), scores(false, bilinear, bias, s))
    for r in range(replicas):
        judge = nn.Bilinear(width, width, 1).double()
        judge.weight.data, judge.bias.data = bilinear[r][None], bias[r, 0]
        about = torch.sigmoid(true[r].mean(0)).expand(n, -1).contiguous()
        logits = torch.cat([judge(true[r], about), judge(false[r], about)]).squeeze(1)
        wanted = torch.cat([torch.ones(n), torch.zeros(n)]).double()
        torch.testing.assert_close(loss[r], nn.BCEWithLogitsLoss()(logits, wanted).detach())


def test_prelu_has_one_slope_a_replica() -> None:
    H = torch.tensor([[[-2.0, 4.0]], [[-2.0, 4.0]]])
    slope = torch.tensor([0.25, 0.5]).reshape(2, 1, 1).requires_grad_()
    out = prelu(H, slope)
    assert out.tolist() == [[[-0.5, 4.0]], [[-1.0, 4.0]]]
    assert torch.autograd.grad(out.sum(), slope)[0].flatten().tolist() == [-2, -2]


def test_rows_of_every_replica_and_their_gradient() -> None:
    H = torch.randn(3, 5, 2, requires_grad=True)
    index = torch.tensor([[4, 0, 1, 2, 3], [0, 0, 1, 4, 4], [3, 2, 1, 0, 4]])
    rows = take_rows(H, index)
    factor = torch.randn(3, 5, 2)
    expected = torch.zeros(3, 5, 2)
    for r in range(3):
        assert torch.equal(rows[r], H[r, index[r]])
        for place, row in enumerate(index[r].tolist()):
            expected[r, row] += factor[r, place]
    torch.testing.assert_close(torch.autograd.grad((rows * factor).sum(), H)[0], expected)


def test_bilinear_form_starts_as_in_torch() -> None:
    drawn = bilinear_weights(draws.keys([0, 1], "weight2", 1)[0], 64)
    reference = nn.init.xavier_uniform_(torch.empty(1, 64, 64))
    assert drawn.shape == (2, 64, 64)
    assert abs(drawn.std() / reference.std() - 1) < 0.05
    assert drawn.abs().max() <= (6 / (64 * 64 + 64)) ** 0.5
    assert not torch.equal(drawn[0], drawn[1])
