// ONNX (onnx 1.23: onnx.in.proto, docs/ExternalData.md): the source's own file, in which only the places of
// the weights change. What is not a weight, fields of later versions included, is copied byte by byte.
//
//   OUT        the ModelProto; an initializer says location, offset and length instead of its values
//   OUT.data   the values, each aligned
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <tuple>
#include <unordered_set>

namespace loadline::exporters {
namespace {

constexpr std::uint64_t kDefaultAlignment = 4096;
constexpr std::uint64_t kMostAlignment = 64 << 10;  // the largest gap that onnx's own writer accepts
constexpr std::uint64_t kMostFile = INT_MAX - 1;    // of protobuf
constexpr std::uint64_t kLeastStreamed = 4096;      // values within the file that are not held in memory
constexpr std::uint64_t kMostHeld = 512 << 20;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr std::uint32_t kRawData = 9, kExternalData = 13, kDataLocation = 14;

// A stretch of the output: a range of the source, own bytes, or the values of a tensor.
struct Part {
  SourceRange source = {};
  std::string text = {};
  std::optional<graph::TensorId> tensor = {};
};
struct Parts {
  std::vector<Part> list;
  std::uint64_t bytes = 0;

  void add(SourceRange range) {
    if (range.first == range.second) return;
    bytes += range.second - range.first;
    list.push_back({.source = range});
  }
  void add(std::string text) {
    bytes += text.size();
    list.push_back({.text = std::move(text)});
  }
  void add(graph::TensorId tensor, std::uint64_t size) {
    bytes += size;
    list.push_back({.tensor = tensor});
  }
  void add(Parts&& parts) {
    bytes += parts.bytes;
    std::ranges::move(parts.list, std::back_inserter(list));
  }
};

void add_varint(std::string& text, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7F) | 0x80);
  text += static_cast<char>(value);
}
void add_text(std::string& text, std::uint32_t number, std::string_view content) {
  add_varint(text, io::wire_tag(number, io::WireType::length));
  add_varint(text, content.size());
  text += content;
}

// Range and file that a tensor moves to. Values in the file itself have their place once all parts are known.
struct Move {
  bool outside = false;
  std::uint64_t offset = 0;
};

class Composer {
 public:
  Composer(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out)
      : graph_(graph),
        options_(options),
        out_(out),
        source_(io::SourceFile::open(graph.files.front().path)),
        moves_(graph.tensors.size()) {}

  Layout layout() {
    const std::vector<OnnxEdit> edits = find_onnx_edits(source_, graph_, options_.inline_weights);
    for (const OnnxEdit& edit : edits) collect(edit);
    place_outside();
    Parts parts = compose({0, source_.size()}, edits);
    if (parts.bytes > kMostFile)
      throw Error(ErrorCode::limit, {.file = out_},
                  "would have {} bytes with the weights inside, protobuf's limit is {}", parts.bytes,
                  kMostFile);
    add_model(std::move(parts));
    add_tensors();
    return std::move(layout_);
  }

 private:
  // Views of few bytes of a file can add up to any number.
  void collect(const OnnxEdit& edit) {
    for (const OnnxEdit& inner : edit.inner) collect(inner);
    if (!edit.tensor) return;
    const graph::TensorId id = edit.tensor->tensor;
    const graph::Tensor& tensor = graph_.tensor(id);
    const auto total = checked_add(moved_bytes_, graph_.storage(tensor.storage).bytes);
    if (!total || *total >= kMostBytes)
      throw Error(ErrorCode::limit, {.tensor = tensor.name}, "the tensors add up to more than 2^62 bytes");
    moved_bytes_ = *total;
    moved_names_.insert(tensor.name.view());
    if (edit.tensor->outside) outside_.push_back(id);
    moves_[graph::index(id)] = Move{edit.tensor->outside, 0};
  }

  // Tensors on one storage of the source stay on one range.
  void place_outside() {
    if (outside_.empty()) return;
    const std::string name = std::filesystem::path(out_).filename().string() + ".data";
    if (name.starts_with('#') || name.find("..") != std::string::npos || !is_valid_utf8(name))
      throw Error(ErrorCode::usage, {.file = out_}, "readers of ONNX refuse external data named '{}'",
                  safe_display(name, 200));
    data_.path = out_ + ".data";
    location_ = name;
    std::vector<std::size_t> rank(graph_.storages.size());
    for (std::size_t i = 0; i < rank.size(); ++i) rank[i] = i;
    for (std::size_t i = 0; i < options_.order.size(); ++i) rank[graph::index(options_.order[i])] = i;
    std::ranges::stable_sort(outside_, {}, [&](graph::TensorId id) {
      return std::pair(rank[graph::index(graph_.tensor(id).storage)], id);
    });
    const std::uint64_t alignment = options_.alignment == 0 ? kDefaultAlignment : options_.alignment;
    std::vector<std::optional<std::uint64_t>> placed(graph_.storages.size());
    for (const graph::TensorId id : outside_) {
      const graph::Tensor& tensor = graph_.tensor(id);
      auto& offset = placed[graph::index(tensor.storage)];
      if (!offset) {
        const std::uint64_t bytes = graph_.storage(tensor.storage).bytes;
        offset = align_up(data_.bytes, alignment);
        data_.slots.push_back({tensor.name, tensor.dtype, tensor.shape, convert::take(id), *offset, bytes});
        data_.bytes = *offset + bytes;
      }
      moves_[graph::index(id)]->offset = *offset;
    }
  }

  Parts compose(SourceRange range, const std::vector<OnnxEdit>& edits) {
    Parts parts;
    std::uint64_t at = range.first;
    for (const OnnxEdit& edit : edits) {
      parts.add(SourceRange{at, edit.field.at});
      Parts content =
          edit.tensor ? tensor(*edit.tensor) : compose({edit.field.offset, edit.field.end()}, edit.inner);
      std::string head;
      add_varint(head, edit.field.tag);
      add_varint(head, content.bytes);
      parts.add(std::move(head));
      parts.add(std::move(content));
      at = edit.field.end();
    }
    parts.add(SourceRange{at, range.second});
    return parts;
  }

  Parts tensor(const OnnxTensorEdit& edit) {
    Parts parts;
    for (const SourceRange& range : edit.kept) parts.add(range);
    const std::uint64_t bytes = graph_.storage(graph_.tensor(edit.tensor).storage).bytes;
    std::string text;
    if (!edit.outside) {
      add_varint(text, io::wire_tag(kRawData, io::WireType::length));
      add_varint(text, bytes);
      parts.add(std::move(text));
      parts.add(edit.tensor, bytes);
      return parts;
    }
    const auto entry = [&](std::string_view key, std::string_view value) {
      std::string pair;
      add_text(pair, 1, key);
      add_text(pair, 2, value);
      add_text(text, kExternalData, pair);
    };
    entry("location", location_);
    entry("offset", std::to_string(moves_[graph::index(edit.tensor)]->offset));
    entry("length", std::to_string(bytes));
    add_varint(text, io::wire_tag(kDataLocation, io::WireType::varint));
    add_varint(text, 1);
    parts.add(std::move(text));
    return parts;
  }

  // The model's own file, and where the tensors within it lie then.
  void add_model(Parts parts) {
    std::vector<std::pair<std::uint64_t, graph::TensorId>> plain = values_within();
    model_.path = out_;
    model_.bytes = parts.bytes;
    for (const Part& part : parts.list) {
      if (part.tensor) {
        moves_[graph::index(*part.tensor)]->offset = at_;
        add_slot(*part.tensor);
      } else if (!part.text.empty()) {
        append_bytes(held_, part.text);
        at_ += part.text.size();
      } else {
        add_source(part.source, plain);
      }
      if (held_bytes_ + held_.size() > kMostHeld)
        throw Error(ErrorCode::limit, {.file = source_.path()},
                    "more than {} bytes beside the weights, the limit is {}", held_bytes_ + held_.size(),
                    kMostHeld);
    }
    flush();
  }

  // Plain values in the file that do not move, by their place.
  std::vector<std::pair<std::uint64_t, graph::TensorId>> values_within() const {
    std::vector<std::pair<std::uint64_t, graph::TensorId>> found;
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const graph::TensorId id{static_cast<std::uint32_t>(i)};
      const graph::Storage& storage = graph_.storage(graph_.tensor(id).storage);
      if (storage.file == graph::FileId{0} && storage.encoding == graph::Encoding::plain &&
          storage.bytes >= kLeastStreamed && !moves_[i] &&
          (found.empty() || found.back().first != storage.offset))
        found.emplace_back(storage.offset, id);
    }
    std::ranges::sort(found);
    return found;
  }

  void add_source(SourceRange range, const std::vector<std::pair<std::uint64_t, graph::TensorId>>& plain) {
    copied_.emplace_back(range.first, at_);
    auto next =
        std::ranges::lower_bound(plain, range.first, {}, &std::pair<std::uint64_t, graph::TensorId>::first);
    for (; next != plain.end() && next->first < range.second; ++next) {
      const std::uint64_t bytes = graph_.storage(graph_.tensor(next->second).storage).bytes;
      if (next->first < range.first || next->first + bytes > range.second) continue;
      hold(range.first, next->first);
      add_slot(next->second);
      range.first = next->first + bytes;
    }
    hold(range.first, range.second);
  }

  void hold(std::uint64_t begin, std::uint64_t end) {
    if (held_bytes_ + held_.size() + (end - begin) > kMostHeld)
      throw Error(ErrorCode::limit, {.file = source_.path(), .byte = begin},
                  "{} bytes beside the weights, the limit is {}", held_bytes_ + held_.size() + (end - begin),
                  kMostHeld);
    const std::size_t before = held_.size();
    held_.resize(before + static_cast<std::size_t>(end - begin));
    source_.read_at(begin, std::span(held_).subspan(before));
    at_ += end - begin;
  }

  void add_slot(graph::TensorId id) {
    flush();
    const graph::Tensor& tensor = graph_.tensor(id);
    const std::uint64_t bytes = graph_.storage(tensor.storage).bytes;
    model_.slots.push_back({tensor.name, tensor.dtype, tensor.shape, convert::take(id), at_, bytes});
    at_ += bytes;
  }

  void flush() {
    held_bytes_ += held_.size();
    if (model_.slots.empty())
      model_.header = std::move(held_);
    else if (!held_.empty())
      model_.pieces.push_back({at_ - held_.size(), std::move(held_)});
    held_.clear();
  }

  // As an importer orders them: by file, offset and bytes.
  void add_tensors() {
    graph::MetaGraph& result = layout_.result;
    result.format = "onnx";
    result.metadata = graph_.metadata;
    std::erase_if(result.metadata,
                  [](const graph::MetaEntry& entry) { return entry.key == graph::kConfigKey; });
    std::vector<std::pair<graph::Storage, graph::TensorId>> placed;
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const graph::TensorId id{static_cast<std::uint32_t>(i)};
      placed.emplace_back(new_storage(id), id);
    }
    const auto place = [](const std::pair<graph::Storage, graph::TensorId>& one) {
      return std::tuple(one.first.file, one.first.offset, one.first.bytes);
    };
    std::ranges::stable_sort(placed, {}, place);
    std::vector<graph::TensorId> now(graph_.tensors.size());
    for (const auto& [storage, id] : placed) {
      const bool shared = !result.storages.empty() && storage.bytes > 0 && result.storages.back() == storage;
      if (!shared) result.add_storage(storage);
      now[graph::index(id)] = graph::TensorId{static_cast<std::uint32_t>(result.tensors.size())};
      result.tensors.push_back(graph_.tensor(id));
      result.tensors.back().storage =
          graph::StorageId{static_cast<std::uint32_t>(result.storages.size() - 1)};
    }
    add_forward(now);
    for (const graph::Note& note : graph_.notes)
      if (!about_old_places(note)) result.notes.push_back(note);
    result.files.push_back({model_.path, model_.bytes});
    if (!data_.path.empty()) result.files.push_back({data_.path, data_.bytes});
    add_logical(graph_, result);
    // the model appears last
    if (!data_.path.empty()) layout_.files.push_back(std::move(data_));
    layout_.files.push_back(std::move(model_));
  }

  graph::Storage new_storage(graph::TensorId id) const {
    graph::Storage storage = graph_.storage(graph_.tensor(id).storage);
    if (const auto& move = moves_[graph::index(id)])
      return graph::plain_storage(graph::FileId{move->outside ? 1U : 0U}, move->offset, storage.bytes);
    if (storage.file != graph::FileId{0}) return storage;
    const auto behind = std::ranges::upper_bound(copied_, storage.offset, {}, &SourceRange::first);
    if (behind != copied_.begin()) storage.offset += std::prev(behind)->second - std::prev(behind)->first;
    return storage;
  }

  void add_forward(const std::vector<graph::TensorId>& now) {
    layout_.result.forward = graph_.forward;
    if (!layout_.result.forward) return;
    const auto renumber = [&](std::vector<graph::Op>& ops) {
      for (graph::Op& op : ops) {
        for (graph::TensorId& weight : op.weights) weight = now[graph::index(weight)];
        for (graph::Argument& argument : op.arguments)
          if (argument.weight) argument.weight = now[graph::index(*argument.weight)];
      }
    };
    renumber(layout_.result.forward->ops);
    for (graph::Body& body : layout_.result.forward->bodies) renumber(body.ops);
  }

  // Notes on bytes that are gone: keys and checksums of external data, what lay behind moved values.
  bool about_old_places(const graph::Note& note) const {
    if (!note.tensor) return note.text.find("external data") != std::string::npos;
    return moved_names_.contains(*note.tensor);
  }

  const graph::MetaGraph& graph_;
  const ExportOptions& options_;
  const std::string& out_;
  const io::SourceFile source_;
  std::vector<std::optional<Move>> moves_;  // by tensor
  std::unordered_set<std::string_view> moved_names_;
  std::uint64_t moved_bytes_ = 0;
  std::vector<graph::TensorId> outside_;
  std::string location_;
  LayoutFile model_, data_;
  std::uint64_t at_ = 0;  // in the model's file
  std::vector<std::byte> held_;
  std::uint64_t held_bytes_ = 0;     // in the header and pieces
  std::vector<SourceRange> copied_;  // where a range of the source begins, there and in the output
  Layout layout_;
};

}  // namespace

bool onnx_supports(graph::DType dtype) {
  return dtype == graph::DType::opaque || graph::dtype_info(dtype).onnx > 0;
}

bool onnx_carries(const graph::MetaGraph& graph, const graph::MetaEntry&) { return graph.format == "onnx"; }

Layout onnx_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out) {
  if (graph.format != "onnx")
    throw Error(ErrorCode::unsupported,
                "an ONNX file holds the operators of its model, and this {} model has none to write",
                graph.format);
  check_alignment(options.alignment);
  if (options.alignment > kMostAlignment)
    throw Error(ErrorCode::usage, "an alignment of {}: external data of ONNX can have up to {}",
                options.alignment, kMostAlignment);
  return Composer(graph, options, out).layout();
}

}  // namespace loadline::exporters
