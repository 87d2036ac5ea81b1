// A parallel loop over blocks of items that the caller can monitor and stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "leafkernel/views.hpp"

namespace leafkernel {

// Called from time to time on the calling thread, with the number of items done. It throws to stop the
// loop.
using Monitor = std::function<void(Offset)>;

// Limits the number of threads, because each needs its own memory.
inline int sane_threads(int n_threads) { return std::clamp(n_threads, 1, 1024); }

// Returns a block size, at most `most`, that gives each thread the same number of blocks. Otherwise one
// thread could work on a last block while the others wait.
inline Offset even_blocks(Offset n_items, Offset most, int n_threads) {
    const auto at_least = [](Offset a, Offset b) { return std::max<Offset>((a + b - 1) / b, 1); };
    const Offset threads = sane_threads(n_threads);
    return at_least(n_items, threads * at_least(n_items, threads * most));
}

// Runs `worker(begin, end, poll)` over [0, n_items) in blocks. `make_worker()` is called once per
// thread, so each worker owns its scratch memory. Blocks are assigned in order to the next free thread,
// so results must not depend on which worker gets which block. Workers call poll() regularly. It calls
// the monitor, and throws if the loop must stop. The first exception on any thread, including one from
// the monitor, stops the others and is rethrown here.
template <class MakeWorker>
void for_each_block(Offset n_items, Offset block_size, int n_threads, const Monitor& monitor,
                    MakeWorker&& make_worker) {
    using Clock = std::chrono::steady_clock;
    constexpr auto watch_interval = std::chrono::milliseconds(50);
    struct Stopped {};

    std::atomic<Offset> next{0};
    std::atomic<Offset> done{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_mutex;

    auto run = [&](bool is_caller) {
        try {
            auto worker = make_worker();
            auto last_watch = Clock::now();
            const auto poll = [&] {
                if (stop.load(std::memory_order_relaxed)) throw Stopped{};
                if (is_caller && monitor && Clock::now() - last_watch > watch_interval) {
                    monitor(done.load(std::memory_order_relaxed));
                    last_watch = Clock::now();
                }
            };
            while (true) {
                const Offset begin = next.fetch_add(block_size, std::memory_order_relaxed);
                if (begin >= n_items) break;
                const Offset end = std::min(begin + block_size, n_items);
                worker(begin, end, poll);
                done.fetch_add(end - begin, std::memory_order_relaxed);
                poll();
            }
        } catch (const Stopped&) {
        } catch (...) {
            stop.store(true, std::memory_order_relaxed);
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
        }
    };

    const Offset n_blocks = (n_items + block_size - 1) / block_size;
    const Offset n_helpers = std::clamp<Offset>(n_blocks, 1, sane_threads(n_threads)) - 1;
    std::vector<std::thread> helpers;
    helpers.reserve(static_cast<std::size_t>(n_helpers));
    try {
        for (Offset i = 0; i < n_helpers; ++i) helpers.emplace_back(run, false);
    } catch (...) {
        // No more threads or memory are available. The threads that started and this one do the work.
    }
    run(true);
    for (auto& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
    if (monitor) monitor(n_items);
}

}  // namespace leafkernel
