// Synthetic checkpoints through the ordinary safetensors exporter and writer.
#include "exporters/synth.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/forward/gguf/gguf_family.h"
#include "exporters/exporter.h"
#include "exporters/writer/work_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/ranges.h>
#include <xxhash.h>

namespace loadline::exporters {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): a bijection of the counter. Each element depends on its number alone,
// so chunks are independent.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The sum of four uniform 16-bit numbers, which is close enough to a normal distribution: mean 0, deviation
// 1.
float normal_like(std::uint64_t bits) {
  std::int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<std::int64_t>((bits >> (16 * i)) & 0xFFFF);
  return (static_cast<float>(sum) - 131070.0f) / 37836.8f;
}

bool is_norm_scale(const graph::Tensor& tensor) {
  const std::string& name = tensor.name;
  const bool norm = name.find("norm") != std::string::npos || name.find("ln_") != std::string::npos;
  return norm && tensor.shape.size() == 1 && (name.ends_with(".weight") || name.ends_with(".scale"));
}

// Values of one tensor, by element number.
class Values {
 public:
  Values(const graph::Tensor& tensor, std::uint64_t seed)
      : dtype_(tensor.dtype),
        stream_(mix(seed ^ XXH3_64bits(tensor.name.view().data(), tensor.name.size()))),
        floating_(convert::can_cast(graph::DType::f32, tensor.dtype)),
        mean_(is_norm_scale(tensor) ? 1.0f : 0.0f) {}

  // `offset` and the size are in bytes of whole elements for floating types.
  void fill(std::uint64_t offset, std::span<std::byte> out) const {
    if (!floating_) return fill_bytes(offset, out);
    const std::size_t width = graph::dtype_info(dtype_).block_bytes;
    std::array<float, 1024> values = {};
    std::uint64_t element = offset / width;
    while (!out.empty()) {
      const std::size_t n = std::min(values.size(), out.size() / width);
      for (std::size_t i = 0; i < n; ++i) values[i] = mean_ + 0.02f * normal_like(mix(stream_ + element + i));
      convert::cast(graph::DType::f32, std::as_bytes(std::span(values).first(n)), dtype_,
                    out.first(n * width));
      element += n;
      out = out.subspan(n * width);
    }
  }

 private:
  void fill_bytes(std::uint64_t offset, std::span<std::byte> out) const {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>(mix(stream_ + (offset + i) / 8) >> (8 * ((offset + i) % 8)));
  }

  graph::DType dtype_;
  std::uint64_t stream_;
  bool floating_;
  float mean_;
};

// Whether the file can have the names and keys that llama.cpp runs.
bool maps_to_gguf(const graph::MetaGraph& shapes) {
  const std::string* const json = graph::find_text(shapes, graph::kConfigKey);
  return json != nullptr &&
         forward::find_gguf_family(forward::ModelConfig(*json, std::string(graph::kConfigKey))) != nullptr;
}

Layout layout_of(const graph::MetaGraph& shapes, const std::string& out, const SynthOptions& options) {
  constexpr std::string_view kWritten[] = {"safetensors", "torch", "gguf"};
  if (std::ranges::find(kWritten, options.to) == std::end(kWritten))
    throw Error(ErrorCode::usage, "synth writes {}, not '{}'", fmt::join(kWritten, ", "),
                safe_display(options.to, 40));
  const Exporter& exporter = find_exporter(options.to);
  ExportOptions layout = {.outtype = {}, .alignment = 0, .max_shard_bytes = options.max_shard_bytes};
  if (options.to == "safetensors") {
    if (out.ends_with(".safetensors"))
      throw Error(ErrorCode::usage, "'{}': synth writes a model folder, not a file", out);
  } else if (options.to == "gguf") {
    layout.keep_names = !maps_to_gguf(shapes);
    layout.ignored_settings = {"*"};  // made-up weights compute nothing
  }
  return exporter.layout(shapes, layout, out);
}

}  // namespace

WriteReport synthesize(const graph::MetaGraph& shapes, const std::string& out, const SynthOptions& options,
                       Progress& progress) {
  if (out.empty()) throw Error(ErrorCode::usage, "the output has no name");
  const Layout layout = layout_of(shapes, out, options);
  const io::ReadTensor generate = [&](graph::TensorId id, std::uint64_t offset, std::span<std::byte> bytes) {
    Values(shapes.tensor(id), *options.seed).fill(offset, bytes);
  };
  // a checkpoint that is made of numbers alone is made again: what an interrupted run has left goes
  if (const std::string remains = WorkFolder::path_of(layout); std::filesystem::exists(remains))
    remove_remains(examine_remains(remains), false);
  WriteOptions write;
  write.overwrite = options.overwrite;
  write.sparse = !options.seed.has_value();
  return write_layout(layout, shapes, generate, write, progress);
}

}  // namespace loadline::exporters
