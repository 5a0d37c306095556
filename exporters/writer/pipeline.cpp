// A oneTBB pipeline: begin (in order) | fill (any order) | finish and hash (in order) | write (in order).
#include "exporters/writer/pipeline.h"

#include "core/base/error.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#if defined(__SANITIZE_THREAD__)
#define LOADLINE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOADLINE_THREAD_SANITIZER 1
#endif
#endif

#ifdef LOADLINE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace loadline::exporters {

// --- Tells ThreadSanitizer what oneTBB orders: the library itself is not built with it.

namespace {

// Everything done by this thread until now happens before take_over() of the same address by any thread.
void hand_over([[maybe_unused]] const void* what) {
#ifdef LOADLINE_THREAD_SANITIZER
  __tsan_release(const_cast<void*>(what));
#endif
}

void take_over([[maybe_unused]] const void* what) {
#ifdef LOADLINE_THREAD_SANITIZER
  __tsan_acquire(const_cast<void*>(what));
#endif
}

// A stage's turn: what is handed over is taken over first. In other builds it does nothing.
class Turn {
 public:
  explicit Turn(const void* what) : what_(what) { take_over(what_); }
  ~Turn() { hand_over(what_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const void* what_;
};

// All turns of a run: the thread that starts it hands over what it did, and takes over what they did.
class Turns {
 public:
  explicit Turns(std::vector<const void*> what) : what_(std::move(what)) {
    for (const void* each : what_) hand_over(each);
  }
  ~Turns() {
    for (const void* each : what_) take_over(each);
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

 private:
  std::vector<const void*> what_;
};

}  // namespace

// --- The pipeline.

namespace {

constexpr std::uint64_t kUnit = 4096;
constexpr std::uint64_t kMostWindow = 4 << 20;  // larger writes are not faster

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
  if (gathers) budget -= std::min(budget / 2, (sizes.threads + 2) * io::TensorReader::kMostGathered);
  const std::uint64_t share = (computes ? budget / 2 : budget) / sizes.windows;
  sizes.window = static_cast<std::size_t>(std::clamp(share / kUnit * kUnit, kUnit, kMostWindow));
  if (computes)
    sizes.recipes = std::max(
        (budget - std::min<std::uint64_t>(budget, sizes.windows * sizes.window)) / (sizes.threads + 2),
        convert::RecipeReader::kLeastMemory);
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

  io::Pages memory;
  std::vector<Buffered> buffers;
  oneapi::tbb::global_control allowed;
  oneapi::tbb::task_arena arena;
  oneapi::tbb::enumerable_thread_specific<RecipeBuffers> recipes;
};

Pipeline::Pipeline(const PipelineSizes& sizes) : state_(std::make_unique<State>(sizes)) {}
Pipeline::~Pipeline() = default;

// The four stages of a run.
class Pipeline::Run {
 public:
  Run(State& state, FileContent& content, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash,
      const Write& write, const Progress& progress)
      : state_(state),
        content_(content),
        at_(begin),
        end_(end),
        hash_(hash),
        write_(write),
        progress_(progress) {}

  // Each stage takes its turn on the buffer first: with it comes all that the caller did before the run.
  Buffered* begin(oneapi::tbb::flow_control& flow) {
    const Turn stage(&begins_);
    progress_.check_canceled();
    if (at_ == end_) {
      flow.stop();
      return nullptr;
    }
    Buffered& buffer = state_.buffers[begins_++ % state_.buffers.size()];
    const Turn turn(&buffer);
    buffer.window.offset = at_;
    buffer.window.bytes = buffer.memory.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.memory.size(), end_ - at_)));
    at_ += buffer.window.bytes.size();
    content_.begin(buffer.window);
    return &buffer;
  }

  Buffered* fill(Buffered* buffer) {
    const Turn turn(buffer);
    content_.fill(buffer->window, state_.recipes.local());
    return buffer;
  }

  Buffered* finish(Buffered* buffer) {
    const Turn turn(buffer), stage(&hash_);
    content_.finish(buffer->window);
    hash_.update(buffer->window.bytes);
    buffer->digest = hash_.digest();
    return buffer;
  }

  void put(Buffered* buffer) {
    const Turn turn(buffer), stage(&write_);
    write_(buffer->window.offset, buffer->window.bytes, buffer->digest);
  }

  // What the stages take their turns on.
  std::vector<const void*> turns() const {
    std::vector<const void*> turns = {&begins_, &hash_, &write_};
    for (const Buffered& buffer : state_.buffers) turns.push_back(&buffer);
    return turns;
  }

 private:
  State& state_;
  FileContent& content_;
  std::uint64_t at_;
  std::uint64_t end_;
  std::size_t begins_ = 0;
  io::Xxh3& hash_;
  const Write& write_;
  const Progress& progress_;
};

void Pipeline::run(FileContent& content, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash,
                   const Write& write, const Progress& progress) {
  namespace tbb = oneapi::tbb;
  constexpr auto kInOrder = tbb::filter_mode::serial_in_order;
  constexpr auto kAnyOrder = tbb::filter_mode::parallel;
  Run stages(*state_, content, begin, end, hash, write, progress);
  const Turns turns(stages.turns());
  state_->arena.execute([&] {
    Run* const run = &stages;  // oneTBB copies each function: all that it holds is this pointer
    const auto begins = [run](tbb::flow_control& flow) { return run->begin(flow); };
    const auto fills = [run](Buffered* buffer) { return run->fill(buffer); };
    const auto finishes = [run](Buffered* buffer) { return run->finish(buffer); };
    const auto puts = [run](Buffered* buffer) { run->put(buffer); };
    // a buffer is used again only once its window is written: there are never more tokens than buffers
    tbb::parallel_pipeline(state_->buffers.size(),
                           tbb::make_filter<void, Buffered*>(kInOrder, begins) &
                               tbb::make_filter<Buffered*, Buffered*>(kAnyOrder, fills) &
                               tbb::make_filter<Buffered*, Buffered*>(kInOrder, finishes) &
                               tbb::make_filter<Buffered*, void>(kInOrder, puts));
  });
}

}  // namespace loadline::exporters
