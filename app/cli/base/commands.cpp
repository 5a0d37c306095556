// The table of commands.
#include "app/cli/base/commands.h"

#include <array>

namespace loadline::cli {
namespace {

constexpr std::array<Command, 22> kCommands = {{
    {"gui", "Open the window (also: loadline, loadline PATH)", false, setup_gui,
     "loadline gui llama-3-8b\nloadline gui llama-3-8b --panel methods --screenshot methods.png"},
    {"inspect", "Show what is in a model", true, setup_inspect,
     "loadline inspect llama-3-8b --tree\nloadline inspect model.gguf --doctor"},
    {"plan", "Project the memory peaks of ways to load a model", true, setup_plan,
     "loadline plan llama-3-8b --target rtx-4060-8gb --fits --context max"},
    {"rehearse", "Run our own plans in ordinary memory and compare them with the system's counters", true,
     setup_rehearse, "loadline rehearse demo --method sequential,mmap_copy"},
    {"report", "Write what is known of a model as a page to pass around", true, setup_report,
     "loadline report demo -o demo.html\nloadline report demo demo.gguf"},
    {"lesson", "Teach why loading costs what it costs", false, setup_lesson,
     "loadline lesson list\nloadline lesson run six-ways\nloadline lesson run six-ways -o six-ways.html"},
    {"methods", "List the load methods, or explain some", false, setup_methods,
     "loadline methods\nloadline methods state_dict accelerate"},
    {"targets", "List the data sheets of devices that plan can fit a load into", false, setup_targets,
     "loadline targets\nloadline targets rtx-4060-8gb"},
    {"pack", "Find offsets in an arena for buffers with lifetimes", true, setup_pack,
     "loadline pack buffers.csv --capacity 1048576 -o packed.csv\nloadline pack falcon-7b --seq 2048"},
    {"convert", "Write a model as a flat file that can be mapped", true, setup_convert,
     "loadline convert llama-3-8b model.gguf\n"
     "loadline convert llama-3-8b out --max-shard-size 5GB --outtype bf16 --verify"},
    {"join", "End a conversion that several processes wrote", false, setup_join,
     "loadline join llama-3-8b-bf16"},
    {"clean", "Remove what interrupted conversions left in a folder", false, setup_clean,
     "loadline clean llama-3-8b-bf16 --dry-run\nloadline clean ."},
    {"merge", "Write a model with a LoRA adapter merged into its weights", true, setup_merge,
     "loadline merge llama-3-8b my-lora llama-3-8b-mine\n"
     "loadline merge llama-3-8b my-lora mine.gguf --outtype f16"},
    {"batch", "Run many conversions from a list; those that are done are skipped", true, setup_batch,
     "loadline batch jobs.json --jobs 4 --keep-going\nloadline batch jobs.json --memory-budget 1GiB --json"},
    {"edit", "Change metadata of a safetensors or GGUF file in place", false, setup_edit,
     "loadline edit model.gguf --set general.name=Mine --set my.version:u32=2\n"
     "loadline edit model.safetensors --remove author --dry-run"},
    {"verify", "Check that two models have the same tensors, across formats", true, setup_verify,
     "loadline verify llama-3-8b model.gguf\nloadline verify model-f32.safetensors model-bf16.gguf "
     "--tolerance 0,0.01"},
    {"diff", "Show what differs between two models: tensors, types, metadata", true, setup_diff,
     "loadline diff model-q4_k_m.gguf model-q5_k_m.gguf --no-values\n"
     "loadline diff llama-3-8b my-finetune --limit 5"},
    {"upload", "Load a model onto a GPU: projected beside measured", true, setup_upload,
     "loadline upload llama-3-8b --verify\nloadline upload llama-3-8b --method mmap_assign --device 1"},
    {"devices", "List the GPUs of this machine, and why one is chosen", false, setup_devices,
     "loadline devices\nloadline devices --measure"},
    {"synth", "Make a checkpoint from a configuration alone", true, setup_synth,
     "loadline synth llama-3-8b llama-3-8b --sparse\nloadline synth llama-3-8b llama-3-8b.gguf\nloadline "
     "synth demo demo --random 1"},
    {"formats", "List what can be read and written", false, setup_formats, "loadline formats"},
    {"help", "Print a page of the manual", false, setup_help, "loadline help\nloadline help planning"},
}};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace loadline::cli
