// Escapes as in URLs.
#include "core/graph/names/file_names.h"

#include "core/base/text.h"

#include <charconv>
#include <cstddef>

#include <fmt/format.h>

namespace loadline {
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

}  // namespace loadline
