// Pictures among the inputs, sides for what the file leaves open of them, and whether its operators take
// those.
#include "core/base/text.h"
#include "importers/importer.h"
#include "importers/onnx/forward.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

namespace loadline::importers {

namespace {

// The positions of the two sides in the shape of a picture and its channels: gray, colors, or the four of a
// latent picture or of transparency. Nothing for another input.
struct PictureShape {
  std::array<std::size_t, 2> sides = {};
  std::int64_t channels = 0;
};
std::optional<PictureShape> picture_of(const OnnxValue& input) {
  const std::optional<graph::DType> dtype = graph::dtype_from(&graph::DTypeInfo::onnx, input.type.elem_type);
  const std::vector<OnnxDim>& dims = input.type.dims;
  if (!dtype || graph::dtype_info(*dtype).kind != graph::DTypeKind::floating || dims.size() != 4)
    return std::nullopt;
  for (const std::int64_t count : {3, 1, 4}) {
    if (dims[1].value == count) return PictureShape{{2, 3}, count};
    if (dims[3].value == count) return PictureShape{{1, 2}, count};
  }
  return std::nullopt;
}

std::uint64_t usual_side(const OnnxValue& input, const PictureShape& picture) {
  const std::string name = lower_case(std::string_view(input.name).substr(0, 200));
  const bool image = name.find("image") != std::string::npos || name.find("pixel") != std::string::npos;
  return picture.channels == 4 && !image ? kUsualLatentSide : kUsualPictureSide;
}

// Whether a value comes to a convolution, a pool or a resize, by way of operators that keep its sizes or
// their order: a picture does.
bool is_seen_as_picture(const OnnxGraph& graph, const std::string& input) {
  constexpr std::string_view kKeep =
      "Cast Add Sub Mul Div Transpose Identity Pad Clip BatchNormalization "
      "QuantizeLinear DequantizeLinear";
  std::set<std::string, std::less<>> seen = {input};
  for (const OnnxNode& node : graph.nodes) {  // each after those that it reads
    if (std::ranges::none_of(node.inputs, [&](const std::string& name) { return seen.contains(name); }))
      continue;
    const std::string_view kind = node.op_type;
    if (kind.starts_with("Conv") || kind.starts_with("QLinearConv") || kind.ends_with("Pool") ||
        kind == "Resize" || kind == "Upsample" || kind == "DepthToSpace" || kind == "SpaceToDepth")
      return true;
    if (has_word(kKeep, kind)) seen.insert(node.outputs.begin(), node.outputs.end());
  }
  return false;
}

// No other size of the input has the name of a side: then it is none.
bool stands_alone(const std::vector<OnnxDim>& dims, const std::array<std::size_t, 2>& sides) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    for (const std::size_t side : sides)
      if (i != sides[0] && i != sides[1] && !dims[i].value && !dims[side].value && !dims[i].name.empty() &&
          dims[i].name == dims[side].name)
        return false;
  return true;
}

void put_sides(OnnxType& type, std::span<const PictureSide> sides) {
  for (OnnxDim& dim : type.dims)
    for (const PictureSide& side : sides) {
      if (dim.value || side.name.empty()) continue;
      if (dim.name == side.name)
        dim = {side.pixels, {}, false};
      else if (mentions(dim.name, side.name))
        type.has_shape = false;
    }
  if (!type.has_shape) type.dims.clear();
}

}  // namespace

namespace {

// The picture that an input is, if a side of it is open.
std::optional<PictureShape> open_picture(const OnnxGraph& main, const OnnxValue& input) {
  const auto picture = picture_of(input);
  const auto is_open = [&](std::size_t at) { return input.type.dims[at].value.value_or(-1) < 0; };
  if (!picture || std::ranges::none_of(picture->sides, is_open) ||
      !stands_alone(input.type.dims, picture->sides) || !is_seen_as_picture(main, input.name))
    return std::nullopt;
  return picture;
}

}  // namespace

bool has_open_pictures(const OnnxModel& model) {
  if (!model.graph) return false;
  const OnnxGraph& main = model[*model.graph];
  return std::ranges::any_of(main.inputs,
                             [&](const OnnxValue& input) { return open_picture(main, input).has_value(); });
}

std::vector<PictureSide> take_picture_sides(OnnxModel& model, std::uint64_t pixels,
                                            std::span<const NamedSide> named) {
  std::vector<PictureSide> sides;
  if (!model.graph) return sides;
  OnnxGraph& main = model.graphs[static_cast<std::size_t>(*model.graph)];
  for (OnnxValue& input : main.inputs) {
    const auto picture = open_picture(main, input);
    if (!picture) continue;
    for (const std::size_t at : picture->sides) {
      OnnxDim& dim = input.type.dims[at];
      if (dim.value.value_or(-1) >= 0) continue;
      const std::string name = dim.value || dim.name.empty() ? open_size_name(input.name, at) : dim.name;
      const auto chosen = std::ranges::find(named, name, &NamedSide::name);
      const std::uint64_t side = chosen != named.end() ? chosen->pixels
                                 : pixels > 0          ? pixels
                                                       : usual_side(input, *picture);
      sides.push_back(
          {input.name, at, dim.value ? std::string() : dim.name, static_cast<std::int64_t>(side)});
      dim = {sides.back().pixels, {}, false};
    }
  }
  if (sides.empty()) return sides;
  for (OnnxGraph& graph : model.graphs)
    for (auto* const list : {&graph.inputs, &graph.outputs, &graph.values})
      for (OnnxValue& value : *list) put_sides(value.type, sides);
  return sides;
}

// --- Whether operators can take the shapes that follow.

namespace {

using Dims = std::vector<OnnxDim>;

bool differ(const OnnxDim& a, const OnnxDim& b) { return a.value && b.value && *a.value != *b.value; }

// The product of the known sides, and how many are not known.
struct Elements {
  std::uint64_t known = 1;
  std::size_t open = 0;
};
Elements elements_of(const Dims& dims) {
  Elements all;
  for (const OnnxDim& dim : dims) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    if (!dim.value || *dim.value <= 0 || static_cast<std::uint64_t>(*dim.value) >= kMost ||
        all.known >= kMost)
      ++all.open;
    else
      all.known *= static_cast<std::uint64_t>(*dim.value);
  }
  return all;
}

class Conflicts {
 public:
  Conflicts(const OnnxModel& model, const OnnxModel& inferred, bool strict)
      : main_(model[*model.graph]), strict_(strict) {
    const auto note = [&](const OnnxGraph& graph) {
      for (const auto* const list : {&graph.inputs, &graph.outputs, &graph.values})
        for (const OnnxValue& value : *list)
          if (value.type.has_shape) dims_.try_emplace(value.name, value.type.dims);
    };
    for (const OnnxTensorId id : main_.initializers) {
      Dims dims;
      for (const std::uint64_t side : model.tensor(id).dims)
        dims.push_back({static_cast<std::int64_t>(side), {}, false});
      dims_.try_emplace(model.tensor(id).name, std::move(dims));
      weights_.insert(model.tensor(id).name);
    }
    if (inferred.graph) note(inferred[*inferred.graph]);
    note(main_);
  }

  std::string first() const {
    for (const OnnxNode& node : main_.nodes)
      if (is_conflict(node)) return fmt::format("{} '{}'", node.op_type, node.name);
    return "";
  }

 private:
  const Dims* dims(const std::vector<std::string>& names, std::size_t at) const {
    if (at >= names.size()) return nullptr;
    const auto found = dims_.find(names[at]);
    return found == dims_.end() || found->second.empty() ? nullptr : &found->second;
  }

  static std::int64_t setting(const OnnxNode& node, std::string_view name) {
    for (const auto& [key, value] : node.settings)
      if (const auto* const number = std::get_if<std::int64_t>(&value); key == name && number != nullptr)
        return *number;
    return 0;
  }

  bool is_conflict(const OnnxNode& node) const {
    const Dims* const a = dims(node.inputs, 0);
    const Dims* const b = dims(node.inputs, 1);
    if (!is_onnx_domain(node.domain) || a == nullptr) return false;
    if (node.op_type == "Reshape") {
      const Dims* const out = dims(node.outputs, 0);
      return out != nullptr && is_another_count(elements_of(*a), elements_of(*out));
    }
    if (node.op_type == "Concat") return is_ragged(node);
    if (b == nullptr) return false;
    if (node.op_type == "MatMul") return differ(a->back(), b->size() > 1 ? (*b)[b->size() - 2] : b->front());
    if (node.op_type == "Gemm" && a->size() == 2 && b->size() == 2)
      return differ((*a)[setting(node, "transA") == 0 ? 1 : 0], (*b)[setting(node, "transB") == 0 ? 0 : 1]);
    constexpr std::string_view kBroadcast = "Add Sub Mul Div Pow";
    if (!has_word(kBroadcast, node.op_type)) return false;
    for (std::size_t i = 1; i <= std::min(a->size(), b->size()); ++i) {
      const OnnxDim &left = (*a)[a->size() - i], &right = (*b)[b->size() - i];
      if (!differ(left, right)) continue;
      if (left.value != 1 && right.value != 1) return true;
      // a weight for each place of a picture is no fit for one that has a single place
      const std::size_t single = left.value == 1 ? 0 : 1;
      if (strict_ && weights_.count(node.inputs[single]) == 0 && weights_.count(node.inputs[1 - single]) > 0)
        return true;
    }
    return false;
  }

  // A side that is not known can make up for a whole factor.
  static bool is_another_count(const Elements& in, const Elements& out) {
    if (in.open == 0 && out.open == 0) return in.known != out.known;
    if (in.open > 1 || out.open > 1) return false;
    if (out.open == 0) return out.known % in.known != 0;
    return in.open == 0 ? in.known % out.known != 0 : in.known % out.known != 0 && out.known % in.known != 0;
  }

  bool is_ragged(const OnnxNode& node) const {
    const Dims* const a = dims(node.inputs, 0);
    std::int64_t axis = setting(node, "axis");
    if (axis < 0) axis += static_cast<std::int64_t>(a->size());
    for (std::size_t k = 1; k < node.inputs.size(); ++k) {
      const Dims* const b = dims(node.inputs, k);
      if (b == nullptr || b->size() != a->size()) continue;
      for (std::size_t i = 0; i < a->size(); ++i)
        if (static_cast<std::int64_t>(i) != axis && differ((*a)[i], (*b)[i])) return true;
    }
    return false;
  }

  const OnnxGraph& main_;
  const bool strict_;
  graph::TextViewMap<Dims> dims_;
  graph::TextViewSet weights_;
};

}  // namespace

std::string shape_conflict(const OnnxModel& model, const OnnxModel& inferred, bool strict) {
  return model.graph ? Conflicts(model, inferred, strict).first() : "";
}

}  // namespace loadline::importers
