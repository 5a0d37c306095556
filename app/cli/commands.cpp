// The table of commands.
#include "app/cli/commands.h"

#include <array>

namespace loadline::cli {
namespace {

constexpr std::array<Command, 8> kCommands = {{
    {"gui", "Open the window (also: loadline, loadline PATH)", setup_gui},
    {"inspect", "What is in a model", setup_inspect},
    {"plan", "Projected memory peaks of every way to load it", setup_plan},
    {"convert", "Write it as a flat, mmap-friendly file", setup_convert},
    {"upload", "Load it onto a GPU: projected beside measured", setup_upload},
    {"devices", "The GPUs, and why one is chosen", setup_devices},
    {"synth", "Make a checkpoint from a configuration alone", setup_synth},
    {"formats", "What can be read and written", setup_formats},
}};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace loadline::cli
