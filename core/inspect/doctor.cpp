// One function per kind of finding. Every cost is in bytes or steps of this model.
#include "core/inspect/doctor.h"

#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/core.h>

namespace loadline::inspect {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPlaces = 16,
                        kPlace = 4096;  // where a storage is looked at first, and how many bytes
constexpr std::uint64_t kMostCompared = std::uint64_t{4}
                                        << 30;  // bytes read to prove that storages are equal
constexpr std::uint64_t kMostPadding = kPage;   // between tensors: padding that aligns them
constexpr std::uint64_t kVector = 64;           // alignment for the widest vector loads and most DMA engines

bool in_file(const graph::Storage& storage) { return storage.file != graph::kNoFile && storage.bytes > 0; }

// The alignment in bytes that one element, or one block, needs to be used in place.
std::uint64_t natural_alignment(graph::DType dtype) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  return info.kind == graph::DTypeKind::block || info.block_elements != 1
             ? 2
             : std::max<std::uint64_t>(info.block_bytes, 1);
}

// "1 tensor begins", "2 tensors begin"
std::string counted_with(std::uint64_t count, std::string_view noun, std::string_view one,
                         std::string_view many) {
  return fmt::format("{} {}", counted(count, noun), count == 1 ? one : many);
}

class Doctor {
 public:
  Doctor(const io::StorageReader& reader, const CanConvert& can_convert, Progress& progress)
      : reader_(reader),
        graph_(reader.graph()),
        can_convert_(can_convert),
        progress_(progress),
        owners_(graph::first_owner(graph_)) {}

  std::vector<Finding> diagnose() {
    if (std::ranges::none_of(graph_.storages, in_file)) return {};
    missing();
    unclaimed();
    encoded();
    alignment();
    pages();
    order();
    holes();
    partial_storages();
    network();
    duplicates();
    std::ranges::stable_sort(findings_,
                             [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    return std::move(findings_);
  }

 private:
  void missing() {
    if (graph_.missing.empty()) return;
    add({.id = "missing",
         .severity = graph::Severity::error,
         .text =
             fmt::format("{} listed in the index {} in no file: {}", counted(graph_.missing.size(), "tensor"),
                         graph_.missing.size() == 1 ? "is" : "are", join_names(graph_.missing, 3)),
         .cost = "the model cannot be loaded whole",
         .remedy = "nothing here: download the missing files again",
         .count = graph_.missing.size()});
  }

  void unclaimed() {
    std::vector<std::string> files = unclaimed_files(graph_);
    if (files.empty()) return;
    std::uint64_t bytes = 0;
    std::vector<std::string> names;
    for (const std::string& file : files) {
      std::error_code failure;
      const std::uint64_t size = fs::file_size(file, failure);
      if (!failure) bytes += size;
      names.push_back(fs::path(file).filename().string());
    }
    add({.id = "unclaimed",
         .severity = graph::Severity::warning,
         .text = fmt::format("{} beside the model {} not listed in its index: {}",
                             counted(files.size(), "weight file"), files.size() == 1 ? "is" : "are",
                             join_names(names, 3)),
         .cost = fmt::format("{} of disk; tools that take every file of the folder load them too",
                             format_bytes(bytes)),
         .remedy = "removing them, or a conversion into a new folder, which writes the model alone",
         .settings = {{"to", "safetensors"}},
         .count = files.size(),
         .bytes = bytes,
         .files = std::move(files)});
  }

  void encoded() {
    Finding found = {.id = "encoded",
                     .severity = graph::Severity::warning,
                     .remedy = "a conversion to safetensors or GGUF, which writes plain bytes",
                     .settings = {{"to", "safetensors"}}};
    std::map<std::string_view, std::uint64_t> kinds;
    for (std::size_t i = 0; i < graph_.storages.size(); ++i) {
      const graph::Storage& storage = graph_.storages[i];
      if (!in_file(storage) || storage.encoding == graph::Encoding::plain) continue;
      count(found, i);
      ++kinds[graph::encoding_name(storage.encoding)];
    }
    std::string shares;
    for (const auto& [kind, number] : kinds)
      shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", number, kind);
    add(found, fmt::format("{} not stored as plain bytes ({})", counted(found.count, "storage"), shares),
        fmt::format("{} must be decoded through a buffer and cannot be mapped", format_bytes(found.bytes)));
  }

  // Whether tensors could be used in place in a mapping.
  void alignment() {
    Finding elements = {.id = "alignment",
                        .severity = graph::Severity::warning,
                        .remedy = "a conversion to GGUF, which aligns every tensor to any power of two",
                        .settings = {{"to", "gguf"}, {"align", "64"}}};
    Finding vectors = {
        .id = "vector_alignment",
        .severity = graph::Severity::info,
        .remedy = "a conversion to GGUF with this alignment; 4096 for direct I/O and host-pointer import",
        .settings = {{"to", "gguf"}, {"align", "64"}}};
    std::vector<bool> seen(graph_.storages.size(), false);
    for (const graph::Tensor& tensor : graph_.tensors) {
      const std::size_t at = graph::index(tensor.storage);
      const graph::Storage& storage = graph_.storages[at];
      if (!in_file(storage) || storage.encoding != graph::Encoding::plain || seen[at]) continue;
      seen[at] = true;
      const std::uint64_t offset = storage.offset + tensor.offset;
      if (offset % natural_alignment(tensor.dtype) != 0)
        count(elements, at);
      else if (offset % kVector != 0)
        count(vectors, at);
    }
    add(elements,
        fmt::format("{} on no multiple of the element size",
                    counted_with(elements.count, "tensor", "begins", "begin")),
        fmt::format("{} must be copied out of a mapping before use", format_bytes(elements.bytes)),
        {"a conversion to safetensors, which puts large elements before small ones",
         {{"to", "safetensors"}}});
    add(vectors,
        fmt::format("{} on no multiple of {} bytes", counted_with(vectors.count, "tensor", "begins", "begin"),
                    kVector),
        fmt::format("aligned vector loads and most DMA need a copy of {}", format_bytes(vectors.bytes)),
        {"a conversion to torch's format with this alignment; 4096 for direct I/O and host-pointer import",
         {{"to", "torch"}, {"align", "64"}}});
  }

  // Pages that two storages share: touched, read and evicted with either.
  void pages() {
    Finding found = {
        .id = "page_straddle",
        .severity = graph::Severity::info,
        .remedy = "a conversion to GGUF with this alignment, which gives every tensor pages of its own",
        .settings = {{"to", "gguf"}, {"align", "4096"}}};
    for (std::size_t i = 0; i < graph_.storages.size(); ++i) {
      const graph::Storage& storage = graph_.storages[i];
      if (!in_file(storage) || storage.encoding != graph::Encoding::plain) continue;
      const std::uint64_t first = storage.offset / kPage, last = (storage.offset + storage.bytes - 1) / kPage;
      const std::uint64_t least = (storage.bytes + kPage - 1) / kPage;
      if (last - first + 1 <= least) continue;
      found.count += 1;
      found.bytes += (last - first + 1 - least) * kPage;
      example(found, i);
    }
    add(found,
        fmt::format("{} one page more than {} size needs",
                    counted_with(found.count, "tensor", "lies on", "lie on"),
                    found.count == 1 ? "its" : "their"),
        fmt::format("{} of pages mapped, read and evicted together with another tensor",
                    format_bytes(found.bytes)),
        {"a conversion to torch's format with this alignment, which gives every tensor pages of its own",
         {{"to", "torch"}, {"align", "4096"}}});
  }

  // Counts how often the file position moves back when tensors are read in order of use.
  void order() {
    const load::StorageOrder use = load::find_order("forward").make(graph_);
    Finding found = {.id = "order",
                     .severity = graph::Severity::info,
                     .remedy = "loading in file order, or a conversion to GGUF in the order of use",
                     .settings = {{"to", "gguf"}, {"order", "forward"}}};
    const graph::Storage* before = nullptr;
    std::uint64_t steps = 0;
    for (const graph::StorageId id : use) {
      const graph::Storage& storage = graph_.storage(id);
      if (!in_file(storage)) continue;
      if (before != nullptr) {
        ++steps;
        const std::uint64_t end = before->offset + before->stored_bytes;
        if (storage.file != before->file ? storage.file < before->file : storage.offset < end) {
          found.count += 1;
          found.bytes += storage.file == before->file ? end - storage.offset : 0;
          example(found, graph::index(id));
        }
      }
      before = &storage;
    }
    add(found,
        fmt::format("in the order of use, {} of {} steps go back in the files", format_grouped(found.count),
                    format_grouped(steps)),
        "read-ahead is lost at each: on a cold disk a seek or a network round trip",
        {"loading in file order, or a conversion to torch's format in the order of use",
         {{"to", "torch"}, {"order", "forward"}}});
  }

  // Bytes of each file, after its header, that belong to no storage.
  void holes() {
    std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> ranges(graph_.files.size());
    for (const graph::Storage& storage : graph_.storages)
      if (storage.file != graph::kNoFile && storage.stored_bytes > 0)
        ranges[graph::index(storage.file)].emplace_back(storage.offset,
                                                        storage.offset + storage.stored_bytes);
    Finding inside = {.id = "holes",
                      .severity = graph::Severity::info,
                      .remedy = "a conversion, which writes tensors side by side",
                      .settings = {{"to", "safetensors"}}};
    Finding after = {.id = "trailing",
                     .severity = graph::Severity::info,
                     .remedy = "a conversion, which leaves out what belongs to no tensor",
                     .settings = {{"to", "safetensors"}}};
    for (std::size_t f = 0; f < ranges.size(); ++f) {
      if (ranges[f].empty()) continue;
      std::ranges::sort(ranges[f]);
      std::uint64_t end = ranges[f].front().first;
      for (const auto& [begin, stop] : ranges[f]) {
        if (begin > end && begin - end > kMostPadding) {
          inside.count += 1;
          inside.bytes += begin - end;
        }
        end = std::max(end, stop);
      }
      // in other formats these bytes are the directory or the rest of a message
      if (graph_.format == "safetensors" && graph_.files[f].bytes > end) {
        after.count += 1;
        after.bytes += graph_.files[f].bytes - end;
        after.files.push_back(graph_.files[f].path);
      }
    }
    add(inside, fmt::format("{} between tensors", counted(inside.count, "gap")),
        fmt::format("{} of padding or metadata among the weights, read along with them",
                    format_bytes(inside.bytes)));
    add(after,
        fmt::format("{} behind the last tensor of {}", format_bytes(after.bytes),
                    counted(after.count, "file")),
        fmt::format("{} of disk; strict readers refuse safetensors files with a remainder",
                    format_bytes(after.bytes)));
  }

  // A view of a large storage brings all of it along.
  void partial_storages() {
    std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> views(graph_.storages.size());
    for (const graph::Tensor& tensor : graph_.tensors)
      views[graph::index(tensor.storage)].emplace_back(tensor.offset,
                                                       tensor.offset + graph::tensor_bytes(graph_, tensor));
    std::vector<std::uint64_t> used(graph_.storages.size(), 0);
    for (std::size_t i = 0; i < views.size(); ++i) {
      std::ranges::sort(views[i]);
      std::uint64_t end = 0;
      for (const auto& [begin, stop] : views[i]) {
        used[i] += stop > end ? stop - std::max(begin, end) : 0;
        end = std::max(end, stop);
      }
    }
    Finding found = {.id = "unused_bytes",
                     .severity = graph::Severity::warning,
                     .remedy = "a conversion to safetensors, which writes each tensor's own bytes only",
                     .settings = {{"to", "safetensors"}}};
    for (std::size_t i = 0; i < used.size(); ++i) {
      const graph::Storage& storage = graph_.storages[i];
      if (!in_file(storage) || used[i] >= storage.bytes || storage.bytes - used[i] < kPage) continue;
      found.count += 1;
      found.bytes += storage.bytes - used[i];
      example(found, i);
    }
    add(found,
        fmt::format("{} only in part by tensors",
                    counted_with(found.count, "storage", "is used", "are used")),
        fmt::format("{} loaded for nothing by readers that take whole storages", format_bytes(found.bytes)));
  }

  void network() {
    const auto file = std::ranges::find_if(graph_.storages, in_file)->file;
    const io::FileSystem system = io::file_system_of(graph_.file(file).path);
    if (!system.network) return;
    add({.id = "network",
         .severity = graph::Severity::warning,
         .text = fmt::format("the files lie on {}, a network or user-space file system", system.name),
         .cost = "mapping them makes every page fault a round trip: 4 to 50 times slower than reading in "
                 "sequence",
         .remedy = "copying the model to a local disk, or a method that reads instead of mapping",
         .settings = {{"method", "staged_ring"}},
         .count = graph_.files.size(),
         .bytes = graph::storage_bytes(graph_)});
  }

  // Another conversion, for models that the first one does not take.
  struct OtherFix {
    std::string_view remedy;
    std::vector<Remedy> settings;
  };

  void add(Finding& finding, std::string text, std::string cost, const OtherFix& other = {}) {
    if (finding.count == 0) return;
    finding.text = std::move(text);
    finding.cost = std::move(cost);
    add(std::move(finding), other);
  }

  void add(Finding finding, const OtherFix& other = {}) {
    const auto is_possible = [&](const std::vector<Remedy>& settings) {
      return settings.empty() || settings.front().option != "to" || can_convert_(settings);
    };
    if (!is_possible(finding.settings)) {
      const bool another = !other.settings.empty() && is_possible(other.settings);
      finding.remedy =
          another ? other.remedy : "nothing here: no format that could be written takes this model";
      finding.settings = another ? other.settings : std::vector<Remedy>();
    }
    findings_.push_back(std::move(finding));
  }

  std::uint64_t content_hash(std::size_t at, std::uint64_t bytes) {
    buffer_.resize(1 << 20);
    io::Xxh3 hash;
    for (std::uint64_t done = 0; done < bytes;) {
      progress_.check_canceled();
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), bytes - done));
      reader_.read(graph::StorageId{static_cast<std::uint32_t>(at)}, done, std::span(buffer_).first(n));
      hash.update(std::span(buffer_).first(n));
      done += n;
      progress_.add(n);
    }
    return hash.digest();
  }

  // Splits candidates by a hash; groups of one are dropped.
  template <typename Hash>
  std::vector<std::vector<std::size_t>> split(const std::vector<std::vector<std::size_t>>& groups,
                                              Hash hash) {
    std::vector<std::vector<std::size_t>> result;
    for (const auto& group : groups) {
      std::map<std::uint64_t, std::vector<std::size_t>> by_hash;
      for (const std::size_t at : group) by_hash[hash(at)].push_back(at);
      for (auto& [digest, alike] : by_hash)
        if (alike.size() > 1) result.push_back(std::move(alike));
    }
    return result;
  }

  // Hashes samples of a storage: storages that differ mostly differ in a sample.
  std::uint64_t sample_hash(std::size_t at) {
    const std::uint64_t bytes = graph_.storages[at].bytes;
    if (bytes <= kPlaces * kPlace) return content_hash(at, bytes);
    io::Xxh3 hash;
    buffer_.resize(std::max<std::size_t>(buffer_.size(), kPlace));
    for (std::uint64_t i = 0; i < kPlaces; ++i) {
      progress_.check_canceled();
      const auto piece = std::span(buffer_).first(kPlace);
      reader_.read(graph::StorageId{static_cast<std::uint32_t>(at)}, (bytes - kPlace) / (kPlaces - 1) * i,
                   piece);
      hash.update(piece);
      progress_.add(kPlace);
    }
    return hash.digest();
  }

  void duplicates() {
    constexpr std::uint64_t kLeast = kPage;
    std::map<std::uint64_t, std::vector<std::size_t>> by_size;
    Finding unwritten = {.id = "unwritten",
                         .severity = graph::Severity::warning,
                         .remedy = "write the weights there; a plan of the load needs none"};
    for (std::size_t i = 0; i < graph_.storages.size(); ++i) {
      const graph::Storage& storage = graph_.storages[i];
      if (!in_file(storage) || storage.bytes < kLeast || storage.encoding == graph::Encoding::unreadable)
        continue;
      progress_.check_canceled();
      if (reader_.file_of(graph::StorageId{static_cast<std::uint32_t>(i)})
              .has_data(storage.offset, storage.bytes))
        by_size[storage.bytes].push_back(i);
      else
        count(unwritten, i);
    }
    add(unwritten,
        fmt::format("{} in holes of sparse files: these parts of the file were never written",
                    counted_with(unwritten.count, "storage", "lies", "lie")),
        fmt::format("{} of weights are zeros", format_bytes(unwritten.bytes)));
    std::vector<std::vector<std::size_t>> groups;
    for (auto& [bytes, alike] : by_size)
      if (alike.size() > 1) groups.push_back(std::move(alike));
    // then the whole storages, unless that would read too many bytes
    for (const auto& group : groups)
      progress_.add_total(group.size() * std::min(graph_.storages[group.front()].bytes, kPlaces * kPlace));
    groups = split(groups, [this](std::size_t at) { return sample_hash(at); });
    std::uint64_t candidates = 0;
    for (const auto& group : groups) candidates += group.size() * graph_.storages[group.front()].bytes;
    const bool whole = candidates <= kMostCompared;
    if (whole) {
      progress_.add_total(candidates);
      groups = split(groups, [this](std::size_t at) { return content_hash(at, graph_.storages[at].bytes); });
    }
    Finding found = {.id = "duplicates",
                     .severity = graph::Severity::warning,
                     .remedy = "nothing here yet: tie the tensors where the model is saved"};
    for (const auto& group : groups) {
      found.count += group.size() - 1;
      found.bytes += (group.size() - 1) * graph_.storages[group.front()].bytes;
      example(found, group[1]);
    }
    add(found,
        fmt::format("{} the same bytes as another{}", counted_with(found.count, "storage", "holds", "hold"),
                    whole ? ""
                          : fmt::format(", by samples: {} exceeded the limit of the comparison",
                                        format_bytes(candidates))),
        fmt::format("{} of disk and memory twice", format_bytes(found.bytes)));
  }

  void count(Finding& finding, std::size_t storage) {
    finding.count += 1;
    finding.bytes += graph_.storages[storage].bytes;
    example(finding, storage);
  }
  void example(Finding& finding, std::size_t storage) {
    if (!finding.example) finding.example = owners_[storage];
  }

  const io::StorageReader& reader_;
  const graph::MetaGraph& graph_;
  const CanConvert& can_convert_;
  Progress& progress_;
  std::vector<std::optional<graph::TensorId>> owners_;
  std::vector<Finding> findings_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::vector<std::string> unclaimed_files(const graph::MetaGraph& graph) {
  // only an index lists the files of a model; files beside a single file are no leftovers
  if (graph.files.empty() || !graph.files.front().path.ends_with(".index.json")) return {};
  graph::TextSet own, extensions;
  for (std::size_t i = 1; i < graph.files.size(); ++i) {
    const fs::path path(graph.files[i].path);
    own.insert(path.filename().string());
    extensions.insert(path.extension().string());
  }
  std::vector<std::string> found;
  std::error_code failure;
  const fs::path folder = fs::path(graph.files.front().path).parent_path();
  for (fs::directory_iterator at(folder.empty() ? "." : folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (at->is_regular_file(ignored) && extensions.contains(at->path().extension().string()) &&
        !own.contains(name))
      found.push_back((folder / name).string());
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) { return natural_less(a, b); });
  return found;
}

std::vector<Finding> diagnose(const io::StorageReader& reader, const CanConvert& can_convert,
                              Progress& progress) {
  return Doctor(reader, can_convert, progress).diagnose();
}

}  // namespace loadline::inspect
