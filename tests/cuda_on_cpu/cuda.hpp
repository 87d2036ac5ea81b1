// The part of CUDA C++ that the kernels use, for an ordinary C++ compiler. emulator.cpp runs the threads.
#pragma once

#define __global__
#define __device__
#define __launch_bounds__(...)
// All shared variables are in one section, so that the emulator can overwrite them before each block.
#define __shared__ static __attribute__((section("cuda_shared")))

struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct Dimensions {
    unsigned x, y, z;
};

extern "C" {
extern Dimensions threadIdx, blockIdx, blockDim, gridDim;

enum Collective { sync_warp, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot, reduce_add };

void emulator_sync_threads();
// Waits for all lanes of the mask. `argument` is a lane or a distance, within groups of `width` lanes.
unsigned long long emulator_collective(int kind, unsigned mask, unsigned long long value, int argument, int width);
void* emulator_dynamic_shared();
// Called at atomic operations, where another thread may come first.
void emulator_yield();

typedef void (*EmulatorBody)(void** arguments);
int emulator_launch(EmulatorBody body, int n_arguments, const int* parameter_sizes, const int* element_sizes,
                    const struct EmulatorArgument* arguments, unsigned n_blocks, unsigned n_threads,
                    unsigned long long shared_bytes, char* static_begin, char* static_end);

extern char __start_cuda_shared[] __attribute__((weak));
extern char __stop_cuda_shared[] __attribute__((weak));
}

#define __syncthreads emulator_sync_threads

inline void __syncwarp(unsigned mask = ~0u) { emulator_collective(sync_warp, mask, 0, 0, 32); }

template <class T>
T emulator_shuffle(int kind, unsigned mask, T value, int argument, int width) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = emulator_collective(kind, mask, bits, argument, width);
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    return emulator_shuffle(shuffle, mask, value, lane, width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int distance, int width = 32) {
    return emulator_shuffle(shuffle_up, mask, value, distance, width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance, int width = 32) {
    return emulator_shuffle(shuffle_down, mask, value, distance, width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    return emulator_shuffle(shuffle_xor, mask, value, lanes, width);
}
inline unsigned __ballot_sync(unsigned mask, int is_true) {
    return (unsigned)emulator_collective(ballot, mask, is_true != 0, 0, 32);
}
inline int __any_sync(unsigned mask, int is_true) { return __ballot_sync(mask, is_true) != 0; }
inline int __reduce_add_sync(unsigned mask, int value) {
    return (int)(unsigned)emulator_collective(reduce_add, mask, (unsigned)value, 0, 32);
}

template <class T>
T atomicAdd(T* at, T value) {
    emulator_yield();
    const T before = *at;
    *at = before + value;
    return before;
}
template <class T>
T atomicOr(T* at, T value) {
    emulator_yield();
    const T before = *at;
    *at = before | value;
    return before;
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

template <class To, class From>
To emulator_cast(From value) {
    static_assert(sizeof(To) == sizeof(From), "a cast keeps the bits");
    To result;
    __builtin_memcpy(&result, &value, sizeof(To));
    return result;
}
inline unsigned __float_as_uint(float value) { return emulator_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return emulator_cast<float>(bits); }
inline long long __double_as_longlong(double value) { return emulator_cast<long long>(value); }

inline bool isnan(float value) { return __builtin_isnan(value); }
inline float fabs(float value) { return __builtin_fabsf(value); }
inline double fabs(double value) { return __builtin_fabs(value); }
template <class A, class B>
constexpr auto min(A a, B b) -> decltype(a + b) {
    return a < b ? a : b;
}
template <class A, class B>
constexpr auto max(A a, B b) -> decltype(a + b) {
    return a < b ? b : a;
}

// The size of what a pointer points to, or 0 if a parameter is not a pointer.
template <class T>
struct ElementSize {
    static constexpr int value = 0;
};
template <class T>
struct ElementSize<T*> {
    static constexpr int value = sizeof(T);
};

template <class... Parameters>
struct Launcher {
    static inline void (*kernel)(Parameters...) = nullptr;

    template <int... I>
    struct Indices {};
    template <int n, int... I>
    struct Count : Count<n - 1, n - 1, I...> {};
    template <int... I>
    struct Count<0, I...> {
        typedef Indices<I...> type;
    };

    template <int... I>
    static void call(void** arguments, Indices<I...>) {
        kernel(*(Parameters*)arguments[I]...);
    }
    static void body(void** arguments) { call(arguments, typename Count<sizeof...(Parameters)>::type{}); }
};

template <class... Parameters>
int emulator_start(void (*kernel)(Parameters...), int n_arguments, const EmulatorArgument* arguments,
                   unsigned n_blocks, unsigned n_threads, unsigned long long shared_bytes) {
    if (n_arguments != (int)sizeof...(Parameters)) return -1;
    const int parameter_sizes[] = {(int)sizeof(Parameters)...};
    const int element_sizes[] = {ElementSize<Parameters>::value...};
    Launcher<Parameters...>::kernel = kernel;
    return emulator_launch(Launcher<Parameters...>::body, n_arguments, parameter_sizes, element_sizes, arguments,
                           n_blocks, n_threads, shared_bytes, __start_cuda_shared, __stop_cuda_shared);
}
