from tests.model.conftest import kernels

__all__ = ["kernels"]
