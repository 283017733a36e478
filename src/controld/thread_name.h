// Names the calling thread for top, perf and core dumps. At most 15 bytes.
#pragma once

#include <pthread.h>

namespace bmgpu::controld {

inline void name_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace bmgpu::controld
