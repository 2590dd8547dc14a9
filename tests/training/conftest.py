from tests.kernels.conftest import kernels

__all__ = ["kernels"]
