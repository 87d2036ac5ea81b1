"""The emulated device finds the mistakes that a device hides."""

import platform
import subprocess
import sys
from pathlib import Path

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import emulated_device

pytestmark = pytest.mark.skipif(cuda_on_cpu.PROBLEM is not None, reason=f"{cuda_on_cpu.PROBLEM}")

SUM = """
extern "C" __global__ void sum_of_block(const int* values, int* out) {
    __shared__ int sums[256];
    sums[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
    SYNC;
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        SYNC;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
"""
LANES = """
extern "C" __global__ void of_lanes(int* up, int* votes, int* pairs) {
    const int lane = threadIdx.x % 32;
    up[threadIdx.x] = __shfl_up_sync(0xffffffffu, (int)threadIdx.x, 1);
    votes[threadIdx.x] = __ballot_sync(0xffffffffu, lane % 3 == 0);
    const unsigned mask = 3u << lane / 2 * 2;
    pairs[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 1, 2);
}
"""


@pytest.fixture
def cupy():
    with emulated_device():
        import cupy

        yield cupy


def compiled(cupy, code, name, **macros):
    options = tuple(f"-D{key}={value}" for key, value in macros.items())
    return cupy.RawModule(code=code, options=options).get_function(name)


@pytest.mark.parametrize("sync", ["__syncthreads()", "(void)0"])
def test_a_missing_barrier_changes_the_result(cupy, sync):
    values = np.arange(3 * 256, dtype=np.int32)
    kernel = compiled(cupy, SUM, "sum_of_block", SYNC=sync)
    found = cupy.zeros(3, np.int32)
    kernel((3,), (256,), (cupy.asarray(values), found))
    is_right = (found.get() == values.reshape(3, 256).sum(axis=1)).all()
    assert is_right == (sync == "__syncthreads()")


def test_kernels_are_compiled_by_nvidias_compiler_too(cupy):
    if cupy._compiler.nvrtc() is None:
        pytest.skip("needs NVIDIA's compiler: pip install nvidia-cuda-nvrtc")
    code = """
        int of_host() { return 1; }
        extern "C" __global__ void fill(int* out) { out[0] = of_host(); }
    """
    with pytest.raises(RuntimeError, match="of_host"):
        compiled(cupy, code, "fill")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="emulated on x86 only")
def test_tiny_floats_are_zero(cupy):
    code = """
        extern "C" __global__ void is_below(const float* x, const float* y, int* out) {
            out[threadIdx.x] = x[threadIdx.x] < y[threadIdx.x];
        }
    """
    x, y = (cupy.asarray(np.float32(values)) for values in ([-1e-45, -1e-30], [0, 0]))
    found = cupy.zeros(2, np.int32)
    compiled(cupy, code, "is_below")((1,), (2,), (x, y, found))
    assert found.get().tolist() == [0, 1]
    assert np.float32(-1e-45) < 0  # here, they are not


def test_lanes(cupy):
    arrays = [cupy.zeros(64, np.int32) for _ in range(3)]
    compiled(cupy, LANES, "of_lanes")((1,), (64,), tuple(arrays))
    up, votes, pairs = (array.get() for array in arrays)
    thread = np.arange(64)
    assert up.tolist() == np.where(thread % 32 == 0, thread, thread - 1).tolist()
    assert {*votes.tolist()} == {sum(1 << lane for lane in range(0, 32, 3))}
    assert pairs.tolist() == (thread // 2 * 2 + 1).tolist()


@pytest.mark.parametrize("wait", ["__syncthreads()", "__syncwarp()"])
def test_threads_that_wait_forever(cupy, wait):
    code = 'extern "C" __global__ void hang(int* out) { if (threadIdx.x != 5) WAIT; }'
    kernel = compiled(cupy, code, "hang", WAIT=wait)
    with pytest.raises(RuntimeError, match=r"block 0 hangs: .* have returned"):
        kernel((2,), (64,), (cupy.zeros(1, np.int32),))
    # The next kernel works.
    test_lanes(cupy)


def test_arguments_have_the_types_of_the_parameters(cupy):
    code = 'extern "C" __global__ void take(int* out, long long n) { *out = n; }'
    kernel, out = compiled(cupy, code, "take"), cupy.zeros(1, np.int32)
    kernel((1,), (1,), (out, np.int64(7)))
    assert int(out[0]) == 7
    for wrong in ((out, np.int32(7)), (np.int64(3), np.int64(7)), (out, out), (out,)):
        with pytest.raises(RuntimeError):
            kernel((1,), (1,), wrong)
    with pytest.raises(RuntimeError, match="elements of 8 bytes"):
        kernel((1,), (1,), (cupy.zeros(1, np.int64), np.int64(7)))
    with pytest.raises(TypeError):
        kernel((1,), (1,), (np.zeros(1, np.int32), np.int64(7)))
    with pytest.raises(ValueError, match="cannot start"):
        kernel((1,), (1,), (out, np.int64(7)), shared_mem=50_000)


PAST_THE_END = """
import sys
sys.path.insert(0, sys.argv[1])
from cuda_on_cpu import emulated_device
with emulated_device():
    import cupy
    code = 'extern "C" __global__ void put(int* out, int at) { out[at] = 1; }'
    put = cupy.RawModule(code=code).get_function("put")
    out = cupy.zeros(1000, "int32")
    put((1,), (1,), (out, cupy.zeros(1, "int32").dtype.type(sys.argv[2])))
    print("done", int(out.sum()))
"""


@pytest.mark.parametrize(("at", "works"), [("999", True), ("1000", False)])
def test_writing_past_the_end_is_a_crash(at, works):
    folder = str(Path(__file__).parent)
    run = subprocess.run(
        [sys.executable, "-c", PAST_THE_END, folder, at],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout == "done 1\n") == works
    assert (run.returncode == 0) == works


def test_memory_has_no_contents_before_it_is_written(cupy):
    assert not (cupy.empty(5, np.int32).get() == 0).any()
    code = """
extern "C" __global__ void see(int* out) {
    extern __shared__ int dynamic[];
    __shared__ int fixed[4];
    out[0] = dynamic[3], out[1] = fixed[2];
    dynamic[3] = fixed[2] = 0;
}"""
    out = cupy.zeros(2, np.int32)
    compiled(cupy, code, "see")((3,), (1,), (out,), shared_mem=64)
    assert (out.get() != 0).all()


def test_arrays_do_not_mix_with_numpy(cupy):
    array = cupy.arange(3)
    for mistake in (
        lambda: np.asarray(array),
        lambda: np.sum(array),
        lambda: array + np.arange(3),
        lambda: array[np.array([0])],
        lambda: cupy.concatenate([array, np.arange(3)]),
    ):
        with pytest.raises(TypeError):
            mistake()
    assert (array + 1).get().tolist() == [1, 2, 3]


def test_work_on_a_stream_is_done_when_somebody_waits(cupy):
    stream, array, out = cupy.cuda.Stream(non_blocking=True), cupy.ones(3), np.zeros(3)
    with pytest.raises(RuntimeError, match="before the default stream has allocated it"):
        array.get(stream=stream, out=out, blocking=False)
    stream.wait_event(cupy.cuda.get_current_stream().record())
    array.get(stream=stream, out=out, blocking=False)
    assert not out.any()
    copied = stream.record()
    other = cupy.cuda.Stream(non_blocking=True)
    other.wait_event(copied)
    assert not out.any()
    other.synchronize()
    assert out.all()


def test_memory_can_be_used_up(cupy, monkeypatch):
    before = cupy.get_default_memory_pool().used_bytes()
    monkeypatch.setattr(cupy.cuda.memory, "size", before + 1000)
    array = cupy.zeros(100)
    with pytest.raises(MemoryError, match="allocated so far"):
        cupy.zeros(100)
    view = array[10:]
    del array
    with pytest.raises(MemoryError):
        cupy.zeros(100)
    del view
    assert len(cupy.zeros(100)) == 100


def test_the_stand_in_has_only_names_of_cupy():
    real = pytest.importorskip("cupy", reason="needs CuPy, but no GPU: pip install cupy-cuda13x")
    with emulated_device():
        import cupy
        import cupyx

        names = {name for name in vars(cupy) if not name.startswith("_")} - {"np", "on_device"}
        modules = {name: vars(getattr(cupy.cuda, name)) for name in ("memory", "runtime")}
        methods = {name for name in vars(cupy.ndarray) if not name.startswith("_")}
        pinned = "empty_pinned" in vars(cupyx)
    assert not [name for name in names if not hasattr(real, name)]
    assert not [name for name in methods if not hasattr(real.ndarray, name)]
    assert hasattr(real.cuda.memory, "OutOfMemoryError")
    assert {"getDeviceCount", "getDeviceProperties", "CUDARuntimeError"} <= {*modules["runtime"]}
    assert pinned
