// What the user asks of a model: one request, and what of it the window shows. No ImGui.
#pragma once

#include "app/gui/forward_scene.h"
#include "core/load/methods.h"
#include "core/load/request.h"

#include <memory>
#include <string>

namespace loadline::gui {

inline constexpr std::uint64_t kFirstSequence = 512;  // tokens of the pass until somebody chooses

struct Asked {
  // The timeline shows its first method and its first order; the comparison has all methods. Its forward pass
  // is that of the panels Operators and Lifetimes.
  LoadRequest request = {.methods = {"staged_ring"}, .sequence = kFirstSequence};
  bool every_order = false;  // the comparison has a row for each order
  bool first_token = false;  // the forward pass follows the load
  bool operator==(const Asked&) const = default;
};

// Throws Error{usage}.
const Method& shown_method(const Asked& asked);
std::string shown_order(const Asked& asked);

// Takes over the forward pass, and nothing else.
void take_pass(LoadRequest& request, const LoadRequest& from);
// Without what means something for one model only: names of tensors and sizes, counts of layers.
Asked of_any_model(Asked asked);
// A saved request as the window asks it, and what is saved of the window's. Throws Error{usage} for an order
// that no file holds.
Asked asked_by(LoadRequest saved);
LoadRequest saved_request(const Asked& asked);

// One question of a model; where two are equal, so are the answers.
struct LoadQuestion {
  LoadRequest request = {};
  std::shared_ptr<const StorageOrder> own_order = nullptr;  // where the request names it
  bool operator==(const LoadQuestion&) const = default;
};
// `pass`: what the load goes on with; null: nothing. The timeline depends on no budget.
LoadQuestion timeline_question(const Asked& asked, const ForwardScene* pass,
                               const std::shared_ptr<const StorageOrder>& own_order);
LoadQuestion comparison_question(const Asked& asked, const ForwardScene* pass,
                                 const std::shared_ptr<const StorageOrder>& own_order);

}  // namespace loadline::gui
