// The device under the validation layer, and the machine on it.

#include "core/base/error.h"
#include "core/gpu/device.h"
#include "core/gpu/device_memory.h"
#include "core/gpu/measure_link.h"
#include "core/gpu/vulkan_machine.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/model_parts.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/injected.h"
#include "tests/gpu/model_file.h"
#include "tests/support/builders.h"
#include "tests/support/plan_models.h"
#include "tests/support/simulation.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {

// --- Opens the device once and compares the layer's messages before and after each test.

std::string missing_driver() {
  static const std::string missing = [] {
    try {
      list_devices();
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  }();
  return missing;
}

bool validation() {
  static const bool on = [] {
    if (std::getenv("LOADLINE_TEST_WITHOUT_LAYER") == nullptr) return true;
    try {
      const Instance instance(true);
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  return on;
}

const Device* DeviceTest::shared() {
  static const Device device({.wanted = {}, .validation = validation()});
  return &device;
}

void DeviceTest::SetUp() {
  if (!missing_driver().empty()) GTEST_SKIP() << missing_driver();
  messages_before_ = device().log()->messages().size();
}

void DeviceTest::TearDown() {
  if (!missing_driver().empty()) return;
  const std::vector<std::string> messages = device().log()->messages();
  for (std::size_t i = messages_before_; i < messages.size(); ++i) ADD_FAILURE() << messages[i];
}

}  // namespace loadline::gpu

// --- Points the Vulkan loader at the software driver, so that every machine runs the same tests.

namespace {

// Keeps the driver and the layer in memory to the end: once unloaded, what they still own looks like
// leaks without a name to the leak checker. Absent libraries do not matter.
void never_unload() {
  for (const char* library : {"libVkLayer_khronos_validation.so", "libvulkan_lvp.so"})
    ::dlopen(library, RTLD_NOW | RTLD_NODELETE);
}

}  // namespace

// Asked by the leak checker. The layer's synchronization validation of submissions keeps cycles of its
// own objects (1.3.239); the driver's is the fence that one test forgets on purpose.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libVkLayer_khronos_validation.so\nleak:libvulkan_lvp.so\n";
}

std::string loadline::gpu::software_driver() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/vulkan/icd.d", ignored))
    if (entry.path().filename().string().rfind("lvp_icd", 0) == 0) return entry.path().string();
  return {};
}

int loadline::gpu::run_tests(int argc, char** argv) {
  // LOADLINE_TEST_ANY_GPU runs the same tests on the machine's best device instead
  const std::string driver = software_driver();
  if (!driver.empty() && std::getenv("LOADLINE_TEST_ANY_GPU") == nullptr)
    ::setenv("VK_ICD_FILENAMES", driver.c_str(), 0);
  // hazards between submissions; the layer has no other switch for them
  ::setenv("VK_LAYER_ENABLES", "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT", 0);
  never_unload();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
namespace loadline::gpu {

// --- Runs a plan on the device and holds it against the simulation and the dry machine.

namespace {

std::vector<std::byte> read_all(VulkanMachine& machine, plan::BlockId id) {
  std::vector<std::byte> bytes;
  machine.read_back(id, [&](std::uint64_t offset, std::span<const std::byte> chunk) {
    EXPECT_EQ(offset, bytes.size());
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  });
  return bytes;
}

// Every device block alive at the end has the bytes of the simulation; the ledger is the projection; what
// was taken covers what was asked for.
void expect_as_simulated(const Device& device, const plan::Plan& plan, const ModelFile& model) {
  ASSERT_EQ(plan::check_plan(plan, *model.graph()), std::nullopt);
  const io::StorageReader reader(model.graph());
  VulkanMachine machine(device, reader, plan);
  const plan::Timeline measured = plan::run(plan, machine);
  const testing::Simulation expected(plan, reader);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const plan::BlockId id{static_cast<std::uint32_t>(i)};
    if (plan.blocks[i].space != plan::Space::device || !expected.content(id).alive) continue;
    ASSERT_EQ(expected.differences(id, read_all(machine, id)), 0u) << "block " << i;
  }
  plan::DryMachine dry;
  const plan::Timeline projected = plan::run(plan, dry);
  for (std::size_t space = 0; space < plan::kSpaceCount; ++space) {
    EXPECT_EQ(measured.peaks[space].bytes, projected.peaks[space].bytes);
    EXPECT_EQ(measured.peaks[space].step, projected.peaks[space].step);
    EXPECT_EQ(measured.final_bytes[space], projected.final_bytes[space]);
  }
  for (const plan::Space space : {plan::Space::host, plan::Space::page_cache, plan::Space::device})
    EXPECT_GE((*measured.reserved_peak)[plan::index(space)], measured.peaks[plan::index(space)].bytes);
}

}  // namespace

// --- Every kind of copy, small and larger than the machine's own ring, under validation.

namespace {

plan::BlockId make(plan::Plan& plan, plan::Space space, std::uint64_t bytes,
                   std::optional<graph::StorageId> storage = {}) {
  return plan::alloc(
      plan,
      {.bytes = bytes, .space = space, .use = plan::BlockUse::storage, .storage = storage, .extra = {}});
}

class Machines : public DeviceTest {
 protected:
  void run_and_compare(const plan::Plan& plan, const ModelFile& model) {
    expect_as_simulated(device(), plan, model);
  }
};

// From a storage, or from a block of a space; nothing = the storage itself.
using Ends = std::tuple<std::optional<plan::Space>, plan::Space, std::uint64_t>;

class CopyPair : public Machines, public ::testing::WithParamInterface<Ends> {};

TEST_P(CopyPair, BytesArriveWhereTheyShould) {
  const auto [from, to, bytes] = GetParam();
  const ModelFile model({100, bytes + 7, 300});
  const graph::StorageId storage{1};
  plan::Plan plan;
  plan::CopySource source = storage;
  if (from) {
    const plan::BlockId block = make(plan, *from, bytes + 7, storage);
    plan::copy(plan, block, 0, storage, 0, bytes + 7);
    source = block;
  }
  // an odd offset on both sides, except where a mapping demands equal ones
  const std::uint64_t from_at = 3, to_at = to == plan::Space::page_cache ? 3 : 5;
  const plan::BlockId target = make(plan, to, bytes + 7, storage);
  plan::copy(plan, target, to_at, source, from_at, bytes);
  const plan::BlockId seen = make(plan, plan::Space::device, bytes);
  plan::copy(plan, seen, 0, target, to_at, bytes);
  run_and_compare(plan, model);
}

std::vector<Ends> all_ends() {
  std::vector<Ends> ends;
  for (const std::uint64_t bytes : {1ull, 70'001ull, (21ull << 20) + 13})
    for (const plan::Space to :
         {plan::Space::host, plan::Space::page_cache, plan::Space::staging, plan::Space::device}) {
      ends.emplace_back(std::nullopt, to, bytes);
      if (to == plan::Space::page_cache) continue;
      for (const plan::Space from :
           {plan::Space::host, plan::Space::page_cache, plan::Space::staging, plan::Space::device})
        ends.emplace_back(from, to, bytes);
    }
  return ends;
}

std::string ends_name(const ::testing::TestParamInfo<Ends>& info) {
  const auto from = std::get<0>(info.param);
  return std::string(from ? plan::space_name(*from) : "file") + "_to_" +
         std::string(plan::space_name(std::get<1>(info.param))) + "_" +
         std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, CopyPair, ::testing::ValuesIn(all_ends()), ends_name);

// A chain of dependent copies on the device: each must see what the one before wrote.
TEST_F(Machines, ReadAfterWriteAndWriteAfterReadOnTheDevice) {
  const ModelFile model({4096, 4096});
  plan::Plan plan;
  const plan::BlockId a = make(plan, plan::Space::device, 4096), b = make(plan, plan::Space::device, 4096);
  const plan::BlockId c = make(plan, plan::Space::device, 4096);
  plan::copy(plan, a, 0, graph::StorageId{0}, 0, 4096);
  plan::copy(plan, b, 0, a, 0, 4096);                    // reads what was just written
  plan::copy(plan, a, 0, graph::StorageId{1}, 0, 4096);  // overwrites what was just read
  plan::copy(plan, a, 100, b, 0, 1000);                  // overwrites a part of what was just written
  plan::copy(plan, c, 0, a, 0, 4096);
  plan::copy(plan, a, 0, c, 2000, 50);
  run_and_compare(plan, model);
}

TEST_F(Machines, ASlotIsNotOverwrittenWhileItIsRead) {
  const ModelFile model(std::vector<std::uint64_t>(64, 300'000));
  plan::Plan plan;
  const plan::BlockId slot = make(plan, plan::Space::staging, 300'000);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const plan::BlockId block = make(plan, plan::Space::device, 300'000, graph::StorageId{i});
    plan::copy(plan, slot, 0, graph::StorageId{i}, 0, 300'000);
    plan::copy(plan, block, 0, slot, 0, 300'000);
  }
  run_and_compare(plan, model);
}

TEST_F(Machines, SlotsMuchSmallerThanTheTensors) {
  const ModelFile model({1'000'003, 77});
  plan::Plan plan;
  const plan::BlockId slots[] = {make(plan, plan::Space::staging, 4096),
                                 make(plan, plan::Space::staging, 4096)};
  const plan::BlockId block = make(plan, plan::Space::device, 1'000'003, graph::StorageId{0});
  std::size_t turn = 0;
  for (std::uint64_t done = 0; done < 1'000'003; ++turn) {
    const std::uint64_t piece = std::min<std::uint64_t>(4096, 1'000'003 - done);
    plan::copy(plan, slots[turn % 2], 0, graph::StorageId{0}, done, piece);
    plan::copy(plan, block, done, slots[turn % 2], 0, piece);
    done += piece;
  }
  run_and_compare(plan, model);
}

TEST_F(Machines, ManySmallTensorsShareASlotAndASubmission) {
  const ModelFile model(std::vector<std::uint64_t>(800, 13));
  plan::Plan plan;
  const plan::BlockId slot = make(plan, plan::Space::staging, 800 * 13);
  std::vector<plan::BlockId> blocks;
  for (std::uint32_t i = 0; i < 800; ++i)
    blocks.push_back(make(plan, plan::Space::device, 13, graph::StorageId{i}));
  for (std::uint32_t i = 0; i < 800; ++i) {
    plan::copy(plan, slot, 13 * i, graph::StorageId{i}, 0, 13);
    plan::copy(plan, blocks[i], 0, slot, 13 * i, 13);
  }
  plan::free(plan, slot);
  run_and_compare(plan, model);
  const io::StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  plan::run(plan, machine);
  EXPECT_LE(machine.submissions(), 2u);
}

TEST_F(Machines, EmptyBlocksAndCopiesOfNothing) {
  const ModelFile model({0, 10});
  plan::Plan plan;
  const plan::BlockId device_block = make(plan, plan::Space::device, 0, graph::StorageId{0});
  const plan::BlockId staging = make(plan, plan::Space::staging, 0), host = make(plan, plan::Space::host, 0);
  const plan::BlockId mapped = make(plan, plan::Space::page_cache, 0, graph::StorageId{0});
  for (const plan::BlockId block : {staging, host, mapped})
    plan::copy(plan, block, 0, graph::StorageId{0}, 0, 0);
  for (const plan::BlockId block : {staging, host, mapped}) plan::copy(plan, device_block, 0, block, 0, 0);
  for (const plan::BlockId block : {staging, host, mapped}) plan::free(plan, block);
  run_and_compare(plan, model);
}

}  // namespace

// --- What the machine takes from Vulkan, gives back, and refuses.

namespace {

using ::testing::HasSubstr;

class Memory : public DeviceTest {};

plan::BlockId make_block(plan::Plan& plan, plan::Space space, std::uint64_t bytes, std::string label = {}) {
  return plan::alloc(plan,
                     {.bytes = bytes, .space = space, .use = {}, .storage = {}, .extra = std::move(label)});
}

TEST_F(Memory, OnePoolBlockHoldsASmallPlan) {
  const ModelFile model({1});
  plan::Plan plan;
  for (int i = 0; i < 100; ++i) make_block(plan, plan::Space::device, 1000);
  const io::StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  const plan::Timeline measured = plan::run(plan, machine);
  EXPECT_EQ((*measured.reserved_peak)[plan::index(plan::Space::device)], 100u * 1024);
  EXPECT_EQ((*measured.reserved_peak)[plan::index(plan::Space::staging)], 0u);
}

// The loader's own words: a driver that is there and does not load is not "no driver".
TEST_F(Memory, ADriverThatDoesNotLoadIsNamed) {
  const testing::TemporaryFolder folder;
  const std::string manifest = (folder.path() / "broken_icd.json").string();
  std::ofstream(manifest)
      << R"({"file_format_version": "1.0.0", "ICD": {"library_path": "libbroken_vulkan.so",)"
         R"( "api_version": "1.3.0"}})";
  const char* const given = std::getenv("VK_DRIVER_FILES");
  const std::optional<std::string> before =
      given == nullptr ? std::nullopt : std::optional<std::string>(given);
  ::setenv("VK_DRIVER_FILES", manifest.c_str(), 1);
  try {
    const Instance instance(false);
    ADD_FAILURE() << "a driver that does not exist was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::gpu);
    EXPECT_THAT(error.what(), HasSubstr("libbroken_vulkan.so"));
  }
  before ? ::setenv("VK_DRIVER_FILES", before->c_str(), 1) : ::unsetenv("VK_DRIVER_FILES");
}

TEST_F(Memory, PoolsReturnAllButOneEmptyBlock) {
  if (device().info().type != DeviceType::cpu) GTEST_SKIP() << "other drivers round allocations up";
  MemoryPool pool(device(), MemoryUse::device, {1 << 20, {}});
  const Allocation a = pool.allocate(1 << 20), b = pool.allocate(1 << 20), c = pool.allocate(3 << 20);
  EXPECT_EQ(pool.reserved(), 5u << 20);
  pool.free(c);
  EXPECT_EQ(pool.reserved(), 5u << 20);  // kept, in case it is needed again
  pool.free(a);
  EXPECT_EQ(pool.reserved(), 2u << 20);  // one empty block is enough
  const Allocation d = pool.allocate(2 << 20);
  EXPECT_EQ(pool.reserved(), 3u << 20);  // and one too small goes first
  pool.free(b);
  pool.free(d);
  EXPECT_LE(pool.reserved(), 2u << 20);
}

TEST_F(Memory, PoolsRefuseMoreThanOneAllocationMayHold) {
  MemoryPool pool(device(), MemoryUse::device, {1 << 20, {}});
  const std::uint64_t most = largest_piece(device().info(), pool.alignment());
  try {
    pool.allocate(most + 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::gpu);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(most + 1)));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(most)));
  }
  EXPECT_EQ(pool.reserved(), 0u);
}

TEST_F(Memory, APlanThatDoesNotFitIsRefusedBeforeAnythingIsTaken) {
  const ModelFile model({1});
  plan::Plan plan;
  for (int i = 0; i < 1024; ++i) make_block(plan, plan::Space::device, 1ull << 40);
  const io::StorageReader reader(model.graph());
  try {
    const VulkanMachine machine(device(), reader, plan);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_fit);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(1ull << 50)));
  }
}

// Asks to stop after some copies.
class StopAfter final : public plan::Machine {
 public:
  StopAfter(plan::Machine& machine, std::stop_source& stop, int copies)
      : machine_(machine), stop_(stop), left_(copies) {}
  void alloc(plan::BlockId id, const plan::Block& block) override { machine_.alloc(id, block); }
  void copy(const plan::Step& step, const plan::Block& to) override {
    machine_.copy(step, to);
    if (--left_ == 0) stop_.request_stop();
  }
  void free(plan::BlockId id, const plan::Block& block) override { machine_.free(id, block); }
  double now() const override { return machine_.now(); }
  void drain() override { machine_.drain(); }

 private:
  plan::Machine& machine_;
  std::stop_source& stop_;
  int left_;
};

// The layer names every object that still exists when its device is destroyed.
TEST_F(Memory, CanceledAnywhereNothingIsLeft) {
  const ModelFile model(std::vector<std::uint64_t>(12, 100'000));
  const load::BoundRequest options{
      .request = {.staging_bytes = 4 * 8192, .slots = 4, .activation_bytes = 4096}};
  for (const load::Method& method : load::methods()) {
    if (method.traits.host_only) continue;  // nothing goes to the device
    const plan::Plan plan =
        load::make_plan(*model.graph(), method, load::find_order("file").make(*model.graph()), options);
    for (const int copies : {1, 7, 12}) {
      std::shared_ptr<const MessageLog> log;
      {
        const Device own({.wanted = {}, .validation = validation()});
        log = own.log();
        const io::StorageReader reader(model.graph());
        VulkanMachine machine(own, reader, plan);
        std::stop_source stop;
        StopAfter stopping(machine, stop, copies);
        Progress progress(stop.get_token());
        EXPECT_THROW(plan::run(plan, stopping, progress), Error) << method.id;
      }
      EXPECT_THAT(log->messages(), ::testing::IsEmpty()) << method.id;
    }
  }
}

// A file that shrinks under a mapping gives an Error, not a signal.
TEST_F(Memory, AFileThatShrinksIsAnError) {
  const ModelFile model({1 << 20});
  plan::Plan plan;
  const plan::BlockId mapped = plan::alloc(plan, {.bytes = 1 << 20,
                                                  .space = plan::Space::page_cache,
                                                  .use = {},
                                                  .storage = graph::StorageId{0},
                                                  .extra = {}});
  plan::copy(plan, mapped, 0, graph::StorageId{0}, 0, 1 << 20);
  const plan::BlockId block = make_block(plan, plan::Space::device, 1 << 20);
  const io::StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  plan::run(plan, machine);
  ASSERT_EQ(::truncate(model.path().c_str(), 4096), 0);
  const plan::Step step = {.verb = plan::Verb::copy,
                           .block = block,
                           .from = mapped,
                           .offset = 0,
                           .from_offset = 0,
                           .bytes = 1 << 20};
  EXPECT_THROW(machine.copy(step, plan.block(block)), Error);
}

}  // namespace

// --- The layer is really on: it must complain when a barrier is left out, or the other tests prove nothing.

namespace {

class Validation : public DeviceTest {
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && !validation()) GTEST_SKIP() << "the Vulkan validation layer is not installed";
  }
};
using Devices = DeviceTest;

// Two command buffers on a device of their own, without any barrier.
class Recorder {
 public:
  Recorder()
      : device_({.wanted = {}, .validation = true}), memory_(device_, MemoryUse::device, {1 << 16, {}}) {
    VkCommandPoolCreateInfo pool = {};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = device_.queue_family();
    VkCommandPool made = VK_NULL_HANDLE;
    check(vkCreateCommandPool(device_.get(), &pool, nullptr, &made), "create a command pool");
    pool_ = UniqueCommandPool(device_.get(), made);
    a_ = memory_.allocate(4096);
    b_ = memory_.allocate(4096);
  }
  ~Recorder() { vkDeviceWaitIdle(device_.get()); }

  VkCommandBuffer begin() {
    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_.get();
    info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    check(vkAllocateCommandBuffers(device_.get(), &info, &commands), "allocate a command buffer");
    VkCommandBufferBeginInfo start = {};
    start.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    check(vkBeginCommandBuffer(commands, &start), "begin a command buffer");
    return commands;
  }
  void copy(VkCommandBuffer commands, const Allocation& from, const Allocation& to) {
    const VkBufferCopy region = {from.range.offset, to.range.offset, 4096};
    vkCmdCopyBuffer(commands, from.range.buffer, to.range.buffer, 1, &region);
  }
  void submit(VkCommandBuffer commands) {
    check(vkEndCommandBuffer(commands), "end a command buffer");
    VkSubmitInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    check(vkQueueSubmit(device_.queue(), 1, &info, VK_NULL_HANDLE), "submit");
  }
  const Allocation& a() const { return a_; }
  const Allocation& b() const { return b_; }
  std::vector<std::string> messages() const { return device_.log()->messages(); }

 private:
  Device device_;
  MemoryPool memory_;
  UniqueCommandPool pool_;
  Allocation a_, b_;
};

TEST_F(Validation, SeesAHazardInsideACommandBuffer) {
  Recorder recorder;
  const VkCommandBuffer commands = recorder.begin();
  recorder.copy(commands, recorder.a(), recorder.b());
  recorder.copy(commands, recorder.b(), recorder.a());
  EXPECT_THAT(recorder.messages(), ::testing::Contains(::testing::HasSubstr("SYNC-HAZARD")));
}

TEST_F(Validation, SeesAHazardBetweenSubmissions) {
  Recorder recorder;
  const VkCommandBuffer first = recorder.begin();
  recorder.copy(first, recorder.a(), recorder.b());
  recorder.submit(first);
  const VkCommandBuffer second = recorder.begin();
  recorder.copy(second, recorder.b(), recorder.a());
  EXPECT_THAT(recorder.messages(), ::testing::IsEmpty());
  recorder.submit(second);
  EXPECT_THAT(recorder.messages(), ::testing::Contains(::testing::HasSubstr("SYNC-HAZARD")));
}

TEST_F(Validation, SeesWhatIsNotDestroyed) {
  std::shared_ptr<const MessageLog> log;
  {
    const Device own({.wanted = {}, .validation = true});
    log = own.log();
    VkFenceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence forgotten = VK_NULL_HANDLE;
    check(vkCreateFence(own.get(), &info, nullptr, &forgotten), "create a fence");
  }
  EXPECT_THAT(log->messages(), ::testing::Contains(::testing::HasSubstr("VkFence")));
}

TEST_F(Devices, AreDescribed) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  for (const DeviceInfo& info : devices) {
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.heaps.empty());
    EXPECT_TRUE(info.type != DeviceType::cpu || info.heaps[0].budget.has_value());
  }
}

}  // namespace

// --- Rates of a device, measured under validation.

namespace {

class MeasureLink : public DeviceTest {};

TEST_F(MeasureLink, GivesEveryRateOfTheDevice) {
  load::MeasuredRates rates;
  Progress progress;
  measure_link(device(), 3 << 20, rates, progress);
  EXPECT_EQ(rates.device, device().info().name);
  for (const load::RateRow& row : load::rate_rows()) {
    ASSERT_EQ(rates.values.contains(row.key), row.of_device) << row.key;
    if (!row.of_device) continue;
    const double value = rates.values.find(row.key)->second;
    EXPECT_TRUE(std::isfinite(value) && value > row.least && value < row.most) << row.key << " " << value;
  }
}

TEST_F(MeasureLink, EndsWhenAskedAndWhereThereIsNoRoom) {
  load::MeasuredRates rates;
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token()), progress;
  const auto code = [&](std::uint64_t bytes, Progress& with) {
    try {
      measure_link(device(), bytes, rates, with);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::usage;
  };
  EXPECT_EQ(code(1 << 20, stopped), ErrorCode::canceled);
  EXPECT_EQ(code(std::uint64_t{1} << 50, progress), ErrorCode::no_fit);
}

TEST_F(MeasureLink, OfADeviceWithOneFamilyOfQueuesComparesNone) {
  if (device().info().queues.size() > 1) GTEST_SKIP() << "the device has several";
  load::MeasuredRates rates;
  Progress progress;
  measure_device({}, 3 << 20, rates, progress);
  EXPECT_TRUE(rates.queues.empty());
  EXPECT_EQ(queue_rates(rates).device, device().info().name);
  EXPECT_TRUE(queue_rates({}).rates.empty());
}

// The second and third family are the first by other names.
TEST_F(MeasureLink, ComparesTheQueuesOfADeviceWithSeveral) {
  if (device().info().queues.size() > 1) GTEST_SKIP() << "the device has several of its own";
  inject_queue_families({VK_QUEUE_TRANSFER_BIT, VK_QUEUE_TRANSFER_BIT | 0x20});
  load::MeasuredRates rates;
  Progress progress;
  measure_device({}, 3 << 20, rates, progress);
  const std::string first = queue_family_key(Device(DeviceOptions{}).info().queues.front());
  ASSERT_EQ(rates.queues.size(), 2u) << "none for the family of decoders";
  EXPECT_GT(rates.queues.at("1 only copies"), 0);
  EXPECT_GT(rates.queues.at(first), 0);
  for (const auto& [fast, family] : {std::pair(std::string("1 only copies"), 1u), std::pair(first, 0u)}) {
    DeviceOptions options;
    options.queue_rates = queue_rates(rates);
    for (auto& [key, rate] : options.queue_rates.rates) rate = key == fast ? 9e9 : 1e9;
    const Device chosen(options);
    EXPECT_EQ(chosen.queue_family(), family);
    EXPECT_EQ(chosen.measured_link(), 9e9);
    options.queue_rates.device = "another";
    const Device unmeasured(options);
    EXPECT_EQ(unmeasured.queue_family(), 1u);
    EXPECT_EQ(unmeasured.measured_link(), std::nullopt);
  }
  // a family that fails is left out, and the rates of the others stay
  inject_queue_families({VK_QUEUE_TRANSFER_BIT}, 1);
  rates = {};
  EXPECT_THROW(measure_device({}, 3 << 20, rates, progress), Error);  // the load itself would take it
  EXPECT_TRUE(rates.values.empty());
  DeviceOptions shaders;
  shaders.shaders = true;
  measure_device(shaders, 3 << 20, rates, progress);
  EXPECT_EQ(rates.queues.size(), 1u);
  EXPECT_TRUE(rates.values.contains("link"));
  inject_queue_families({});
}

TEST_F(MeasureLink, ADeviceOpensOnAnyOfItsQueues) {
  const DeviceInfo info = device().info();
  for (const QueueFamily& family : info.queues) {
    const Device opened(
        {.wanted = "", .validation = false, .shaders = false, .queues = {family.index}, .queue_rates = {}});
    EXPECT_EQ(opened.queue_family(), family.index);
  }
  try {
    const Device none(
        {.wanted = "", .validation = false, .shaders = false, .queues = {999}, .queue_rates = {}});
    FAIL() << "there is no family 999";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::gpu);
  }
}

}  // namespace

// --- Random valid plans: the device ends with what a plain simulation says, whatever the order of copies.

namespace {

class RandomPlans : public DeviceTest, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(RandomPlans, EndAsTheSimulationSays) {
  const std::uint32_t seed = GetParam();
  const ModelFile model({1, 4096, 70'000, 123'457, 5'000'000}, seed);
  const plan::Plan plan = testing::random_plan(*model.graph(), seed, 300);
  expect_as_simulated(device(), plan, model);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, ::testing::Range(1u, 41u));

}  // namespace

}  // namespace loadline::gpu
