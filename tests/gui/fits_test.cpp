// Room on devices and disks, and the names of converted files.
#include "app/gui/state/model/model.h"
#include "core/base/error.h"
#include "exporters/convert.h"
#include "tests/gui/sample_graphs.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

Projection peaks(std::uint64_t device, std::uint64_t staging, std::uint64_t host) {
  Projection projection;
  Timeline& timeline = projection.timeline;
  timeline.peaks[index(Space::device)].bytes = device;
  timeline.peaks[index(Space::staging)].bytes = staging;
  timeline.peaks[index(Space::host)].bytes = host;
  UsagePoint all;  // at once
  for (std::size_t space = 0; space < kSpaceCount; ++space) all.bytes[space] = timeline.peaks[space].bytes;
  timeline.usage.push_back(all);
  return projection;
}

gpu::DeviceInfo discrete(std::uint64_t memory) {
  gpu::DeviceInfo device;
  device.name = "Big";
  device.max_allocation = device.max_buffer = 4 * kGiB;
  device.type = gpu::DeviceType::discrete;
  device.heaps = {{.bytes = memory, .device_local = true},
                  {.bytes = 8 * kGiB, .host_visible = true},
                  {.bytes = kGiB / 4, .device_local = true, .host_visible = true}};
  return device;
}

TEST(OutputName, keeps_the_dots_of_a_version) {
  const Exporter& safetensors = find_exporter("safetensors");
  const Exporter& gguf = find_exporter("gguf");
  EXPECT_EQ(output_name("llama-3.1-70b", safetensors, OutputKind::file),
            "llama-3.1-70b-loadline.safetensors");
  EXPECT_EQ(output_name("llama-3.1-70b", gguf, OutputKind::file), "llama-3.1-70b-loadline.gguf");
  EXPECT_EQ(output_name("Qwen/Qwen2.5-0.5B", gguf, OutputKind::file), "Qwen2.5-0.5B-loadline.gguf");
  EXPECT_EQ(output_name("tiny.v1.0", gguf, OutputKind::file), "tiny.v1.0-loadline.gguf");
}

TEST(OutputName, takes_off_what_an_exporter_would_write) {
  EXPECT_EQ(output_name("phi-2.safetensors", find_exporter("gguf"), OutputKind::file), "phi-2-loadline.gguf");
  EXPECT_EQ(output_name("phi-2.gguf", find_exporter("safetensors"), OutputKind::file),
            "phi-2-loadline.safetensors");
  EXPECT_EQ(output_name(".gguf", find_exporter("gguf"), OutputKind::file), "model-loadline.gguf");
  EXPECT_EQ(output_name("", find_exporter("gguf"), OutputKind::file), "model-loadline.gguf");
}

TEST(OutputName, of_a_folder_has_no_extension) {
  const Exporter& safetensors = find_exporter("safetensors");
  EXPECT_EQ(output_name("phi-2.safetensors", safetensors, OutputKind::folder), "phi-2-loadline");
  EXPECT_TRUE(takes_option(safetensors, "max_shard_size"));
  EXPECT_FALSE(takes_option(find_exporter("torch"), "max_shard_size"));
  EXPECT_TRUE(takes_option(find_exporter("gguf"), "verify"));
}

TEST(UploadMisfit, compares_each_heap_with_its_peak) {
  const gpu::DeviceInfo device = discrete(24 * kGiB);
  EXPECT_EQ(upload_misfit(peaks(24 * kGiB, kGiB, kGiB), {}, device, 4 * kGiB), "");
  EXPECT_NE(upload_misfit(peaks(25 * kGiB, 0, 0), {}, device, 64 * kGiB).find("25.00 GiB"),
            std::string::npos);
  EXPECT_NE(upload_misfit(peaks(kGiB, 9 * kGiB, 0), {}, device, 64 * kGiB), "");
  EXPECT_NE(upload_misfit(peaks(kGiB, 0, 9 * kGiB), {}, device, 8 * kGiB), "");
  EXPECT_EQ(upload_misfit(peaks(kGiB, 0, 9 * kGiB), {}, device, std::nullopt), "");
}

TEST(UploadMisfit, believes_the_budget_before_the_heap) {
  gpu::DeviceInfo device = discrete(24 * kGiB);
  device.heaps[0].budget = 10 * kGiB;
  EXPECT_NE(upload_misfit(peaks(11 * kGiB, 0, 0), {}, device, 64 * kGiB), "");
}

TEST(UploadMisfit, a_software_device_has_the_system_only) {
  gpu::DeviceInfo device;
  device.name = "lavapipe";
  device.type = gpu::DeviceType::cpu;
  device.heaps = {{.bytes = 2 * kGiB, .device_local = true, .host_visible = true, .budget = 16 * kGiB}};
  EXPECT_EQ(upload_misfit(peaks(14 * kGiB, kGiB, kGiB), {}, device, 16 * kGiB), "");
  EXPECT_NE(upload_misfit(peaks(14 * kGiB, kGiB, 2 * kGiB), {}, device, 16 * kGiB), "");
}

TEST(UploadMisfit, names_a_tensor_that_no_block_can_hold) {
  Projection projection = peaks(5 * kGiB, 0, 0);
  projection.plan.blocks = {
      {.space = Space::device, .bytes = 5 * kGiB, .use = {}, .storage = {}, .label = "big"}};
  EXPECT_NE(upload_misfit(projection, {}, discrete(24 * kGiB), 64 * kGiB).find("in one piece"),
            std::string::npos);
}

TEST(UploadMisfit, says_that_a_device_cannot_pack) {
  Projection projection = peaks(kGiB, 0, 0);
  projection.plan.blocks = {
      {.space = Space::device, .bytes = 4, .use = {}, .storage = {}, .label = {}, .prepack = Prepack{}}};
  gpu::DeviceInfo device = discrete(24 * kGiB);
  EXPECT_NE(upload_misfit(projection, {}, device, 64 * kGiB).find("cannot pack weights"), std::string::npos);
  device.packs = true;
  EXPECT_EQ(upload_misfit(projection, {}, device, 64 * kGiB), "");
}

TEST(DiskSpace, is_that_of_the_nearest_folder) {
  const std::string there = std::filesystem::temp_directory_path().lexically_normal().string();
  const DiskSpace space = disk_space(there + "/no-such-folder/nor-this/out.gguf").value();
  EXPECT_EQ(std::filesystem::path(space.folder), std::filesystem::path(there));
  EXPECT_GT(space.available, 0u);
  EXPECT_EQ(disk_space("/no-such-folder/x")->folder, "/");
}

TEST(Use, encoded_weights_are_not_mapped_and_unreadable_ones_not_used) {
  const ModelPtr encoded = make_model(encoded_graph(), "");
  const auto misfit = [](const Model& model, std::string_view method) {
    return mapping_misfit(model, project(*model.graph, find_method(method), find_order("file"), {}));
  };
  EXPECT_EQ(misfit(*encoded, "per_tensor"), "");
  for (const char* method : {"mmap_assign", "host_import"})
    EXPECT_EQ(misfit(*encoded, method),
              "the files cannot be mapped: 3 of 6 storages (192 B) not stored as plain bytes: deflate, "
              "big-endian, unreadable");
  EXPECT_EQ(use_misfit(*encoded), "1 of 6 storages cannot be read: quantised blocks in big-endian order");
  EXPECT_EQ(misfit(*make_model(tiny_graph(), ""), "host_import"), "");
  EXPECT_EQ(use_misfit(*make_model(tiny_graph(), "")), "");
}

TEST(Use, errors_and_shapes_say_why) {
  EXPECT_NE(use_misfit(*make_model(unsound_graph(), "")).find("shard 2 is missing"), std::string::npos);
  EXPECT_NE(use_misfit(*make_model(shapes_graph(), "")).find("shapes only"), std::string::npos);
}

}  // namespace
}  // namespace loadline::gui
