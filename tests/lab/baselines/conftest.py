from tests.kernels.conftest import kernels, one_thread

__all__ = ["kernels", "one_thread"]
