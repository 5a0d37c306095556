// Which threads the system prefers where there are more of them than cores.
#pragma once

namespace loadline {

// Lets other threads, such as the one that draws, run before this one. A hint: some systems cannot.
void yield_to_others();

}  // namespace loadline
