// Counts the slots that need each storage; fallocate(PUNCH_HOLE) when none is left.
#include "exporters/writer/consume.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"
#include "core/io/unfinished.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline::exporters {
namespace {

namespace fs = std::filesystem;

// Importers read small tensors: shapes and states of packed weights. They stay.
constexpr std::uint64_t kLeastPunched = 1 << 20;

std::set<graph::StorageId> storages_of(const graph::MetaGraph& graph, const convert::Recipe& recipe) {
  std::set<graph::StorageId> storages;
  for (const graph::TensorId tensor : convert::recipe_tensors(graph, recipe))
    storages.insert(graph.tensor(tensor).storage);
  return storages;
}

bool holds_weights(const graph::MetaGraph& graph, std::size_t file) {
  return std::ranges::any_of(graph.storages, [&](const graph::Storage& storage) {
    return storage.file != graph::kNoFile && graph::index(storage.file) == file;
  });
}

// `file begin end check`: the check is the XXH3-64 of the text before it, in hexadecimal.
std::string line_of(const ConsumedRange& range) {
  const std::string text = fmt::format("{} {} {} ", range.file, range.begin, range.end);
  io::Xxh3 check;
  check.update(std::as_bytes(std::span(text)));
  return fmt::format("{}{:016x}\n", text, check.digest());
}

// What is taken from a source of which the first `files` files may be consumed.
std::optional<ConsumedRange> range_of(const graph::Storage& storage, std::size_t files) {
  const bool whole =
      storage.encoding == graph::Encoding::plain || storage.encoding == graph::Encoding::byte_swapped;
  if (storage.file == graph::kNoFile || graph::index(storage.file) >= files || !whole ||
      storage.bytes < kLeastPunched)
    return std::nullopt;
  return ConsumedRange{graph::index(storage.file), storage.offset, storage.offset + storage.bytes};
}

// With the paths of the marks.
std::vector<std::pair<std::string, io::Mark>> consumed_marks(const graph::MetaGraph& source,
                                                             std::size_t files) {
  std::set<std::string> folders;
  for (std::size_t i = 0; i < std::min(files, source.files.size()); ++i)
    folders.insert(fs::absolute(source.files[i].path).parent_path().string());
  std::vector<std::pair<std::string, io::Mark>> marks;
  for (const std::string& folder : folders)
    if (auto mark = io::consumed_mark(folder))
      marks.emplace_back((fs::path(folder) / io::kConsumedMark).string(), std::move(*mark));
  return marks;
}

}  // namespace

ConsumedLog parse_consumed(std::string_view text) {
  ConsumedLog log;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    std::string_view line = text.substr(0, end);
    const auto next = [&]() -> std::uint64_t {
      const std::size_t space = line.find(' ');
      const auto value = text_as<std::uint64_t>(line.substr(0, space));
      line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
      return value.value_or(0);
    };
    ConsumedRange range;
    range.file = static_cast<std::size_t>(next());
    range.begin = next();
    range.end = next();
    log.bytes += end + 1;
    if (range.begin < range.end && line_of(range) == text.substr(0, end + 1))
      log.ranges.push_back(range);
    else
      log.damaged = true;
  }
  return log;
}

void check_consumable(const graph::MetaGraph& source, std::size_t files) {
  for (std::size_t i = 0; i < std::min(files, source.files.size()); ++i) {
    if (!holds_weights(source, i)) continue;
    const std::string& path = source.files[i].path;
    const ErrorPlace place{.file = path};
    struct stat state = {};
    if (::lstat(path.c_str(), &state) != 0) throw system_error(path, "examine", errno);
    if (S_ISLNK(state.st_mode))
      throw Error(ErrorCode::unsupported, place,
                  "is a link to a file that other models may use: it is not consumed");
    if (state.st_nlink > 1)
      throw Error(ErrorCode::unsupported, place,
                  "has {} names: it would be gone under each, and is not consumed", state.st_nlink);
    const io::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) throw system_error(path, "open for writing, to consume it", errno);
    // a hole behind the end changes nothing, and tells whether there can be holes
    if (::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, state.st_size, 4096) != 0)
      throw Error(ErrorCode::unsupported, place,
                  "its file system cannot give back parts of a file ({}): it is not consumed",
                  std::strerror(errno));
  }
}

Consumption::Consumption(const Layout& layout, const graph::MetaGraph& source, std::size_t files,
                         std::string log)
    : layout_(layout),
      source_(source),
      files_(files),
      log_(std::move(log)),
      uses_(source.storages.size(), 0),
      next_(layout.files.size(), 0) {
  if (!log_.empty() && fs::exists(log_)) {
    const io::SourceFile file = io::SourceFile::open(log_);
    const ConsumedLog before = parse_consumed(file.text_at(0, file.size()));
    if (before.damaged)
      throw Error(ErrorCode::malformed, {.file = log_},
                  "is damaged, or of another version of this program: which parts of the source are gone "
                  "cannot be told from it");
    for (const ConsumedRange& range : before.ranges) logged_.insert({range.file, range.begin});
    log_bytes_ = before.bytes;
  }
  for (const LayoutFile& file : layout.files)
    for (const Slot& slot : file.slots)
      for (const graph::StorageId storage : storages_of(source, slot.recipe)) ++uses_[graph::index(storage)];
}

void Consumption::written(std::size_t file, std::uint64_t upto) {
  if (const std::vector<ConsumedRange> ranges = freed(file, upto); !ranges.empty()) punch(ranges);
}

std::vector<ConsumedRange> Consumption::freed(std::size_t file, std::uint64_t upto) {
  std::vector<ConsumedRange> free;
  const std::vector<Slot>& slots = layout_.files[file].slots;
  for (std::size_t& next = next_[file]; next < slots.size(); ++next) {
    const Slot& slot = slots[next];
    if (slot.offset + slot.bytes > upto) break;
    for (const graph::StorageId id : storages_of(source_, slot.recipe)) {
      if (--uses_[graph::index(id)] > 0) continue;
      if (const auto range = range_of(source_.storage(id), files_)) free.push_back(*range);
    }
  }
  return free;
}

void Consumption::punch(const std::vector<ConsumedRange>& ranges) {
  if (!marked_) check_marks(source_, files_, fs::absolute(log_).parent_path().string(), has_begun(), true);
  std::string lines;
  for (const ConsumedRange& range : ranges)
    if (logged_.insert({range.file, range.begin}).second) lines += line_of(range);
  // behind the last whole line: one that a full disk has cut is written over
  const auto at = static_cast<off_t>(log_bytes_);
  const io::UniqueFd log(::open(log_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!log || ::ftruncate(log.get(), at) != 0 ||
      ::pwrite(log.get(), lines.data(), lines.size(), at) != static_cast<ssize_t>(lines.size()) ||
      ::fdatasync(log.get()) != 0)
    throw system_error(log_, "note what is consumed", errno);
  log_bytes_ += lines.size();
  io::sync_folder(fs::path(log_).parent_path().string());
  if (!std::exchange(marked_, true)) mark();
  for (const ConsumedRange& range : ranges) {
    const std::string& path = source_.files[range.file].path;
    const io::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd || ::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           static_cast<off_t>(range.begin), static_cast<off_t>(range.end - range.begin)) != 0)
      throw system_error(path, "free the converted part of the file", errno);
  }
}

// An empty tensor may share its place with one that is gone.
bool Consumption::is_lost(const Slot& slot) const {
  return std::ranges::any_of(storages_of(source_, slot.recipe), [&](graph::StorageId id) {
    const auto range = range_of(source_.storage(id), files_);
    return range && logged_.contains({range->file, range->begin});
  });
}

void Consumption::require_source(std::size_t file, std::uint64_t from, const std::string& part) const {
  std::vector<std::string> lost;
  for (const Slot& slot : layout_.files[file].slots)
    if (slot.offset + slot.bytes > from && is_lost(slot)) lost.emplace_back(slot.name.view());
  if (lost.empty()) return;
  throw Error(
      ErrorCode::io, {.file = part},
      "only its first {} bytes are as they were written. {} behind them cannot be written again, since "
      "the source's bytes are gone: {}. Put back this file and its log, or get the source again and "
      "remove these remains (`loadline clean {}`)",
      from, counted(lost.size(), "tensor"), join_names(lost, 3),
      safe_display(fs::path(part).parent_path().parent_path().string(), 200));
}

// Every file of the model is named: an ONNX model without weights of its own cannot be read either.
void Consumption::mark() const {
  const std::string work = fs::absolute(log_).parent_path().string();
  std::map<fs::path, io::Mark> marks;  // by folder
  for (std::size_t i = 0; i < std::min(files_, source_.files.size()); ++i) {
    const fs::path file = fs::absolute(source_.files[i].path);
    marks[file.parent_path()].files.push_back(file.filename().string());
  }
  for (auto& [folder, mark] : marks) {
    mark.by = work;
    io::put_mark((folder / io::kConsumedMark).string(), mark);
  }
}

std::vector<std::string> consumed_files(const graph::MetaGraph& source, std::size_t files) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < std::min(files, source.files.size()); ++i)
    if (holds_weights(source, i) || source.files[i].path.ends_with(".index.json"))
      paths.push_back(fs::absolute(source.files[i].path).string());
  return paths;
}

void check_marks(const graph::MetaGraph& source, std::size_t files, const std::string& work, bool holds,
                 bool consumes) {
  for (const auto& found : consumed_marks(source, files)) {
    const std::string& path = found.first;
    const io::Mark& mark = found.second;
    const bool own = io::is_by(mark, work);
    const auto is_named = [&](const graph::ModelFile& file) {
      return std::ranges::find(mark.files, fs::path(file.path).filename().string()) != mark.files.end();
    };
    if (((own || mark.any_file) && holds) ||
        (!consumes && !mark.any_file && std::ranges::none_of(source.files, is_named)))
      continue;
    if (mark.any_file)
      throw Error(ErrorCode::io, {.file = path},
                  "marks models without parts of their weights, and cannot be read");
    if (!io::is_folder(mark.by))
      throw Error(ErrorCode::usage, {.file = path},
                  "marks a model in this folder that has lost parts of its weights: delete that first");
    if (own)
      throw Error(ErrorCode::malformed, {.file = work},
                  "has lost the list of what was taken from the source, which '{}' marks",
                  safe_display(path, 200));
    throw Error(ErrorCode::usage, {.file = path},
                "marks what another conversion has consumed in this folder: that ends first");
  }
}

std::uint64_t consumed_room(const Layout& layout, const graph::MetaGraph& source, std::size_t files) {
  Consumption consumption(layout, source, files, "");
  std::uint64_t written = 0, freed = 0, most = 0;
  for (std::size_t i = 0; i < layout.files.size(); ++i)
    for (std::uint64_t at = 0; at < layout.files[i].bytes;) {
      const std::uint64_t step = std::min(kConsumedStep, layout.files[i].bytes - at);
      at += step;
      written += step;
      if (written > freed) most = std::max(most, written - freed);
      for (const ConsumedRange& range : consumption.freed(i, at)) {
        // only whole blocks of the file system can be given back
        constexpr std::uint64_t kBlock = 4096;
        const std::uint64_t begin = (range.begin + kBlock - 1) / kBlock * kBlock,
                            end = range.end / kBlock * kBlock;
        freed += end > begin ? end - begin : 0;
      }
    }
  return most;
}

}  // namespace loadline::exporters
