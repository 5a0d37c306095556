// The scan of attributes and tensors. Values are counted and skipped; those that shape inference needs go
// into the skeleton.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/dtype_and_shape.h"
#include "core/graph/op_place.h"
#include "importers/onnx/scanner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/core.h>

namespace loadline::importers {
namespace {

// Size limits for attributes and tensors in the skeleton. Axes, pads and shapes are far smaller.
constexpr std::uint64_t kMostAttributeText = 1024;
// Longer values of attributes are not kept for rules of operators.
constexpr std::size_t kMostPlainText = 64;
constexpr std::size_t kMostPlainList = 64;
constexpr std::uint64_t kMostInteger = 1024;  // elements
constexpr std::uint64_t kMostFloating = 16;
constexpr std::uint64_t kMostTensorBytes = 20 << 10;

// Types whose values can be shapes, axes, counts (integers) or scales (floats).
std::uint64_t most_elements(std::int64_t data_type) {
  const auto known = graph::dtype_from(&graph::DTypeInfo::onnx, data_type);
  if (!known || data_type > OnnxStandIns::kMostKnown) return 0;
  const graph::DTypeKind kind = graph::dtype_info(*known).kind;
  if (kind == graph::DTypeKind::integer || kind == graph::DTypeKind::boolean) return kMostInteger;
  return kind == graph::DTypeKind::floating ? kMostFloating : 0;
}

void add_number(OnnxAttribute& attribute, std::int64_t number) {
  if (!std::holds_alternative<std::vector<std::int64_t>>(attribute.plain))
    attribute.plain = std::vector<std::int64_t>();
  auto& list = std::get<std::vector<std::int64_t>>(attribute.plain);
  if (list.size() <= kMostPlainList) list.push_back(number);  // one more tells that it is too long
}

constexpr std::uint64_t kMostShown = 16;  // elements of a list that no rule reads
constexpr std::uint64_t kMostShownText = 200;

void add_shown(OnnxAttribute& attribute, std::string_view element) {
  if (attribute.elements++ < kMostShown)
    attribute.first.append(attribute.first.empty() ? "" : ", ").append(element);
}
void add_shown(OnnxAttribute& attribute, float number) { add_shown(attribute, fmt::format("{:g}", number)); }

// Of a packed run of floats, whose first bytes are `head`.
void add_run(OnnxAttribute& attribute, const std::string& head, std::uint64_t bytes) {
  for (std::size_t at = 0; at + sizeof(float) <= head.size(); at += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, head.data() + at, sizeof number);
    add_shown(attribute, number);
  }
  attribute.elements += (bytes - head.size()) / sizeof(float);
}

// "[0.5, 2]", "[1, 2, ... 4,000 in all]".
std::string shown_list(const OnnxAttribute& attribute) {
  if (attribute.elements == 0) return "";
  return attribute.elements <= kMostShown ? fmt::format("[{}]", attribute.first)
                                          : fmt::format("[{}, \xE2\x80\xA6 {} in all]", attribute.first,
                                                        format_grouped(attribute.elements));
}

}  // namespace

void OnnxScanner::take(OnnxAttribute& attribute, const io::WireField& field) {
  switch (field.tag) {
    case length_tag(5):
      return enter(field, merged_tensor(attribute.tensor, field));
    case length_tag(6):
      return enter(field, merged_graph(attribute.graph));
    case length_tag(10):
      charge(sizeof(OnnxTensorId));
      return enter(field, tensor(attribute.tensors.emplace_back(add_tensor(field))));
    case length_tag(11):
      charge(sizeof(OnnxGraphId));
      return enter(field, graph(attribute.graphs.emplace_back(add_graph())));
    case length_tag(22):
      if (!attribute.sparse) attribute.sparse.emplace();
      return enter(field, &*attribute.sparse);
    case length_tag(23):
      return enter(field, &add(attribute.sparses));
    default:
      return take_plain(attribute, field);
  }
}

// Fields for shape inference, and for rules of operators, which see numbers, short texts and short lists.
void OnnxScanner::take_plain(OnnxAttribute& attribute, const io::WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      return kept_text(field, attribute.name);
    case varint_tag(3):
      stack_.back().number = static_cast<std::int64_t>(field.value);
      attribute.plain = *stack_.back().number;
      return copy_number(field);
    case varint_tag(20):
      return copy_number(field);
    case fixed32_tag(2):
      attribute.plain = double{std::bit_cast<float>(static_cast<std::uint32_t>(field.value))};
      copy_attribute_bytes(field, 5);
      return;
    case fixed32_tag(7):
      add_shown(attribute, std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
      copy_attribute_bytes(field, 5);
      return;
    case varint_tag(8):
      add_number(attribute, static_cast<std::int64_t>(field.value));
      add_shown(attribute, std::to_string(static_cast<std::int64_t>(field.value)));
      copy_attribute_bytes(field, 2);
      return;
    case length_tag(4):
    case length_tag(9):
      return take_text(attribute, field);
    case length_tag(8): {
      const std::string run = copy_attribute_bytes(field, field.bytes);
      std::uint64_t value = 0;
      unsigned shift = 0;
      for (const char c : run) {
        value |= std::uint64_t{static_cast<unsigned char>(c) & 0x7FU} << std::min(shift, 63U);
        shift += 7;
        if ((static_cast<unsigned char>(c) & 0x80U) != 0) continue;
        add_number(attribute, static_cast<std::int64_t>(value));
        add_shown(attribute, std::to_string(static_cast<std::int64_t>(value)));
        value = shift = 0;
      }
      return;
    }
    case length_tag(7):
      add_run(attribute, bytes_of({field.offset, std::min(field.bytes, kMostShown * sizeof(float))}),
              field.bytes);
      copy_attribute_bytes(field, field.bytes);
      return;
    case length_tag(21):
      copy_attribute_bytes(field, field.bytes);
      return;
    default:
      return;
  }
}

void OnnxScanner::take_text(OnnxAttribute& attribute, const io::WireField& field) {
  if (field.number() != 4 && attribute.elements >= kMostShown) {
    ++attribute.elements;
    if (field.bytes > kMostAttributeText) return drop();
    copy_attribute_bytes(field, field.bytes);
    return;
  }
  std::string beginning = bytes_of({field.offset, std::min(field.bytes, kMostShownText)});
  if (field.bytes > kMostShownText)
    beginning += fmt::format("\xE2\x80\xA6 {} bytes in all", format_grouped(field.bytes));
  charge(beginning.size());
  if (field.number() == 4)
    attribute.first = beginning;
  else
    add_shown(attribute, beginning);
  if (field.bytes > kMostAttributeText) return drop();
  std::string text = copy_attribute_bytes(field, field.bytes);
  if (field.number() == 4 && text.size() <= kMostPlainText) attribute.plain = std::move(text);
}

// An attribute that is too large is left out, all but its name: half a list would give wrong shapes.
std::string OnnxScanner::copy_attribute_bytes(const io::WireField& field, std::uint64_t bytes) {
  Frame& frame = stack_.back();
  frame.attribute_bytes += bytes;
  std::string content;
  if (frame.attribute_bytes > kMostAttributeBytes) {
    drop();
  } else if (emitting() && field.type() == io::WireType::length) {
    content = reader_.text(field, kMostAttributeBytes, "an attribute");
    skeleton_.text(field.tag, content);
  } else if (emitting() && field.type() == io::WireType::varint) {
    skeleton_.number(field.tag, field.value);
  } else if (emitting()) {
    skeleton_.fixed32(field.tag, static_cast<std::uint32_t>(field.value));
  }
  return content;
}

// Some integer attributes are element types, too: "to" of Cast.
void OnnxScanner::finish(OnnxAttribute& a, const Frame& frame) {
  const bool names_type = a.name == "to" || a.name == "dtype" || a.name == "output_dtype";
  // written again, as an element type: of a singular field the last one counts
  if (names_type && frame.emitted && frame.number && *frame.number > OnnxStandIns::kMostKnown)
    skeleton_.element_type(varint_tag(3), *frame.number);
  // half a list would be another value
  if (const auto* const list = std::get_if<std::vector<std::int64_t>>(&a.plain);
      frame.dropped || (list != nullptr && list->size() > kMostPlainList))
    a.plain = {};
  if (frame.dropped) left_out_ = a.name;
  if (a.tensor || a.graph || a.sparse || !a.tensors.empty() || !a.graphs.empty() || !a.sparses.empty())
    return;
  // the usual case: nothing to keep. The attribute is the last of its owner, one below it on the stack.
  const Message owner = stack_.back().message;
  if (auto* const* const node = std::get_if<OnnxNode*>(&owner)) {
    const std::string for_people = a.elements > 0 ? shown_list(a) : a.first;
    if (std::holds_alternative<std::monostate>(a.plain) && !for_people.empty()) {
      charge(for_people.size());
      add((*node)->settings) = {graph::kForPeople + a.name, for_people};
    }
    auto& [name, value] = add((*node)->settings);
    name = std::move((*node)->attributes.back().name);
    if (graph::is_for_people(name)) name.insert(0, 1, '\\');  // such names are not the file's
    value = std::move((*node)->attributes.back().plain);
    if (const auto* const list = std::get_if<std::vector<std::int64_t>>(&value)) charge(8 * list->size());
  }
  auto& attributes = std::holds_alternative<OnnxNode*>(owner) ? std::get<OnnxNode*>(owner)->attributes
                                                              : std::get<OnnxFunction*>(owner)->attributes;
  attributes.pop_back();
  if (attributes.empty()) attributes.shrink_to_fit();
  kept_ -= sizeof(OnnxAttribute);
}

void OnnxScanner::name_left_out() {
  const std::string name = std::exchange(left_out_, "");
  if (name.empty() || !emitting() || !std::holds_alternative<OnnxNode*>(stack_.back().message)) return;
  const std::size_t content = skeleton_.open(length_tag(5));
  skeleton_.text(length_tag(1), std::string(kLeftOutAttribute) + name);
  skeleton_.close(content);
}

void OnnxScanner::add_dimension(OnnxTensor& tensor, std::uint64_t at, std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw Error(ErrorCode::malformed, {.file = file_.path(), .byte = at, .tensor = tensor.name},
                "dimension {} is negative: {}", tensor.dims.size(), static_cast<std::int64_t>(value));
  if (tensor.dims.size() >= kMostDimensions)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = at, .tensor = tensor.name},
                "has more than {} dimensions", kMostDimensions);
  charge(sizeof value);
  tensor.dims.push_back(value);
  if (emitting()) skeleton_.number(varint_tag(1), value);
}

void OnnxScanner::take(OnnxTensor& tensor, const io::WireField& field) {
  switch (field.tag) {
    case varint_tag(1):
      return add_dimension(tensor, field.at, field.value);
    case length_tag(1):
      reader_.enter(field);
      while (!reader_.at_end()) add_dimension(tensor, field.at, reader_.varint());
      return reader_.leave();
    case varint_tag(2):
      tensor.data_type = static_cast<std::int32_t>(field.value);
      if (emitting()) skeleton_.element_type(field.tag, tensor.data_type);
      return;
    case length_tag(3):
      tensor.segment = true;
      return;
    case length_tag(8):
      return kept_text(field, tensor.name);
    case length_tag(9):
      tensor.raw = OnnxRange{field.offset, field.bytes};
      // an empty field beside another value field counts as absent
      if (field.bytes > 0) tensor.value_fields |= 1U << field.number();
      return;
    case length_tag(13):
      return enter(field, &add(tensor.external), Emit::no);
    case varint_tag(14):
      tensor.data_location = static_cast<std::int32_t>(field.value);
      return;
    default:
      return take_values(tensor, field);
  }
}

// Typed values are counted, not read. Fields 4 float, 5 int32, 6 string, 7 int64, 10 double, 11 uint64.
void OnnxScanner::take_values(OnnxTensor& tensor, const io::WireField& field) {
  bool packed = false;
  switch (field.tag) {
    case length_tag(4):
    case length_tag(5):
    case length_tag(7):
    case length_tag(10):
    case length_tag(11):
      if (field.bytes == 0) return;
      packed = true;
      break;
    case fixed32_tag(4):
    case varint_tag(5):
    case length_tag(6):
    case varint_tag(7):
    case fixed64_tag(10):
    case varint_tag(11):
      break;
    default:
      return;
  }
  tensor.value_fields |= 1U << field.number();
  OnnxNumbers& numbers = tensor.numbers;
  const OnnxRange message = stack_.back().range;
  if (numbers.message.offset != message.offset && numbers.runs + numbers.singles > 0) numbers.spread = true;
  numbers.message = message;
  if (packed) {
    numbers.runs += 1;
    numbers.packed_bytes += field.bytes;
    numbers.run = {field.offset, field.bytes};
    return;
  }
  const bool first = numbers.singles++ == 0;
  if (field.type() != io::WireType::length) return;  // single numbers leave the place of a packed run alone
  if (first) numbers.run.offset = field.at;
  numbers.run.bytes = field.end() - numbers.run.offset;
}

// Small tensors that shapes may depend on go into the skeleton as they are, values and all.
void OnnxScanner::finish(OnnxTensor& tensor, const Frame& frame) {
  if (!frame.emitted || frame.range.bytes > kMostTensorBytes || tensor.data_location != 0) return;
  const auto count = graph::element_count(tensor.dims);
  if (!count || *count > most_elements(tensor.data_type)) return;
  skeleton_.cut(frame.content);
  skeleton_.fields(bytes_of(frame.range));
}

void OnnxScanner::take(OnnxSparse& sparse, const io::WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      return enter(field, merged_tensor(sparse.values, field));
    case length_tag(2):
      return enter(field, merged_tensor(sparse.indices, field));
    case varint_tag(3):
      return copy_number(field);
    case length_tag(3):
      reader_.enter(field);
      while (!reader_.at_end())
        if (const std::uint64_t value = reader_.varint(); emitting()) skeleton_.number(varint_tag(3), value);
      return reader_.leave();
    default:
      return;
  }
}

}  // namespace loadline::importers
