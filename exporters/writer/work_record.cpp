// What a conversion writes and from which files, as JSON.

#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "exporters/writer/work_folder.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <span>

#include <fcntl.h>
#include <linux/fs.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <sys/stat.h>

namespace loadline::exporters {

// --- stat, and the generation that the file system gives each inode.

SourceState source_state(const std::string& path) {
  const io::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw system_error(path, "open", errno);
  return source_state(fd.get(), path);
}

SourceState source_state(int file, const std::string& path) {
  struct stat now = {};
  if (::fstat(file, &now) != 0) throw system_error(path, "examine", errno);
  SourceState state{.path = path,
                    .bytes = static_cast<std::uint64_t>(now.st_size),
                    .modified_ns = io::changed_at(now),
                    .device = now.st_dev,
                    .inode = now.st_ino};
  int generation = 0;
  if (::ioctl(file, FS_IOC_GETVERSION, &generation) == 0)
    state.generation = static_cast<std::uint32_t>(generation);
  return state;
}

void check_unchanged(const SourceState& before, bool punched) {
  const SourceState now = source_state(before.path);
  const ErrorPlace place{.file = before.path};
  if (now.bytes != before.bytes)
    throw Error(ErrorCode::io, place, "has changed while it was read: {} bytes now, {} before", now.bytes,
                before.bytes);
  if (now.device != before.device || now.inode != before.inode || now.generation != before.generation)
    throw Error(ErrorCode::io, place, "has been replaced by another file while it was read");
  if (now.modified_ns != before.modified_ns && !punched)
    throw Error(ErrorCode::io, place, "has changed while it was read: it was written to");
}

// --- The record as JSON, and the number that stands for a layout and its sources.

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

// Hashes numbers and texts; a text's size keeps neighbors apart.
class Identity {
 public:
  void add(std::uint64_t value) { hash_.update(std::as_bytes(std::span(&value, 1))); }
  void add(std::span<const std::byte> bytes) {
    add(bytes.size());
    hash_.update(bytes);
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  template <typename Values>
  void add_all(const Values& values) {
    add(std::uint64_t{values.size()});
    for (const auto& value : values) add(static_cast<std::uint64_t>(value));
  }

  void add(const convert::RecipeStep& step) {
    add(static_cast<std::uint64_t>(step.kind));
    add_all(step.inputs);
    for (const std::uint64_t value :
         {std::uint64_t{graph::index(step.tensor)}, std::uint64_t{step.packed}, step.axis, step.first,
          step.count, step.a, step.b, std::bit_cast<std::uint64_t>(step.value),
          static_cast<std::uint64_t>(step.dtype)})
      add(value);
    add_all(step.shape);
    add(std::as_bytes(std::span(step.constants)));
    if (step.importance != nullptr) add(std::as_bytes(std::span(step.importance->weights)));
  }

  void add(const LayoutFile& file) {
    add(file.bytes);
    add(file.header);
    for (const HeaderCopy& copy : file.copies)
      for (const std::uint64_t value : {copy.at, copy.array.offset, copy.array.bytes, copy.array.count})
        add(value);
    add(std::uint64_t{file.slots.size()});
    for (const Slot& slot : file.slots) {
      add(slot.name.view());
      for (const std::uint64_t value : {static_cast<std::uint64_t>(slot.dtype), slot.offset, slot.bytes})
        add(value);
      add(std::uint64_t{slot.recipe.steps.size()});
      for (const convert::RecipeStep& step : slot.recipe.steps) add(step);
    }
    for (const Piece& piece : file.pieces) {
      add(piece.offset);
      add(piece.bytes);
    }
    add(file.copy_of);
  }

  std::uint64_t value() const { return hash_.digest(); }

 private:
  io::Xxh3 hash_;
};

}  // namespace

std::string output_folder(const Layout& layout) {
  if (!layout.folder.empty()) return layout.folder;
  const fs::path parent =
      layout.files.empty() ? fs::path() : fs::path(layout.files.front().path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::vector<SourceState> layout_sources(const Layout& layout, const graph::MetaGraph& source) {
  std::vector<SourceState> states;
  for (const graph::ModelFile& file : source.files)
    if (!file.path.empty() && fs::exists(file.path))
      states.push_back(source_state(fs::absolute(file.path).string()));  // from every working folder
  for (const LayoutFile& file : layout.files)
    if (!file.copy_of.empty()) states.push_back(source_state(file.copy_of));
  return states;
}

WorkRecord work_record(const Layout& layout, std::vector<SourceState> sources) {
  WorkRecord record;
  const fs::path folder(output_folder(layout));
  Identity identity;
  for (const LayoutFile& file : layout.files) {
    const fs::path target =
        folder == "." ? fs::path(file.path) : fs::path(file.path).lexically_relative(folder);
    record.files.push_back({target.string(), file.bytes});
    identity.add(record.files.back().target);
    identity.add(file);
  }
  // the times of files that are consumed change: they are compared one by one
  for (const SourceState& state : sources) {
    identity.add(state.path);
    for (const std::uint64_t value : {state.bytes, state.device, state.inode, state.generation})
      identity.add(value);
  }
  record.identity = identity.value();
  record.sources = std::move(sources);
  return record;
}

std::string record_text(const WorkRecord& record) {
  Json json = {{"version", kVersion},       {"identity", record.identity}, {"replaces", record.replaces},
               {"removes", record.removes}, {"files", Json::array()},      {"superseded", record.superseded},
               {"sources", Json::array()}};
  for (const WorkFile& file : record.files)
    json["files"].push_back({{"target", file.target}, {"bytes", file.bytes}});
  for (const SourceState& state : record.sources)
    json["sources"].push_back({{"path", state.path},
                               {"bytes", state.bytes},
                               {"modified_ns", state.modified_ns},
                               {"device", state.device},
                               {"inode", state.inode},
                               {"generation", state.generation}});
  // names that are not UTF-8 would throw; what stands for them only shows, and fails a comparison
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

WorkRecord parse_record(std::string_view text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion)
      throw Error(ErrorCode::unsupported, {.file = path}, "was written by another version of this program");
    WorkRecord record;
    json.at("identity").get_to(record.identity);
    json.at("replaces").get_to(record.replaces);
    json.at("removes").get_to(record.removes);
    json.at("superseded").get_to(record.superseded);
    for (const Json& file : json.at("files"))
      record.files.push_back({file.at("target").get<std::string>(), file.at("bytes").get<std::uint64_t>()});
    for (const Json& state : json.at("sources"))
      record.sources.push_back(
          {state.at("path").get<std::string>(), state.at("bytes").get<std::uint64_t>(),
           state.at("modified_ns").get<std::int64_t>(), state.at("device").get<std::uint64_t>(),
           state.at("inode").get<std::uint64_t>(), state.at("generation").get<std::uint64_t>()});
    // targets lead nowhere else
    const auto inside = [&](const std::string& name) {
      const fs::path target(name);
      if (target.empty() || target.is_absolute() ||
          std::ranges::any_of(target, [](const fs::path& part) { return part == ".."; }))
        throw Error(ErrorCode::malformed, {.file = path}, "names a target outside its folder");
    };
    for (const WorkFile& file : record.files) inside(file.target);
    for (const std::string& name : record.superseded) {
      inside(name);
      if (fs::path(name).has_parent_path())  // a folder may be a link
        throw Error(ErrorCode::malformed, {.file = path}, "names a file outside its folder");
    }
    return record;
  } catch (const Json::exception&) {
    throw Error(ErrorCode::malformed, {.file = path}, "is not a record of a conversion");
  }
}

}  // namespace loadline::exporters
