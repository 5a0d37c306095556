// Opens shards and reads them on several threads.
#include "importers/huggingface/shards.h"

#include "core/base/parallel.h"
#include "importers/formats.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <thread>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kShardsPerThread = 4;
// How many files are opened ahead, and how many bytes of each are read ahead: enough for most headers.
constexpr std::size_t kMostAhead = 256;  // files open at a time, but for those being read
constexpr std::uint64_t kReadAhead = 128 << 10;

// The content decides the format; for a name with .safetensors the sniff is skipped.
MetaGraph read_shard(const SourceFile& file, NameIndex& names) {
  if (file.path().ends_with(".safetensors")) return read_safetensors_file(file, &names);
  const std::string head = file.head(kSniffBytes);
  const bool zip = sniff_torch_zip(head, file.path()) == Match::yes;
  if (!zip && sniff_torch_legacy(head, file.path()) != Match::yes) return read_safetensors_file(file, &names);
  MetaGraph graph = zip ? read_torch_zip_file(file) : read_torch_legacy_file(file);
  names = NameIndex(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
    names.add(graph.tensors[i].name, graph.tensors[i].name.hash(), i,
              [&](std::uint32_t at) { return graph.tensors[at].name.view(); });
  return graph;
}

// Opens files well ahead and asks the system to read their beginnings, so that parsing one shard overlaps
// with reading the others, even with few threads.
class ShardLoop {
 public:
  ShardLoop(const Source& source, const std::vector<std::string>& names,
            const std::function<void(OpenedShard)>& take)
      : source_(source), names_(names), take_(take), shards_(names.size()) {}

  void run() {
    const std::size_t ahead = std::min(kMostAhead, names_.size());
    ParallelLoop(names_.size() + ahead, threads_for_shards(names_.size()), [&](std::size_t i) {
      if (i < names_.size()) open(shards_[i], names_[i]);
      if (i < ahead) return;
      Shard& shard = shards_[i - ahead];
      open(shard, names_[i - ahead]);  // in case no other thread has opened it yet
      read(shard);
      hand_over(shard);
    }).finish();
  }

 private:
  struct Shard {
    std::once_flag once;
    std::shared_ptr<const SourceFile> file;
    OpenedShard opened;
    bool ready = false;
  };

  void open(Shard& shard, const std::string& name) {
    std::call_once(shard.once, [&] {
      try {
        shard.file = source_.open_sibling(name);
        if (shard.file) shard.file->will_read(0, kReadAhead);
      } catch (...) {
        shard.opened.error = std::current_exception();
      }
    });
  }

  static void read(Shard& shard) {
    if (!shard.file) return;
    try {
      shard.opened.graph = read_shard(*shard.file, shard.opened.names);
    } catch (...) {
      shard.opened.error = std::current_exception();
    }
    shard.file.reset();
  }

  // Hands over this shard and all ready ones after it, once those before it are done. So few shards wait
  // here.
  void hand_over(Shard& shard) {
    const std::lock_guard lock(mutex_);
    shard.ready = true;
    for (; next_ < shards_.size() && shards_[next_].ready; ++next_) take_(std::move(shards_[next_].opened));
  }

  const Source& source_;
  const std::vector<std::string>& names_;
  const std::function<void(OpenedShard)>& take_;
  std::vector<Shard> shards_;
  std::mutex mutex_;      // for the two below, and Shard::ready
  std::size_t next_ = 0;  // to be handed over
};

}  // namespace

void open_shards(const Source& source, const std::vector<std::string>& names,
                 const std::function<void(OpenedShard shard)>& take) {
  ShardLoop(source, names, take).run();
}

std::size_t threads_for_shards(std::size_t shards) {
  const std::size_t cores = std::max(2U, std::thread::hardware_concurrency());
  return std::min({kMostThreads, cores, shards / kShardsPerThread});
}

std::vector<std::string> likely_shards(const SourceFile& index) {
  constexpr std::size_t kSearched = 4096;
  constexpr std::uint64_t kMostGuessed = 10'000;
  const std::string head = index.head(kSearched);
  const std::string_view text = head;
  std::size_t end = text.find(".safetensors\"");
  if (end == std::string_view::npos) end = text.find(".bin\"");
  const std::size_t of = end == std::string_view::npos ? end : text.rfind("-of-", end);
  const std::size_t quote = of == std::string_view::npos ? of : text.rfind('"', of);
  if (quote == std::string_view::npos) return {};
  const std::string_view name = text.substr(quote + 1, end - quote - 1);
  const std::string_view total = text.substr(of + 4, end - of - 4);
  const std::string_view extension = text.substr(end, text.find('"', end) - end);
  const std::size_t digits = of - quote - 1 > 0 ? name.substr(0, of - quote - 1).rfind('-') : name.npos;
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.size() <= 9 && part.find_first_not_of("0123456789") == part.npos;
  };
  if (digits == std::string_view::npos || !is_number(total)) return {};
  const std::string_view number = name.substr(digits + 1, of - quote - 1 - digits - 1);
  const std::uint64_t count = std::stoull(std::string(total));
  // each listed shard needs its name's bytes in the index: with fewer bytes the number cannot be true
  if (!is_number(number) || count > kMostGuessed || count > index.size() / name.size()) return {};
  std::vector<std::string> names;
  for (std::uint64_t i = 1; i <= count; ++i)
    names.push_back(
        fmt::format("{}-{:0{}}-of-{}{}", name.substr(0, digits), i, number.size(), total, extension));
  return names;
}

}  // namespace loadline
