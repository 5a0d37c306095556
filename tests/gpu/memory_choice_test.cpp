// Memory types by kind, and whether a plan fits.
#include "core/base/error.h"
#include "core/gpu/device_memory.h"
#include "core/gpu/memory_need.h"
#include "core/plan/plan.h"
#include "core/plan/reserved_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  Plan plan;
  const BlockId a = alloc(plan, {.space = Space::device, .bytes = 1, .use = {}, .storage = {}, .label = {}});
  alloc(plan, {.space = Space::device, .bytes = 257, .use = {}, .storage = {}, .label = {}});
  free(plan, a);
  alloc(plan, {.space = Space::device, .bytes = 10, .use = {}, .storage = {}, .label = {}});
  alloc(plan, {.space = Space::host, .bytes = 0, .use = {}, .storage = {}, .label = {}});
  const PerSpace<PoolForecast> expected = pool_forecasts(plan, 256);
  EXPECT_EQ(expected[index(Space::device)].peak, 768u);
  std::vector<std::uint64_t> requests;
  for (const PoolRequest& request : expected[index(Space::device)].requests)
    requests.push_back(request.bytes);
  EXPECT_EQ(requests, (std::vector<std::uint64_t>{256, 512, 256}));
  EXPECT_FALSE(expected[index(Space::device)].requests[0].stays);
  EXPECT_TRUE(expected[index(Space::device)].requests[1].stays);
  EXPECT_EQ(expected[index(Space::device)].requests[0].passing_peak, 256u);
  EXPECT_EQ(expected[index(Space::device)].requests[1].passing_peak, 256u);
  EXPECT_EQ(expected[index(Space::device)].requests[2].passing_peak, 0u);
  EXPECT_EQ(expected[index(Space::host)].peak, 0u);
  EXPECT_TRUE(expected[index(Space::host)].requests.empty());
}

// Of a plan that holds all its peaks at once.
std::string refusal(const PerSpace<std::uint64_t>& peaks, const MemorySupply& supply) {
  MemoryNeeds needs = {};
  for (unsigned mask = 0; mask < needs.size(); ++mask) needs[mask] = sum_over(peaks, mask);
  try {
    require_fit(needs, supply, "the card");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_fit);
    return error.what();
  }
  return "fits";
}

TEST(MemoryNeed, RefusalsNameBothNumbers) {
  //                                 host, page_cache, staging, device
  const PerSpace<std::uint64_t> peaks = {100, 1u << 30, 10, 1000};
  EXPECT_EQ(refusal(peaks, {.device = 1000, .staging = 10, .system = 110}), "fits");
  EXPECT_THAT(refusal(peaks, {.device = 999, .staging = 10, .system = 110}),
              AllOf(HasSubstr("(1000 bytes) of device memory on the card"), HasSubstr("(999 bytes)")));
  EXPECT_THAT(refusal(peaks, {.device = 1000, .staging = 9}), HasSubstr("transfer memory"));
  EXPECT_THAT(refusal(peaks, {.device = 1000, .staging = 10, .system = 109}),
              HasSubstr("(110 bytes) of system"));
  EXPECT_THAT(refusal(peaks, {.device = 1009, .staging = 1009, .same_heap = true}),
              HasSubstr("(1010 bytes)"));
  EXPECT_EQ(refusal(peaks, {.device = 1, .system = 1110, .is_system = true}), "fits");
  EXPECT_THAT(refusal(peaks, {.device = 1 << 30, .staging = 1 << 30, .system = 1109, .is_system = true}),
              HasSubstr("system memory (the card has no other)"));
}

// Each heap has room, but they are the same memory, as of an integrated GPU.
TEST(MemoryNeed, OfADeviceThatSharesTheSystemsMemoryIsAddedUp) {
  const PerSpace<std::uint64_t> peaks = {100, 1u << 30, 10, 1000};
  const MemorySupply supply = {.device = 1000, .staging = 10, .system = 1110, .shares_system = true};
  EXPECT_EQ(refusal(peaks, supply), "fits");
  MemorySupply less = supply;
  less.system = 1000;
  EXPECT_THAT(refusal(peaks, less), AllOf(HasSubstr("(1110 bytes) of the memory that the card and the host"),
                                          HasSubstr("(1000 bytes)")));
  less.set_aside = 110;
  EXPECT_EQ(refusal(peaks, less), "fits");
}

// What moves from the host to the device piece by piece is held once, though each side has it whole at some
// time.
TEST(MemoryNeed, SpacesThatTakeTurnsAreNotAddedUp) {
  Plan plan;
  std::vector<BlockId> host;
  for (int i = 0; i < 3; ++i) host.push_back(alloc(plan, {.space = Space::host, .bytes = 256}));
  for (const BlockId id : host) {
    alloc(plan, {.space = Space::device, .bytes = 200});
    free(plan, id);
  }
  const MemoryNeeds needs = padded_needs(plan, 256, 7);
  const unsigned host_and_device = space_bit(Space::host) | space_bit(Space::device);
  EXPECT_EQ(needs[space_bit(Space::host)], 768u);
  EXPECT_EQ(needs[space_bit(Space::device)], 768u);
  EXPECT_EQ(needs[host_and_device], 1024u);
  EXPECT_EQ(needs[host_and_device | space_bit(Space::staging)], 1031u);
  EXPECT_NO_THROW(require_fit(needs, {.system = 1031, .is_system = true}, "the card"));
  EXPECT_THROW(require_fit(needs, {.system = 1030, .is_system = true}, "the card"), Error);
}

}  // namespace
}  // namespace loadline::gpu
