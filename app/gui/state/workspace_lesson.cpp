// Brings the scenes of a lesson into the views, and takes them away again.
#include "app/gui/state/workspace.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {

void Workspace::play_lesson(const std::string& id) {
  const bool first = !lesson.plays();
  lesson.start(id);
  if (first) before_lesson_ = {document().id, document().asked(), settings};
  show_lesson_scene();
}

void Workspace::go_to_step(std::size_t step) {
  if (!lesson.plays()) throw Error(ErrorCode::usage, "no lesson is played");
  lesson.go_to(step);
  show_lesson_scene();
}

void Workspace::show_lesson_scene() {
  if (!lesson.plays()) throw Error(ErrorCode::usage, "no lesson is played");
  lesson.want_model([this](const ModelPtr& model) { take_scene(model); });
}

void Workspace::take_scene(ModelPtr model) {
  const Document* const own = find_document(lesson.document);
  if (own == nullptr) {
    adopt(std::move(model));
  } else if (own->model != model) {
    adopt(std::move(model), lesson.document);
  } else {
    const auto at = std::ranges::find_if(documents_, [&](const auto& one) { return one.get() == own; });
    show_document(static_cast<std::size_t>(at - documents_.begin()));
  }
  lesson.document = document().id;
  document().set_step(std::nullopt);
  document().select({});
  document().zoom(kRootNode);
  attempt([&] { document().ask(asked_by(lesson.scene().request)); });
  // the lesson speaks of these alone
  const std::vector<std::string>& methods = lesson.scene().request.methods;
  const bool compares = methods.size() > 1 || lesson.scene().request.orders.size() > 1;
  document().compared.clear();
  if (compares && std::ranges::find(methods, "all") == methods.end())
    document().compared.insert(methods.begin(), methods.end());
  const std::vector<std::string>& lines = lesson.step().show;
  lesson.to_show.assign(lines.begin(), lines.end());
  if (!lines.empty()) return;
  // a step that does not say what to show: what its picture is on a page
  switch (lesson.step().picture) {
    case lesson::Picture::map:
      lesson.to_show = {"panel map"};
      break;
    case lesson::Picture::methods:
      lesson.to_show = {"panel methods", "methods-view curves"};
      break;
    case lesson::Picture::bars:
      lesson.to_show = {"panel methods", "methods-view table"};
      break;
    case lesson::Picture::none:
      lesson.to_show = {"panel load"};
      break;
  }
}

void Workspace::leave_lesson() {
  if (!lesson.plays()) throw Error(ErrorCode::usage, "no lesson is played");
  lesson.leave();
  const auto place_of = [&](std::uint64_t id) {
    const auto at = std::ranges::find_if(documents_, [&](const auto& one) { return one->id == id; });
    return static_cast<std::size_t>(at - documents_.begin());
  };
  if (const std::size_t own = place_of(std::exchange(lesson.document, 0)); own < documents_.size()) {
    show_document(own);
    close_model();
  }
  show_document(place_of(before_lesson_.document));  // nothing if it was closed
  settings.panel = before_lesson_.settings.panel;
  settings.color_by = before_lesson_.settings.color_by;
  settings.compare_view = before_lesson_.settings.compare_view;
  settings.compare_sort = before_lesson_.settings.compare_sort;
  settings.operators_as_list = before_lesson_.settings.operators_as_list;
  settings.fold_operators = before_lesson_.settings.fold_operators;
  // the next model takes over what is asked here
  if (!document().model) attempt([&] { document().ask(before_lesson_.asked); });
}

}  // namespace loadline::gui
