// Checks of changes for every format, and safetensors.

#include "core/base/text.h"
#include "exporters/edit/edit_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

// Walks over JSON text that an importer has read without an error; malformed text still ends in an Error.
class JsonWalker {
 public:
  JsonWalker(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::size_t at() const { return at_; }
  char next_token() {
    at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size());
    if (at_ == text_.size()) fail();
    return text_[at_];
  }
  void expect(char c) {
    if (next_token() != c) fail();
    ++at_;
  }
  // Steps over a string and returns its content, unescaped.
  std::string string() {
    expect('"');
    const std::size_t begin = at_ - 1;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) fail();
    ++at_;
    const Json value = Json::parse(text_.substr(begin, at_ - begin), nullptr, false);
    if (!value.is_string()) fail();
    return value.get<std::string>();
  }
  void skip_value() {
    std::size_t depth = 0;
    do {
      const char c = next_token();
      if (c == '"') {
        (void)string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
      // a number or a word ends before the next mark
      if (std::string_view("{}[],:").find(c) == std::string_view::npos)
        at_ = std::min(text_.find_first_of("{}[],:\" \t\r\n", at_), text_.size());
    } while (depth > 0);
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::malformed, {.file = path_, .byte = kLengthBytes + at_},
                "the header is not the JSON that it should be");
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

// The member __metadata__ in the text of a header.
struct Place {
  std::size_t begin = 0, end = 0;  // of the member; equal if there is none, and then where it can go
  bool alone = false;              // there are no other members
};

Place find_metadata_member(std::string_view text, const std::string& path) {
  JsonWalker walker(text, path);
  walker.expect('{');
  Place place{walker.at(), walker.at(), walker.next_token() == '}'};
  if (place.alone) return place;
  std::size_t members = 0;
  bool found = false;
  while (true) {
    walker.next_token();
    const std::size_t begin = walker.at();
    const std::string key = walker.string();
    walker.expect(':');
    walker.skip_value();
    ++members;
    if (key == kMetadataKey) {
      place.begin = begin;
      place.end = walker.at();
      found = true;
    }
    if (walker.next_token() == '}') break;
    walker.expect(',');
  }
  place.alone = found && members == 1;
  return place;
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
