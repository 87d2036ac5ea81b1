// Chooses the kernels at run time.
#include "leafkernel/plane_kernels.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#if defined(LEAFKERNEL_X86)
#include "x86_features.hpp"
#endif

namespace leafkernel {

extern const PlaneKernels kernels_baseline;
#if defined(LEAFKERNEL_X86)
extern const PlaneKernels kernels_avx2;
extern const PlaneKernels kernels_avx512;
#elif defined(LEAFKERNEL_ARM)
extern const PlaneKernels kernels_neon;
#endif

namespace {

struct Candidate {
    const PlaneKernels* kernels;
    bool works;
};

const PlaneKernels& choose() {
#if defined(LEAFKERNEL_X86)
    const X86Features features = x86_features();
#endif
    const Candidate candidates[] = {
#if defined(LEAFKERNEL_X86)
        {&kernels_avx512, features.avx512},
        {&kernels_avx2, features.avx2},
#elif defined(LEAFKERNEL_ARM)
        {&kernels_neon, true},
#endif
        {&kernels_baseline, true},
    };
    const char* asked = std::getenv("LEAFKERNEL_SIMD");
    if (asked != nullptr && *asked != '\0') {
        std::string known;
        for (const auto& [kernels, works] : candidates) {
            if (std::string_view(asked) == kernels->name && works) return *kernels;
            if (works) known += (known.empty() ? "" : ", ") + std::string(kernels->name);
        }
        throw std::invalid_argument("LEAFKERNEL_SIMD is \"" + std::string(asked) +
                                    "\", which this build or processor does not have; it has " + known);
    }
    for (const auto& [kernels, works] : candidates) {
        if (works) return *kernels;
    }
    return kernels_baseline;
}

}  // namespace

const PlaneKernels& plane_kernels() {
    static const PlaneKernels& chosen = choose();
    return chosen;
}

}  // namespace leafkernel
