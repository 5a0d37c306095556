// Checks of changes for every format, and safetensors.

#include "core/assets/asset_file.h"
#include "core/base/text.h"
#include "exporters/edit/edit_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

namespace loadline::exporters {

// --- Chooses the format of an edit.

namespace {

struct Editor {
  std::string_view format;
  HeaderEdit (*edit)(const graph::MetaGraph&, const io::SourceFile&, std::span<const MetadataChange>);
};
constexpr std::array kEditors = {Editor{"safetensors", edit_safetensors_header},
                                 Editor{"gguf", edit_gguf_header}};

}  // namespace

bool can_edit_header(std::string_view importer) {
  return std::ranges::find(kEditors, importer, &Editor::format) != kEditors.end();
}

void check_changes(const graph::MetaGraph& graph, const io::SourceFile& file,
                   std::span<const MetadataChange> changes) {
  std::set<std::string_view> keys;
  for (const MetadataChange& change : changes) {
    const auto refuse = [&](std::string_view why) {
      throw Error(ErrorCode::usage, {.file = file.path()}, "the key '{}' {}", safe_display(change.key, 100),
                  why);
    };
    if (change.key.empty()) refuse("is empty");
    if (!is_valid_utf8(change.key)) refuse("is not UTF-8");
    if (change.value && !is_valid_utf8(*change.value)) refuse("gets a value that is not UTF-8");
    if (!keys.insert(change.key).second) refuse("is changed twice");
    if (!change.value && graph::find_metadata(graph, change.key) == nullptr) refuse("is not in the file");
  }
}

Error no_room(const io::SourceFile& file, std::uint64_t needed, std::uint64_t available) {
  return Error(ErrorCode::limit, {.file = file.path()},
               "the new metadata needs {} bytes in front of the tensors, there are {}: {} too few. Convert "
               "the model to a new file with --align 4096, which leaves room, and edit that one",
               needed, available, needed - available);
}

HeaderEdit edit_header(const graph::MetaGraph& graph, const io::SourceFile& file,
                       std::span<const MetadataChange> changes) {
  for (const Editor& editor : kEditors)
    if (editor.format == graph.format) {
      check_changes(graph, file, changes);
      return editor.edit(graph, file, changes);
    }
  throw Error(ErrorCode::unsupported, {.file = file.path()},
              "metadata can be edited in safetensors and GGUF files, this is {}", graph.format);
}

// --- The header of a safetensors file with another __metadata__. All other bytes of the JSON text stay as
// they are; spaces at its end make room or fill it.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kSpaces = " \t\r\n";

// The member __metadata__ in the text of a header.
struct Place {
  std::size_t begin = 0, end = 0;  // of the member; equal if there is none, and then where it can go
  bool alone = false;              // there are no other members
};

// Of text that an importer has read without an error; malformed text still ends in an Error.
Place find_metadata_member(const std::string& text, const std::string& path) {
  try {
    const simdjson::padded_string padded(text);
    const auto place_of = [&](const char* at) { return static_cast<std::size_t>(at - padded.data()); };
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document = parser.iterate(padded);
    Place place;
    place.begin = place.end = text.find('{') + 1;
    std::size_t members = 0;
    for (auto member : document.get_object()) {
      ++members;
      const char* const key = member.key().raw();
      if (std::string_view(member.unescaped_key()) != kMetadataKey) continue;
      place.begin = place_of(key) - 1;
      simdjson::ondemand::object object = member.value().get_object();
      const std::string_view value = object.raw_json();
      place.end = place_of(value.data()) + value.find_last_not_of(kSpaces) + 1;
    }
    place.alone = members == (place.begin == place.end ? 0 : 1);
    return place;
  } catch (const simdjson::simdjson_error& error) {
    if (error.error() == simdjson::MEMALLOC) throw std::bad_alloc();
    throw Error(ErrorCode::malformed, {.file = path, .byte = kLengthBytes}, assets::json_fault(text));
  }
}

// The new entries, in the old order, new keys last.
std::string new_member(const graph::MetaGraph& graph, std::span<const MetadataChange> changes) {
  std::string text;
  const auto add = [&](const std::string& key, const std::string& value) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", Json(key).dump(), Json(value).dump());
  };
  const auto change_of = [&](std::string_view key) {
    return std::ranges::find(changes, key, &MetadataChange::key);
  };
  for (const graph::MetaEntry& entry : graph.metadata) {
    if (entry.key == graph::kConfigKey) continue;  // of the folder
    const auto change = change_of(entry.key);
    if (change == changes.end())
      add(entry.key, std::get<std::string>(entry.value));
    else if (change->value)
      add(entry.key, *change->value);
  }
  for (const MetadataChange& change : changes)
    if (change.value && graph::find_metadata(graph, change.key) == nullptr) add(change.key, *change.value);
  return fmt::format("\"{}\":{{{}}}", kMetadataKey, text);
}

}  // namespace

HeaderEdit edit_safetensors_header(const graph::MetaGraph& graph, const io::SourceFile& file,
                                   std::span<const MetadataChange> changes) {
  HeaderEdit edit;
  for (const MetadataChange& change : changes) {
    if (change.type && *change.type != "string")
      throw Error(ErrorCode::usage, {.file = file.path()},
                  "the key '{}' cannot be of type {}: metadata of safetensors files is text",
                  safe_display(change.key, 100), safe_display(*change.type, 40));
    if (change.key == graph::kConfigKey)
      throw Error(ErrorCode::unsupported, {.file = file.path()},
                  "config.json is a file of its own beside the weights: edit that file");
    const std::string* const before = graph::find_text(graph, change.key);
    edit.changed.push_back({change.key, before ? std::optional(*before) : std::nullopt, change.value});
  }
  std::uint64_t length = 0;
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMostEditedHeader || length > file.size() - kLengthBytes)
    throw Error(ErrorCode::limit, {.file = file.path(), .byte = 0}, "a header of {} bytes, the limit is {}",
                length, std::min(kMostEditedHeader, file.size() - kLengthBytes));
  const std::string text = file.text_at(kLengthBytes, length);
  const Place place = find_metadata_member(text, file.path());
  std::string member = new_member(graph, changes);
  if (place.begin == place.end && !place.alone) member += ',';
  std::string changed = text.substr(0, place.begin) + member + text.substr(place.end);
  changed.erase(changed.find_last_not_of(kSpaces) + 1);
  if (changed.size() > length) throw no_room(file, changed.size(), length);
  edit.room = length - changed.size();
  changed.append(static_cast<std::size_t>(edit.room), ' ');
  const auto whole = [&](const std::string& json) {
    std::vector<std::byte> bytes(kLengthBytes + json.size());
    std::memcpy(bytes.data(), &length, kLengthBytes);
    std::memcpy(bytes.data() + kLengthBytes, json.data(), json.size());
    return bytes;
  };
  edit.before = whole(text);
  edit.after = whole(changed);
  return edit;
}

}  // namespace loadline::exporters
