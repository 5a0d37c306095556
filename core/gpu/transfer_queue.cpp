// Sets of bytes in use, batches behind one timeline semaphore, one pipeline for each pair of types.
#include "core/gpu/transfer_queue.h"

#include "core/base/tasks.h"
#include "core/io/striped_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <iterator>

namespace loadline::gpu {

// --- Interval sets: per buffer for recorded copies, per batch for pending uses.

void RangeSet::insert(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
  while (at != ranges_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace(begin, end);
}

bool RangeSet::overlaps(std::uint64_t begin, std::uint64_t end) const {
  if (begin >= end) return false;
  const auto after = ranges_.lower_bound(end);  // the first range that starts at or after `end`
  return after != ranges_.begin() && std::prev(after)->second > begin;
}

bool HazardTracker::conflicts(const Range& from, const Range& to) const {
  const auto touches = [](const std::map<std::uint64_t, RangeSet>& sets, const Range& range) {
    const auto found = sets.find(range.buffer);
    return found != sets.end() && found->second.overlaps(range.begin, range.end);
  };
  return touches(writes_, from) || touches(writes_, to) || touches(reads_, to);
}

void HazardTracker::add(const Range& from, const Range& to) {
  reads_[from.buffer].insert(from.begin, from.end);
  writes_[to.buffer].insert(to.begin, to.end);
}

void HazardTracker::clear() {
  reads_.clear();
  writes_.clear();
}

void PendingUses::add(std::uint64_t begin, std::uint64_t end, std::uint64_t value, bool writes) {
  if (batches_.empty() || batches_.back().value != value) {
    batches_.emplace_back();
    batches_.back().value = value;
  }
  (writes ? batches_.back().writes : batches_.back().reads).insert(begin, end);
}

std::uint64_t PendingUses::before_read(std::uint64_t begin, std::uint64_t end) const {
  const auto last = std::find_if(batches_.rbegin(), batches_.rend(),
                                 [&](const Batch& batch) { return batch.writes.overlaps(begin, end); });
  return last == batches_.rend() ? 0 : last->value;
}

std::uint64_t PendingUses::before_write(std::uint64_t begin, std::uint64_t end) const {
  const auto last = std::find_if(batches_.rbegin(), batches_.rend(), [&](const Batch& batch) {
    return batch.writes.overlaps(begin, end) || batch.reads.overlaps(begin, end);
  });
  return last == batches_.rend() ? 0 : last->value;
}

void PendingUses::complete(std::uint64_t value) {
  const auto first = std::ranges::find_if(batches_, [&](const Batch& batch) { return batch.value > value; });
  batches_.erase(batches_.begin(), first);
}

// --- One command buffer per batch. A barrier at its start orders a batch after all earlier ones.

namespace {

constexpr std::size_t kMostBatches = 16;  // in flight; their command buffers are reused

HazardTracker::Range tracked(const BufferRange& range) {
  static_assert(sizeof(VkBuffer) == sizeof(std::uint64_t));
  return {std::bit_cast<std::uint64_t>(range.buffer), range.offset, range.offset + range.bytes};
}

UniqueSemaphore make_timeline(VkDevice device) {
  auto type = vulkan_struct<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info = vulkan_struct<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type);
  return {device, vkCreateSemaphore, info, "create a timeline semaphore"};
}

UniqueCommandPool make_command_pool(const Device& device) {
  auto info = vulkan_struct<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT | VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  info.queueFamilyIndex = device.queue_family();
  return {device.get(), vkCreateCommandPool, info, "create a command pool"};
}

}  // namespace

TransferQueue::TransferQueue(const Device& device, std::uint64_t flush_bytes, const io::StripedReader* reads)
    : device_(device),
      flush_bytes_(flush_bytes),
      timeline_(make_timeline(device.get())),
      pool_(make_command_pool(device)),
      reads_(reads) {
  if (device.shaders()) {  // a queue without them does not know their stage
    work_.stages |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    work_.reads |= VK_ACCESS_SHADER_READ_BIT;
    work_.writes |= VK_ACCESS_SHADER_WRITE_BIT;
  }
  if (reads != nullptr)
    submitter_ = start_thread([this](const std::stop_token& stop) { submit_when_read(stop); });
}

TransferQueue::~TransferQueue() {
  submitter_ = {};
  // the result does not matter: on a lost device nothing is left to wait for
  if (submitted_ > completed_) (void)vkDeviceWaitIdle(device_.get());
}

void TransferQueue::order(const BufferRange& from, const BufferRange& to) {
  if (recording_ == VK_NULL_HANDLE) open_batch();
  const HazardTracker::Range reads = tracked(from), writes = tracked(to);
  if (hazards_.conflicts(reads, writes)) barrier();
  hazards_.add(reads, writes);
  host_will_read_ = host_will_read_ || to.mapped;
}

std::uint64_t TransferQueue::note(const BufferRange& from, io::StripedReader::Ticket needs) {
  needs_ = std::max(needs_, needs);
  batch_bytes_ += from.bytes;
  recorded_ = closed_ + 1;
  if (batch_bytes_ >= flush_bytes_) flush();
  return recorded_;
}

std::uint64_t TransferQueue::run(const BufferRange& from, const BufferRange& to, const Record& record,
                                 io::StripedReader::Ticket needs) {
  assert(device_.shaders() && from.bytes > 0 && (needs == 0 || reads_ != nullptr));
  order(from, to);
  write_regions();
  record(recording_);
  return note(from, needs);
}

std::uint64_t TransferQueue::copy(const BufferRange& from, const BufferRange& to,
                                  io::StripedReader::Ticket needs) {
  assert(from.bytes == to.bytes && from.bytes > 0 && (needs == 0 || reads_ != nullptr));
  order(from, to);
  if (from.buffer != from_.buffer || to.buffer != to_.buffer) write_regions();
  from_ = from;
  to_ = to;
  if (!regions_.empty() && regions_.back().srcOffset + regions_.back().size == from.offset &&
      regions_.back().dstOffset + regions_.back().size == to.offset)
    regions_.back().size += from.bytes;
  else
    regions_.push_back({.srcOffset = from.offset, .dstOffset = to.offset, .size = from.bytes});
  return note(from, needs);
}

void TransferQueue::open_batch() {
  recording_ = idle_command_buffer();
  auto begin = vulkan_struct<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(recording_, &begin), "begin a command buffer");
  // Orders this batch after all earlier ones, so that hazards need tracking only within a batch.
  barrier_before_work();
}

void TransferQueue::barrier() {
  write_regions();
  barrier_before_work();
  hazards_.clear();
}

void TransferQueue::memory_barrier(VkPipelineStageFlags to_stage, VkAccessFlags to_access) {
  auto barrier = vulkan_struct<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  barrier.srcAccessMask = work_.writes;
  barrier.dstAccessMask = to_access;
  vkCmdPipelineBarrier(recording_, work_.stages, to_stage, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void TransferQueue::barrier_before_work() { memory_barrier(work_.stages, work_.reads | work_.writes); }

void TransferQueue::write_regions() {
  if (regions_.empty()) return;
  vkCmdCopyBuffer(recording_, from_.buffer, to_.buffer, static_cast<std::uint32_t>(regions_.size()),
                  regions_.data());
  regions_.clear();
}

VkCommandBuffer TransferQueue::idle_command_buffer() {
  if (batches_.size() >= kMostBatches) wait_for_closed(batches_.front().value);
  if (!batches_.empty() && batches_.front().value <= completed_) {
    const VkCommandBuffer commands = batches_.front().commands;
    batches_.pop_front();
    return commands;
  }
  auto info = vulkan_struct<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_.get();
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vkAllocateCommandBuffers(device_.get(), &info, &commands), "allocate a command buffer");
  return commands;
}

void TransferQueue::flush() {
  if (recording_ == VK_NULL_HANDLE) return;
  write_regions();
  if (host_will_read_)
    memory_barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  check(vkEndCommandBuffer(recording_), "end a command buffer");

  const Batch batch = {recording_, closed_ + 1, needs_};
  batches_.push_back(batch);
  closed_ = batch.value;
  recording_ = VK_NULL_HANDLE;
  hazards_.clear();
  batch_bytes_ = 0;
  needs_ = 0;
  host_will_read_ = false;

  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (!unsubmitted_.empty() || (batch.needs != 0 && !reads_->done(batch.needs))) {
    unsubmitted_.push_back(batch);
    waiting_.notify_one();
    return;
  }
  try {
    submit(batch);
  } catch (...) {
    failure_ = std::current_exception();  // whoever waits for the batch must not wait for ever
    throw;
  }
}

void TransferQueue::submit(const Batch& batch) {
  const VkSemaphore semaphore = timeline_.get();
  auto timeline =
      vulkan_struct<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &batch.value;
  auto submit = vulkan_struct<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &batch.commands;
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &semaphore;
  check(vkQueueSubmit(device_.queue(), 1, &submit, VK_NULL_HANDLE), "submit copies");
  submitted_ = batch.value;
}

void TransferQueue::submit_when_read(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (waiting_.wait(lock, stop, [&] { return !unsubmitted_.empty(); })) {
    const Batch batch = unsubmitted_.front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      reads_->wait(batch.needs);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    try {
      if (failure) std::rethrow_exception(failure);
      if (stop.stop_requested()) return;  // its copies are wanted no more
      submit(batch);
    } catch (...) {
      failure_ = std::current_exception();
      changed_.notify_all();
      return;
    }
    unsubmitted_.pop_front();
    changed_.notify_all();
  }
}

std::uint64_t TransferQueue::completed() {
  check(vkGetSemaphoreCounterValue(device_.get(), timeline_.get(), &completed_),
        "read the timeline semaphore");
  return completed_;
}

void TransferQueue::wait(std::uint64_t value) {
  if (value <= completed_) return;
  if (value > closed_) flush();
  wait_for_closed(value);
}

void TransferQueue::wait_for_closed(std::uint64_t value) {
  if (value <= completed_) return;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return submitted_ >= value || failure_; });
    if (submitted_ < value) std::rethrow_exception(failure_);
  }
  const VkSemaphore semaphore = timeline_.get();
  auto info = vulkan_struct<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  constexpr std::uint64_t kPatience = 300;  // seconds: a batch is small, but software drivers are slow
  const VkResult waited = vkWaitSemaphores(device_.get(), &info, kPatience * 1'000'000'000);
  check(waited, "wait for copies");
  if (waited == VK_TIMEOUT)
    throw Error(ErrorCode::gpu, "the device has not done its copies in {} seconds", kPatience);
  completed();
}

// --- One pipeline for each pair of types and layout; addresses and sizes are push constants.

namespace {

constexpr std::uint32_t kCode[] = {
#include "embedded/prepack.spv.inc"
};
constexpr std::uint32_t kGroup = 128;  // invocations; local_size_x of the shader

// As the shader declares it.
struct Push {
  VkDeviceAddress source = 0;
  VkDeviceAddress target = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// The number by which the shader knows a type.
std::uint32_t type_number(graph::DType type) {
  constexpr std::array kTypes = {graph::DType::f32,  graph::DType::f16,  graph::DType::bf16,
                                 graph::DType::q8_0, graph::DType::q4_0, graph::DType::q4_k};
  std::uint32_t number = 0;
  while (kTypes[number] != type) ++number;
  return number;
}

UniquePipelineLayout make_layout(VkDevice device) {
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
  auto info = vulkan_struct<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  return {device, vkCreatePipelineLayout, info, "lay out a shader's constants"};
}

UniqueShaderModule make_module(VkDevice device) {
  auto info = vulkan_struct<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  info.codeSize = sizeof(kCode);
  info.pCode = kCode;
  return {device, vkCreateShaderModule, info, "load a shader"};
}

}  // namespace

PrepackShader::PrepackShader(const Device& device)
    : device_(device), module_(make_module(device.get())), layout_(make_layout(device.get())) {}

VkPipeline PrepackShader::pipeline_for(const convert::Prepack& how) {
  UniquePipeline& made = pipelines_[{how.from, how.to, how.layout}];
  if (made.get() != VK_NULL_HANDLE) return made.get();
  const std::array<std::uint32_t, 3> values = {type_number(how.from), type_number(how.to),
                                               static_cast<std::uint32_t>(how.layout)};
  const std::array<VkSpecializationMapEntry, 3> entries = {{{0, 0, 4}, {1, 4, 4}, {2, 8, 4}}};
  VkSpecializationInfo special = {};
  special.mapEntryCount = entries.size();
  special.pMapEntries = entries.data();
  special.dataSize = sizeof(values);
  special.pData = values.data();
  auto info = vulkan_struct<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage =
      vulkan_struct<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module_.get();
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  info.layout = layout_.get();
  VkPipeline pipeline = VK_NULL_HANDLE;
  check(vkCreateComputePipelines(device_.get(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
        "build the shader that packs weights");
  made = UniquePipeline(device_.get(), pipeline);
  return pipeline;
}

void PrepackShader::record(VkCommandBuffer commands, const PrepackPiece& piece) {
  const graph::DTypeInfo& from = graph::dtype_info(piece.how.from);
  assert(piece.source % 4 == 0 && piece.bytes % from.block_bytes == 0);
  const Push push = {
      .source = piece.source,
      .target = piece.target,
      .first = static_cast<std::uint32_t>(piece.first),
      .count = static_cast<std::uint32_t>(piece.bytes / from.block_bytes * from.block_elements),
      .rows = static_cast<std::uint32_t>(piece.how.rows),
      .columns = static_cast<std::uint32_t>(piece.how.columns)};
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_for(piece.how));
  vkCmdPushConstants(commands, layout_.get(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), &push);
  vkCmdDispatch(commands, (push.count + kGroup - 1) / kGroup, 1, 1);
}

}  // namespace loadline::gpu
