#include "threads.h"

#include <string.h>

#if !defined(_WIN32)
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace heedful {

// Checks of shared memory before a thread sleeps: tens of microseconds, longer than it takes until the next product.
static const int SPINS = 4000;

static inline void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

static inline void give_way() {
#if defined(_WIN32)
    SwitchToThread();
#else
    sched_yield();
#endif
}

#if defined(_WIN32)
static DWORD WINAPI thread_main(void* pool) {
    static_cast<Pool*>(pool)->serve();
    return 0;
}
static bool start_thread(Thread* thread, Pool* pool) {
    return (*thread = CreateThread(nullptr, 0, thread_main, pool, 0, nullptr)) != nullptr;
}
static void join(Thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}
static void wait(Condition* condition, Mutex* mutex) { SleepConditionVariableSRW(condition, mutex, INFINITE, 0); }
static void start(Condition* condition) { InitializeConditionVariable(condition); }
static void wake_all(Condition* condition) { WakeAllConditionVariable(condition); }
#else
static void* thread_main(void* pool) {
    static_cast<Pool*>(pool)->serve();
    return nullptr;
}
static bool start_thread(Thread* thread, Pool* pool) { return !pthread_create(thread, nullptr, thread_main, pool); }
static void join(Thread thread) { pthread_join(thread, nullptr); }
static void wait(Condition* condition, Mutex* mutex) { pthread_cond_wait(condition, mutex); }
static void start(Condition* condition) { pthread_cond_init(condition, nullptr); }
static void wake_all(Condition* condition) { pthread_cond_broadcast(condition); }
#endif

// How many forks led to this process. A fork has only the thread that made it: those of a pool are gone, and must not
// be waited for.
static int forks = 0;

#if !defined(_WIN32)
static void count_fork() { forks++; }
static void watch_forks() { pthread_atfork(nullptr, nullptr, count_fork); }
#endif

bool Pool::alone() const { return size_ == 1 || forks_ != forks; }

void Pool::open(int size) {
#if !defined(_WIN32)
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
#endif
    forks_ = forks;
    start(&mutex_);
    start(&wake_);
    state_ = round_ = 0;
    unfinished_ = sleeping_ = closing_ = 0;
    size_ = 1;
    // With fewer threads than wanted the work is the same, but takes longer.
    while (size_ < size && size_ < 64 && start_thread(&threads_[size_], this)) size_++;
}

void Pool::close() {
    if (forks_ != forks) return;
    lock(&mutex_);
    __atomic_store_n(&closing_, 1, __ATOMIC_SEQ_CST);
    wake_all(&wake_);
    unlock(&mutex_);
    for (int i = 1; i < size_; i++) join(threads_[i]);
#if !defined(_WIN32)
    pthread_cond_destroy(&wake_);
    pthread_mutex_destroy(&mutex_);
#endif
}

bool Pool::take(uint32_t round, int* part) {
    uint64_t state = __atomic_load_n(&state_, __ATOMIC_ACQUIRE);
    while (static_cast<uint32_t>(state >> 32) == round && (state & 0xffff) < (state >> 16 & 0xffff)) {
        if (__atomic_compare_exchange_n(&state_, &state, state + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            *part = static_cast<int>(state & 0xffff);
            return true;
        }
    }
    return false;
}

bool Pool::work_on(uint32_t round) {
    int part;
    bool any = false;
    while (take(round, &part)) {
        part_(work_, part);
        any = true;
        __atomic_sub_fetch(&unfinished_, 1, __ATOMIC_ACQ_REL);
    }
    return any;
}

void Pool::run(Part part, void* work, int parts) {
    if (alone() || parts == 1) {
        for (int each = 0; each < parts; each++) part(work, each);
        return;
    }
    part_ = part;
    work_ = work;
    __atomic_store_n(&unfinished_, parts, __ATOMIC_RELEASE);
    round_++;
    __atomic_store_n(&state_, uint64_t(round_) << 32 | uint64_t(parts) << 16, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&sleeping_, __ATOMIC_SEQ_CST)) {
        lock(&mutex_);
        wake_all(&wake_);
        unlock(&mutex_);
    }
    work_on(round_);
    for (int spins = 0; __atomic_load_n(&unfinished_, __ATOMIC_ACQUIRE); spins++) {
        if (spins < SPINS)
            pause();
        else
            give_way();
    }
}

void Pool::wait_for(uint32_t round) {
    for (int spins = 0; spins < SPINS; spins++) {
        if (static_cast<uint32_t>(__atomic_load_n(&state_, __ATOMIC_ACQUIRE) >> 32) != round) return;
        if (__atomic_load_n(&closing_, __ATOMIC_ACQUIRE)) return;
        pause();
    }
    lock(&mutex_);
    __atomic_add_fetch(&sleeping_, 1, __ATOMIC_SEQ_CST);
    while (static_cast<uint32_t>(__atomic_load_n(&state_, __ATOMIC_SEQ_CST) >> 32) == round &&
           !__atomic_load_n(&closing_, __ATOMIC_SEQ_CST))
        wait(&wake_, &mutex_);
    __atomic_sub_fetch(&sleeping_, 1, __ATOMIC_SEQ_CST);
    unlock(&mutex_);
}

void Pool::serve() {
    uint32_t round = 0;
    while (!__atomic_load_n(&closing_, __ATOMIC_ACQUIRE)) {
        uint32_t now = static_cast<uint32_t>(__atomic_load_n(&state_, __ATOMIC_ACQUIRE) >> 32);
        if (now == round) {
            wait_for(round);
            continue;
        }
        round = now;
        work_on(round);
    }
}

}  // namespace heedful
