// The table of steps, and the forms that they give.
#include "core/convert/recipe/recipe.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/recipe/packed_weights.h"
#include "core/graph/packed/quantization.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::convert {
namespace {

constexpr std::size_t kMostSteps = 10'000;

struct Inputs {
  const graph::MetaGraph& graph;
  const RecipeStep& step;
  std::vector<const Form*> forms;

  const Form& operator[](std::size_t i) const { return *forms[i]; }
  template <typename... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> detail, const Values&... values) const {
    throw Error(ErrorCode::unsupported, "{}: {}", step_name(step.kind),
                fmt::vformat(detail, fmt::make_format_args(values...)));
  }
};

std::string text(const Form& form) {
  return fmt::format("{} [{}]", graph::dtype_info(form.dtype).name, fmt::join(form.shape, ","));
}

Form take_form(const Inputs& in) {
  const graph::Tensor& tensor = in.graph.tensor(in.step.tensor);
  return {tensor.dtype, tensor.shape};
}

Form unpack_form(const Inputs& in) { return {graph::DType::f32, in.graph.logical[in.step.packed].shape}; }

// Rows of blocks cannot be cut or moved one number at a time.
void refuse_blocks(const Inputs& in) {
  for (const Form* const form : in.forms)
    if (graph::dtype_info(form->dtype).block_elements != 1) in.fail("not of {}", text(*form));
}

Form slice_form(const Inputs& in) {
  Form form = in[0];
  if (in.step.axis >= form.shape.size() || in.step.count > form.shape[in.step.axis] ||
      in.step.first > form.shape[in.step.axis] - in.step.count)
    in.fail("{} from {} of dimension {} of {}", in.step.count, in.step.first, in.step.axis, text(form));
  if (in.step.axis + 1 == form.shape.size()) refuse_blocks(in);
  form.shape[in.step.axis] = in.step.count;
  return form;
}

Form concatenate_form(const Inputs& in) {
  Form form = in[0];
  if (in.step.axis >= form.shape.size()) in.fail("dimension {} of {}", in.step.axis, text(form));
  if (in.step.axis + 1 == form.shape.size()) refuse_blocks(in);
  for (std::size_t i = 1; i < in.forms.size(); ++i) {
    Form other = in[i];
    const std::uint64_t side = in.step.axis < other.shape.size() ? other.shape[in.step.axis] : 0;
    if (in.step.axis < other.shape.size()) other.shape[in.step.axis] = in[0].shape[in.step.axis];
    if (other != in[0]) in.fail("{} and {}", text(in[0]), text(in[i]));
    const auto sum = checked_add(form.shape[in.step.axis], side);
    if (!sum) in.fail("more than 2^64 rows");
    form.shape[in.step.axis] = *sum;
  }
  return form;
}

Form permute_form(const Inputs& in) {
  const Form& form = in[0];
  const auto group = checked_mul(in.step.a, in.step.b);
  if (form.shape.empty() || !group || *group == 0 || form.shape[0] % *group != 0)
    in.fail("groups of {} x {} rows of {}", in.step.a, in.step.b, text(form));
  if (form.shape.size() == 1) refuse_blocks(in);
  return form;
}

Form transpose_form(const Inputs& in) {
  Form form = in[0];
  refuse_blocks(in);
  if (form.shape.size() < 2) in.fail("{} has no two dimensions", text(form));
  const std::size_t last = form.shape.size() - 1;
  std::swap(form.shape[last], form.shape[last - 1]);
  return form;
}

Form reshape_form(const Inputs& in) {
  if (graph::element_count(in.step.shape) != graph::element_count(in[0].shape))
    in.fail("{} as [{}]", text(in[0]), fmt::join(in.step.shape, ","));
  if (graph::dtype_info(in[0].dtype).block_elements != 1 &&
      (in.step.shape.empty() || in[0].shape.empty() || in.step.shape.back() != in[0].shape.back()))
    in.fail("the row length must stay the same for {}", text(in[0]));
  return {in[0].dtype, in.step.shape};
}

Form sum_form(const Inputs& in) {
  for (const Form* const form : in.forms)
    if (!is_cast_target(form->dtype)) in.fail("not of {}", text(*form));
  return in[0];
}

Form add_form(const Inputs& in) {
  if (in[1] != in[0]) in.fail("{} and {}", text(in[0]), text(in[1]));
  return sum_form(in);
}

Form product_form(const Inputs& in) {
  const graph::Shape &whole = in[0].shape, &left = in[1].shape, &right = in[2].shape;
  if (whole.size() != 2 || left.size() != 2 || right.size() != 2 || left[0] != whole[0] ||
      right[1] != whole[1] || left[1] != right[0])
    in.fail("{} x {} to {}", text(in[1]), text(in[2]), text(in[0]));
  return sum_form(in);
}

Form dequantize_form(const Inputs& in) {
  if (!can_become_f32(in[0].dtype)) in.fail("not of {}", text(in[0]));
  return {graph::DType::f32, in[0].shape};
}

Form cast_form(const Inputs& in) {
  if (!can_cast(in[0].dtype, in.step.dtype))
    in.fail("{} to {}", text(in[0]), graph::dtype_info(in.step.dtype).name);
  return {in.step.dtype, in[0].shape};
}

Form repack_form(const Inputs& in) {
  const graph::LogicalTensor& weight = in.graph.logical[in.step.packed];
  const auto blocks = ggml_repacking(in.graph, weight);
  if (!blocks) in.fail("not of {} [{}]", graph::packing_name(weight.packing), fmt::join(weight.shape, ","));
  return {blocks->dtype, blocks->shape};
}

Form constants_form(const Inputs& in) { return {graph::DType::f32, {in.step.constants.size()}}; }

Form quantize_form(const Inputs& in) {
  const graph::DTypeInfo& type = graph::dtype_info(in.step.dtype);
  if (!is_cast_target(in[0].dtype) || !can_quantize(in.step.dtype))
    in.fail("{} to {}", text(in[0]), type.name);
  const std::uint64_t columns = in[0].shape.empty() ? 1 : in[0].shape.back();
  if (columns % type.block_elements != 0)
    in.fail("{}: rows of {} numbers are not whole blocks of {} for {}", text(in[0]), columns,
            type.block_elements, type.name);
  if (in.step.importance != nullptr) {
    const std::uint64_t weights = in.step.importance->weights.size();
    const bool each = in[0].shape.size() > 2 && checked_mul(columns, in[0].shape[0]) == weights;
    if (weights != columns && !each) in.fail("{} weights of importance for {}", weights, text(in[0]));
  }
  return {in.step.dtype, in[0].shape};
}

struct StepRow {
  StepKind kind;
  std::string_view name;
  std::size_t inputs;  // 0: none; kAny: one or more
  Form (*form)(const Inputs&);
};
constexpr std::size_t kAny = SIZE_MAX;
constexpr std::array<StepRow, 15> kSteps = {{
    {StepKind::take, "take", 0, take_form},
    {StepKind::unpack, "unpack", 0, unpack_form},
    {StepKind::slice, "slice", 1, slice_form},
    {StepKind::concatenate, "concatenate", kAny, concatenate_form},
    {StepKind::permute_rows, "permute_rows", 1, permute_form},
    {StepKind::transpose, "transpose", 1, transpose_form},
    {StepKind::reshape, "reshape", 1, reshape_form},
    {StepKind::add_constant, "add_constant", 1, sum_form},
    {StepKind::add, "add", 2, add_form},
    {StepKind::add_product, "add_product", 3, product_form},
    {StepKind::dequantize, "dequantize", 1, dequantize_form},
    {StepKind::cast, "cast", 1, cast_form},
    {StepKind::repack, "repack", 0, repack_form},
    {StepKind::constants, "constants", 0, constants_form},
    {StepKind::quantize, "quantize", 1, quantize_form},
}};
const StepRow& row_of(StepKind kind) { return kSteps[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view step_name(StepKind kind) { return row_of(kind).name; }

bool can_become_f32(graph::DType dtype) {
  const graph::DTypeInfo& type = graph::dtype_info(dtype);
  const bool float8 =
      type.kind == graph::DTypeKind::floating && type.block_bytes == 1 && type.block_elements == 1;
  return can_dequantize(dtype) || (float8 && dtype != graph::DType::f8_e8m0);
}

Recipe& Recipe::then(RecipeStep step) {
  step.inputs = {static_cast<std::uint32_t>(steps.size() - 1)};
  steps.push_back(std::move(step));
  return *this;
}

std::uint32_t Recipe::append(const Recipe& other) {
  const auto first = static_cast<std::uint32_t>(steps.size());
  for (RecipeStep step : other.steps) {
    for (std::uint32_t& input : step.inputs) input += first;
    steps.push_back(std::move(step));
  }
  return static_cast<std::uint32_t>(steps.size() - 1);
}

Recipe take(graph::TensorId tensor) { return {{{.kind = StepKind::take, .tensor = tensor}}}; }
Recipe unpack(std::uint32_t packed) { return {{{.kind = StepKind::unpack, .packed = packed}}}; }

std::optional<graph::TensorId> copied_tensor(const Recipe& recipe) {
  const bool copies = recipe.steps.size() == 1 && recipe.steps.front().kind == StepKind::take;
  return copies ? std::optional(recipe.steps.front().tensor) : std::nullopt;
}

std::vector<Form> recipe_forms(const graph::MetaGraph& graph, const Recipe& recipe) {
  if (recipe.steps.empty() || recipe.steps.size() > kMostSteps)
    throw Error(ErrorCode::limit, "a recipe of {} steps", recipe.steps.size());
  std::vector<Form> forms;
  forms.reserve(recipe.steps.size());  // inputs point into it
  for (const RecipeStep& step : recipe.steps) {
    const StepRow& row = row_of(step.kind);
    Inputs inputs{graph, step, {}};
    const bool right = row.inputs == kAny ? !step.inputs.empty() : step.inputs.size() == row.inputs;
    if (!right) inputs.fail("{} inputs", step.inputs.size());
    for (const std::uint32_t input : step.inputs) {
      if (input >= forms.size()) inputs.fail("an input that comes later");
      inputs.forms.push_back(&forms[input]);
    }
    Form form = row.form(inputs);
    const auto count = graph::element_count(form.shape);
    if (!count || *count >> 60 != 0) throw Error(ErrorCode::limit, "{}: too many numbers", row.name);
    forms.push_back(std::move(form));
  }
  return forms;
}

std::vector<graph::TensorId> recipe_tensors(const graph::MetaGraph& graph, const Recipe& recipe) {
  std::vector<graph::TensorId> tensors;
  for (const RecipeStep& step : recipe.steps) {
    if (step.kind == StepKind::take) tensors.push_back(step.tensor);
    if (step.kind != StepKind::unpack && step.kind != StepKind::repack) continue;
    const graph::LogicalTensor& weight = graph.logical[step.packed];
    tensors.push_back(weight.codes);
    for (const graph::CompanionTensor& companion : weight.companions) tensors.push_back(companion.tensor);
  }
  return tensors;
}

std::uint64_t recipe_source_bytes(const graph::MetaGraph& graph, const Recipe& recipe) {
  std::uint64_t bytes = 0;
  for (const RecipeStep& step : recipe.steps) {
    if (step.kind == StepKind::take)
      bytes = checked_add(bytes, graph::tensor_bytes(graph, graph.tensor(step.tensor))).value_or(UINT64_MAX);
    if (step.kind == StepKind::unpack || step.kind == StepKind::repack)
      bytes = checked_add(bytes, graph::packed_bytes(graph, graph.logical[step.packed])).value_or(UINT64_MAX);
  }
  return bytes;
}

}  // namespace loadline::convert
