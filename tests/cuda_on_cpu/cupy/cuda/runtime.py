"""Functions of the CUDA runtime."""


class CUDARuntimeError(RuntimeError):
    """An error of CUDA."""


def getDeviceCount():  # noqa: N802 - the name in CuPy
    return 1


def getDeviceProperties(device):  # noqa: N802
    return {"name": b"emulated device"}
