// Choices and state machines, without Vulkan.

#include "core/base/error.h"
#include "core/gpu/device.h"
#include "core/gpu/device_info.h"
#include "core/gpu/device_memory.h"
#include "core/gpu/memory_need.h"
#include "core/gpu/transfer_queue.h"
#include "core/load/answer/projection.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "core/plan/plan.h"
#include "core/plan/reserved_memory.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {

// --- Which device is chosen, and what is said about each.

namespace {

using ::testing::ElementsAre;

DeviceInfo make(std::size_t index, std::string name, DeviceType type, std::uint64_t gib) {
  DeviceInfo device;
  device.index = index;
  device.name = std::move(name);
  device.type = type;
  device.api_version = {1, 3, 0};
  device.heaps = {{.bytes = gib << 30, .device_local = true}};
  device.timeline_semaphore = true;
  return device;
}

const std::vector<DeviceInfo>& four() {
  static const std::vector<DeviceInfo> devices = {
      make(0, "llvmpipe (LLVM 15.0.6, 256 bits)", DeviceType::cpu, 2),
      make(1, "Intel(R) UHD Graphics", DeviceType::integrated, 30),
      make(2, "Radeon RX 7600", DeviceType::discrete, 8),
      make(3, "Radeon RX 7900 XTX", DeviceType::discrete, 24),
  };
  return devices;
}

TEST(DeviceChoice, PrefersTheKindThenTheLargerMemory) {
  const DeviceChoice choice = choose_device(four());
  ASSERT_EQ(choice.chosen, 3u);
  EXPECT_THAT(choice.reasons[0], ElementsAre("a software device on the CPU comes after a discrete GPU"));
  EXPECT_THAT(choice.reasons[1], ElementsAre("an integrated GPU comes after a discrete GPU"));
  EXPECT_EQ(testing::facts(choice.reasons[2].at(0)), "8.00 24.00");
  EXPECT_EQ(testing::facts(choice.reasons[3].at(0)), "24.00");
}

TEST(DeviceChoice, EqualDevicesGoByTheirOrder) {
  const std::vector<DeviceInfo> twins = {make(0, "A", DeviceType::discrete, 8),
                                         make(1, "B", DeviceType::discrete, 8)};
  const DeviceChoice choice = choose_device(twins);
  EXPECT_EQ(choice.chosen, 0u);
  EXPECT_EQ(testing::facts(choice.reasons[1].at(0)), "0");
}

TEST(DeviceChoice, AnIndexIsNotAPartOfAName) {
  EXPECT_EQ(choose_device(four(), "1").chosen, 1u);
  EXPECT_EQ(choose_device(four(), "0").chosen, 0u);
  EXPECT_EQ(choose_device(four(), "7").chosen, std::nullopt);  // although "RX 7600" has a 7
}

TEST(DeviceChoice, ANamePartInAnyCaseTakesTheBestThatHasIt) {
  EXPECT_EQ(choose_device(four(), "radeon").chosen, 3u);
  EXPECT_EQ(choose_device(four(), "rx 7600").chosen, 2u);
  const DeviceChoice choice = choose_device(four(), "LLVMpipe");
  EXPECT_EQ(choice.chosen, 0u);
  EXPECT_THAT(choice.reasons[0], ElementsAre("asked for"));
  EXPECT_THAT(choice.reasons[3], ElementsAre("not the one asked for"));
}

TEST(DeviceChoice, NamesWhatADeviceLacks) {
  std::vector<DeviceInfo> devices = four();
  devices[3].timeline_semaphore = false;
  devices[2].api_version = {1, 1, 126};
  devices[1].heaps.clear();
  const DeviceChoice choice = choose_device(devices);
  EXPECT_EQ(choice.chosen, 0u);
  EXPECT_THAT(choice.reasons[0], ElementsAre("the only device that can be used"));
  EXPECT_THAT(choice.reasons[1], ElementsAre("has no device memory"));
  EXPECT_EQ(testing::facts(choice.reasons[2].at(0)), "1.1.126 1.2");
  EXPECT_THAT(choice.reasons[3], ElementsAre("has no timeline semaphores"));
}

TEST(DeviceChoice, AnUnusableDeviceIsNotChosenEvenWhenAskedFor) {
  std::vector<DeviceInfo> devices = four();
  devices[3].timeline_semaphore = false;
  EXPECT_EQ(choose_device(devices, "3").chosen, std::nullopt);
  EXPECT_THAT(choose_device(devices, "3").reasons[3], ElementsAre("has no timeline semaphores"));
}

TEST(DeviceChoice, NoDevices) { EXPECT_EQ(choose_device({}).chosen, std::nullopt); }

TEST(DeviceChoice, ASoftwareDeviceSaysWhoseMemoryItHas) {
  std::vector<DeviceInfo> devices = {four()[0]};
  devices[0].heaps[0].budget = 20ull << 30;
  EXPECT_THAT(choose_device(devices).reasons[0],
              ElementsAre("the only device that can be used", "it uses system memory: 20.00 GiB available"));
}

TEST(DeviceChoice, TheLargestLocalHeapIsTheDevices) {
  DeviceInfo device = make(0, "A", DeviceType::discrete, 8);
  device.heaps = {{.bytes = 64ull << 30},
                  {.bytes = 1 << 28, .device_local = true},
                  {.bytes = 8ull << 30, .device_local = true}};
  EXPECT_EQ(device_heap(device)->bytes, 8ull << 30);
  device.heaps.resize(1);
  EXPECT_EQ(device_heap(device), nullptr);
}

VkQueueFamilyProperties family(VkQueueFlags flags, std::uint32_t count = 1) {
  VkQueueFamilyProperties properties = {};
  properties.queueFlags = flags;
  properties.queueCount = count;
  return properties;
}
const auto kAll = family(VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT);
const auto kCompute = family(VK_QUEUE_COMPUTE_BIT);
const auto kCopies = family(VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT);
const auto kVideo = family(VK_QUEUE_TRANSFER_BIT | 0x20);

// The index of the family; absent if none can be used.
std::optional<std::uint32_t> chosen(const std::vector<VkQueueFamilyProperties>& families,
                                    bool computes = false, const LinkRates& rates = {}) {
  const std::vector<QueueFamily> queues = queue_families(families);
  const auto at = choose_queue_family(queues, computes, rates);
  return at ? std::optional(queues[*at].index) : std::nullopt;
}

TEST(QueueChoice, CopyEngineThenComputeThenAny) {
  EXPECT_EQ(chosen({kAll, kCompute, kCopies, kVideo}), 2u);
  EXPECT_EQ(chosen({kAll, kCompute}), 1u);
  EXPECT_EQ(chosen({kAll, kVideo}), 0u);
  EXPECT_EQ(chosen({kVideo}), 0u);
  EXPECT_EQ(chosen({family(VK_QUEUE_TRANSFER_BIT, 0), kAll}), 1u);
  EXPECT_EQ(chosen({family(VK_QUEUE_SPARSE_BINDING_BIT)}), std::nullopt);
}

TEST(QueueChoice, ShadersNeedAFamilyThatComputes) {
  EXPECT_EQ(chosen({kCopies, kAll, kCompute}, true), 2u);
  EXPECT_EQ(chosen({kCopies, kVideo}, true), std::nullopt);
  EXPECT_EQ(chosen({kAll, kCompute, kCopies}, true,
                   {{"0 draws and computes", 3e9}, {"1 computes", 2e9}, {"2 only copies", 9e9}}),
            0u);
}

TEST(QueueChoice, AMeasurementDecidesWhereItIsClear) {
  const auto with = [](double all, double copies) {
    return chosen({kAll, kCompute, kCopies}, false,
                  {{"0 draws and computes", all}, {"1 computes", 20e9}, {"2 only copies", copies}});
  };
  EXPECT_EQ(with(24e9, 12e9), 0u);
  EXPECT_EQ(with(24e9, 23.5e9), 2u);  // within 5 %
  EXPECT_EQ(with(24e9, 25e9), 2u);
  // not comparable: the family that its kind recommends was not measured
  EXPECT_EQ(chosen({kAll, kCopies}, false, {{"0 draws and computes", 24e9}}), 1u);
  // another driver numbers them in another way
  EXPECT_EQ(chosen({kAll, kCopies}, false, {{"0 only copies", 24e9}, {"1 only copies", 1e9}}), 1u);
}

}  // namespace

// --- Memory types by kind, and whether a plan fits.

namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

struct Type {
  VkMemoryPropertyFlags flags;
  std::uint32_t heap;
};

VkPhysicalDeviceMemoryProperties memory(const std::vector<std::uint64_t>& heaps,
                                        const std::vector<Type>& types) {
  VkPhysicalDeviceMemoryProperties properties = {};
  properties.memoryHeapCount = static_cast<std::uint32_t>(heaps.size());
  for (std::size_t i = 0; i < heaps.size(); ++i) properties.memoryHeaps[i].size = heaps[i];
  properties.memoryTypeCount = static_cast<std::uint32_t>(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) properties.memoryTypes[i] = {types[i].flags, types[i].heap};
  return properties;
}

TEST(MemoryType, DiscreteCardWithASmallWindow) {
  // system memory, the card's memory, and 256 MiB of it through which the host can see
  const auto card = memory({64ull << 30, 8ull << 30, 256ull << 20},
                           {{kMapped | kLocal, 2}, {kLocal, 1}, {kMapped | kCached, 0}, {kMapped, 0}});
  EXPECT_EQ(choose_memory_type(card, ~0u, MemoryUse::device), 1u);
  EXPECT_EQ(choose_memory_type(card, ~0u, MemoryUse::staging), 2u);
  EXPECT_EQ(choose_memory_type(card, 0b1001, MemoryUse::staging), 3u);
  EXPECT_EQ(choose_memory_type(card, 0b0001, MemoryUse::device), 0u);
  EXPECT_THROW(choose_memory_type(card, 0b1100, MemoryUse::device), Error);
  EXPECT_THROW(choose_memory_type(card, 0b0010, MemoryUse::staging), Error);
}

TEST(MemoryType, WholeCardVisible) {
  const auto card = memory({64ull << 30, 8ull << 30}, {{kLocal | kMapped, 1}, {kLocal, 1}, {kMapped, 0}});
  EXPECT_EQ(choose_memory_type(card, ~0u, MemoryUse::device), 1u);
  EXPECT_EQ(choose_memory_type(card, ~0u, MemoryUse::staging), 2u);
}

// A window as large as the card's memory, of a type that buffers may not have.
TEST(MemoryType, MappedOnlyWhereBuffersMayLie) {
  const auto card = memory({64ull << 30, 8ull << 30}, {{kLocal | kMapped, 1}, {kLocal, 1}, {kMapped, 0}});
  EXPECT_TRUE(can_map_device_memory(card, ~0u));
  EXPECT_FALSE(can_map_device_memory(card, 0b110));
  EXPECT_EQ(choose_memory_type(card, 0b111, MemoryUse::direct), 0u);
}

TEST(MemoryType, OneTypeForAll) {
  const auto software = memory({2ull << 30}, {{kLocal | kMapped | kCached, 0}});
  for (const MemoryUse kind : {MemoryUse::device, MemoryUse::direct, MemoryUse::staging})
    EXPECT_EQ(choose_memory_type(software, ~0u, kind), 0u);
}

TEST(MemoryType, MappedButNotCoherentIsNotUsed) {
  const auto card = memory({1 << 30}, {{VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | kCached, 0}, {kMapped, 0}});
  EXPECT_EQ(choose_memory_type(card, ~0u, MemoryUse::staging), 1u);
}

TEST(MemoryNeed, PeaksAreRoundedPerBlock) {
  plan::Plan plan;
  const plan::BlockId a =
      plan::alloc(plan, {.bytes = 1, .space = plan::Space::device, .use = {}, .storage = {}, .extra = {}});
  plan::alloc(plan, {.bytes = 257, .space = plan::Space::device, .use = {}, .storage = {}, .extra = {}});
  plan::free(plan, a);
  plan::alloc(plan, {.bytes = 10, .space = plan::Space::device, .use = {}, .storage = {}, .extra = {}});
  plan::alloc(plan, {.bytes = 0, .space = plan::Space::host, .use = {}, .storage = {}, .extra = {}});
  const plan::PerSpace<allocators::PoolForecast> expected = plan::pool_forecasts(plan, 256);
  EXPECT_EQ(expected[plan::index(plan::Space::device)].peak, 768u);
  std::vector<std::uint64_t> requests;
  for (const allocators::PoolRequest& request : expected[plan::index(plan::Space::device)].requests)
    requests.push_back(request.bytes);
  EXPECT_EQ(requests, (std::vector<std::uint64_t>{256, 512, 256}));
  EXPECT_FALSE(expected[plan::index(plan::Space::device)].requests[0].stays);
  EXPECT_TRUE(expected[plan::index(plan::Space::device)].requests[1].stays);
  EXPECT_EQ(expected[plan::index(plan::Space::device)].requests[0].passing_peak, 256u);
  EXPECT_EQ(expected[plan::index(plan::Space::device)].requests[1].passing_peak, 256u);
  EXPECT_EQ(expected[plan::index(plan::Space::device)].requests[2].passing_peak, 0u);
  EXPECT_EQ(expected[plan::index(plan::Space::host)].peak, 0u);
  EXPECT_TRUE(expected[plan::index(plan::Space::host)].requests.empty());
}

// Of a plan that holds all its peaks at once.
std::string refusal(const plan::PerSpace<std::uint64_t>& peaks, const MemorySupply& supply) {
  MemoryNeeds needs = {};
  for (unsigned mask = 0; mask < needs.size(); ++mask) needs[mask] = plan::sum_over(peaks, mask);
  return testing::facts_of([&] { require_fit(needs, supply, "the card"); });
}

TEST(MemoryNeed, RefusalsNameBothNumbers) {
  //                                 host, page_cache, staging, device
  const plan::PerSpace<std::uint64_t> peaks = {100, 1u << 30, 10, 1000};
  EXPECT_EQ(refusal(peaks, {.device = 1000, .staging = 10, .system = 110}), "");
  EXPECT_EQ(refusal(peaks, {.device = 999, .staging = 10, .system = 110}), "no_fit 1000 1000 999 999");
  EXPECT_EQ(refusal(peaks, {.device = 1000, .staging = 9}), "no_fit 10 10 9 9");
  EXPECT_EQ(refusal(peaks, {.device = 1000, .staging = 10, .system = 109}), "no_fit 110 110 109 109");
  EXPECT_EQ(refusal(peaks, {.device = 1009, .staging = 1009, .same_heap = true}),
            "no_fit 1010 1010 1009 1009");
  EXPECT_EQ(refusal(peaks, {.device = 1, .system = 1110, .is_system = true}), "");
  EXPECT_EQ(refusal(peaks, {.device = 1 << 30, .staging = 1 << 30, .system = 1109, .is_system = true}),
            "no_fit 1.08 1110 1.08 1109");
}

// Each heap has room, but they are the same memory, as of an integrated GPU.
TEST(MemoryNeed, OfADeviceThatSharesTheSystemsMemoryIsAddedUp) {
  const plan::PerSpace<std::uint64_t> peaks = {100, 1u << 30, 10, 1000};
  const MemorySupply supply = {.device = 1000, .staging = 10, .system = 1110, .shares_system = true};
  EXPECT_EQ(refusal(peaks, supply), "");
  MemorySupply less = supply;
  less.system = 1000;
  EXPECT_EQ(refusal(peaks, less), "no_fit 1.08 1110 1000 1000");
  less.set_aside = 110;
  EXPECT_EQ(refusal(peaks, less), "");
}

// What moves from the host to the device piece by piece is held once, though each side has it whole at some
// time.
TEST(MemoryNeed, SpacesThatTakeTurnsAreNotAddedUp) {
  plan::Plan plan;
  std::vector<plan::BlockId> host;
  for (int i = 0; i < 3; ++i) host.push_back(plan::alloc(plan, {.bytes = 256, .space = plan::Space::host}));
  for (const plan::BlockId id : host) {
    plan::alloc(plan, {.bytes = 200, .space = plan::Space::device});
    plan::free(plan, id);
  }
  const MemoryNeeds needs = padded_needs(plan, 256, 7);
  const unsigned host_and_device = plan::space_bit(plan::Space::host) | plan::space_bit(plan::Space::device);
  EXPECT_EQ(needs[plan::space_bit(plan::Space::host)], 768u);
  EXPECT_EQ(needs[plan::space_bit(plan::Space::device)], 768u);
  EXPECT_EQ(needs[host_and_device], 1024u);
  EXPECT_EQ(needs[host_and_device | plan::space_bit(plan::Space::staging)], 1031u);
  EXPECT_NO_THROW(require_fit(needs, {.system = 1031, .is_system = true}, "the card"));
  EXPECT_THROW(require_fit(needs, {.system = 1030, .is_system = true}, "the card"), Error);
}

}  // namespace

// --- What a device must allow in one piece and at once, checked without one.

namespace {

graph::MetaGraph graph_of(const std::vector<std::uint64_t>& sizes) {
  graph::MetaGraph graph;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    graph.storages.push_back(graph::shapes_only_storage(sizes[i]));
    graph.tensors.push_back({graph::Name(fmt::format("t{}", i)),
                             graph::DType::i8,
                             {sizes[i]},
                             {},
                             graph::StorageId{static_cast<std::uint32_t>(i)},
                             0});
  }
  return graph;
}

plan::Plan plan_of(const graph::MetaGraph& graph, std::string_view method) {
  return load::make_plan(graph, load::find_method(method), load::find_order("file").make(graph), {});
}

DeviceInfo small_device() {
  DeviceInfo device;
  device.name = "small";
  device.max_allocation = 1 << 30;
  device.max_buffer = 512 << 20;
  device.max_binding = 128 << 20;
  device.max_allocations = 4;
  return device;
}

std::string refusal(const graph::MetaGraph& graph, const DeviceInfo& device) {
  return testing::facts_of([&] {
    const plan::Plan plan = plan_of(graph, "direct");
    require_pieces(plan, graph, device, 256);
    require_allocations(plan, device, 256);
  });
}

TEST(Pieces, AreRefusedWithTheTensorAndBothNumbers) {
  const DeviceInfo device = small_device();
  EXPECT_EQ(refusal(graph_of({1, 512 << 20}), device), "");
  EXPECT_EQ(refusal(graph_of({1, (512 << 20) + 1}), device), "no_fit 't1' 512.00 536870913 512.00 536870912");
  DeviceInfo other = device;  // the smaller of the two limits decides
  other.max_allocation = 100 << 20;
  EXPECT_EQ(refusal(graph_of({101 << 20}), other), "no_fit 't0' 101.00 105906176 100.00 104857600");
}

// A driver may give more in one piece than it promises, but no more than a heap or a buffer has.
TEST(Pieces, MayExceedWhatTheDriverPromises) {
  DeviceInfo device = small_device();
  device.max_buffer = 3ull << 30;
  EXPECT_EQ(largest_piece(device, 256), 1u << 30);
  device.heaps = {{.bytes = 2ull << 30, .device_local = true}};
  EXPECT_EQ(largest_piece(device, 256), 2ull << 30);
  device.heaps.front().bytes = 4ull << 30;
  EXPECT_EQ(largest_piece(device, 256), 3ull << 30);
  EXPECT_EQ(promised_piece(device, 256), 1u << 30);
  const graph::MetaGraph graph = graph_of({1, 2ull << 30, 3});
  EXPECT_EQ(refusal(graph, device), "");
  const plan::Plan plan = plan_of(graph, "direct");
  const auto large = largest_unpromised(plan, plan::Space::device, device, 256);
  ASSERT_TRUE(large);
  EXPECT_EQ(plan.block(*large).storage, graph::StorageId{1});
  EXPECT_EQ(largest_unpromised(plan_of(graph_of({1 << 30}), "direct"), plan::Space::device, device, 256),
            std::nullopt);
  EXPECT_EQ(testing::facts_of([&] {
              refuse_piece(plan.block(*large), graph, device, promised_piece(device, 256),
                           "the driver refused");
            }),
            "no_fit 't1' 2.00 2147483648 1.00 1073741824");
}

TEST(Pieces, AreCountedAtOnce) {
  const DeviceInfo device = small_device();
  EXPECT_EQ(refusal(graph_of(std::vector<std::uint64_t>(4, 300 << 20)), device), "");
  EXPECT_EQ(refusal(graph_of(std::vector<std::uint64_t>(5, 300 << 20)), device), "no_fit 5 4");
  // small ones share
  EXPECT_EQ(refusal(graph_of(std::vector<std::uint64_t>(1000, 1 << 20)), device), "");
  // and a load that gives them back needs few
  plan::Plan turns;
  for (std::uint32_t i = 0; i < 9; ++i) {
    turns.blocks.push_back({.bytes = 300 << 20, .space = plan::Space::device});
    turns.steps.push_back({.verb = plan::Verb::alloc, .block = plan::BlockId{i}});
    turns.steps.push_back({.verb = plan::Verb::free, .block = plan::BlockId{i}});
  }
  EXPECT_NO_THROW(require_allocations(turns, device, 256));
}

TEST(Pieces, ThatAShaderCannotSeeAreNamed) {
  const graph::MetaGraph graph = graph_of({128 << 20, 129 << 20, 200 << 20, 1});
  const Unbindable found = unbindable_tensors(graph, {}, small_device());
  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(found.largest, graph::TensorId{2});
  EXPECT_EQ(found.most, 200u << 20);
  EXPECT_EQ(unbindable_tensors(graph_of({5}), {}, small_device()).count, 0u);
  // one of them is packed to half its size
  plan::Plan packed;
  packed.blocks.push_back({.bytes = 100 << 20,
                           .space = plan::Space::device,
                           .use = plan::BlockUse::storage,
                           .storage = graph::StorageId{2},
                           .extra = convert::Prepack{.from = graph::DType::f32, .to = graph::DType::f16}});
  EXPECT_EQ(unbindable_tensors(graph, packed, small_device()).largest, graph::TensorId{1});
}

}  // namespace

// --- The ring's states, by hand and against a model of every slot.

namespace {

TEST(StagingRing, SlotsTakeTurnsAndWaitForTheirValue) {
  StagingRing ring(2, 256);
  for (std::uint64_t value = 1; value <= 6; ++value) {
    const std::uint64_t needs = ring.next_needs();
    EXPECT_EQ(needs, value <= 2 ? 0 : value - 2);
    ring.begin(needs);
    EXPECT_EQ(ring.take(256, 64).slot, (value - 1) % 2);
    EXPECT_EQ(ring.room(), 0u);
    ring.submit(value);
  }
  EXPECT_EQ(ring.next_needs(), 5u);
}

TEST(StagingRing, PiecesShareASlotOnAlignedOffsets) {
  StagingRing ring(3, 256);
  ring.begin(0);
  ring.submit(1);
  ring.begin(1);
  const StagingRing::Piece a = ring.take(1, 64), b = ring.take(65, 64), c = ring.take(1000, 64);
  EXPECT_EQ(a.slot, 1u);
  EXPECT_EQ(a.offset, 256u);
  EXPECT_EQ(a.bytes, 1u);
  EXPECT_EQ(b.offset, 256u + 64);
  EXPECT_EQ(b.bytes, 65u);
  EXPECT_EQ(c.offset, 256u + 192);
  EXPECT_EQ(c.bytes, 64u);  // what is left
  EXPECT_EQ(ring.room(), 0u);
}

TEST(StagingRing, OneSlot) {
  StagingRing ring(1, 64);
  ring.begin(0);
  ring.take(64, 64);
  ring.submit(3);
  EXPECT_EQ(ring.next_needs(), 3u);
  ring.begin(3);
  EXPECT_TRUE(ring.filling());
}

// Every sequence of begin/submit with random completions keeps to the law: a slot is never handed out
// while its last value is not complete, and pieces of one filling never overlap.
TEST(StagingRing, RandomUseAgainstAModel) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto slots = static_cast<std::uint32_t>(1 + random() % 5);
    const std::uint64_t slot_bytes = 64 * (1 + random() % 8);
    StagingRing ring(slots, slot_bytes);
    std::vector<std::uint64_t> busy(slots, 0);
    std::uint64_t value = 0, completed = 0;
    for (std::uint32_t turn = 0; turn < 50; ++turn) {
      const std::uint32_t slot = turn % slots;
      ASSERT_EQ(ring.next_needs(), busy[slot]);
      completed = std::max(completed, ring.next_needs());
      if (random() % 2 == 0) completed = value;
      ring.begin(completed);
      std::uint64_t end = slot * slot_bytes;
      while (ring.room() > 0 && random() % 4 != 0) {
        const StagingRing::Piece piece = ring.take(1 + random() % 200, 64);
        ASSERT_EQ(piece.slot, slot);
        ASSERT_GE(piece.offset, end);
        ASSERT_EQ(piece.offset % 64, 0u);
        end = piece.offset + piece.bytes;
        ASSERT_LE(end, (slot + 1) * slot_bytes);
      }
      value += random() % 3;  // several slots may end with one submission
      ring.submit(value);
      busy[slot] = value;
    }
  }
}

#ifndef NDEBUG
TEST(StagingRingDeathTest, MisuseIsAsserted) {
  StagingRing ring(2, 64);
  EXPECT_DEATH(ring.submit(1), "being filled");
  EXPECT_DEATH(ring.take(1, 64), "");
  ring.begin(0);
  EXPECT_DEATH(ring.begin(0), "one slot");
  ring.submit(5);
  ring.begin(0);
  EXPECT_DEATH(ring.submit(4), "never decrease");
  ring.submit(5);
  EXPECT_DEATH(ring.begin(4), "still in flight");
}
#endif

}  // namespace

// --- Interval sets against a bitmap, and which pairs of copies conflict.

namespace {

TEST(RangeSet, MergesAndAnswersLikeABitmap) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    RangeSet set;
    std::vector<bool> bits(64, false);
    for (int step = 0; step < 30; ++step) {
      const std::uint64_t begin = random() % 64, end = begin + random() % (65 - begin);
      bool any = false;
      for (std::uint64_t i = begin; i < end; ++i) any = any || bits[i];
      ASSERT_EQ(set.overlaps(begin, end), any);
      if (random() % 2 == 0) continue;
      set.insert(begin, end);
      for (std::uint64_t i = begin; i < end; ++i) bits[i] = true;
      std::size_t runs = 0;
      for (std::size_t i = 0; i < bits.size(); ++i) runs += bits[i] && (i == 0 || !bits[i - 1]) ? 1 : 0;
      ASSERT_EQ(set.size(), runs);
    }
  }
}

TEST(HazardTracker, ReadsMayOverlapNothingElseMay) {
  HazardTracker tracker;
  tracker.add({1, 0, 10}, {2, 0, 10});
  EXPECT_FALSE(tracker.conflicts({1, 0, 10}, {3, 0, 10}));   // read after read
  EXPECT_FALSE(tracker.conflicts({1, 0, 10}, {2, 10, 20}));  // beside it
  EXPECT_TRUE(tracker.conflicts({2, 9, 10}, {3, 0, 1}));     // read after write
  EXPECT_TRUE(tracker.conflicts({3, 0, 1}, {2, 9, 10}));     // write after write
  EXPECT_TRUE(tracker.conflicts({3, 0, 1}, {1, 0, 1}));      // write after read
  tracker.clear();
  EXPECT_FALSE(tracker.conflicts({2, 9, 10}, {1, 0, 1}));
}

TEST(PendingUses, TheHostWaitsForWhatItTouches) {
  PendingUses uses;
  uses.add(0, 100, 1, false);
  uses.add(100, 200, 2, true);
  EXPECT_EQ(uses.before_read(0, 100), 0u);  // the device only reads there
  EXPECT_EQ(uses.before_write(0, 100), 1u);
  EXPECT_EQ(uses.before_read(50, 101), 2u);
  EXPECT_EQ(uses.before_write(200, 300), 0u);
  uses.complete(1);
  EXPECT_EQ(uses.before_write(0, 100), 0u);
  EXPECT_EQ(uses.before_write(0, 101), 2u);
  uses.complete(2);
  EXPECT_TRUE(uses.empty());
}

TEST(PendingUses, TheNewestUseOfAByteCounts) {
  PendingUses uses;
  for (std::uint64_t value = 1; value <= 5; ++value)
    for (std::uint64_t i = 0; i < 1000; ++i) uses.add(i * 8, i * 8 + 4, value, value % 2 == 0);
  EXPECT_EQ(uses.before_write(0, 1), 5u);
  EXPECT_EQ(uses.before_read(0, 1), 4u);
  EXPECT_EQ(uses.before_write(4, 8), 0u);  // between two of them
  uses.complete(4);
  EXPECT_EQ(uses.before_read(0, 8000), 0u);
  EXPECT_EQ(uses.before_write(7999, 8000), 0u);
}

}  // namespace

}  // namespace loadline::gpu
