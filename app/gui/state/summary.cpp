// The caveats of a model, the gravest first; the verdict in a few words; the options that are set.
#include "app/gui/state/summary.h"

#include "app/gui/state/document.h"
#include "core/base/text.h"
#include "core/forward/family/settings.h"
#include "core/forward/model/expected_tensors.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace loadline::gui {

// --- What is wrong with a model or not understood of it.

namespace {

constexpr std::size_t kMostAlike = 3;  // caveats of one severity

void add_notes(std::vector<Caveat>& caveats, const graph::MetaGraph& graph, graph::Severity severity,
               std::string_view kind) {
  std::size_t count = 0;
  for (const graph::Note& note : graph.notes) {
    if (note.severity != severity || ++count > kMostAlike) continue;
    const std::string tensor = note.tensor ? safe_display(*note.tensor, 80) + ": " : "";
    caveats.push_back({severity, tensor + safe_display(note.text, 300), true});
  }
  if (count > kMostAlike)
    caveats.push_back(
        {severity, fmt::format("{}: see Findings", counted(count - kMostAlike, fmt::format("more {}", kind))),
         true});
}

}  // namespace

std::vector<Caveat> caveats_of(const graph::MetaGraph& graph, const forward::ModelClaims* claims) {
  std::vector<Caveat> caveats;
  add_notes(caveats, graph, graph::Severity::error, "error");
  if (claims != nullptr && caveats.empty())
    if (const std::string lacking = forward::lacking_text(graph, *claims); !lacking.empty())
      caveats.push_back({graph::Severity::error, lacking});
  if (claims != nullptr && !claims->unaccounted.empty())
    caveats.push_back(
        {graph::Severity::warning, fmt::format("{}: known but for {}. What depends on it is an estimate.",
                                               claims->family, forward::settings_text(claims->unaccounted))});
  if (claims != nullptr)
    for (const graph::Note& note : claims->notes)
      if (note.severity != graph::Severity::info && caveats.size() < 2 * kMostAlike)
        caveats.push_back({note.severity, safe_display(note.text, 300)});
  add_notes(caveats, graph, graph::Severity::warning, "warning");
  return caveats;
}

// --- The verdict, and the options.

Verdict verdict_of(const Document& document) {
  const load::LoadAnswer* const judged = document.load.judged_load();
  if (judged == nullptr || document.load.judged.busy()) return {};
  Verdict verdict = report::run_verdict(*judged);
  const std::vector<Caveat>& caveats = document.caveats();
  if (verdict.state == Verdict::State::unjudged && !caveats.empty() &&
      caveats.front().severity == graph::Severity::error) {
    verdict.state = Verdict::State::incomplete;
    verdict.words = "incomplete";
    verdict.first = caveats.front().text;
    verdict.about = "This model is not whole: " + verdict.first;
  }
  return verdict;
}

std::vector<const load::LoadOption*> changed_options(const Document& document) {
  // the tokens of the pass follow the model at first, and have their slider
  constexpr std::array kShown = {"method", "order", "target", "device_budget", "seq", "past"};
  const load::LoadRequest at_first = Asked().request;
  std::vector<const load::LoadOption*> set;
  for (const load::LoadOption& option : load::load_options())
    if (std::ranges::find(kShown, option.id) == kShown.end() &&
        !same_option(option, document.load.asked().request, at_first))
      set.push_back(&option);
  return set;
}

}  // namespace loadline::gui
