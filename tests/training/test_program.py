import torch

from graphpartner.training.loop import CapturedStep


def test_on_a_cpu_a_call_is_a_call() -> None:
    state = torch.zeros(1)

    def work() -> None:
        state.add_(1)

    program = CapturedStep(work, torch.device("cpu"))
    for calls in range(1, 8):
        program()
        assert state.item() == calls
