// A oneTBB pipeline: begin (in order) | fill (any order) | finish and hash (in order) | write (in order).
#include "exporters/writer/pipeline.h"

#include "core/base/error.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>
#include <sys/mman.h>

namespace loadline {
namespace {

constexpr std::uint64_t kUnit = 4096;
constexpr std::uint64_t kMostWindow = 4 << 20;  // larger writes are not faster

// Private memory that begins at a page and is returned to the system at once.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw system_error("", "get memory for buffers", errno);
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::span<std::byte> span() const { return {static_cast<std::byte*>(data_), bytes_}; }

 private:
  std::size_t bytes_;
  void* data_;
};

struct Buffered {
  Window window;
  std::span<std::byte> memory;
  std::uint64_t digest = 0;
};

}  // namespace

PipelineSizes share_budget(std::uint64_t budget, unsigned threads, bool computes, bool gathers) {
  PipelineSizes sizes;
  sizes.threads = std::max(threads, 1u);
  // one that is written, one that is hashed, one that waits
  sizes.windows = sizes.threads + 3;
  if (gathers) budget -= std::min(budget / 2, (sizes.threads + 2) * TensorReader::kMostGathered);
  const std::uint64_t share = (computes ? budget / 2 : budget) / sizes.windows;
  sizes.window = static_cast<std::size_t>(std::clamp(share / kUnit * kUnit, kUnit, kMostWindow));
  if (computes)
    sizes.recipes = std::max(
        (budget - std::min<std::uint64_t>(budget, sizes.windows * sizes.window)) / (sizes.threads + 2),
        RecipeReader::kLeastMemory);
  return sizes;
}

struct Pipeline::State {
  explicit State(const PipelineSizes& sizes)
      : memory(sizes.windows * sizes.window),
        buffers(sizes.windows),
        allowed(oneapi::tbb::global_control::max_allowed_parallelism, sizes.threads + 1),
        arena(static_cast<int>(sizes.threads) + 1),
        recipes([bytes = sizes.recipes] { return RecipeBuffers(bytes); }) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      buffers[i].memory = memory.span().subspan(i * sizes.window, sizes.window);
  }

  Pages memory;
  std::vector<Buffered> buffers;
  oneapi::tbb::global_control allowed;
  oneapi::tbb::task_arena arena;
  oneapi::tbb::enumerable_thread_specific<RecipeBuffers> recipes;
};

Pipeline::Pipeline(const PipelineSizes& sizes) : state_(std::make_unique<State>(sizes)) {}
Pipeline::~Pipeline() = default;

void Pipeline::run(FileContent& content, std::uint64_t begin, std::uint64_t end, Xxh3& hash,
                   const Write& write, const Progress& progress) {
  namespace tbb = oneapi::tbb;
  std::uint64_t at = begin;
  std::size_t next = 0;
  const auto start = [&](tbb::flow_control& flow) -> Buffered* {
    progress.check_cancelled();
    if (at == end) {
      flow.stop();
      return nullptr;
    }
    Buffered& buffer = state_->buffers[next++ % state_->buffers.size()];
    buffer.window.offset = at;
    buffer.window.bytes = buffer.memory.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.memory.size(), end - at)));
    at += buffer.window.bytes.size();
    content.begin(buffer.window);
    return &buffer;
  };
  const auto fill = [&](Buffered* buffer) {
    content.fill(buffer->window, state_->recipes.local());
    return buffer;
  };
  const auto finish = [&](Buffered* buffer) {
    content.finish(buffer->window);
    hash.update(buffer->window.bytes);
    buffer->digest = hash.digest();
    return buffer;
  };
  const auto put = [&](Buffered* buffer) {
    write(buffer->window.offset, buffer->window.bytes, buffer->digest);
  };
  constexpr auto kInOrder = tbb::filter_mode::serial_in_order;
  state_->arena.execute([&] {
    // a buffer is used again only once its window is written: there are never more tokens than buffers
    tbb::parallel_pipeline(state_->buffers.size(),
                           tbb::make_filter<void, Buffered*>(kInOrder, start) &
                               tbb::make_filter<Buffered*, Buffered*>(tbb::filter_mode::parallel, fill) &
                               tbb::make_filter<Buffered*, Buffered*>(kInOrder, finish) &
                               tbb::make_filter<Buffered*, void>(kInOrder, put));
  });
}

}  // namespace loadline
