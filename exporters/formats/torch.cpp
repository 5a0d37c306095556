// A torch.save archive (torch 2.13: torch/serialization.py) that torch.load maps and reads with weights_only.
//
//   ROOT/data.pkl      protocol 2: {name: _rebuild_tensor(storage, 0, shape, strides, ...)}
//                      tied tensors have one storage
//   ROOT/byteorder     "little"
//   ROOT/data/N        the bytes of tensor N, aligned
//   ROOT/version       "3\n"
//
// Types that torch has no storage class for go through UntypedStorage and _rebuild_tensor_v3.
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats.h"

#include <array>
#include <filesystem>
#include <map>

#include <fmt/core.h>

namespace loadline::exporters {
namespace {

constexpr std::uint64_t kDefaultAlignment = 4096;
// What importers of checkpoints take: of a name, of all names, of dimensions (torch's own limit).
constexpr std::size_t kMostName = 64 << 10, kMostNames = 100 << 20, kMostRank = 64;

std::string_view storage_class(graph::DType dtype) {
  switch (dtype) {
    case graph::DType::f32:
      return "FloatStorage";
    case graph::DType::f16:
      return "HalfStorage";
    case graph::DType::bf16:
      return "BFloat16Storage";
    case graph::DType::f64:
      return "DoubleStorage";
    case graph::DType::i64:
      return "LongStorage";
    case graph::DType::i32:
      return "IntStorage";
    case graph::DType::i16:
      return "ShortStorage";
    case graph::DType::i8:
      return "CharStorage";
    case graph::DType::u8:
      return "ByteStorage";
    case graph::DType::boolean:
      return "BoolStorage";
    case graph::DType::c64:
      return "ComplexFloatStorage";
    case graph::DType::c128:
      return "ComplexDoubleStorage";
    default:
      return "";
  }
}

// Composes the pickle. What repeats is written once and fetched from the memo.
class Pickler {
 public:
  Pickler() { append_bytes(bytes_, "\x80\x02}("); }

  void add(const graph::Name& name, const Slot& slot, std::size_t key) {
    const std::string_view typed = storage_class(slot.dtype);
    const std::uint64_t item = graph::dtype_info(slot.dtype).block_bytes;
    text(name.view());
    global(typed.empty() ? "torch._utils\n_rebuild_tensor_v3\n" : "torch._utils\n_rebuild_tensor_v2\n");
    append_bytes(bytes_, "((");
    repeated("storage");
    global(typed.empty() ? "torch.storage\nUntypedStorage\n" : fmt::format("torch\n{}\n", typed));
    text(std::to_string(key));
    repeated("cpu");
    number(typed.empty() ? slot.bytes : slot.bytes / item);
    append_bytes(bytes_, "tQ");
    number(0);
    tuple(slot.shape);
    tuple(contiguous_strides(slot.shape));
    append_bytes(bytes_, "\x89");
    global("collections\nOrderedDict\n");
    append_bytes(bytes_, ")R");
    if (typed.empty()) global(fmt::format("torch\n{}\n", graph::dtype_info(slot.dtype).torch));
    append_bytes(bytes_, "tR");
  }
  std::vector<std::byte> finish() {
    append_bytes(bytes_, "u.");
    return std::move(bytes_);
  }

 private:
  void byte(std::uint64_t value) { bytes_.push_back(static_cast<std::byte>(value)); }

  // BINUNICODE
  void text(std::string_view value) {
    append_bytes(bytes_, "X");
    append_u32(bytes_, static_cast<std::uint32_t>(value.size()));
    append_bytes(bytes_, value);
  }
  // BININT1, BININT or LONG1
  void number(std::uint64_t value) {
    if (value < 256) {
      append_bytes(bytes_, "K");
      byte(value);
    } else if (value >> 31 == 0) {
      append_bytes(bytes_, "J");
      append_u32(bytes_, static_cast<std::uint32_t>(value));
    } else {
      append_bytes(bytes_, "\x8a\x09");
      append_u64(bytes_, value);
      byte(0);  // the sign
    }
  }
  void tuple(const graph::Shape& values) {
    append_bytes(bytes_, "(");
    for (const std::uint64_t value : values) number(value);
    append_bytes(bytes_, "t");
  }
  void global(const std::string& name) {
    if (fetch(name)) return;
    append_bytes(bytes_, "c" + name);
    put(name);
  }
  void repeated(const std::string& value) {
    if (fetch(value)) return;
    text(value);
    put(value);
  }
  bool fetch(const std::string& what) {  // BINGET
    const auto known = memo_.find(what);
    if (known == memo_.end()) return false;
    append_bytes(bytes_, "h");
    byte(known->second);
    return true;
  }
  void put(const std::string& what) {  // BINPUT; there are fewer than 256 classes and types
    const std::uint8_t number = static_cast<std::uint8_t>(memo_.size());
    memo_.emplace(what, number);
    append_bytes(bytes_, "q");
    byte(number);
  }
  static graph::Shape contiguous_strides(const graph::Shape& shape) {
    graph::Shape strides = shape;
    std::uint64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      strides[i] = step;
      step *= std::max<std::uint64_t>(shape[i], 1);
    }
    return strides;
  }

  std::vector<std::byte> bytes_;
  std::map<std::string, std::uint8_t> memo_;
};

}  // namespace

bool torch_supports(graph::DType dtype) {
  const graph::DTypeInfo& type = graph::dtype_info(dtype);
  return !type.torch.empty() && type.block_elements == 1;
}

bool torch_carries(const graph::MetaGraph&, const graph::MetaEntry&) { return false; }

Layout torch_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  std::vector<Slot> slots = output_slots(graph, options);
  std::vector<graph::Note> notes = packing_notes(graph, slots, options);
  const std::vector<std::vector<graph::Name>> names = all_names(graph, slots);
  Pickler pickle;
  std::size_t name_bytes = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (!torch_supports(slot.dtype)) refuse_dtype(slot, "torch", graph::DType::f32);
    check_rank(slot, kMostRank, "torch");
    for (const graph::Name& name : names[i]) {
      if (!is_valid_utf8(name))
        throw Error(ErrorCode::unsupported, {.tensor = name}, "its name is not UTF-8 text");
      // an entry without a name is the dict itself
      if (name.empty() || name.size() > kMostName)
        throw Error(ErrorCode::unsupported, {.tensor = name},
                    "its name has {} bytes, a state_dict holds 1 to {}", name.size(), kMostName);
      name_bytes += name.size();
      if (name_bytes > kMostNames)
        throw Error(ErrorCode::limit, "the names of the tensors take more than {} bytes", kMostNames);
      pickle.add(name, slot, i);
    }
  }
  const std::string root = "archive/";
  ZipLayout zip(zip_alignment(options, kDefaultAlignment));
  const auto bytes_of = [](std::string_view text) {
    std::vector<std::byte> bytes;
    append_bytes(bytes, text);
    return bytes;
  };
  zip.add(root + "data.pkl", pickle.finish());
  zip.add(root + "byteorder", bytes_of("little"));
  for (std::size_t i = 0; i < slots.size(); ++i)
    zip.add(fmt::format("{}data/{}", root, i), {}, std::move(slots[i]));
  zip.add(root + "version", bytes_of("3\n"));
  Layout layout = zip.layout(graph, "torch", out, names);
  layout.notes = std::move(notes);
  return layout;
}

}  // namespace loadline::exporters
