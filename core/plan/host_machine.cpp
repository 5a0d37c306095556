// mmap, memfd and pread behind the three verbs.
#include "core/plan/host_machine.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plan/block_contents.h"

#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

namespace loadline::plan {
namespace {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

Error no_memory(std::uint64_t bytes) {
  return Error(ErrorCode::no_fit, "cannot allocate {} ({} bytes) of memory: {}", format_bytes(bytes), bytes,
               std::strerror(errno));
}

// Anonymous private memory for the host; a memfd for device and staging memory, so that the kernel counts the
// two separately.
void* map_memory(std::size_t length, bool shared) {
  io::UniqueFd memory;
  if (shared) {
    memory = io::UniqueFd(::memfd_create("loadline", MFD_CLOEXEC));
    if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(length)) != 0) throw no_memory(length);
  }
  void* const base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                            shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, memory.get(), 0);
  if (base == MAP_FAILED) throw no_memory(length);
  return base;
}

std::uint64_t growth(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

HostMachine::HostMachine(const io::StorageReader& reader)
    : reader_(reader), start_(std::chrono::steady_clock::now()), before_(io::read_process_memory()) {}

HostMachine::~HostMachine() {
  for (const Mapping& mapping : blocks_)
    if (mapping.base != nullptr) ::munmap(mapping.base, mapping.length);
}

void HostMachine::alloc(BlockId id, const Block& block) {
  if (blocks_.size() <= graph::index(id)) blocks_.resize(graph::index(id) + 1);
  if (block.bytes == 0) return;
  Mapping& mapping = blocks_[graph::index(id)];
  mapping = block.space == Space::page_cache ? map_file(block) : map_anonymous(block);
  live_[index(block.space)] += mapping.bytes;
}

// Populates every page before it returns. Uses madvise, so that a refusal is an Error; kernels before 5.14
// lack the advice, there each page is touched.
HostMachine::Mapping HostMachine::map_anonymous(const Block& block) const {
  Mapping mapping;
  mapping.bytes = static_cast<std::size_t>(block.bytes);
  mapping.length = static_cast<std::size_t>(align_up(block.bytes, page_size()));
  mapping.base = map_memory(mapping.length, block.space != Space::host);
  if (::madvise(mapping.base, mapping.length, MADV_POPULATE_WRITE) == 0) return mapping;
  if (errno != EINVAL) {
    const Error error = no_memory(mapping.length);
    ::munmap(mapping.base, mapping.length);
    throw error;
  }
  auto* const bytes = static_cast<volatile std::byte*>(mapping.base);
  for (std::size_t at = 0; at < mapping.length; at += page_size()) bytes[at] = std::byte{0};
  return mapping;
}

HostMachine::Mapping HostMachine::map_file(const Block& block) const {
  const io::SourceFile& file = reader_.file_of(*block.storage);
  if (reader_.graph().storage(*block.storage).encoding != graph::Encoding::plain)
    throw Error(ErrorCode::unsupported, {.file = file.path()}, "cannot be mapped: it holds encoded weights");
  const std::uint64_t offset = reader_.graph().storage(*block.storage).offset;
  if (file.descriptor() < 0)
    throw Error(ErrorCode::unsupported, {.file = file.path()}, "bytes in memory cannot be mapped as a file");
  Mapping mapping;
  mapping.bytes = static_cast<std::size_t>(block.bytes);
  mapping.mapped_storage = block.storage;
  mapping.lead = static_cast<std::size_t>(offset % page_size());
  mapping.length = mapping.lead + mapping.bytes;
  void* const base = ::mmap(nullptr, mapping.length, PROT_READ, MAP_SHARED, file.descriptor(),
                            static_cast<off_t>(offset - mapping.lead));
  if (base == MAP_FAILED) throw system_error(file.path(), fmt::format("map {} bytes", mapping.length), errno);
  mapping.base = base;
  return mapping;
}

// Populates mapped pages by madvise instead of reading them: if the file was cut short, that is an Error, not
// SIGBUS.
void HostMachine::touch_file(const Step& step) {
  const Mapping& mapping = blocks_[graph::index(step.block)];
  if (step.bytes == 0) return;
  const std::size_t first =
      (mapping.lead + static_cast<std::size_t>(step.offset)) / page_size() * page_size();
  const std::size_t end = mapping.lead + static_cast<std::size_t>(step.offset + step.bytes);
  // kernels before 5.14 lack this advice: the pages stay untouched there, and copies still work
  if (::madvise(static_cast<std::byte*>(mapping.base) + first, end - first, MADV_POPULATE_READ) != 0 &&
      errno != EINVAL)
    throw io::mapped_read_error(reader_.file_of(std::get<graph::StorageId>(step.from)), errno);
}

std::span<std::byte> HostMachine::bytes(BlockId id) {
  const Mapping& mapping = blocks_[graph::index(id)];
  return {static_cast<std::byte*>(mapping.base) + mapping.lead, mapping.base == nullptr ? 0 : mapping.bytes};
}

void HostMachine::copy(const Step& step, const Block& to) {
  if (to.space == Space::page_cache) return touch_file(step);
  if (step.bytes == 0) return;
  const Fetch from = [&](std::uint64_t offset, std::span<std::byte> piece) {
    fetch(step.from, offset, piece);
  };
  if (to.prepack()) return fill_prepacked(step, *to.prepack(), bytes(step.block), from);
  const auto out =
      bytes(step.block)
          .subspan(static_cast<std::size_t>(step.offset), static_cast<std::size_t>(step.written()));
  fill_from(step, 0, out, from);
}

void HostMachine::fetch(const CopySource& source, std::uint64_t offset, std::span<std::byte> out) {
  if (const auto* storage = std::get_if<graph::StorageId>(&source))
    return reader_.read(*storage, offset, out);
  const BlockId from = std::get<BlockId>(source);
  // mapped pages are read through the file descriptor: the same pages, but an Error instead of SIGBUS if the
  // file was cut short meanwhile
  if (const Mapping& mapping = blocks_[graph::index(from)]; mapping.mapped_storage)
    return reader_.read(*mapping.mapped_storage, offset, out);
  std::memcpy(out.data(), bytes(from).data() + offset, out.size());
}

void HostMachine::free(BlockId id, const Block& block) {
  Mapping& mapping = blocks_[graph::index(id)];
  live_[index(block.space)] -= mapping.base == nullptr ? 0 : mapping.bytes;
  if (mapping.base != nullptr) ::munmap(mapping.base, mapping.length);
  mapping = {};
}

double HostMachine::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::optional<ProcessMemory> HostMachine::sample() const {
  const io::ProcessMemoryCounters now = io::read_process_memory();
  return ProcessMemory{.rss_anon = growth(now.rss_anon, before_.rss_anon),
                       .rss_file = growth(now.rss_file, before_.rss_file),
                       .rss_shmem = growth(now.rss_shmem, before_.rss_shmem)};
}

}  // namespace loadline::plan
