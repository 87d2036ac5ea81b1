// Tests streamed copies of all sizes and alignments.
#include <numeric>
#include <vector>

#include "check.hpp"
#include "leafkernel/memory.hpp"

using namespace leafkernel;

namespace {

void streamed_copies_are_copies() {
    std::vector<std::int32_t> from(2000);
    std::iota(from.begin(), from.end(), 1);
    for (Offset size : {0, 1, 15, 255, 256, 257, 300, 1024, 1900}) {
        for (Offset begin = 0; begin < 20; ++begin) {
            std::vector<std::int32_t> to(2000, -1);
            stream_copy(from.data() + 3, size, to.data() + begin);
            finish_streaming();
            for (Offset i = 0; i < 2000; ++i) {
                const bool copied = i >= begin && i < begin + size;
                CHECK(to[i] == (copied ? from[i - begin + 3] : -1));
            }
        }
    }
}

void a_buffer_keeps_what_it_held() {
    Buffer<double> buffer(3);
    for (Offset i = 0; i < 3; ++i) buffer[i] = static_cast<double>(i);
    buffer.reserve(1'000'000);
    CHECK(buffer.size() >= 1'000'000);
    buffer.resize(2);
    CHECK(buffer.size() == 2 && buffer[0] == 0.0 && buffer[1] == 1.0);
}

}  // namespace

int main() {
    streamed_copies_are_copies();
    a_buffer_keeps_what_it_held();
}
