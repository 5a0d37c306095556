// Finds manual pages and reduces them to plain text; lays out the framework runs as a table.
#include "app/report/manual.h"

#include "app/report/markdown.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "embedded/manual_files.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::report {

// --- Finds manual pages and reduces their Markdown to plain text.

namespace {

std::string words_table() {
  std::vector<const load::Method*> methods;
  for (const load::Method& method : load::methods()) methods.push_back(&method);
  std::string text = "| word | meaning |\n|---|---|\n";
  for (const load::LawWord& word : load::law_words(methods))
    text += fmt::format("| `{}` | {} |\n", word.name, word.meaning);
  return text;
}

// The page with its table, made from what the program knows.
std::string filled(std::string_view markdown) {
  std::string page(markdown);
  const auto fill = [&](std::string_view place, auto table) {
    if (const std::size_t at = page.find(place); at != std::string::npos)
      page.replace(at, place.size(), table());
  };
  fill("{runs}", [] { return truth_table(load::built_in_truth()); });
  fill("{words}\n", words_table);
  return page;
}

std::vector<ManualPage> load_pages() {
  constexpr std::string_view kFirst = "getting-started";
  std::vector<ManualPage> pages;
  for (const embedded::File& file : embedded::manual_files()) {
    const std::string_view line = file.bytes.substr(0, file.bytes.find('\n'));
    const std::string_view id = file.name.substr(0, file.name.rfind('.'));
    pages.push_back({id, line.substr(std::min<std::size_t>(2, line.size())), filled(file.bytes)});
  }
  std::ranges::stable_sort(pages, [&](const ManualPage& a, const ManualPage& b) {
    return (a.id == kFirst) != (b.id == kFirst) ? a.id == kFirst : a.id < b.id;
  });
  return pages;
}

struct Explanation {
  std::string id;
  std::string text;
};

// The sections "## ID" of a page, each as one line.
std::vector<Explanation> explanations_in(std::string_view markdown) {
  std::vector<Explanation> sections;
  for (const Block& block : markdown_blocks(markdown)) {
    if (block.kind == BlockKind::heading && block.level == 2) {
      sections.push_back({plain_text(block.text), {}});
    } else if (!sections.empty()) {
      std::string& text = sections.back().text;
      text += (text.empty() ? "" : " ") + plain_text(block.text);
    }
  }
  return sections;
}

}  // namespace

std::span<const ManualPage> manual_pages() {
  static const std::vector<ManualPage> pages = load_pages();
  return pages;
}

const ManualPage& find_manual_page(std::string_view id) { return find_row(manual_pages(), id, "page"); }

std::string_view method_explanation(std::string_view id) {
  static const std::vector<Explanation> all = explanations_in(find_manual_page("methods").text);
  return find_row(std::span(all), id, "method").text;
}

std::string law_legend(const std::vector<const load::Method*>& methods) {
  std::string text;
  for (const load::LawWord& word : load::law_words(methods))
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", word.name, word.meaning);
  return text.empty() ? text : text + ".";
}

// --- Lays the runs out by framework.

namespace {

std::string mib(std::uint64_t bytes) {
  constexpr double kMiB = 1 << 20;
  return fmt::format("{:.0f}", static_cast<double>(bytes) / kMiB);
}

std::string cell(const load::TruthRow& row, std::string_view name) {
  const auto counter = std::ranges::find(row.counters, name, &load::TruthCounter::name);
  if (counter == row.counters.end()) return "-";
  std::string claimed = counter->projected ? mib(*counter->projected) : "-";
  if (counter->low && counter->high) claimed = mib(*counter->low) + " to " + mib(*counter->high);
  return claimed + " / " + mib(counter->measured);
}

std::string verdict(const load::TruthRow& row) {
  if (!row.ok) return "beyond: " + load::deviation_text(row);
  return fmt::format("{:.1f} %{}", row.error_percent.value_or(0), row.range ? ", range" : "");
}

std::string method(const load::TruthRow& row) {
  std::string text = row.method.empty() ? "none" : row.method;
  for (const std::string& option : row.options) text += ' ' + option;
  return text;
}

std::string line(const load::TruthRow& row) {
  return fmt::format("| {} | {} | `{}` | {} | {} | {} | {} |\n", row.recipe, row.model, method(row),
                     cell(row, "anonymous"), cell(row, "file"), cell(row, "device"), verdict(row));
}

}  // namespace

std::string truth_table(const load::Truth& truth) {
  std::vector<std::string> frameworks;
  std::size_t good = 0, ranged = 0;
  for (const load::TruthRow& row : truth.rows) {
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
    for (const load::TruthRow& row : truth.rows)
      if (row.framework + " " + row.version == framework) text += line(row);
  }
  return text;
}

std::string truth_summary(const load::Truth& truth) {
  struct Shown {
    std::string_view recipe, model, words;
  };
  constexpr auto kShown = std::to_array<Shown>(
      {{"plain", "llama-untied.bin", "`torch.load`, `load_state_dict`, `.to(device)`"},
       {"plain_by_shard", "llama-untied.shards-bin", "the same, a file of six at a time"},
       {"mmap_assign", "llama-untied.shards-bin", "the same with `mmap=True` and `assign=True`, six files"},
       {"load_file_assign", "llama-untied.safetensors", "`load_file`, `assign=True`, `.to(device)`"},
       {"transformers_v5_device", "llama-untied.shards-safetensors", "`from_pretrained(device_map=...)`"},
       {"transformers_v5_to", "llama-untied.shards-safetensors", "`from_pretrained()`, `.to(device)`"},
       {"transformers_v5_cpu_then_run", "llama-untied.shards-safetensors",
        "`from_pretrained()` and a token on the CPU"},
       {"transformers_4.57.3_to", "llama-untied.shards-safetensors", "`from_pretrained()`, `.to(device)`"},
       {"accelerate_device", "llama-untied.shards-safetensors",
        "`load_checkpoint_and_dispatch`, all on the device"},
       {"accelerate_auto_disk", "llama-untied.shards-bin",
        "40 % on the device, 40 % on the host, the rest on disk"},
       {"llama_cpp_mmap", "gguf-untied.q8_0", "Q8_0 on the CPU, without repacking"},
       {"llama_cpp_mmap_repack", "gguf-untied.q4_0", "Q4_0 on the CPU, with its defaults"}});
  std::string text =
      "| load | framework | host | mapped pages | device | off by |\n|---|---|---|---|---|---|\n";
  for (const Shown& shown : kShown)
    for (const load::TruthRow& row : truth.rows)
      if (row.recipe == shown.recipe && row.model == shown.model)
        text += fmt::format("| {} | {} {} | {} | {} | {} | {} |\n", shown.words, row.framework, row.version,
                            cell(row, "anonymous"), cell(row, "file"), cell(row, "device"), verdict(row));
  return text;
}

}  // namespace loadline::report
