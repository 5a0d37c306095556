// The command line.
#pragma once

namespace loadline {
struct GuiRequest;
}

namespace loadline::cli {

// Parses and runs; returns the exit code. `run_gui` is null when built without the window.
int run(int argc, char** argv, int (*run_gui)(const GuiRequest&));

}  // namespace loadline::cli
