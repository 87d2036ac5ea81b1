// Checks of single arrays. Each function throws std::invalid_argument if the check fails.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace leafkernel {

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

inline void require_size(std::size_t found, std::size_t expected, const char* name) {
    if (found == expected) return;
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(found) +
                                " entries, expected " + std::to_string(expected));
}

// Checks the size of an optional array.
template <class T>
void require_optional(std::span<const T> array, std::size_t size, const char* name) {
    if (!array.empty()) require_size(array.size(), size, name);
}

// Checks that offsets start at 0, end at the number of entries and never decrease.
template <class Integer>
void require_offsets(std::span<const Integer> offsets, std::size_t n_entries, const char* name) {
    const bool spans = !offsets.empty() && offsets.front() == 0 && offsets.back() >= 0 &&
                       static_cast<std::size_t>(offsets.back()) == n_entries &&
                       std::is_sorted(offsets.begin(), offsets.end());
    if (!spans) throw std::invalid_argument(std::string(name) + " do not span their entries in order");
}

// Checks that each number from 0 to size - 1 occurs exactly once.
template <class Integer>
void require_permutation(std::span<const Integer> numbers, const char* name) {
    std::vector<bool> seen(numbers.size());
    for (const Integer number : numbers) {
        const auto at = static_cast<std::size_t>(number);
        if (number < 0 || at >= seen.size() || seen[at]) {
            throw std::invalid_argument(std::string(name) + " is not a permutation: found " +
                                        std::to_string(number));
        }
        seen[at] = true;
    }
}

}  // namespace leafkernel
