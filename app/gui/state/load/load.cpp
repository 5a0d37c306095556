// Turns the window's request into the questions behind the timeline and the comparison.
#include "app/gui/state/load/asked.h"
#include "core/base/error.h"
#include "core/load/request/bind_request_2.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {
namespace {

bool is_row(const std::string& order) {
  return std::ranges::any_of(orders(), [&](const Order& row) { return row.id == order; });
}

LoadRequest load_request(const Asked& asked, const ForwardScene* pass) {
  LoadRequest request = asked.request;
  request.methods = {std::string(shown_method(asked).id)};
  request.orders = {shown_order(asked)};
  if (pass == nullptr) {
    take_pass(request, {});
    return request;
  }
  // a size that the file names may stand for the batch or for tokens
  const auto symbols = symbols_of(*pass->forward(), request);
  request.batch = symbols[index(kBatch)];
  request.sequence = symbols[index(kSequence)];
  request.past = symbols[index(kPast)];
  request.forward = pass->options;
  request.activation_bytes = 0;  // the pass gives the bytes of activations
  return request;
}

}  // namespace

const Method& shown_method(const Asked& asked) {
  for (const std::string& id : asked.request.methods)
    if (id != "all") return find_method(id);
  return find_method(Asked().request.methods.front());
}

std::string shown_order(const Asked& asked) {
  for (const std::string& name : asked.request.orders)
    if (name != "all") return name;
  return LoadRequest().orders.front();
}

void take_pass(LoadRequest& request, const LoadRequest& from) {
  request.batch = from.batch;
  request.sequence = from.sequence;
  request.past = from.past;
  request.sizes = from.sizes;
  request.forward = from.forward;
}

Asked of_any_model(Asked asked) {
  LoadRequest& request = asked.request;
  if (!is_row(shown_order(asked))) request.orders = LoadRequest().orders;
  request.gpu_layers.reset();
  request.auto_map.reset();
  request.place.clear();
  request.sizes.clear();
  return asked;
}

Asked asked_by(LoadRequest saved) {
  Asked asked;
  const std::vector<std::string>& orders = saved.orders;
  asked.every_order = std::ranges::find(orders, "all") != orders.end();
  asked.first_token = asks_for_pass(saved);
  if (saved.methods.empty()) saved.methods = asked.request.methods;
  if (saved.sequence == 0) saved.sequence = kFirstSequence;
  asked.request = std::move(saved);
  return asked;
}

LoadRequest saved_request(const Asked& asked) {
  LoadRequest request = asked.request;
  if (asked.first_token)
    request.activation_bytes = 0;
  else
    take_pass(request, {});
  const std::string order = shown_order(asked);
  if (order == kOwnOrder)
    throw Error(ErrorCode::usage,
                "the order was arranged by hand: write it to a file, and choose that file, before the "
                "request is saved");
  request.orders = {order};
  if (asked.every_order) request.orders.emplace_back("all");
  return request;
}

LoadQuestion timeline_question(const Asked& asked, const ForwardScene* pass,
                               const std::shared_ptr<const StorageOrder>& own_order) {
  LoadQuestion question{load_request(asked, pass), nullptr};
  question.request.device_budget.reset();
  question.request.host_budget.reset();
  question.request.page_cache_budget.reset();
  question.request.require_peak.reset();
  if (question.request.orders.front() == kOwnOrder) question.own_order = own_order;
  return question;
}

LoadQuestion comparison_question(const Asked& asked, const ForwardScene* pass,
                                 const std::shared_ptr<const StorageOrder>& own_order) {
  LoadQuestion question{load_request(asked, pass), nullptr};
  LoadRequest& request = question.request;
  request.methods = {"all"};
  if (asked.every_order) {
    if (is_row(request.orders.front())) request.orders.clear();
    request.orders.insert(request.orders.begin(), "all");
    if (own_order && request.orders.back() != kOwnOrder) request.orders.emplace_back(kOwnOrder);
  }
  if (request.orders.back() == kOwnOrder) question.own_order = own_order;
  return question;
}

}  // namespace loadline::gui
