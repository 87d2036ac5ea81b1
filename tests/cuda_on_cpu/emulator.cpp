// Runs the thread blocks of a kernel one after another, on one processor core. Every thread is a fiber with a
// stack of its own, and runs until it waits for other threads. The next thread is chosen at random, so that
// a missing __syncthreads() or __syncwarp() shows as a wrong result.
//
// More mistakes are found than on a device:
// - Arrays and shared memory end at a page that must not be touched, so reading or writing past the end
//   is a crash. (They are rounded up to 16 bytes.)
// - Shared memory is full of one unlikely byte at the start of a block.
// - Threads that wait for each other forever, or for lanes that do something else, are reported.
// - Arguments must have the sizes of the parameters.
//
// Floats below 1.2e-38 are zero, as in all kernels that CuPy compiles. On x86, so are doubles below 2.2e-308.
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "cuda.hpp"

struct EmulatorArgument {
    void* data;            // the array, or the number
    uint64_t n_bytes;      // of all data
    int32_t element_size;  // of the array; 0 if it is a number
};

extern "C" {
Dimensions threadIdx, blockIdx, blockDim, gridDim;
}

namespace {

constexpr int lanes_of_warp = 32;
constexpr size_t stack_bytes = 128 * 1024;
constexpr unsigned char poison = 0xcd;

std::string error;
uint64_t random_state = 1;

uint32_t next_random() {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

// Memory that ends where a forbidden page begins. It is kept for later use.
class Guarded {
  public:
    explicit Guarded(size_t n_bytes) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded = (n_bytes + 15) / 16 * 16;
        n_pages = (rounded + page - 1) / page;
        std::vector<char*>& free = unused()[n_pages];
        if (free.empty()) {
            first = (char*)mmap(nullptr, (n_pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
            if (first != MAP_FAILED) mprotect(first + n_pages * page, page, PROT_NONE);
        } else {
            first = free.back();
            free.pop_back();
        }
        data = first + n_pages * page - rounded;
    }
    ~Guarded() { unused()[n_pages].push_back(first); }
    Guarded(const Guarded&) = delete;

    char* data;

  private:
    static std::map<size_t, std::vector<char*>>& unused() {
        static std::map<size_t, std::vector<char*>> kept;
        return kept;
    }
    char* first;
    size_t n_pages;
};

// Takes tiny floats for zero while it exists.
class WithoutTinyFloats {
#if defined(__SSE__)
  public:
    WithoutTinyFloats() : before(_mm_getcsr()) { _mm_setcsr(before | 0x8040); }
    ~WithoutTinyFloats() { _mm_setcsr(before); }

  private:
    unsigned before;
#else
  public:
    WithoutTinyFloats() {}
#endif
};

enum class State { ready, at_block, at_warp, done };

struct Fiber {
    jmp_buf at;
    std::unique_ptr<char[]> stack;
    State state = State::done;
    int kind = 0, argument = 0, width = 0;
    unsigned mask = 0;
    unsigned long long value = 0, result = 0;
};

std::vector<Fiber> fibers;
std::vector<int> ready;
jmp_buf scheduler;
ucontext_t returned;
int running, n_threads_now, n_at_block;
EmulatorBody body_now;
void** arguments_now;
char* shared_now;

void run_forever() {
    while (true) {
        body_now(arguments_now);
        fibers[running].state = State::done;
        if (!_setjmp(fibers[running].at)) _longjmp(scheduler, 1);
    }
}

// Creates a fiber that waits at the beginning of its first block.
void create(Fiber& fiber) {
    fiber.stack.reset(new char[stack_bytes]);
    static ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = stack_bytes;
    context.uc_link = nullptr;
    static Fiber* starting;
    starting = &fiber;
    makecontext(&context, static_cast<void (*)()>([] {
        Fiber& mine = *starting;
        if (!_setjmp(mine.at)) setcontext(&returned);
        run_forever();
    }), 0);
    static volatile bool came_back;
    came_back = false;
    getcontext(&returned);
    if (!came_back) {
        came_back = true;
        setcontext(&context);
    }
}

void resume_thread(int thread) {
    running = thread;
    threadIdx = {(unsigned)thread, 0, 0};
    if (!_setjmp(scheduler)) _longjmp(fibers[thread].at, 1);
}

void pause_thread(State state) {
    Fiber& mine = fibers[running];
    mine.state = state;
    if (!_setjmp(mine.at)) _longjmp(scheduler, 1);
}

void make_ready(int thread) {
    fibers[thread].state = State::ready;
    ready.push_back(thread);
}

unsigned long long result_of(const Fiber& fiber, int lane, int first_of_warp) {
    const auto value_of = [&](int from) {
        const bool takes_part = from >= 0 && from < lanes_of_warp && (fiber.mask >> from & 1);
        return takes_part ? fibers[first_of_warp + from].value : 0xbadbadbadbadbadbull;
    };
    const int base = lane / fiber.width * fiber.width, within = lane - base;
    unsigned long long total = 0;
    switch (fiber.kind) {
        case shuffle: return value_of(base + fiber.argument % fiber.width);
        case shuffle_up: return within < fiber.argument ? fiber.value : value_of(lane - fiber.argument);
        case shuffle_down: return within + fiber.argument >= fiber.width ? fiber.value : value_of(lane + fiber.argument);
        case shuffle_xor: return value_of(lane ^ fiber.argument);
        case ballot:
            for (int other = 0; other < lanes_of_warp; ++other) {
                if (fiber.mask >> other & 1) total |= fibers[first_of_warp + other].value << other;
            }
            return total;
        case reduce_add:
            for (int other = 0; other < lanes_of_warp; ++other) {
                if (fiber.mask >> other & 1) total += fibers[first_of_warp + other].value;
            }
            return total;
    }
    return 0;
}

void run_block() {
    n_at_block = 0;
    ready.clear();
    for (int t = 0; t < n_threads_now; ++t) make_ready(t);
    while (!ready.empty()) {
        const size_t chosen = next_random() % ready.size();
        const int thread = ready[chosen];
        ready[chosen] = ready.back();
        ready.pop_back();
        resume_thread(thread);
    }
    int n_done = 0, n_warp = 0;
    for (int t = 0; t < n_threads_now; ++t) {
        n_done += fibers[t].state == State::done;
        n_warp += fibers[t].state == State::at_warp;
    }
    if (n_done == n_threads_now) return;
    error = "block " + std::to_string(blockIdx.x) + " hangs: " + std::to_string(n_at_block) +
            " threads wait in __syncthreads(), " + std::to_string(n_warp) + " for lanes of their warp, and " +
            std::to_string(n_done) + " have returned";
    fibers.clear();  // the stacks of waiting threads cannot be used again
}

}  // namespace

extern "C" {

void emulator_sync_threads() {
    if (++n_at_block == n_threads_now) {
        n_at_block = 0;
        for (int t = 0; t < n_threads_now; ++t) {
            if (t != running) make_ready(t);
        }
        make_ready(running);
        pause_thread(State::ready);
        return;
    }
    pause_thread(State::at_block);
}

unsigned long long emulator_collective(int kind, unsigned mask, unsigned long long value, int argument, int width) {
    Fiber& mine = fibers[running];
    const int lane = running % lanes_of_warp, first = running - lane;
    mine.kind = kind, mine.mask = mask, mine.value = value, mine.argument = argument, mine.width = width;
    mine.state = State::at_warp;
    bool complete = (mask >> lane & 1) != 0;
    for (int other = 0; other < lanes_of_warp && complete; ++other) {
        if (!(mask >> other & 1)) continue;
        if (first + other >= n_threads_now) {
            complete = false;
            continue;
        }
        const Fiber& one = fibers[first + other];
        complete = one.state == State::at_warp && one.mask == mask && one.kind == kind;
    }
    if (complete) {
        for (int other = 0; other < lanes_of_warp; ++other) {
            if (mask >> other & 1) fibers[first + other].result = result_of(fibers[first + other], other, first);
        }
        for (int other = 0; other < lanes_of_warp; ++other) {
            if (mask >> other & 1) make_ready(first + other);
        }
        pause_thread(State::ready);
    } else {
        pause_thread(State::at_warp);
    }
    return fibers[running].result;
}

void emulator_yield() {
    if (next_random() % 8) return;
    make_ready(running);
    pause_thread(State::ready);
}

void* emulator_dynamic_shared() { return shared_now; }

const char* emulator_error() { return error.c_str(); }

void emulator_seed(uint64_t seed) { random_state = 2 * seed + 1; }

int emulator_launch(EmulatorBody body, int n_arguments, const int* parameter_sizes, const int* element_sizes,
                    const EmulatorArgument* arguments, unsigned n_blocks, unsigned n_threads,
                    unsigned long long shared_bytes, char* static_begin, char* static_end) {
    error.clear();
    std::vector<std::unique_ptr<Guarded>> copies((size_t)n_arguments);
    std::vector<void*> pointers((size_t)n_arguments), passed((size_t)n_arguments);
    std::map<void*, int> first_with;
    for (int i = 0; i < n_arguments; ++i) {
        const EmulatorArgument& one = arguments[i];
        const bool is_array = one.element_size != 0, is_null = one.data == nullptr;
        if (element_sizes[i] ? !is_array && !is_null : is_array || (int)one.n_bytes != parameter_sizes[i]) {
            error = "argument " + std::to_string(i) + " has " + std::to_string(one.n_bytes) +
                    " bytes, but the parameter has " + std::to_string(parameter_sizes[i]) +
                    (element_sizes[i] ? " and is a pointer" : " and is a number");
            return 1;
        }
        if (is_array && element_sizes[i] % one.element_size != 0) {
            error = "argument " + std::to_string(i) + " has elements of " + std::to_string(one.element_size) +
                    " bytes, but those of the parameter have " + std::to_string(element_sizes[i]);
            return 1;
        }
        if (!is_array) {
            passed[(size_t)i] = is_null ? (void*)&pointers[(size_t)i] : one.data;
            continue;
        }
        const auto known = first_with.find(one.data);
        if (known != first_with.end() && arguments[known->second].n_bytes == one.n_bytes) {
            pointers[(size_t)i] = pointers[(size_t)known->second];
        } else {
            first_with[one.data] = i;
            copies[(size_t)i].reset(new Guarded(one.n_bytes));
            pointers[(size_t)i] = copies[(size_t)i]->data;
            memcpy(pointers[(size_t)i], one.data, one.n_bytes);
        }
        passed[(size_t)i] = &pointers[(size_t)i];
    }
    Guarded shared(shared_bytes);
    shared_now = shared.data;
    body_now = body;
    arguments_now = passed.data();
    n_threads_now = (int)n_threads;
    blockDim = {n_threads, 1, 1};
    gridDim = {n_blocks, 1, 1};
    const size_t n_known = fibers.size();
    if (n_known < n_threads) {
        fibers.clear();
        fibers.resize(n_threads);
        for (Fiber& fiber : fibers) create(fiber);
    }
    {
        const WithoutTinyFloats here;
        for (unsigned block = 0; block < n_blocks && error.empty(); ++block) {
            blockIdx = {block, 0, 0};
            memset(shared.data, poison, shared_bytes);
            if (static_begin) memset(static_begin, poison, (size_t)(static_end - static_begin));
            run_block();
        }
    }
    for (int i = 0; i < n_arguments; ++i) {
        if (copies[(size_t)i]) memcpy(arguments[i].data, copies[(size_t)i]->data, arguments[i].n_bytes);
    }
    return error.empty() ? 0 : 1;
}

}  // extern "C"
