// Restricts the calling process to the system calls that parsing needs.
#pragma once

namespace loadline {

// From now on the process may only use memory, the clock and already open files, and exit. Every other system
// call fails with EPERM, in child processes too. This cannot be undone. Best effort: does nothing on a system
// without seccomp or on a processor whose call numbers are not known here.
void confine_to_memory();

}  // namespace loadline
