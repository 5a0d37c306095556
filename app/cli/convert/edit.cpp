// loadline edit: changes the metadata of a file in place.
#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/unfinished.h"
#include "exporters/edit/edit_header.h"
#include "importers/importer.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct EditFlags {
  std::string file;
  std::vector<std::string> set, remove;
  bool dry_run = false;
};

exporters::MetadataChange parse_change(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos)
    throw Error(ErrorCode::usage, "--set: '{}' is not KEY=VALUE", safe_display(word, 100));
  exporters::MetadataChange change{word.substr(0, equals), {}, word.substr(equals + 1)};
  const std::size_t colon = change.key.rfind(':');
  if (colon != std::string::npos && exporters::is_metadata_type(change.key.substr(colon + 1))) {
    change.type = change.key.substr(colon + 1);
    change.key.resize(colon);
  }
  return change;
}

std::vector<exporters::MetadataChange> parse_changes(const EditFlags& flags) {
  std::vector<exporters::MetadataChange> changes;
  for (const std::string& word : flags.set) changes.push_back(parse_change(word));
  for (const std::string& key : flags.remove) changes.push_back({key, {}, {}});
  return changes;
}

// Files of a cache are named by their content.
void refuse_cached(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path real = std::filesystem::canonical(path, failure);
  if (!failure && real.parent_path().filename() == "blobs")
    throw Error(
        ErrorCode::usage, {.file = path},
        "lies in a Hugging Face cache, whose files are named by their content: copy it and edit the copy");
}

// The model of this one file, without the files beside it.
graph::MetaGraph read_alone(const std::string& path) {
  importers::Source source;
  source.file = std::make_shared<const io::SourceFile>(io::SourceFile::open(path));
  source.open_sibling = [](const std::string&) { return std::shared_ptr<const io::SourceFile>(); };
  if (const importers::Importer& importer = importers::importer_for(*source.file);
      !exporters::can_edit_header(importer.id))
    throw Error(ErrorCode::unsupported, {.file = path},
                "metadata can be edited in safetensors and GGUF files, this is {}", importer.name);
  return importers::import_source(source);
}

// Reads the edited file back: the tensors must be as before, and the metadata as asked.
void check_edited(const std::string& path, const graph::MetaGraph& before,
                  const exporters::HeaderEdit& edit) {
  const graph::MetaGraph after = read_alone(path);
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::io, {.file = path}, "{} after the edit: the old header is back", what);
  };
  if (after.tensors != before.tensors || after.storages != before.storages || after.files != before.files)
    fail("the edit changed the tensors");
  const auto text_of = [](const graph::MetaGraph& graph, std::string_view key) -> std::optional<std::string> {
    const graph::MetaValue* const value = graph::find_metadata(graph, key);
    return value == nullptr ? std::nullopt : std::optional(graph::meta_text(*value));
  };
  for (const exporters::ChangedKey& changed : edit.changed)
    if (text_of(after, changed.key) != changed.after)
      fail(fmt::format("the key '{}' does not have the requested value", safe_display(changed.key, 100)));
  const auto is_changed = [&](std::string_view key) {
    return key == exporters::kSlackKey ||
           std::ranges::find(edit.changed, key, &exporters::ChangedKey::key) != edit.changed.end();
  };
  for (const graph::MetaEntry& entry : before.metadata)
    if (!is_changed(entry.key) && text_of(after, entry.key) != graph::meta_text(entry.value))
      fail(fmt::format("the edit changed the key '{}'", safe_display(entry.key, 100)));
}

std::string value_words(const std::string& value) { return safe_display(value, 60); }

std::string recovery_words(io::Recovery recovery, const std::string& path) {
  return fmt::format("{}: an edit had been interrupted; {}", safe_display(path, 76),
                     recovery == io::Recovery::undone ? "the old header is back"
                                                      : "it was complete, and its backup is removed");
}

void print_edit(const EditFlags& flags, const exporters::HeaderEdit& edit, io::Recovery recovery) {
  if (recovery != io::Recovery::none) fmt::print("{}\n", recovery_words(recovery, flags.file));
  if (edit.changed.empty()) return;
  fmt::print("{}: {} {}\n", safe_display(flags.file, 76), counted(edit.changed.size(), "key"),
             flags.dry_run ? "would change" : "changed in place");
  for (const exporters::ChangedKey& changed : edit.changed) {
    fmt::print("  {}\n", safe_display(changed.key, 76));
    if (changed.before) fmt::print("    was {}\n", value_words(*changed.before));
    if (!changed.after)
      fmt::print("    removed\n");
    else
      fmt::print("    {} {}\n", changed.before ? "is " : "new:", value_words(*changed.after));
  }
  fmt::print("{} free in the header.\n", counted(edit.room, "byte"));
}

Json edit_json(const EditFlags& flags, const exporters::HeaderEdit& edit, io::Recovery recovery) {
  constexpr std::array<std::string_view, 3> kRecoveries = {"none", "undone", "done"};
  Json json = {{"file", json_text(flags.file)},
               {"dry_run", flags.dry_run},
               {"recovery", kRecoveries[static_cast<std::size_t>(recovery)]},
               {"changed", Json::array()},
               {"header_bytes", edit.after.size()},
               {"room", edit.room}};
  const auto value = [](const std::optional<std::string>& text) {
    return text ? Json(json_text(*text)) : Json();
  };
  for (const exporters::ChangedKey& changed : edit.changed)
    json["changed"].push_back({{"key", json_text(changed.key)},
                               {"before", value(changed.before)},
                               {"after", value(changed.after)}});
  return json;
}

int edit_file(const Context& context, const EditFlags& flags) {
  const std::vector<exporters::MetadataChange> changes = parse_changes(flags);
  if (io::is_folder(flags.file))
    throw Error(ErrorCode::usage, {.file = flags.file}, "is a folder: name the file in it to edit");
  refuse_cached(flags.file);
  io::require_whole(flags.file, false);
  const bool interrupted = io::edit_was_interrupted(flags.file);
  if (flags.dry_run && interrupted)
    throw Error(ErrorCode::usage, {.file = flags.file},
                "an edit of this file was interrupted: run `loadline edit` on it without --dry-run first");
  if (changes.empty() && !interrupted)
    throw Error(ErrorCode::usage, "nothing to change: give --set KEY=VALUE or --remove KEY");
  const io::Recovery recovery = io::recover_in_place(flags.file);
  exporters::HeaderEdit edit;
  if (!changes.empty()) {
    const graph::MetaGraph before = read_alone(flags.file);
    edit = exporters::edit_header(before, io::SourceFile::open(flags.file), changes);
    if (!flags.dry_run)
      io::replace_in_place(flags.file, edit.before, edit.after,
                           [&] { check_edited(flags.file, before, edit); });
  }
  if (context.json)
    print_json(edit_json(flags, edit, recovery));
  else
    print_edit(flags, edit, recovery);
  return kDone;
}

}  // namespace

Action setup_edit(CLI::App& app) {
  auto flags = std::make_shared<EditFlags>();
  add_text(app, "FILE", flags->file, "a safetensors or GGUF file; of a split model, one of its files",
           {.required = true});
  add_list(app, "--set", flags->set,
           "set a key; a new key of a GGUF file needs its type, such as KEY:u32=1. May be repeated",
           {.value_name = "KEY=VALUE"});
  add_list(app, "--remove", flags->remove, "remove a key. May be repeated", {.value_name = "KEY"});
  add_flag(app, "--dry-run", flags->dry_run, "show what would change, and whether it fits");
  return [flags](Context& context) { return edit_file(context, *flags); };
}

}  // namespace loadline::cli
