// Waits for the window's background jobs.
#pragma once

#include "app/gui/state/workspace.h"

#include <thread>

namespace loadline::gui {

// Until no job is left, and every result has arrived.
inline void settle(Workspace& workspace) {
  while (workspace.busy())
    if (!workspace.poll()) std::this_thread::yield();
  workspace.poll();
}

}  // namespace loadline::gui
