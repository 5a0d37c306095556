// Controls of options by their kind, and those of a load: method, order, placement.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/report/does_it_run.h"
#include "core/load/request/load_options.h"
#include "core/load/request/option_context.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- Controls for the options of a load or a conversion, drawn by the kind of value.

// The data that a control shows: the option's row, its value, and the words to choose from.
struct OptionLook {
  std::string_view id, title, help, default_text;
  OptionKind kind = OptionKind::text;
  bool can_be_unset = false;
  std::uint64_t least = 0, most = UINT64_MAX;
  OptionValue value = {};
  std::string now = {};                      // the value as a word; empty if not set
  std::string unset = {};                    // the word that resets the option
  std::vector<load::OptionWord> words = {};  // the choices; none: the user types a value
  std::string unset_beside = {};             // stands beside the row that resets it
  std::string in_force = {};                 // the word in force if the option is not set; empty: none
  std::string why_in_force = {};             // a sentence; empty: there is nothing to explain
  // The word as it is shown: "Q8_0", "64.00 MiB".
  std::string shown(std::string_view word) const;
};

template <typename T>
OptionLook plain_look(const Option<T>& option, const T& values) {
  OptionLook look;
  look.id = option.id;
  look.title = option.title;
  look.help = option.help;
  look.default_text = option.default_text;
  look.kind = option.kind;
  look.can_be_unset = option.can_be_unset();
  look.least = option.least;
  look.most = option.most;
  look.value = option.get(values);
  const bool set = !std::holds_alternative<std::monostate>(look.value);
  if (set) look.now = print_option(option.kind, look.value, option.separator);
  look.unset = option.can_be_unset() ? "none" : print_option(option.kind, option.get(T()), option.separator);
  if (option.choices != nullptr)
    for (std::string& word : option.choices())
      look.words.push_back({word, option.spelled == nullptr ? word : report::type_title(word)});
  return look;
}
load::LoadContext load_context(const Document& document);
// The look of a load option; nothing if the option would have no effect on this model and request.
std::optional<OptionLook> look_of(const Document& document, const load::LoadOption& option);

// A number alone, where a size is meant: nobody asks for 8 bytes.
bool is_bare_size(std::string_view text);
// The number with the unit that the control shows now, GiB if it shows none.
std::string with_unit(std::string_view number, const OptionLook& look);

// Draws controls, and keeps the typed texts and their errors.
class OptionControls {
 public:
  // Draws a label and the control, on the same line if they fit.
  void draw(Document& document, const Ui& ui, const load::LoadOption& option, bool first = false);
  // Draws the control alone, on the same line if it fits. `unset`: what stands there while no value is set.
  void draw_bare(Document& document, const Ui& ui, const load::LoadOption& option,
                 std::string_view unset = {});
  // Draws a line of a form. `set` receives the new word, and may throw Error.
  using Set = std::function<void(std::string_view word)>;
  void draw_line(const Ui& ui, const OptionLook& look, const Set& set, float label_share = 0.5f);

 private:
  struct State {
    TypedField field;
    std::string error;
  };
  void draw_control(const Ui& ui, const OptionLook& look, float width, const Set& set);
  void draw_in_line(Document& document, const Ui& ui, const OptionLook& look, float width);

  std::map<std::string_view, State> states_;  // by id
};

// Whether the method takes the option. Also true if the option is set: then it is why the load is refused.
bool is_offered(const Document& document, const load::LoadOption& option);
// Whether the method can open the model's files; true without a model.
bool is_offered(const Document& document, const load::Method& method);

// --- Controls for the load, shared by several panels.

// Draw the choice of the method, of the order, and both side by side.
void method_choice(Workspace& workspace, const Ui& ui, float width);
void order_choice(Workspace& workspace, const Ui& ui, float width);
void method_and_order(Workspace& workspace, const Ui& ui, float method_width, float order_width);

// Draws the options that the chosen method takes, side by side on as many lines as they need.
void method_options(Document& document, const Ui& ui, OptionControls& controls);
// Draws the options of an upload by the chosen method, one below the other.
void upload_options(Document& document, const Ui& ui, OptionControls& controls);

// The placement of weights, for a method that keeps some off the device: one of several options. A placement
// that is set is shown for other methods, too, since it is why they are refused.
class PlacementControls {
 public:
  void draw(Document& document, const Ui& ui, OptionControls& controls);

 private:
  const load::LoadOption* wanted_ = nullptr;  // the option that was chosen but has no value yet
};

}  // namespace loadline::gui
