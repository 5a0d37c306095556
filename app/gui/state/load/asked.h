// The load request of the window, and the part of its answers that the window shows. No ImGui.
#pragma once

#include "app/gui/state/load/forward_scene.h"
#include "core/load/request/method.h"
#include "core/load/request/request.h"

#include <memory>
#include <string>

namespace loadline::gui {

inline constexpr std::uint64_t kFirstSequence = 512;  // tokens of the pass until the user chooses

struct Asked {
  // The timeline shows the first method in the first order; the comparison has all methods. The panels
  // Operators and Lifetimes show its forward pass.
  LoadRequest request = {.methods = {"staged_ring"}, .sequence = kFirstSequence};
  bool every_order = false;  // the comparison has a row for each order
  bool first_token = false;  // a forward pass follows the load
  bool operator==(const Asked&) const = default;
};

// The method and the order that the timeline shows. Throws Error{usage} for an unknown method.
const Method& shown_method(const Asked& asked);
std::string shown_order(const Asked& asked);

// Copies the options of the forward pass from `from`, and nothing else.
void take_pass(LoadRequest& request, const LoadRequest& from);
// Removes the options that refer to one model: custom orders, placements, layer counts, named sizes.
Asked of_any_model(Asked asked);
// Converts a saved request to the window's state, and back. saved_request() throws Error{usage} for an order
// that was arranged by hand and is not in a file.
Asked asked_by(LoadRequest saved);
LoadRequest saved_request(const Asked& asked);

// A question about a model. Equal questions have equal answers.
struct LoadQuestion {
  LoadRequest request = {};
  std::shared_ptr<const StorageOrder> own_order = nullptr;  // the custom order, if the request names it
  bool operator==(const LoadQuestion&) const = default;
};
// The questions behind the timeline and the comparison. `pass` is the forward pass that follows the load, or
// null. The timeline does not depend on budgets.
LoadQuestion timeline_question(const Asked& asked, const ForwardScene* pass,
                               const std::shared_ptr<const StorageOrder>& own_order);
LoadQuestion comparison_question(const Asked& asked, const ForwardScene* pass,
                                 const std::shared_ptr<const StorageOrder>& own_order);

}  // namespace loadline::gui
