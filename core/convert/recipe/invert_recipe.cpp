// Follows a tensor of the original through the steps that use it, then undoes those steps, last first.
#include "core/convert/recipe/recipe.h"

#include <algorithm>
#include <map>

namespace loadline::convert {
namespace {

// Steps after which the numbers are the same, but for rounding.
bool keeps_numbers(StepKind kind) {
  return kind == StepKind::cast || kind == StepKind::quantize || kind == StepKind::dequantize;
}

// Whether two steps do the same to the same input.
bool same_effect(RecipeStep a, const RecipeStep& b) {
  a.inputs = b.inputs;
  return a == b;
}

}  // namespace

// Builds one recipe.
class RecipeInverter::Backwards {
 public:
  explicit Backwards(const RecipeInverter& of) : of_(of) {}

  std::optional<Recipe> make(const std::vector<Place>& places) {
    if (!number(places)) return std::nullopt;
    return std::move(recipe_);
  }

 private:
  using Result = std::optional<std::uint32_t>;  // a step of the recipe

  // A step that gives what all these places hold: the same number.
  Result number(const std::vector<Place>& places) {
    for (const Place& place : places)
      if (place.step + 1 == steps(place).size()) return stored(of_.tensors_[place.tensor].tensor);
    std::vector<Use> uses;
    for (const Place& place : places)
      std::ranges::copy(of_.uses_[place.tensor][place.step], std::back_inserter(uses));
    const std::size_t before = recipe_.steps.size();
    for (const Group& group : groups_of(uses)) {
      if (const Result found = undo(group)) return found;
      recipe_.steps.resize(before);
    }
    return from_slices(uses);
  }

  // Steps that do the same to one number: their results are one number, too.
  struct Group {
    Use use;
    std::vector<Place> places;
  };
  std::vector<Group> groups_of(const std::vector<Use>& uses) const {
    std::vector<Group> groups;
    for (const Use& use : uses) {
      const RecipeStep& step = steps(use.place)[use.place.step];
      if (step.kind == StepKind::slice) continue;
      const auto same = std::ranges::find_if(groups, [&](const Group& group) {
        return step.inputs.size() == 1 && same_effect(steps(group.use.place)[group.use.place.step], step);
      });
      if (same == groups.end())
        groups.push_back({use, {use.place}});
      else
        same->places.push_back(use.place);
    }
    return groups;
  }

  Result stored(graph::TensorId id) {
    const std::uint32_t taken = put({.kind = StepKind::take, .tensor = id});
    return can_become_f32(of_.converted_.tensor(id).dtype)
               ? put({.kind = StepKind::dequantize, .inputs = {taken}})
               : taken;
  }

  // The input of a step that loses nothing.
  Result undo(const Group& group) {
    const Use& use = group.use;
    const RecipeStep& step = steps(use.place)[use.place.step];
    const Form& input = of_.forms_[use.place.tensor][step.inputs[use.input]];
    const auto undone = [&](RecipeStep inverse) -> Result {
      const Result result = number(group.places);
      if (!result) return std::nullopt;
      inverse.inputs = {*result};
      return put(std::move(inverse));
    };
    switch (step.kind) {
      case StepKind::permute_rows:
        return undone({.kind = StepKind::permute_rows, .a = step.b, .b = step.a});
      case StepKind::transpose:
        return undone({.kind = StepKind::transpose});
      case StepKind::reshape:
        return undone({.kind = StepKind::reshape, .shape = input.shape});
      case StepKind::add_constant:
        return undone({.kind = StepKind::add_constant, .value = -step.value});
      case StepKind::concatenate: {
        std::uint64_t first = 0;
        for (std::uint32_t i = 0; i < use.input; ++i)
          first += of_.forms_[use.place.tensor][step.inputs[i]].shape[step.axis];
        return undone(
            {.kind = StepKind::slice, .axis = step.axis, .first = first, .count = input.shape[step.axis]});
      }
      default:
        return keeps_numbers(step.kind) ? number(group.places) : std::nullopt;
    }
  }

  // A number that was cut along one dimension, if all its parts are there.
  Result from_slices(const std::vector<Use>& uses) {
    struct Part {
      const RecipeStep* step;
      std::vector<Place> places;
    };
    std::map<std::uint64_t, std::vector<Part>> by_axis;
    const std::size_t before = recipe_.steps.size();
    for (const Use& use : uses) {
      const RecipeStep& step = steps(use.place)[use.place.step];
      if (step.kind != StepKind::slice) continue;
      std::vector<Part>& parts = by_axis[step.axis];
      const auto same =
          std::ranges::find_if(parts, [&](const Part& part) { return same_effect(*part.step, step); });
      if (same == parts.end())
        parts.push_back({&step, {use.place}});
      else
        same->places.push_back(use.place);
    }
    for (auto& [axis, parts] : by_axis) {
      const std::uint64_t side = input_of(parts.front().places.front()).shape[axis];
      std::ranges::sort(parts, {}, [](const Part& part) { return part.step->first; });
      RecipeStep join{.kind = StepKind::concatenate, .axis = axis};
      std::uint64_t end = 0;
      for (const Part& part : parts) {
        if (part.step->first != end) break;
        const Result result = number(part.places);
        if (!result) break;
        join.inputs.push_back(*result);
        end += part.step->count;
      }
      if (end == side && join.inputs.size() == parts.size()) return joined(std::move(join));
      recipe_.steps.resize(before);
    }
    return std::nullopt;
  }

  // Parts may be stored in different types.
  std::uint32_t joined(RecipeStep join) {
    const std::vector<Form> forms = recipe_forms(of_.converted_, recipe_);
    const graph::DType first = forms[join.inputs.front()].dtype;
    if (std::ranges::any_of(join.inputs, [&](std::uint32_t at) { return forms[at].dtype != first; }))
      for (std::uint32_t& input : join.inputs)
        if (forms[input].dtype != graph::DType::f32)
          input = put({.kind = StepKind::cast, .inputs = {input}, .dtype = graph::DType::f32});
    return put(std::move(join));
  }

  const std::vector<RecipeStep>& steps(const Place& place) const {
    return of_.tensors_[place.tensor].recipe.steps;
  }
  const Form& input_of(const Place& place) const {
    return of_.forms_[place.tensor][steps(place)[place.step].inputs.front()];
  }
  std::uint32_t put(RecipeStep step) {
    recipe_.steps.push_back(std::move(step));
    return static_cast<std::uint32_t>(recipe_.steps.size() - 1);
  }

  const RecipeInverter& of_;
  Recipe recipe_;
};

RecipeInverter::RecipeInverter(const graph::MetaGraph& original, const graph::MetaGraph& converted,
                               std::vector<ConvertedTensor> tensors)
    : original_(original),
      converted_(converted),
      tensors_(std::move(tensors)),
      taken_(original.tensors.size()) {
  for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
    const std::vector<RecipeStep>& steps = tensors_[i].recipe.steps;
    forms_.push_back(recipe_forms(original_, tensors_[i].recipe));
    std::vector<std::vector<Use>> uses(steps.size());
    for (std::uint32_t s = 0; s < steps.size(); ++s) {
      if (steps[s].kind == StepKind::take) taken_[graph::index(steps[s].tensor)].push_back({i, s});
      for (std::uint32_t k = 0; k < steps[s].inputs.size(); ++k)
        uses[steps[s].inputs[k]].push_back({{i, s}, k});
    }
    uses_.push_back(std::move(uses));
  }
}

std::optional<Recipe> RecipeInverter::recipe_for(graph::TensorId original) const {
  return Backwards(*this).make(taken_[graph::index(original)]);
}

}  // namespace loadline::convert
