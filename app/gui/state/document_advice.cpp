// Advice: changes that make the load fit, tried out, taken over and taken back.
#include "app/gui/state/document.h"

#include <utility>

namespace loadline::gui {
namespace {

Asked asked_as(const Asked& now, const AdvisedLoad& load) {
  Asked asked = now;
  asked.request = load.request;
  asked.request.methods = {std::string(load.method->id)};
  asked.request.orders = {load.order};
  return asked;
}

}  // namespace

void Document::advise() {
  if (!model || advised()) return;
  advised_ = asked_;
  advice.drop();
  LoadQuestion question = timeline();
  LoadRequest budgeted = asked_.request;  // the timeline does not depend on budgets
  budgeted.methods = std::move(question.request.methods);
  budgeted.orders = std::move(question.request.orders);
  question.request = std::move(budgeted);
  if (pass() == nullptr) take_pass(question.request, {});
  advice.ask(shared_.jobs, "Looking for loads that fit",
             [task = task(std::move(question))](Progress& progress) { return advise_load(task, progress); });
}

void Document::apply(const AdvisedLoad& load) {
  const Asked before = asked_;
  ask(asked_as(asked_, load));
  restored_ = before;
  applied_ = asked_;
}

void Document::take_back() {
  if (!can_take_back()) return;
  const Asked before = *restored_;
  ask(before);
  applied_.reset();
}

void Document::preview(const AdvisedLoad* load) {
  if (load == nullptr) {
    previewing_.reset();
    return previewed.reset();
  }
  const Asked asked = asked_as(asked_, *load);
  if (previewing_ == asked) return;
  previewing_ = asked;
  previewed.drop();
  previewed.ask(shared_.jobs, "Projecting the change",
                [task = task(timeline_question(asked, pass(), custom_))](Progress& progress) {
                  return project_load(task, progress);
                });
}

}  // namespace loadline::gui
