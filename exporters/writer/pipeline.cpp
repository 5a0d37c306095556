// Each thread takes the stage that is due: a window begins (in order), is filled (several at a time), is
// finished and hashed (in order), is written (several at a time), ends (in order).
#include "exporters/writer/pipeline.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace loadline::exporters {

// --- How a memory budget is shared.

namespace {

constexpr std::uint64_t kUnit = 4096;
constexpr std::uint64_t kMostWindow = 4 << 20;  // larger writes are not faster

struct Buffered {
  Window window;
  std::span<std::byte> memory;
  std::uint64_t digest = 0;
  bool filled = false, written = false;
};

}  // namespace

PipelineSizes share_budget(std::uint64_t budget, unsigned threads, unsigned writers, bool computes,
                           bool gathers) {
  PipelineSizes sizes;
  sizes.threads = std::max(threads, 1u);
  sizes.writers = std::max(writers, 1u);
  // those that are written, one that is hashed, one that waits
  sizes.windows = sizes.threads + sizes.writers + 2;
  if (gathers) budget -= std::min(budget / 2, sizes.shares() * io::TensorReader::kMostGathered);
  const std::uint64_t share = (computes ? budget / 2 : budget) / sizes.windows;
  sizes.window = static_cast<std::size_t>(std::clamp(share / kUnit * kUnit, kUnit, kMostWindow));
  if (computes)
    sizes.recipes =
        std::max((budget - std::min<std::uint64_t>(budget, sizes.windows * sizes.window)) / sizes.shares(),
                 convert::RecipeReader::kLeastMemory);
  return sizes;
}

// --- The stages of a run and the threads that take them.

struct Pipeline::State {
  explicit State(const PipelineSizes& sizes)
      : threads(sizes.threads),
        writers(sizes.writers),
        memory(sizes.windows * sizes.window),
        buffers(sizes.windows) {
    // read, hashed and written again and again; pinned for writes past the page cache
    io::prefer_large_pages(memory.span().data(), memory.span().size());
    for (std::size_t i = 0; i < buffers.size(); ++i)
      buffers[i].memory = memory.span().subspan(i * sizes.window, sizes.window);
    for (unsigned i = 0; i < threads + writers; ++i) recipes.emplace_back(sizes.recipes);
  }

  unsigned threads, writers;
  io::Pages memory;
  std::vector<Buffered> buffers;
  std::vector<RecipeBuffers> recipes;  // of each thread
};

Pipeline::Pipeline(const PipelineSizes& sizes) : state_(std::make_unique<State>(sizes)) {}
Pipeline::~Pipeline() = default;

// A stage that goes in order is taken by one thread at a time. What a thread did is seen by the one that
// takes the next stage of the same window: each takes and leaves a stage with the mutex held.
class Pipeline::Run {
 public:
  Run(State& state, FileContent& content, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash,
      const Output& output, const Progress& progress)
      : state_(state),
        content_(content),
        at_(begin),
        end_(end),
        step_(std::max<std::uint64_t>(windows_in(output.step), 1)),
        hash_(hash),
        output_(output),
        progress_(progress) {}

  // Takes stages until every window is written, or until a stage of any thread has thrown: the thread of that
  // stage throws it on.
  void work(RecipeBuffers& recipes) {
    std::unique_lock lock(mutex_);
    try {
      while (!failed_ && (at_ != end_ || ended_ != begun_)) {
        if (may_write())
          write_next(lock);
        else if (may_end())
          end_next(lock);
        else if (may_finish())
          finish_next(lock);
        else if (may_begin())
          fill_next(lock, recipes);
        else
          due_.wait(lock);
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      failed_ = true;
      due_.notify_all();
      throw;
    }
    due_.notify_all();
  }

  std::uint64_t windows_in(std::uint64_t bytes) const {
    const std::size_t window = state_.buffers.front().memory.size();
    return bytes / window + (bytes % window == 0 ? 0 : 1);
  }

 private:
  Buffered& buffer(std::size_t window) { return state_.buffers[window % state_.buffers.size()]; }

  bool may_write() const {
    return writing_ < state_.writers && writes_ != finished_ && writes_ / step_ == ended_ / step_;
  }
  bool may_end() { return !ending_ && ended_ != writes_ && buffer(ended_).written; }
  bool may_finish() { return !finishing_ && finished_ != begun_ && buffer(finished_).filled; }
  bool may_begin() const {
    return !beginning_ && filling_ <= state_.threads && at_ != end_ &&
           begun_ - ended_ < state_.buffers.size();
  }

  // Wakes a thread for each stage that is due, but for as many as this thread will take itself.
  void wake_others(int taken) {
    const int due = int{may_write()} + int{may_end()} + int{may_finish()} + int{may_begin()};
    for (int i = taken; i < due; ++i) due_.notify_one();
  }

  // Each stage is entered and left with the mutex held.
  void write_next(std::unique_lock<std::mutex>& lock) {
    Buffered& next = buffer(writes_);
    ++writes_;
    ++writing_;
    wake_others(0);
    lock.unlock();
    output_.write(next.window.offset, next.window.bytes);
    lock.lock();
    --writing_;
    next.written = true;
    wake_others(1);
  }

  void end_next(std::unique_lock<std::mutex>& lock) {
    const Buffered& next = buffer(ended_);
    ending_ = true;
    lock.unlock();
    output_.written(next.window.offset, next.window.bytes, next.digest);
    lock.lock();
    ending_ = false;
    ++ended_;
    wake_others(1);
  }

  void finish_next(std::unique_lock<std::mutex>& lock) {
    Buffered& next = buffer(finished_);
    finishing_ = true;
    lock.unlock();
    content_.finish(next.window);
    hash_.update(next.window.bytes);
    next.digest = hash_.digest();
    lock.lock();
    finishing_ = false;
    ++finished_;
    wake_others(1);
  }

  void fill_next(std::unique_lock<std::mutex>& lock, RecipeBuffers& recipes) {
    Buffered& next = buffer(begun_);
    beginning_ = true;
    lock.unlock();
    progress_.check_canceled();
    next.filled = next.written = false;
    next.window.offset = at_;
    next.window.bytes =
        next.memory.first(static_cast<std::size_t>(std::min<std::uint64_t>(next.memory.size(), end_ - at_)));
    content_.begin(next.window);
    lock.lock();
    beginning_ = false;
    ++filling_;
    at_ += next.window.bytes.size();
    ++begun_;
    wake_others(0);
    lock.unlock();
    content_.fill(next.window, recipes);
    lock.lock();
    --filling_;
    next.filled = true;
    wake_others(1);
  }

  State& state_;
  FileContent& content_;
  std::mutex mutex_;
  std::condition_variable due_;  // a stage is due, all is written, or a stage has thrown
  std::uint64_t at_;
  std::uint64_t end_;
  std::uint64_t step_;                                             // windows
  std::size_t begun_ = 0, finished_ = 0, writes_ = 0, ended_ = 0;  // windows that came to each stage
  unsigned filling_ = 0, writing_ = 0;                             // windows that threads are at
  bool beginning_ = false, finishing_ = false, ending_ = false;
  bool failed_ = false;
  io::Xxh3& hash_;
  const Output& output_;
  const Progress& progress_;
};

void Pipeline::run(FileContent& content, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash,
                   const Output& output, const Progress& progress) {
  Run stages(*state_, content, begin, end, hash, output, progress);
  const auto threads = static_cast<std::size_t>(
      std::min<std::uint64_t>(state_->recipes.size(), stages.windows_in(end - begin)));
  ParallelLoop(threads, threads, [&](std::size_t thread) { stages.work(state_->recipes[thread]); }).finish();
}

}  // namespace loadline::exporters
