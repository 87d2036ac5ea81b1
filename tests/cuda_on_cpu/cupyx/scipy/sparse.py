"""Sparse matrices of the emulated device."""

import scipy.sparse


class csr_matrix:  # noqa: N801 - the name in CuPy
    """A matrix in CSR format."""

    def __init__(self, arrays, shape):
        self.data, self.indices, self.indptr = arrays
        self.shape = shape

    @property
    def nnz(self):
        return len(self.data)

    def get(self):
        arrays = (self.data.get(), self.indices.get(), self.indptr.get())
        return scipy.sparse.csr_array(arrays, self.shape)

    @property
    def dtype(self):
        return self.data.dtype
