// The table of commands.
#include "app/cli/commands.h"

#include <array>

namespace loadline::cli {
namespace {

constexpr std::array<Command, 9> kCommands = {{
    {"gui", "Open the window (also: loadline, loadline PATH)", false, setup_gui},
    {"inspect", "What is in a model", true, setup_inspect},
    {"plan", "Projected memory peaks of every way to load it", true, setup_plan},
    {"pack", "Offsets in an arena for buffers with lifetimes", true, setup_pack},
    {"convert", "Write it as a flat, mmap-friendly file", true, setup_convert},
    {"upload", "Load it onto a GPU: projected beside measured", true, setup_upload},
    {"devices", "The GPUs, and why one is chosen", false, setup_devices},
    {"synth", "Make a checkpoint from a configuration alone", true, setup_synth},
    {"formats", "What can be read and written", false, setup_formats},
}};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace loadline::cli
