// Asks for data that is needed soon.
#pragma once

#include "leafkernel/views.hpp"

namespace leafkernel::detail {

inline void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

// Asks for all cache lines of an array.
inline void prefetch(const void* begin, const void* end) {
    constexpr Offset cache_line = 64;
    const auto* from = static_cast<const char*>(begin);
    for (; from < static_cast<const char*>(end); from += cache_line) prefetch(from);
}

inline void prefetch_row(const Incidence& incidence, Offset row) {
    prefetch(incidence.columns.address(incidence.begin(row)),
             incidence.columns.address(incidence.end(row)));
}

}  // namespace leafkernel::detail
