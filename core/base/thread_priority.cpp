// On Linux each thread has a nice value of its own.
#include "core/base/thread_priority.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace loadline {

void yield_to_others() {
#ifdef __linux__
  constexpr int kNice = 5;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
#endif
}

}  // namespace loadline
