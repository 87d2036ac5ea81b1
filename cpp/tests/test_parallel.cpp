// Blocks cover every item once, exceptions reach the caller, and a monitor can stop the loop.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "leafkernel/parallel.hpp"

using namespace leafkernel;

namespace {

void every_item_is_visited_once() {
    for (int n_threads : {1, 2, 5}) {
        for (Offset n_items : {0, 1, 7, 1000}) {
            for (Offset block : {1, 3, 2000}) {
                std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n_items));
                Offset reported = -1;
                for_each_block(
                    n_items, block, n_threads, [&](Offset done) { reported = done; },
                    [&] {
                        return [&](Offset begin, Offset end, const auto&) {
                            for (Offset i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
                        };
                    });
                for (const auto& count : visits) CHECK(count == 1);
                CHECK(reported == n_items);
            }
        }
    }
}

void an_exception_in_a_worker_is_rethrown() {
    for (int n_threads : {1, 4}) {
        bool caught = false;
        try {
            for_each_block(1000, 1, n_threads, {}, [&] {
                return [&](Offset begin, Offset, const auto&) {
                    if (begin == 500) throw std::runtime_error("broken");
                };
            });
        } catch (const std::runtime_error&) {
            caught = true;
        }
        CHECK(caught);
    }
}

void an_exception_while_making_a_worker_is_rethrown() {
    bool caught = false;
    try {
        for_each_block(10, 1, 3, {},
                       [&]() -> std::function<void(Offset, Offset, const std::function<void()>&)> {
                           throw std::bad_alloc();
                       });
    } catch (const std::bad_alloc&) {
        caught = true;
    }
    CHECK(caught);
}

void a_monitor_that_throws_stops_the_work() {
    std::atomic<Offset> done{0};
    bool caught = false;
    try {
        for_each_block(
            100000, 1, 3, [](Offset) { throw std::runtime_error("stop"); },
            [&] {
                return [&](Offset, Offset, const auto&) {
                    ++done;
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                };
            });
    } catch (const std::runtime_error&) {
        caught = true;
    }
    CHECK(caught);
    CHECK(done < 10000);
}

void a_monitor_is_heard_inside_a_block() {
    for (int n_threads : {1, 3}) {
        bool caught = false;
        const auto begin = std::chrono::steady_clock::now();
        try {
            for_each_block(
                3, 1, n_threads, [](Offset) { throw std::runtime_error("stop"); },
                [&] {
                    return [&](Offset, Offset, const auto& poll) {
                        for (int i = 0; i < 5000; ++i) {
                            std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            poll();
                        }
                    };
                });
        } catch (const std::runtime_error&) {
            caught = true;
        }
        CHECK(caught);
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
    }
}

}  // namespace

int main() {
    a_monitor_is_heard_inside_a_block();
    every_item_is_visited_once();
    an_exception_in_a_worker_is_rethrown();
    an_exception_while_making_a_worker_is_rethrown();
    a_monitor_that_throws_stops_the_work();
}
