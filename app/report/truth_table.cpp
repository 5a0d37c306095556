// Lays the runs out by framework.
#include "app/report/truth_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace loadline::report {
namespace {

std::string mib(std::uint64_t bytes) {
  constexpr double kMiB = 1 << 20;
  return fmt::format("{:.0f}", static_cast<double>(bytes) / kMiB);
}

std::string cell(const TruthRow& row, std::string_view name) {
  const auto counter = std::ranges::find(row.counters, name, &TruthCounter::name);
  if (counter == row.counters.end()) return "-";
  std::string claimed = counter->projected ? mib(*counter->projected) : "-";
  if (counter->low && counter->high) claimed = mib(*counter->low) + " to " + mib(*counter->high);
  return claimed + " / " + mib(counter->measured);
}

std::string verdict(const TruthRow& row) {
  if (!row.ok) return "beyond: " + deviation_text(row);
  return fmt::format("{:.1f} %{}", row.error_percent.value_or(0), row.range ? ", range" : "");
}

std::string method(const TruthRow& row) {
  std::string text = row.method.empty() ? "none" : row.method;
  for (const std::string& option : row.options) text += ' ' + option;
  return text;
}

std::string line(const TruthRow& row) {
  return fmt::format("| {} | {} | `{}` | {} | {} | {} | {} |\n", row.recipe, row.model, method(row),
                     cell(row, "anonymous"), cell(row, "file"), cell(row, "device"), verdict(row));
}

}  // namespace

std::string truth_table(const Truth& truth) {
  std::vector<std::string> frameworks;
  std::size_t good = 0, ranged = 0;
  for (const TruthRow& row : truth.rows) {
    const std::string framework = row.framework + " " + row.version;
    if (std::ranges::find(frameworks, framework) == frameworks.end()) frameworks.push_back(framework);
    good += row.ok && !row.range ? 1 : 0;
    ranged += row.ok && row.range ? 1 : 0;
  }
  std::string text =
      fmt::format("Of {} runs on {}, {} are within the tolerance, {} inside a range, and {} beyond.\n",
                  truth.rows.size(), truth.date, good, ranged, truth.rows.size() - good - ranged);
  for (const std::string& framework : frameworks) {
    text += fmt::format(
        "\n### {}\n\n| recipe | checkpoint | method | host | mapped pages | device | off by |\n"
        "|---|---|---|---|---|---|---|\n",
        framework);
    for (const TruthRow& row : truth.rows)
      if (row.framework + " " + row.version == framework) text += line(row);
  }
  return text;
}

std::string truth_summary(const Truth& truth) {
  struct Shown {
    std::string_view recipe, model, words;
  };
  constexpr std::array<Shown, 6> kShown = {
      {{"plain", "llama-untied.bin", "`torch.load`, `load_state_dict`, `.to(device)`"},
       {"mmap_assign", "llama-untied.shards-bin", "the same with `mmap=True` and `assign=True`, six files"},
       {"transformers_v5_device", "llama-untied.shards-safetensors", "`from_pretrained(device_map=...)`"},
       {"transformers_4.57.3_to", "llama-untied.shards-safetensors", "`from_pretrained()`, `.to(device)`"},
       {"accelerate_auto_disk", "llama-untied.shards-bin",
        "40 % on the device, 40 % on the host, the rest on disk"},
       {"llama_cpp_mmap_repack", "gguf-untied.q4_0", "on the CPU, with its defaults"}}};
  std::string text =
      "| load | framework | host | mapped pages | device | off by |\n|---|---|---|---|---|---|\n";
  for (const Shown& shown : kShown)
    for (const TruthRow& row : truth.rows)
      if (row.recipe == shown.recipe && row.model == shown.model)
        text += fmt::format("| {} | {} {} | {} | {} | {} | {} |\n", shown.words, row.framework, row.version,
                            cell(row, "anonymous"), cell(row, "file"), cell(row, "device"), verdict(row));
  return text;
}

}  // namespace loadline::report
