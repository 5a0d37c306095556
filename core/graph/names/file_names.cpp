// Takes file names apart by each convention.
#include "core/graph/names/file_names.h"

#include "core/base/text.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace loadline::graph {

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
