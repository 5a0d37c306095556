// Decides which component has the next turn, and combines their results.
#include "core/packing/arena_packer.h"

#include <algorithm>

namespace loadline {
namespace {

constexpr unsigned kBoundedTurns = 2;

unsigned turns_of(Effort effort) {
  if (effort == Effort::full) return UINT32_MAX;
  return effort == Effort::bounded ? kBoundedTurns : 0;
}

}  // namespace

ArenaPacker::ArenaPacker(const Problem& problem, std::uint32_t arena, const PackOptions& options)
    : problem_(problem),
      arena_(arena),
      options_(options),
      turns_(turns_of(options.effort)),
      form_(normal_form(problem, arena)),
      highest_pin_(highest_pin(problem, arena)) {
  if (arena < options.capacity.size() && options.capacity[arena])
    capacity_ = std::min(*options.capacity[arena], kHighestPacking);
  for (const PackingComponent& component : form_.components)
    packers_.push_back(std::make_unique<ComponentPacker>(component.model, kHighestPacking / component.unit,
                                                         options.threads, options.seed));
}

std::uint64_t ArenaPacker::bytes_of(std::size_t component) const {
  const ComponentPacker& packer = *packers_[component];
  return packer.packed() ? packer.height() * form_.components[component].unit : ArenaPacking::kNotPacked;
}

// With alignments a component's bound may exceed the highest packing; it is cut to just above that, where it
// still holds.
std::uint64_t ArenaPacker::bound_of(std::size_t component) const {
  const std::uint64_t unit = form_.components[component].unit;
  return std::min(packers_[component]->lower(), kHighestPacking / unit + 1) * unit;
}

std::uint64_t ArenaPacker::end_of_pins() const {
  return highest_pin_ == nullptr ? 0 : *highest_pin_->offset + highest_pin_->size;
}

std::uint64_t ArenaPacker::height() const {
  std::uint64_t height = end_of_pins();
  for (std::size_t i = 0; i < packers_.size(); ++i) height = std::max(height, bytes_of(i));
  return height;
}

std::uint64_t ArenaPacker::lower_bound() const {
  std::uint64_t bound = end_of_pins();
  for (std::size_t i = 0; i < packers_.size(); ++i) bound = std::max(bound, bound_of(i));
  return bound;
}

void ArenaPacker::begin(const StopRule& rule) {
  for (const auto& packer : packers_) packer->begin(rule);
  level_ = lower_bound();
  refused_ = capacity_ && level_ > *capacity_;
  if (reaches()) level_ = *capacity_;
  for (std::size_t i = 0; i < packers_.size() && !refused_; ++i)
    if (packers_[i]->packed() && bytes_of(i) > level_) waiting_.push_back(i);
  if (!reaches())
    std::ranges::make_heap(waiting_, {}, [this](std::size_t component) { return bytes_of(component); });
}

// Returns whether the component has turns left and is still higher than `bytes`.
bool ArenaPacker::turn(std::size_t component, std::uint64_t bytes, const StopRule& rule) {
  ComponentPacker& packer = *packers_[component];
  const std::uint64_t units = bytes / form_.components[component].unit;
  if (turns_ == 0) {
    packer.try_orders(units, rule);
  } else if (reaches()) {
    packer.reach(units, rule);
  } else {
    packer.minimize(rule);
  }
  if (waiting_.size() > 1) packer.forget();  // together the components would keep too much memory
  return packer.turns() < turns_ && bytes_of(component) > bytes;
}

bool ArenaPacker::step_in_turn(const StopRule& rule) {
  next_ %= waiting_.size();
  const std::size_t at = waiting_[next_];
  if (turn(at, level_, rule)) {
    ++next_;
  } else {
    waiting_[next_] = waiting_.back();
    waiting_.pop_back();
  }
  refused_ = bound_of(at) > *capacity_;
  return !refused_ && !waiting_.empty();
}

bool ArenaPacker::step_highest(const StopRule& rule) {
  const auto bytes = [this](std::size_t component) { return bytes_of(component); };
  std::ranges::pop_heap(waiting_, {}, bytes);
  const std::size_t at = waiting_.back();
  if (bytes_of(at) <= level_) {
    waiting_.clear();
    return false;
  }
  const bool more = turn(at, level_, rule);
  level_ = std::max(level_, more ? bound_of(at) : bytes_of(at));
  refused_ = capacity_ && bound_of(at) > *capacity_;
  if (more) {
    std::ranges::push_heap(waiting_, {}, bytes);
  } else {
    waiting_.pop_back();
  }
  return !waiting_.empty();
}

bool ArenaPacker::step(const StopRule& rule) {
  if (waiting_.empty()) return false;
  return reaches() ? step_in_turn(rule) : step_highest(rule);
}

Verdict ArenaPacker::verdict() const {
  if (height() <= capacity_.value_or(kHighestPacking)) return Verdict::feasible;
  return capacity_ && lower_bound() > *capacity_ ? Verdict::infeasible : Verdict::undecided;
}

ArenaPacking ArenaPacker::result() const {
  ArenaPacking result;
  result.height = height();
  result.lower_bound = lower_bound();
  result.proven_optimal = result.height == result.lower_bound;
  if (highest_pin_ != nullptr && end_of_pins() == result.lower_bound)
    result.bound_ticks = {highest_pin_->lower, highest_pin_->upper};
  for (std::size_t i = 0; i < packers_.size(); ++i)
    if (const auto section = packers_[i]->bound_section(); section && bound_of(i) == result.lower_bound)
      result.bound_ticks = form_.components[i].ticks[*section];
  return result;
}

std::string ArenaPacker::algorithm() const {
  const std::uint64_t most = height();
  for (std::size_t i = 0; i < packers_.size(); ++i)
    if (packers_[i]->packed() && bytes_of(i) == most) return packers_[i]->algorithm();
  return "";
}

std::uint64_t ArenaPacker::nodes() const {
  std::uint64_t sum = 0;
  for (const auto& packer : packers_) sum += packer->nodes();
  return sum;
}

void ArenaPacker::write(std::vector<std::uint64_t>& offsets) const {
  for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
    const Buffer& buffer = problem_.buffers[i];
    if (buffer.arena != arena_) continue;
    const NormalForm::Place& place = form_.places[i];
    offsets[i] = 0;  // for buffers that are never alive
    if (buffer.offset)
      offsets[i] = *buffer.offset;
    else if (place.box != NormalForm::kNoBox && packers_[place.component]->packed())
      offsets[i] = packers_[place.component]->offsets()[place.box] * form_.components[place.component].unit;
  }
}

}  // namespace loadline
