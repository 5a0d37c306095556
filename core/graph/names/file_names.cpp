// Takes file names apart by each convention.
#include "core/graph/names/file_names.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>

#include <fmt/core.h>

namespace loadline::graph {

// --- The table: a row for each kind of weight files, in the order in which a folder's model is looked for.

namespace {

struct WeightFiles {
  std::string_view importers;  // ids; empty if nothing here reads these files
  std::string_view names;      // whole names, which are opened first, and endings
};

constexpr WeightFiles kWeightFiles[] = {
    {"hf_index", "model.safetensors.index.json .safetensors.index.json"},
    {"safetensors", "model.safetensors .safetensors"},
    {"gguf", ".gguf"},
    {"hf_index", "pytorch_model.bin.index.json .bin.index.json"},
    {"torch torch_legacy", "pytorch_model.bin .pt .pth .bin .ckpt"},
    {"onnx", ".onnx"},
    {"pte", ".pte"},
    {"ptd", ".ptd"},
    {"tflite", ".tflite"},
    {"pt2", ".pt2"},
    {"npz", ".npz"},
    {"npy", ".npy"},
    {"config", "config.json"},
    {"", ".index.json .onnx_data .onnx.data .h5 .msgpack .ot .mlpackage"},
};

bool is_ending(std::string_view name) { return name.starts_with('.'); }

// What of a row a file's name fits, if it fits: a whole name rather than an ending.
std::optional<std::string_view> fitting_name(const WeightFiles& row, std::string_view file) {
  for (const std::string_view name : split(row.names, ' '))
    if (is_ending(name) ? file.ends_with(name) : file == name) return name;
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> model_file_rank(std::string_view name) {
  // within a row: whole names, endings, files that go with a model
  constexpr std::size_t kRanks = 3;
  for (std::size_t row = 0; row < std::size(kWeightFiles) && !kWeightFiles[row].importers.empty(); ++row)
    if (const auto fitting = fitting_name(kWeightFiles[row], name))
      return row * kRanks + (!gguf_role(name).empty() ? 2 : is_ending(*fitting) ? 1 : 0);
  return std::nullopt;
}

bool is_weight_file(std::string_view name) {
  return std::ranges::any_of(kWeightFiles, [&](const WeightFiles& row) {
    return row.importers != "config" && fitting_name(row, name);
  });
}

std::string file_endings(std::string_view importer) {
  std::string endings, names;
  for (const WeightFiles& row : kWeightFiles) {
    if (!has_word(row.importers, importer)) continue;
    for (const std::string_view name : split(row.names, ' ')) {
      std::string& list = is_ending(name) ? endings : names;
      list.append(list.empty() ? "" : " ").append(name);
    }
  }
  return endings.empty() ? names : endings;
}

bool has_ending_of(std::string_view path, std::string_view importer) {
  return std::ranges::any_of(kWeightFiles, [&](const WeightFiles& row) {
    return has_word(row.importers, importer) && fitting_name(row, path.substr(path.rfind('/') + 1));
  });
}

// --- Recognizes file names (huggingface_hub serialization/_base.py).

namespace {

// Removes five or six digits from the end of `text`; false if they are not there.
bool drop_number(std::string_view& text) {
  const std::size_t before = text.find_last_not_of("0123456789");
  const std::size_t digits = text.size() - (before == std::string_view::npos ? 0 : before + 1);
  text.remove_suffix(digits);
  return digits == 5 || digits == 6;
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::optional<std::string_view> hf_shard_stem(std::string_view name) {
  if ((drop_suffix(name, ".safetensors") || drop_suffix(name, ".bin")) && drop_number(name) &&
      drop_suffix(name, "-of-") && drop_number(name) && drop_suffix(name, "-") && !name.empty())
    return name;
  return std::nullopt;
}

bool is_hf_weight_file(std::string_view name) {
  return name == "model.safetensors" || name == std::string("model").append(kHfIndexSuffix) ||
         (name.ends_with(".safetensors") && hf_shard_stem(name) == "model");
}

// --- Looks for the words of the GGUF naming convention, as a whole word of the name.

std::string_view gguf_role(std::string_view file_name) {
  constexpr std::string_view kExtension = ".gguf";
  constexpr std::array<std::string_view, 3> kRoles = {"mmproj", "mtp", "draft"};
  if (!file_name.ends_with(kExtension)) return "";
  file_name.remove_suffix(kExtension.size());
  const std::string name = lower_case(file_name);
  const auto is_end = [](char c) { return c == '-' || c == '_' || c == '.'; };
  for (const std::string_view role : kRoles) {
    const bool first = name.starts_with(role) && (name.size() == role.size() || is_end(name[role.size()]));
    const bool last =
        name.size() > role.size() && name.ends_with(role) && is_end(name[name.size() - role.size() - 1]);
    if (first || last) return role;
  }
  return "";
}

std::string_view set_role(const MetaGraph& graph, FileId file) {
  if (graph.format != "gguf" || graph.files.size() < 2 || file == kNoFile) return "";
  const auto role = [&](FileId id) {
    const std::string_view path = graph.file(id).path;
    return gguf_role(path.substr(path.rfind('/') + 1));
  };
  return role(FileId{0}).empty() ? role(file) : "";
}

// --- Escapes as in URLs.

namespace {

constexpr std::size_t kMostFileName = 255;

}  // namespace

std::optional<std::string> npy_file_name(std::string_view tensor) {
  const bool text = is_valid_utf8(tensor);
  std::string name;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const auto byte = static_cast<unsigned char>(tensor[i]);
    const bool special =
        byte < 0x20 || byte == 0x7F || std::string_view("/\\:%").find(tensor[i]) != std::string_view::npos;
    if (special || (byte >= 0x80 && !text) || (i == 0 && byte == '.'))
      name += fmt::format("%{:02X}", byte);
    else
      name += tensor[i];
  }
  name += kNpyExtension;
  if (tensor.empty() || name.size() > kMostFileName) return std::nullopt;
  return name;
}

std::string npy_tensor_name(std::string_view file) {
  std::string_view stem = file;
  if (stem.ends_with(kNpyExtension)) stem.remove_suffix(kNpyExtension.size());
  std::string name;
  for (std::size_t i = 0; i < stem.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = stem.data() + i + 1;
    if (stem[i] == '%' && stem.size() - i > 2 &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      name += static_cast<char>(byte);
      i += 2;
    } else {
      name += stem[i];
    }
  }
  return npy_file_name(name) == file ? name : std::string(stem);
}

}  // namespace loadline::graph
