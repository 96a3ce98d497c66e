// A few threads that take the parts of a piece of work; they spin for a moment after each, and then sleep.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace heedful {

#if defined(_WIN32)
typedef SRWLOCK Mutex;
typedef CONDITION_VARIABLE Condition;
typedef HANDLE Thread;
inline void start(Mutex* mutex) { InitializeSRWLock(mutex); }
inline void lock(Mutex* mutex) { AcquireSRWLockExclusive(mutex); }
inline void unlock(Mutex* mutex) { ReleaseSRWLockExclusive(mutex); }
#else
typedef pthread_mutex_t Mutex;
typedef pthread_cond_t Condition;
typedef pthread_t Thread;
inline void start(Mutex* mutex) { pthread_mutex_init(mutex, nullptr); }
inline void lock(Mutex* mutex) { pthread_mutex_lock(mutex); }
inline void unlock(Mutex* mutex) { pthread_mutex_unlock(mutex); }
#endif

// A function that does part `part` of some work.
typedef void (*Part)(void* work, int part);

class Pool {
  public:
    // `size` threads in all; the one that calls `run` is one of them.
    void open(int size);
    void close();
    int size() const { return size_; }
    // Does the parts 0 .. parts - 1, in any order, and returns when all are done; a part must not fail.
    void run(Part part, void* work, int parts);
    // Used by the threads.
    void serve();

  private:
    bool alone() const;
    bool take(uint32_t round, int* part);
    bool work_on(uint32_t round);
    void wait_for(uint32_t round);

    int size_ = 1;
    int forks_ = 0;  // how many there had been when it was opened
    Thread threads_[64];
    Mutex mutex_;
    Condition wake_;
    Part part_;
    void* work_;
    // The number of the piece of work (32 bits), how many parts it has (16), and the next one to take (16).
    uint64_t state_;
    uint32_t round_;
    int unfinished_, sleeping_, closing_;
};

}  // namespace heedful
