// Memory for large arrays: uninitialized, in huge pages if available, growing in place where possible,
// and written without filling the caches.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define LEAFKERNEL_STREAMS 1
#endif

#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// For memory that is written once, page faults cost as much as the writes.
inline void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__)
    constexpr std::size_t worthwhile = std::size_t{1} << 22;
    constexpr std::uintptr_t page = 4096;
    if (n_bytes < worthwhile) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const auto first = (begin + page - 1) / page * page;
    const auto last = (begin + n_bytes) / page * page;
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);  // only a hint
#endif
}

}  // namespace detail

// Copies data that will not be read again soon. Streaming stores bypass the caches, which stay
// available for the rows to come. Other threads see the copy after finish_streaming().
template <class T>
void stream_copy(const T* from, Offset size, T* to) {
    auto n_bytes = static_cast<std::size_t>(size) * sizeof(T);
#if defined(LEAFKERNEL_STREAMS)
    constexpr std::size_t line = 64;
    constexpr std::size_t worthwhile = 16 * line;  // partial cache lines are expensive
    if (n_bytes >= worthwhile) {
        const auto* source = reinterpret_cast<const char*>(from);
        auto* target = reinterpret_cast<char*>(to);
        const std::size_t to_line = (line - reinterpret_cast<std::uintptr_t>(target) % line) % line;
        std::memcpy(target, source, to_line);
        std::size_t at = to_line;
        for (; at + line <= n_bytes; at += line) {
            for (std::size_t part = at; part < at + line; part += sizeof(__m128i)) {
                const auto* packed = reinterpret_cast<const __m128i*>(source + part);
                _mm_stream_si128(reinterpret_cast<__m128i*>(target + part), _mm_loadu_si128(packed));
            }
        }
        std::memcpy(target + at, source + at, n_bytes - at);
        return;
    }
#endif
    if (n_bytes > 0) std::memcpy(to, from, n_bytes);
}

inline void finish_streaming() {
#if defined(LEAFKERNEL_STREAMS)
    _mm_sfence();
#endif
}

// An array of a trivial type. Growing it moves no data if the system can remap its pages.
template <class T>
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(Offset size) { resize(size); }
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    // Returns an array of zeros. calloc can provide zeroed pages without writing to them.
    static Buffer zeros(Offset size) {
        Buffer buffer;
        if (size < 0) throw std::bad_alloc();
        const auto n = static_cast<std::size_t>(size);
        buffer.data_ = static_cast<T*>(std::calloc(n > 0 ? n : 1, sizeof(T)));
        if (buffer.data_ == nullptr) throw std::bad_alloc();
        detail::ask_for_large_pages(buffer.data_, n * sizeof(T));
        buffer.size_ = size;
        return buffer;
    }

    // Keeps the common part of both sizes. New entries are not initialized.
    void resize(Offset size) {
        // The size in bytes must not overflow to a small number.
        constexpr auto most = std::numeric_limits<Offset>::max() / static_cast<Offset>(sizeof(T));
        if (size < 0 || size > most) throw std::bad_alloc();
        const std::size_t n_bytes = static_cast<std::size_t>(size) * sizeof(T);
        void* memory = std::realloc(data_, n_bytes > 0 ? n_bytes : 1);
        if (memory == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(memory);
        if (size > size_) detail::ask_for_large_pages(memory, n_bytes);
        size_ = size;
    }

    // Grows to at least this size, with a reserve for later calls.
    void reserve(Offset size) {
        if (size > size_) resize(size + size / 4);
    }

    // Releases ownership. The caller must call free().
    T* release() {
        size_ = 0;
        return std::exchange(data_, nullptr);
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    Offset size() const { return size_; }
    T& operator[](Offset i) { return data_[i]; }
    const T& operator[](Offset i) const { return data_[i]; }

private:
    T* data_ = nullptr;
    Offset size_ = 0;
};

}  // namespace leafkernel
