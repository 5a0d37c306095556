// Protobuf wire data field by field, right or wrong, and ONNX messages on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::testing {

// --- Protobuf wire data, field by field, right or wrong.

// Fields in the order of the calls. Converts to its bytes.
class Proto {
 public:
  Proto& number(std::uint32_t field, std::uint64_t value);
  Proto& fixed32(std::uint32_t field, std::uint32_t value);
  Proto& fixed64(std::uint32_t field, std::uint64_t value);
  // Text, a message or a packed run.
  Proto& text(std::uint32_t field, std::string_view content);
  Proto& varints(std::uint32_t field, const std::vector<std::uint64_t>& values);
  // Bytes as they are.
  Proto& raw(std::string_view bytes);

  const std::string& bytes() const { return bytes_; }
  operator std::string_view() const { return bytes_; }
  operator const std::string&() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string varint_bytes(std::uint64_t value);

}  // namespace loadline::testing

namespace loadline::testing::onnx {

// --- ONNX messages for tests, on protobuf fields.

// Element types by their code.
inline constexpr std::int64_t kFloat = 1, kUint8 = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7, kString = 8,
                              kBool = 9, kFloat16 = 10, kDouble = 11, kUint32 = 12, kComplex64 = 14,
                              kBfloat16 = 16, kFloat8 = 17, kUint4 = 21, kInt4 = 22, kFloat4 = 23, kInt2 = 26;

using Dims = std::vector<std::uint64_t>;
using Names = std::vector<std::string>;

// A TensorProto without values, and with raw_data.
Proto tensor(std::string_view name, std::int64_t type, const Dims& dims);
Proto raw_tensor(std::string_view name, std::int64_t type, const Dims& dims, std::string_view bytes);
Proto external_tensor(std::string_view name, std::int64_t type, const Dims& dims,
                      const std::vector<std::pair<std::string, std::string>>& entries);
// An int64 tensor with values in int64_data.
Proto int64_tensor(std::string_view name, const std::vector<std::uint64_t>& values);
// A dimension that is a number, a name, or, if empty, unknown.
Proto value(std::string_view name, std::int64_t type, const Names& dims);
Proto node(std::string_view op, const Names& inputs, const Names& outputs, std::string_view name = "",
           std::string_view domain = "");
// Attributes: field 20 says which kind.
Proto attribute_int(std::string_view name, std::int64_t number);
Proto attribute_ints(std::string_view name, const std::vector<std::uint64_t>& numbers);
Proto attribute_tensor(std::string_view name, const Proto& tensor);
Proto attribute_graph(std::string_view name, const Proto& graph);

// GraphProto fields.
inline constexpr std::uint32_t kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12, kValueInfo = 13,
                               kSparse = 15;

std::string model(const Proto& graph, std::uint64_t opset = 17, std::uint64_t ir_version = 8);
// A model whose graph holds these initializers.
std::string weights_model(const std::vector<Proto>& tensors);

// Every element type in raw_data and in its typed field; sparse, nested, in a function, for training,
// external in "sample.data" (sample_onnx_data); operators with symbolic sizes; metadata.
std::string sample_onnx();
std::string sample_onnx_data();

}  // namespace loadline::testing::onnx
