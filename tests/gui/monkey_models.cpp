// The fuzzers' seeds, each as it is, cut short and with bytes changed.
#include "tests/gui/monkey_models.h"

#include "core/base/tasks.h"
#include "core/forward/model/known_models.h"
#include "exporters/synth.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/states.h"
#include "tests/support/samples.h"

#include <algorithm>

namespace loadline::gui {
namespace {

namespace fs = std::filesystem;

// By the folder of the seeds: how a file must be called to be taken for the format.
std::string file_name(const std::string& format) {
  if (format == "config") return "config.json";
  if (format == "hf_index") return "model.safetensors.index.json";
  if (format == "torch" || format == "torch_legacy") return "model.pt";
  if (format == "packing") return "problem.csv";
  return "model." + format;
}

}  // namespace

MonkeyModels::MonkeyModels() {
  std::mt19937_64 random(1);  // the same files whatever the seed of the input
  std::vector<fs::path> seeds;
  for (const char* const format : {"safetensors", "hf_index", "config", "gguf", "onnx", "torch",
                                   "torch_legacy", "npy", "npz", "pt2", "pte", "ptd", "tflite", "packing"}) {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(fs::path(LOADLINE_FUZZ_CORPUS) / format, missing))
      seeds.push_back(entry.path());
  }
  std::ranges::sort(seeds);
  for (const fs::path& seed : seeds)
    add_damaged(random, file_name(seed.parent_path().filename().string()), testing::read_file(seed.string()));
  add_damaged(random, "model.safetensors", testing::sample_safetensors());
  for (const char* const preset : {"demo", "gpt2", "bert-base-uncased"}) {
    Progress progress;
    paths_.push_back(folder_ / preset);
    synthesize(config_graph(find_preset(preset)->config_json, "config.json"), paths_.back(), {}, progress);
  }
  paths_.push_back(folder_ / "not there");
}

void MonkeyModels::add_damaged(std::mt19937_64& random, const std::string& name, const std::string& bytes) {
  std::string cut = bytes.substr(0, bytes.size() * (random() % 100) / 100);
  std::string changed = bytes;
  for (int i = 0; i < 4 && !changed.empty(); ++i)
    changed[random() % changed.size()] = static_cast<char>(random());
  for (const std::string* const content :
       {&bytes, static_cast<const std::string*>(&cut), static_cast<const std::string*>(&changed)}) {
    const fs::path folder = folder_.path() / ("model " + std::to_string(paths_.size()));
    fs::create_directory(folder);
    paths_.push_back((folder / name).string());
    testing::write_file(paths_.back(), *content);
  }
}

const std::string& MonkeyModels::path(std::mt19937_64& random) const {
  return paths_[random() % paths_.size()];
}

void MonkeyModels::show(Workspace& workspace, std::mt19937_64& random) const {
  if (random() % 2 == 0) return states()[random() % states().size()].prepare(workspace);
  constexpr const char* kPresets[] = {"demo", "llama-3-8b", "t5-small", "whisper-tiny", "mamba-130m"};
  workspace.show(preset_graph(kPresets[random() % std::size(kPresets)]), "");
}

}  // namespace loadline::gui
