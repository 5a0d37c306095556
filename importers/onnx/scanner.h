// The implementation of scan_onnx(): one handler for each kind of message, and a stack of the open messages.
#pragma once

#include "core/io/protobuf_wire.h"
#include "importers/onnx/model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::importers {

constexpr std::uint32_t varint_tag(std::uint32_t number) {
  return io::wire_tag(number, io::WireType::varint);
}
constexpr std::uint32_t length_tag(std::uint32_t number) {
  return io::wire_tag(number, io::WireType::length);
}
constexpr std::uint32_t fixed32_tag(std::uint32_t number) {
  return io::wire_tag(number, io::WireType::fixed32);
}
constexpr std::uint32_t fixed64_tag(std::uint32_t number) {
  return io::wire_tag(number, io::WireType::fixed64);
}

class OnnxScanner {
 public:
  explicit OnnxScanner(const io::SourceFile& file) : file_(file), reader_(file, 0, file.size()) {}

  OnnxScan run();

 private:
  using Pair = std::pair<std::string, std::string>;
  using Opset = std::pair<std::string, std::int64_t>;
  // Views for messages with only one or two fields, which need no struct in OnnxModel.
  struct Shape {
    OnnxType* type;
  };
  struct TensorType {
    OnnxType* type;
  };
  using Message = std::variant<OnnxModel*, OnnxGraph*, OnnxFunction*, OnnxTraining*, OnnxNode*,
                               OnnxAttribute*, OnnxTensor*, OnnxSparse*, OnnxValue*, OnnxType*, OnnxDim*,
                               Pair*, Opset*, const TensorType*, const Shape*>;

  // A message that is being read. `message` points into model_ or at one of the views below. Its container
  // does not grow while the scan is inside the message.
  struct Frame {
    Message message;
    OnnxRange range;
    bool emitted = true;      // copied to the skeleton
    std::size_t start = 0;    // in the skeleton: position of the message's tag
    std::size_t content = 0;  // in the skeleton: position of its content
    bool dropped = false;     // to be removed from the skeleton again
    std::uint64_t attribute_bytes = 0;
    std::optional<std::int64_t> number = {};  // of an attribute
  };

  enum class Emit { no, yes };

  void enter(const io::WireField& field, Message message, Emit emit = Emit::yes) {
    Frame frame{message, {field.offset, field.bytes}};
    frame.emitted = emit == Emit::yes && stack_.back().emitted && !stack_.back().dropped;
    frame.start = skeleton_.size();
    if (frame.emitted) frame.content = skeleton_.open(field.tag);
    reader_.enter(field);
    stack_.push_back(frame);
  }

  void charge(std::uint64_t bytes) { kept_ += bytes; }

  template <typename T>
  T& add(std::vector<T>& list) {
    charge(sizeof(T));
    return list.emplace_back();
  }

  OnnxTensorId add_tensor(const io::WireField& field) {
    charge(sizeof(OnnxTensor));
    model_.tensors.emplace_back().at = field.offset;
    return OnnxTensorId{static_cast<std::uint32_t>(model_.tensors.size() - 1)};
  }
  OnnxGraphId add_graph() {
    charge(sizeof(OnnxGraph));
    model_.graphs.emplace_back();
    return OnnxGraphId{static_cast<std::uint32_t>(model_.graphs.size() - 1)};
  }
  OnnxTensor* tensor(OnnxTensorId id) { return &model_.tensors[static_cast<std::size_t>(id)]; }
  OnnxGraph* graph(OnnxGraphId id) { return &model_.graphs[static_cast<std::size_t>(id)]; }
  // A singular message that occurs again continues the first one, because protobuf merges them.
  OnnxTensor* merged_tensor(std::optional<OnnxTensorId>& id, const io::WireField& field) {
    if (!id) id = add_tensor(field);
    return tensor(*id);
  }
  OnnxGraph* merged_graph(std::optional<OnnxGraphId>& id) {
    if (!id) id = add_graph();
    return graph(*id);
  }

  std::string text(const io::WireField& field) {
    charge(field.bytes);
    return reader_.text(field, kMostText, "a name or a text");
  }
  void text(const io::WireField& field, std::string& to) { to = text(field); }
  void kept_text(const io::WireField& field, std::string& to) {
    text(field, to);
    if (emitting()) skeleton_.text(field.tag, to);
  }
  void copy_number(const io::WireField& field) {
    if (emitting()) skeleton_.number(field.tag, field.value);
  }
  bool emitting() const { return stack_.back().emitted && !stack_.back().dropped; }
  // Removes the message from the skeleton when it ends.
  void drop() { stack_.back().dropped = stack_.back().emitted; }

  std::string bytes_of(OnnxRange range) { return file_.text_at(range.offset, range.bytes); }
  void add_missing_opsets();

  void take(OnnxModel& model, const io::WireField& field);
  void take(OnnxGraph& graph, const io::WireField& field);
  void take(OnnxFunction& function, const io::WireField& field);
  void take(OnnxTraining& training, const io::WireField& field);
  void take(OnnxNode& node, const io::WireField& field);
  void take(OnnxAttribute& attribute, const io::WireField& field);
  void take_plain(OnnxAttribute& attribute, const io::WireField& field);
  void take_text(OnnxAttribute& attribute, const io::WireField& field);
  void take(OnnxTensor& tensor, const io::WireField& field);
  void take_values(OnnxTensor& tensor, const io::WireField& field);
  void take(OnnxSparse& sparse, const io::WireField& field);
  void take(OnnxValue& value, const io::WireField& field);
  void take(OnnxType& type, const io::WireField& field);
  void take(const TensorType& view, const io::WireField& field);
  void take(const Shape& view, const io::WireField& field);
  void take(OnnxDim& dim, const io::WireField& field);
  void take(Pair& entry, const io::WireField& field);
  void take(Opset& opset, const io::WireField& field);

  template <typename T>
  void finish(T&, const Frame&) {}
  void finish(OnnxAttribute& a, const Frame& frame);
  void finish(OnnxTensor& tensor, const Frame& frame);

  // Puts the name of an attribute that was too large into the skeleton, behind kLeftOutAttribute.
  void name_left_out();
  void add_dimension(OnnxTensor& tensor, std::uint64_t at, std::uint64_t value);
  // Returns the content of a length-delimited field that is copied, else nothing.
  std::string copy_attribute_bytes(const io::WireField& field, std::uint64_t bytes);

  // Limits in bytes: for an attribute's content in the skeleton, and for a name or text.
  static constexpr std::uint64_t kMostAttributeBytes = 8 << 10;
  static constexpr std::uint64_t kMostText = 64 << 20;

  const io::SourceFile& file_;
  io::WireReader reader_;
  OnnxModel model_;
  OnnxSkeleton skeleton_;
  std::vector<Frame> stack_;
  // Types do not nest, so one view of each kind is enough.
  TensorType tensor_type_{nullptr};
  Shape shape_{nullptr};
  Opset function_opset_;  // read only for the skeleton
  std::string left_out_;  // the attribute that has ended, if it was too large
  std::uint64_t kept_ = 0;
};

}  // namespace loadline::importers
