// ONNX external data (docs/ExternalData.md, docs/ExternalDataSecurity.md, 1.23), TensorProto.external_data:
//
//   location   POSIX path relative to the folder of the model file
//   offset     decimal; 0 if absent
//   length     decimal; to the end of the file if absent
//   checksum   SHA1 of the file; no reader verifies it
//   basepath   internal to the reference; has no meaning in a file
//
// The file must lie, links resolved, in the model's folder or in the Hugging Face cache to which the folder
// belongs (importers/containment). The reference also refuses files with several hard links. Here they are
// read: a link cannot be told from its original, caches that remove duplicates make hard links, and whoever
// can make a hard link in the folder could have copied the file there.
#include "importers/onnx/external.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/text.h"

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostUnknownKeys = 16;

struct Entries {
  std::optional<std::string> location, offset, length, checksum, basepath;
};

// Turns "./a//b" into "a/b". A ".." stays, so that open_sibling refuses it.
std::string without_dots(std::string_view path) {
  std::string clean;
  if (path.starts_with('/')) return std::string(path);
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") {
      if (!clean.empty()) clean += '/';
      clean += part;
    }
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return clean;
}

}  // namespace

std::string external_location(const OnnxTensor& tensor) {
  for (const auto& [key, value] : tensor.external)
    if (key == "location") return without_dots(value);
  return "";
}

ExternalFiles::Opened& ExternalFiles::open(const std::string& location, const OnnxTensor& tensor,
                                           const std::string& name) {
  const std::string clean = without_dots(location);
  const auto [found, fresh] = files_.try_emplace(clean);
  if (!fresh) return found->second;
  if (location.starts_with('#') || clean.empty())
    throw Error(ErrorCode::malformed, {.file = source_.file->path(), .byte = tensor.at, .tensor = name},
                "its data is said to lie in '{}', which is no file name", safe_display(location, 200));
  if (const auto file = source_.open_sibling(clean)) {
    found->second.file = FileId{static_cast<std::uint32_t>(graph_.files.size())};
    found->second.bytes = file->size();
    graph_.files.push_back({file->path(), file->size()});
  }
  return found->second;
}

ExternalRange ExternalFiles::find(const OnnxTensor& tensor, const std::string& name) {
  const ErrorPlace place{.file = source_.file->path(), .byte = tensor.at, .tensor = name};
  Entries entries;
  for (const auto& [key, value] : tensor.external) {
    std::optional<std::string>* slot = key == "location"   ? &entries.location
                                       : key == "offset"   ? &entries.offset
                                       : key == "length"   ? &entries.length
                                       : key == "checksum" ? &entries.checksum
                                       : key == "basepath" ? &entries.basepath
                                                           : nullptr;
    if (slot == nullptr) {
      if (unknown_keys_.size() < kMostUnknownKeys) unknown_keys_.insert(key);
      continue;
    }
    if (*slot) throw Error(ErrorCode::malformed, place, "its external data gives '{}' twice", key);
    *slot = value;
  }
  checksums_ += entries.checksum ? 1 : 0;
  if (!entries.location)
    throw Error(ErrorCode::malformed, place, "its data is external, but no location is given");
  const auto number = [&](const std::optional<std::string>& text, std::string_view key) {
    if (!text) return std::optional<std::uint64_t>();
    const auto value = text_as<std::uint64_t>(*text);
    if (!value)
      throw Error(ErrorCode::malformed, place, "external data: {} '{}' is not a whole number below 2^64", key,
                  safe_display(*text, 60));
    return value;
  };
  const std::uint64_t offset = number(entries.offset, "offset").value_or(0);
  const auto length = number(entries.length, "length");

  Opened& opened = open(*entries.location, tensor, name);
  if (opened.file == kNoFile) {
    opened.wanted_by.push_back(name);
    return {kNoFile, offset, length.value_or(0), length.has_value()};
  }
  if (offset > opened.bytes || (length && !range_fits(offset, *length, opened.bytes)))
    throw Error(ErrorCode::malformed, place, "external data: {} bytes at {} of '{}', which has {}",
                length ? fmt::format("{}", *length) : "the", offset, safe_display(*entries.location, 200),
                opened.bytes);
  return {opened.file, offset, length.value_or(opened.bytes - offset), length.has_value()};
}

void ExternalFiles::add_notes() {
  for (const auto& [location, opened] : files_) {
    if (opened.file != kNoFile) continue;
    graph_.missing.insert(graph_.missing.end(), opened.wanted_by.begin(), opened.wanted_by.end());
    graph_.note(Severity::error, {}, "'{}' is missing; it held {} tensor{}: {}", safe_display(location, 200),
                opened.wanted_by.size(), opened.wanted_by.size() == 1 ? "" : "s",
                join_names(opened.wanted_by, 3));
  }
  for (const std::string& key : unknown_keys_)
    graph_.note(Severity::warning, {}, "unknown key '{}' in external data", safe_display(key, 60));
  if (checksums_ > 0)
    graph_.note(Severity::info, {}, "{} tensor{} give{} a checksum of external data; none is verified",
                checksums_, checksums_ == 1 ? "" : "s", checksums_ == 1 ? "s" : "");
}

}  // namespace loadline
