// Takes from the calling process what parsing does not need.
#pragma once

namespace loadline {

// From here on only memory, the clock, files that are open already, and ending work; every other system call
// fails with EPERM. For good, and for children. Best effort: does nothing where the system has
// no seccomp or this processor's calls are not known here.
void confine_to_memory();

}  // namespace loadline
