import threading
import time
from collections.abc import Iterator

import numba
import pytest
import torch

from graphpartner.system import parallel
from graphpartner.system.parallel import plan_batch, run_on_cores, single_core


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_order_is_kept(threads: int) -> None:
    def slow_first(job: int) -> int:
        time.sleep(0.02 if job == 0 else 0.001)
        return job * job

    assert run_on_cores(slow_first, iter(range(8))) == [job * job for job in range(8)]


def test_small_work_stays_on_one_core(threads: int) -> None:
    compiled = numba.get_num_threads()
    with single_core():
        assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    assert (torch.get_num_threads(), numba.get_num_threads()) == (threads, compiled)
    with pytest.raises(ValueError, match="wrong"), single_core():
        raise ValueError("wrong")
    assert torch.get_num_threads() == threads


def test_nothing_to_do(threads: int) -> None:
    assert run_on_cores(lambda job: job, []) == []


def test_exceptions_come_out(threads: int) -> None:
    def fails(job: int) -> int:
        if job == 2:
            raise ValueError("job 2 went wrong")
        return job

    with pytest.raises(ValueError, match="job 2 went wrong"):
        run_on_cores(fails, range(5))


def test_each_job_has_one_core_and_the_caller_keeps_its_own(threads: int) -> None:
    compiled = numba.get_num_threads()
    inside = run_on_cores(lambda job: (torch.get_num_threads(), numba.get_num_threads()), range(4))
    assert inside == [(1, 1)] * 4
    assert (torch.get_num_threads(), numba.get_num_threads()) == (threads, compiled)


def test_jobs_run_at_the_same_time() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        meeting = threading.Barrier(2, timeout=20)  # passed only if two jobs are there together
        run_on_cores(lambda job: meeting.wait(), range(4))
    finally:
        torch.set_num_threads(before)
    assert not meeting.broken


def test_one_job_may_use_all_cores() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert run_on_cores(lambda job: torch.get_num_threads(), [0]) == [2]
    finally:
        torch.set_num_threads(before)


def test_a_failure_sets_stop_for_the_others() -> None:
    stop = threading.Event()

    def work(job: int) -> None:
        if job == 0:
            raise ValueError("no")
        assert stop.wait(20), "stop was never set"

    with pytest.raises(ValueError, match="no"):
        run_on_cores(work, [0, 1], stop)


def test_batches_have_like_sizes_that_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan_batch(100, lambda: pytest.fail("no memory is measured on a CPU"), torch.device("cpu")) == 1
    monkeypatch.setattr(parallel, "free_memory", lambda device: 1000)
    gpu = torch.device("cuda")
    assert plan_batch(100, lambda: 10, gpu) == 50  # 60 would fit
    assert plan_batch(7, lambda: 200, gpu, share=0.4) == 2
    assert plan_batch(7, lambda: 5000, gpu) == 1
