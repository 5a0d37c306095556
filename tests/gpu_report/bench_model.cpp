// Writes the file, and chooses its size.
#include "tests/gpu_report/bench_model.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/system_memory.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>

namespace loadline::bench {
namespace {

constexpr std::uint64_t kMebibyte = 1ull << 20, kGibibyte = 1ull << 30;

}  // namespace

BenchModel::BenchModel(const std::string& folder, std::uint64_t bytes)
    : folder_(folder), path_(folder_.path() + "/bench.safetensors") {
  const std::uint64_t unit = std::min(bytes, 512 * kMebibyte);
  testing::SafetensorsHeader header;
  std::uint64_t written = 0, tensors = 0;
  const auto add = [&](std::uint64_t size) {
    size = std::min(size, bytes - written);
    if (size == 0) return;
    header.add(fmt::format("t{}", tensors++), "U8", fmt::format("{}", size), size);
    written += size;
  };
  while (written < bytes) {
    for (int i = 0; i < 2; ++i) add(unit / 4);
    for (int i = 0; i < 256; ++i) add(unit / 512);
  }
  OutputFile out(UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)), path_);
  if (out.descriptor() < 0) throw system_error(path_, "create it", errno);
  const std::string head = testing::safetensors_bytes(header.text(), 0);
  out.preallocate(head.size() + bytes);
  out.write_at(0, std::as_bytes(std::span(head)));
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> words(2 * kMebibyte);
  const auto all = std::as_bytes(std::span(words));
  for (std::uint64_t at = 0; at < bytes; at += all.size()) {
    for (std::uint64_t& word : words) word = random();
    out.write_at(head.size() + at,
                 all.first(static_cast<std::size_t>(std::min<std::uint64_t>(all.size(), bytes - at))));
  }
  out.sync();  // the system drops no page that is still to be written
  graph_ = std::make_shared<const MetaGraph>(open_model(path_, {}));
}

double BenchModel::cached() const {
  const SourceFile file = SourceFile::open(path_);
  return static_cast<double>(resident_bytes(file)) / static_cast<double>(file.size());
}

void BenchModel::drop() const { drop_pages(SourceFile::open(path_)); }

std::uint64_t fitting_bytes(const gpu::DeviceInfo& device, const std::string& folder,
                            std::vector<std::string>& missing) {
  constexpr std::uint64_t kLeast = 64 * kMebibyte;
  const bool software = device.type == gpu::DeviceType::cpu;
  const std::uint64_t wanted = software ? 512 * kMebibyte : 16 * kGibibyte;
  struct Room {
    std::string_view what;
    std::uint64_t bytes;
  };
  const gpu::DeviceHeap* const heap = gpu::device_heap(device);
  const std::uint64_t on_device = heap == nullptr ? wanted : heap->budget.value_or(heap->bytes);
  std::error_code ignored;
  const std::uint64_t on_disk = std::filesystem::space(folder, ignored).available;
  // the page cache must hold the file; the buffers take 2 GiB
  const std::uint64_t in_memory = available_system_memory().value_or(wanted * 2);
  const Room rooms[] = {{"the device's memory", on_device / 10 * 8},
                        {"the disk", on_disk / 10 * 8},
                        {"the system's memory, which also caches the file",
                         in_memory > 4 * kGibibyte ? (in_memory - 2 * kGibibyte) / 10 * 7 : in_memory / 4}};
  const Room& least = *std::ranges::min_element(rooms, {}, &Room::bytes);
  if (least.bytes >= wanted) return wanted;
  const std::uint64_t bytes = std::max(least.bytes / kMebibyte * kMebibyte, kLeast);
  missing.push_back(fmt::format("A model of {}: it has {}, because no more fits into {}.",
                                format_bytes(wanted), format_bytes(bytes), least.what));
  return bytes;
}

}  // namespace loadline::bench
