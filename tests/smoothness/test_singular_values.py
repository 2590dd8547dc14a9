import pytest
import torch
from torch_geometric.nn import GAT, GCN, Linear

from graphpartner.smoothness.singular_values import singular_values, squared_extremes
from graphpartner.system.errors import InputError


def test_by_hand() -> None:
    # [[3, 0], [4, 5]]: WᵀW = [[25, 20], [20, 25]] has eigenvalues 45 and 5.
    W = torch.tensor([[3.0, 0.0], [4.0, 5.0]])
    assert singular_values(W)["weight"].tolist() == pytest.approx([45**0.5, 5**0.5])
    s_min, s_max = squared_extremes(W)["weight"]
    assert (s_min.item(), s_max.item()) == pytest.approx((5.0, 45.0))


def test_any_module() -> None:
    model = GCN(in_channels=8, hidden_channels=4, num_layers=3, out_channels=2)
    values = singular_values(model)
    assert list(values) == [f"convs.{layer}.lin.weight" for layer in range(3)]  # biases are not matrices
    for name, parameter in model.named_parameters():
        if name in values:
            dense = torch.linalg.eigvalsh(parameter.double() @ parameter.double().T).clamp_min(0).sqrt().flip(0)
            torch.testing.assert_close(values[name], dense.detach()[: len(values[name])], atol=1e-7, rtol=1e-7)
            assert not values[name].requires_grad
    assert all(len(value) == min(8, 4) for name, value in singular_values(GAT(8, 4, 1)).items())


def test_names_and_replicas() -> None:
    W = torch.randn(5, 7, 3)
    values = singular_values({"W1": W, "W2": W[0]})
    assert values["W1"].shape == (5, 3)
    torch.testing.assert_close(values["W1"][0], values["W2"])
    s_min, s_max = squared_extremes({"W1": W})["W1"]
    assert (s_min <= s_max).all()
    assert s_min.shape == (5,)


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="weights = bias of shape"):
        singular_values({"bias": torch.ones(3)})
    with pytest.raises(InputError, match="run the model once"):
        singular_values(Linear(-1, 3))
