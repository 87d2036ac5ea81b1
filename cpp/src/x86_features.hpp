// Detects the vector instructions that both the x86 processor and the operating system support. The
// compiler's own test, __builtin_cpu_supports, needs a run-time library that some toolchains lack.
#pragma once

#include <cpuid.h>

namespace leafkernel {

struct X86Features {
    bool avx2 = false;
    bool avx512 = false;  // including all extensions that the kernels use
};

inline X86Features x86_features() {
    const auto all_of = [](unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; };
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned popcnt = 1u << 23, xsave_in_use = 1u << 27, avx = 1u << 28;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !all_of(ecx, popcnt | xsave_in_use | avx)) return {};

    // Registers that the operating system saves on a context switch.
    unsigned saved = 0, high = 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    constexpr unsigned ymm = 0x06, zmm = 0xe6;
    if (!all_of(saved, ymm) || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return {};

    constexpr unsigned avx2 = 1u << 5, foundation = 1u << 16, bytes_words = 1u << 30,
                       short_vectors = 1u << 31, vpopcntdq = 1u << 14;
    X86Features found;
    found.avx2 = all_of(ebx, avx2);
    found.avx512 = found.avx2 && all_of(saved, zmm) &&
                   all_of(ebx, foundation | bytes_words | short_vectors) && all_of(ecx, vpopcntdq);
    return found;
}

}  // namespace leafkernel
