// One walk through the messages of a ModelProto (onnx 1.23: onnx.in.proto) that can hold tensors.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/dtype_and_shape.h"
#include "exporters/formats/formats.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>

namespace loadline::exporters {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostText = 64 << 10;
constexpr std::size_t kMostRank = 1024;

enum class Message { model, graph, node, attribute, function, training, sparse, tensor, other };

// The message in field `number` of a message.
Message inner_message(Message outer, std::uint32_t number) {
  struct Row {
    Message outer;
    std::uint32_t number;
    Message inner;
  };
  constexpr Row kRows[] = {
      {Message::model, 7, Message::graph},         {Message::model, 20, Message::training},
      {Message::model, 25, Message::function},     {Message::graph, 1, Message::node},
      {Message::graph, 5, Message::tensor},        {Message::graph, 15, Message::sparse},
      {Message::node, 5, Message::attribute},      {Message::attribute, 5, Message::tensor},
      {Message::attribute, 6, Message::graph},     {Message::attribute, 10, Message::tensor},
      {Message::attribute, 11, Message::graph},    {Message::attribute, 22, Message::sparse},
      {Message::attribute, 23, Message::sparse},   {Message::function, 7, Message::node},
      {Message::function, 11, Message::attribute}, {Message::training, 1, Message::graph},
      {Message::training, 2, Message::graph},      {Message::sparse, 1, Message::tensor},
      {Message::sparse, 2, Message::tensor}};
  for (const Row& row : kRows)
    if (row.outer == outer && row.number == number) return row.inner;
  return Message::other;
}

// Fields of TensorProto.
constexpr std::uint32_t kDims = 1, kDataType = 2, kStringData = 6, kRawData = 9, kExternalData = 13,
                        kDataLocation = 14;
bool holds_values(std::uint32_t number) {
  return (number >= 4 && number <= 7) || (number >= 9 && number <= 11);
}

// What a TensorProto says of its values.
struct Values {
  std::vector<std::uint64_t> dims;
  std::int64_t data_type = 0;
  bool external = false, typed = false, text = false;
  std::string location;
  std::uint64_t offset = 0;
  std::vector<SourceRange> kept;
};

// The tensors of the graph by the place of their bytes.
class Places {
 public:
  explicit Places(const graph::MetaGraph& graph) {
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const graph::Storage& storage = graph.storage(graph.tensors[i].storage);
      places_[{storage.file, storage.offset, storage.bytes}].push_back(
          graph::TensorId{static_cast<std::uint32_t>(i)});
    }
    const fs::path folder = fs::path(graph.files.front().path).parent_path();
    for (std::size_t i = 1; i < graph.files.size(); ++i)
      files_.emplace(
          fs::path(graph.files[i].path).lexically_relative(folder.empty() ? "." : folder).lexically_normal(),
          graph::FileId{static_cast<std::uint32_t>(i)});
  }

  // The tensor whose bytes lie within this message of the file itself.
  std::optional<graph::TensorId> within(std::uint64_t begin, std::uint64_t end) const {
    const auto found = places_.lower_bound({graph::FileId{0}, begin, 0});
    if (found == places_.end() || std::get<0>(found->first) != graph::FileId{0} ||
        std::get<1>(found->first) >= end)
      return std::nullopt;
    return found->second.front();
  }

  // The next tensor with this external data; several tensors may share it, and follow in the file's order.
  std::optional<graph::TensorId> outside(const std::string& location, std::uint64_t offset,
                                         std::optional<std::uint64_t> bytes) {
    const auto file = files_.find(fs::path(location).lexically_normal());
    if (file == files_.end()) return std::nullopt;
    const auto found = places_.lower_bound({file->second, offset, bytes.value_or(0)});
    if (found == places_.end() || std::get<0>(found->first) != file->second ||
        std::get<1>(found->first) != offset || (bytes && std::get<2>(found->first) != *bytes))
      return std::nullopt;
    std::size_t& next = taken_[found->first];
    return next < found->second.size() ? std::optional(found->second[next++]) : std::nullopt;
  }

 private:
  using Place = std::tuple<graph::FileId, std::uint64_t, std::uint64_t>;  // with the offset and the bytes
  std::map<Place, std::vector<graph::TensorId>> places_;
  std::map<fs::path, graph::FileId> files_;
  std::map<Place, std::size_t> taken_;
};

class Finder {
 public:
  Finder(const io::SourceFile& file, const graph::MetaGraph& graph, bool inline_weights)
      : path_(file.path()), reader_(file, 0, file.size()), places_(graph), inline_(inline_weights) {}

  std::vector<OnnxEdit> find() { return walk(Message::model, false); }

 private:
  // `movable`: initializers here become external data.
  std::vector<OnnxEdit> walk(Message message, bool movable) {
    std::vector<OnnxEdit> edits;
    while (const auto field = reader_.next()) {
      if (field->type() != io::WireType::length) continue;
      const Message inner = inner_message(message, field->number());
      if (inner == Message::other) continue;
      reader_.enter(*field);
      OnnxEdit edit{*field, {}, {}};
      if (inner == Message::tensor)
        edit.tensor = tensor(*field, movable && message == Message::graph);
      else
        edit.inner = walk(inner, message == Message::model ? inner == Message::graph : movable);
      reader_.leave();
      if (edit.tensor || !edit.inner.empty()) edits.push_back(std::move(edit));
    }
    return edits;
  }

  std::optional<OnnxTensorEdit> tensor(const io::WireField& message, bool movable) {
    Values values = read_values(message);
    const auto dtype = graph::dtype_from(&graph::DTypeInfo::onnx, values.data_type);
    const auto count = graph::element_count(values.dims);
    const bool sized = dtype && *dtype != graph::DType::string && count;
    const auto bytes = sized ? graph::packed_byte_size(*dtype, *count) : std::nullopt;
    if (values.external) {
      const auto id = places_.outside(values.location, values.offset, bytes);
      if (!id)
        throw Error(ErrorCode::unsupported, {.file = path_, .byte = message.at},
                    "external data at {} of '{}' belongs to no tensor of the model", values.offset,
                    values.location);
      const bool large = bytes.value_or(kLeastOutside) >= kLeastOutside;
      return OnnxTensorEdit{*id, !inline_ && (large || !movable), std::move(values.kept)};
    }
    if (!movable || !bytes || *bytes < kLeastOutside || values.text || (inline_ && !values.typed))
      return std::nullopt;
    const auto id = places_.within(message.offset, message.end());
    if (!id) return std::nullopt;
    return OnnxTensorEdit{*id, !inline_, std::move(values.kept)};
  }

  Values read_values(const io::WireField& message) {
    Values values;
    std::optional<std::uint64_t> keep = message.offset;  // nothing behind a number that is not kept
    while (const auto field = reader_.next()) {
      if (!keep) keep = field->at;
      const std::uint32_t number = field->number();
      if (number == kDims) read_dims(*field, values.dims);
      if (number == kDataType) values.data_type = static_cast<std::int64_t>(field->value);
      values.text |= number == kStringData;
      values.typed |= holds_values(number) && number != kRawData;
      if (number == kDataLocation) values.external = field->value == 1;
      if (number == kExternalData && field->type() == io::WireType::length) read_entry(*field, values);
      if (!holds_values(number) && number != kDataLocation && number != kExternalData) continue;
      if (*keep < field->at) values.kept.emplace_back(*keep, field->at);
      keep = field->type() == io::WireType::length ? std::optional(field->end()) : std::nullopt;
    }
    if (keep && *keep < message.end()) values.kept.emplace_back(*keep, message.end());
    return values;
  }

  void read_dims(const io::WireField& field, std::vector<std::uint64_t>& dims) {
    if (field.type() == io::WireType::varint) {
      dims.push_back(field.value);
    } else if (field.type() == io::WireType::length) {
      reader_.enter(field);
      while (!reader_.at_end() && dims.size() <= kMostRank) dims.push_back(reader_.varint());
      reader_.leave();
    }
    if (dims.size() > kMostRank) throw reader_.malformed(field.at, "more than {} dimensions", kMostRank);
  }

  void read_entry(const io::WireField& entry, Values& values) {
    std::string key, value;
    reader_.enter(entry);
    while (const auto field = reader_.next()) {
      if (field->type() != io::WireType::length) continue;
      if (field->number() == 1) key = reader_.text(*field, kMostText, "a key");
      if (field->number() == 2) value = reader_.text(*field, kMostText, "a value");
    }
    reader_.leave();
    if (key == "location") values.location = value;
    if (key == "offset") values.offset = text_as<std::uint64_t>(value).value_or(0);
  }

  const std::string& path_;
  io::WireReader reader_;
  Places places_;
  bool inline_;
};

}  // namespace

std::vector<OnnxEdit> find_onnx_edits(const io::SourceFile& file, const graph::MetaGraph& graph,
                                      bool inline_weights) {
  return Finder(file, graph, inline_weights).find();
}

}  // namespace loadline::exporters
