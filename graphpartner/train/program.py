"""The same work again and again: on a GPU it is captured once and replayed, so that launching it costs nothing."""

from collections.abc import Callable

import torch

WARM_UP = 3  # runs before the capture, in which kernels are compiled and memory is found


class Program:
    """``work``, a function without arguments that reads and writes tensors that stay where they are.

    On a CPU a call is a call. On a GPU the first calls run as they are, on a stream of their own; the next one is
    captured as a CUDA graph and from then on every call replays it. What changes from call to call (the epoch, say)
    must live on the device. After a change of shape a new program is needed.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self.work = work
        self.calls = 0
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self) -> None:
        """Do the work once."""
        if self.stream is None:
            self.work()
            return
        if self.calls < WARM_UP:
            self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
            with torch.cuda.stream(self.stream):
                self.work()
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)
        else:
            if self.calls == WARM_UP:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph, stream=self.stream):
                    self.work()
            self.graph.replay()
        self.calls += 1
