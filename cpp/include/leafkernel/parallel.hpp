// A loop over blocks of items, shared by threads, that its caller can watch and stop.
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

// Called on the calling thread now and then with the number of items done; throws to stop.
using Monitor = std::function<void(Offset)>;

// As many threads as were asked for, within reason: each takes memory of its own, and no machine has
// more cores.
inline int sane_threads(int n_threads) { return std::clamp(n_threads, 1, 1024); }

// The size of blocks, at most `most`, that gives each thread equally many: a block left over at the end
// would keep one thread at work while the others wait.
inline Offset even_blocks(Offset n_items, Offset most, int n_threads) {
    const auto at_least = [](Offset a, Offset b) { return std::max<Offset>((a + b - 1) / b, 1); };
    const Offset threads = sane_threads(n_threads);
    return at_least(n_items, threads * at_least(n_items, threads * most));
}

// Runs `worker(begin, end, poll)` over [0, n_items) in blocks. `make_worker()` is called once on
// each thread, so a worker owns its scratch memory. Blocks are handed out in order, to whoever is
// free; a worker must therefore not depend on which blocks it gets. A worker calls poll() whenever it
// has worked for a moment: it lets the monitor look, and leaves the worker if the work is to stop. The
// first exception of any thread, the monitor's included, stops the others and is rethrown here.
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
        // The system gives no more threads or memory: those that started, and this one, do the work.
    }
    run(true);
    for (auto& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
    if (monitor) monitor(n_items);
}

}  // namespace leafkernel
