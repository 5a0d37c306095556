// ExecuTorch and LiteRT files, right or wrong, through the builders that flatc generates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <flat_tensor_generated.h>
#include <program_generated.h>
#include <tflite_generated.h>

namespace loadline::testing {

inline std::string flat_bytes(const flatbuffers::FlatBufferBuilder& builder) {
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

template <typename T>
void put(std::string& bytes, std::size_t at, T value) {
  bytes.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}

// A flatbuffer with `header` put in behind its identifier, as ExecuTorch's writers do.
inline std::string splice_header(std::string flat, std::string header) {
  header.resize((header.size() + 15) / 16 * 16);
  std::uint32_t root = 0;
  flat.copy(reinterpret_cast<char*>(&root), sizeof root);
  flat.insert(8, header);
  put(flat, 0, static_cast<std::uint32_t>(root + header.size()));
  return flat;
}

struct PtdTensor {
  std::string key;
  std::uint32_t segment = 0;
  std::int8_t scalar_type = 6;  // FLOAT
  std::vector<std::int32_t> sizes = {};
  std::vector<std::uint8_t> dim_order = {};
  bool layout = true;
};
struct FlatSegment {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

inline std::string ptd_bytes(const std::vector<FlatSegment>& segments, const std::vector<PtdTensor>& tensors,
                             std::uint64_t data_bytes) {
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<ptd::Segment>> rows;
  for (const FlatSegment& segment : segments)
    rows.push_back(ptd::CreateSegment(b, segment.offset, segment.size));
  std::vector<flatbuffers::Offset<ptd::NamedData>> names;
  for (const PtdTensor& tensor : tensors) {
    flatbuffers::Offset<ptd::TensorLayout> layout;
    if (tensor.layout)
      layout = ptd::CreateTensorLayoutDirect(b, tensor.scalar_type, &tensor.sizes, &tensor.dim_order);
    names.push_back(ptd::CreateNamedDataDirect(b, tensor.key.c_str(), tensor.segment, layout));
  }
  b.Finish(ptd::CreateFlatTensorDirect(b, 0, &rows, &names), "FT01");
  const std::string flat = flat_bytes(b);
  std::string header(40, '\0');
  header.replace(0, 4, "FH01");
  const std::uint64_t base = (flat.size() + 48 + 127) / 128 * 128;
  put(header, 4, std::uint32_t{40});
  put(header, 8, std::uint64_t{48});
  put(header, 16, std::uint64_t{flat.size()});
  put(header, 24, base);
  put(header, 32, data_bytes);
  std::string all = splice_header(flat, header);
  all.resize(base + data_bytes, 'd');
  return all;
}

struct PteTensor {
  std::uint32_t buffer = 0;
  std::vector<std::int32_t> sizes = {};
  std::int8_t scalar_type = 6;
  std::vector<std::uint8_t> dim_order = {};
  bool is_mutable = false;
  std::string name = {};
  bool external = false;
};
struct PteProgram {
  std::vector<PteTensor> tensors = {};
  std::vector<std::string> inline_constants = {};  // constant_buffer
  std::vector<FlatSegment> segments = {};
  std::vector<std::uint64_t> constant_offsets = {};  // in segment 0
  std::vector<std::uint64_t> mutable_offsets = {};   // in segment 1
  std::vector<std::pair<std::string, std::uint32_t>> named_data = {};
  std::vector<std::uint32_t> delegates = {};  // segments
  std::vector<std::string> inline_delegates = {};
  std::vector<std::int64_t> planned = {};  // bytes of arenas; the first is none
  std::uint64_t data_bytes = 0;
};

inline std::string pte_bytes(const PteProgram& program) {
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<pte::EValue>> values;
  for (const PteTensor& tensor : program.tensors) {
    flatbuffers::Offset<pte::ExtraTensorInfo> extra;
    if (!tensor.name.empty() || tensor.external)
      extra = pte::CreateExtraTensorInfoDirect(b, 0, tensor.name.c_str(), tensor.external ? 1 : 0);
    flatbuffers::Offset<pte::Skipped> allocation;
    if (tensor.is_mutable) allocation = pte::CreateSkipped(b);
    const auto row = pte::CreateTensorDirect(b, tensor.scalar_type, 0, &tensor.sizes, &tensor.dim_order,
                                             false, tensor.buffer, allocation, 0, 0, extra);
    values.push_back(pte::CreateEValue(b, pte::KernelTypes_Tensor, row.Union()));
  }
  std::vector<flatbuffers::Offset<pte::Delegate>> delegates;
  for (const std::uint32_t segment : program.delegates)
    delegates.push_back(pte::CreateDelegateDirect(b, "Backend", pte::CreateDelegateData(b, 1, segment)));
  std::vector<flatbuffers::Offset<pte::InlineData>> blobs;
  for (const std::string& blob : program.inline_delegates) {
    const std::vector<std::uint8_t> bytes(blob.begin(), blob.end());
    delegates.push_back(pte::CreateDelegateDirect(
        b, "Inline", pte::CreateDelegateData(b, 0, static_cast<std::uint32_t>(blobs.size()))));
    blobs.push_back(pte::CreateInlineDataDirect(b, &bytes));
  }
  const std::vector<flatbuffers::Offset<pte::ExecutionPlan>> plans = {
      pte::CreateExecutionPlanDirect(b, "forward", 0, &values, nullptr, nullptr, nullptr, nullptr, &delegates,
                                     program.planned.empty() ? nullptr : &program.planned)};
  std::vector<flatbuffers::Offset<pte::Buffer>> buffers;
  for (const std::string& constant : program.inline_constants) {
    const std::vector<std::uint8_t> bytes(constant.begin(), constant.end());
    buffers.push_back(pte::CreateBufferDirect(b, &bytes));
  }
  std::vector<flatbuffers::Offset<pte::Segment>> segments;
  for (const FlatSegment& segment : program.segments)
    segments.push_back(pte::CreateSegment(b, segment.offset, segment.size));
  std::vector<flatbuffers::Offset<pte::NamedData>> named;
  for (const auto& [key, segment] : program.named_data)
    named.push_back(pte::CreateNamedDataDirect(b, key.c_str(), segment));
  const auto constants = pte::CreateSubsegmentOffsetsDirect(b, 0, &program.constant_offsets);
  const std::vector<flatbuffers::Offset<pte::SubsegmentOffsets>> mutables = {
      pte::CreateSubsegmentOffsetsDirect(b, 1, &program.mutable_offsets)};
  b.Finish(pte::CreateProgramDirect(b, 0, &plans, &buffers, &blobs, &segments, constants,
                                    program.mutable_offsets.empty() ? nullptr : &mutables, &named),
           "ET12");
  const std::string flat = flat_bytes(b);
  if (program.segments.empty()) return flat;
  std::string header(32, '\0');
  header.replace(0, 4, "eh00");
  const std::uint64_t program_bytes = flat.size() + 32, base = (program_bytes + 127) / 128 * 128;
  put(header, 4, std::uint32_t{32});
  put(header, 8, program_bytes);
  put(header, 16, base);
  put(header, 24, program.data_bytes);
  std::string all = splice_header(flat, header);
  all.resize(base + program.data_bytes, 'd');
  return all;
}

struct LiteTensor {
  std::string name;
  std::vector<std::int32_t> shape = {};
  std::int8_t type = 0;
  std::uint32_t buffer = 0;
  std::vector<std::int32_t> signature = {};
};
struct LiteOp {
  std::int32_t code = 0;  // below zero: the custom operator "Mine"
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> outputs;
};
struct LiteModel {
  std::vector<LiteTensor> tensors = {};
  std::vector<LiteOp> ops = {};
  std::vector<std::int32_t> inputs = {};
  std::vector<std::int32_t> outputs = {};
  std::vector<std::string> buffers = {""};    // the first is empty
  std::vector<FlatSegment> far_buffers = {};  // behind the flatbuffer, after the others
  std::string tail = {};
};

inline std::string tflite_bytes(const LiteModel& model) {
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  for (const LiteTensor& tensor : model.tensors)
    tensors.push_back(tflite::CreateTensorDirect(b, &tensor.shape, tensor.type, tensor.buffer,
                                                 tensor.name.c_str(), 0, false, 0,
                                                 tensor.signature.empty() ? nullptr : &tensor.signature));
  std::vector<flatbuffers::Offset<tflite::Operator>> ops;
  std::vector<flatbuffers::Offset<tflite::OperatorCode>> codes;
  for (const LiteOp& op : model.ops) {
    const bool custom = op.code < 0;
    const std::int32_t code = custom ? 32 : op.code;
    codes.push_back(tflite::CreateOperatorCodeDirect(b, static_cast<std::int8_t>(std::min(code, 127)),
                                                     custom ? "Mine" : nullptr, 1, code));
    ops.push_back(tflite::CreateOperatorDirect(b, static_cast<std::uint32_t>(codes.size() - 1), &op.inputs,
                                               &op.outputs));
  }
  const std::vector<flatbuffers::Offset<tflite::SubGraph>> subgraphs = {
      tflite::CreateSubGraphDirect(b, &tensors, &model.inputs, &model.outputs, &ops, "main")};
  std::vector<flatbuffers::Offset<tflite::Buffer>> buffers;
  for (const std::string& buffer : model.buffers) {
    const std::vector<std::uint8_t> bytes(buffer.begin(), buffer.end());
    buffers.push_back(tflite::CreateBufferDirect(b, buffer.empty() ? nullptr : &bytes));
  }
  for (const FlatSegment& far : model.far_buffers)
    buffers.push_back(tflite::CreateBuffer(b, 0, far.offset, far.size));
  b.Finish(tflite::CreateModelDirect(b, 3, &codes, &subgraphs, "made by hand", &buffers), "TFL3");
  return flat_bytes(b) + model.tail;
}

}  // namespace loadline::testing
