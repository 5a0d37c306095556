// Controls for the options of a load or a conversion, drawn by what kind of value each takes.
#pragma once

#include "app/gui/ui.h"
#include "app/gui/widgets.h"
#include "app/gui/workspace.h"
#include "core/load/load_options.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// What a control shows of an option: its row, its value, and what is known beside those.
struct OptionLook {
  struct Word {
    std::string word;
    std::string shown;
  };
  std::string_view id, title, help, default_text;
  OptionKind kind = OptionKind::text;
  bool can_be_unset = false;
  std::uint64_t least = 0, most = UINT64_MAX;
  OptionValue value = {};
  std::string now = {};          // the value as a word; empty where nothing is set
  std::string unset = {};        // the word that takes it back
  std::vector<Word> words = {};  // to choose from; none: something is typed
  std::string in_force = {};     // the word that holds where the option is not set; empty: nothing
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
    for (std::string& word : option.choices()) look.words.push_back({word, word});
  return look;
}
// Nothing where the option would change nothing of this model and what is asked of it.
std::optional<OptionLook> look_of(const Document& document, const LoadOption& option);

// Keeps what is typed, and what was wrong with it.
class OptionControls {
 public:
  // A label and the control, on the line where they fit.
  void draw(Document& document, const Ui& ui, const LoadOption& option, bool first = false);
  // The control alone, on the line where it fits.
  void draw_bare(Document& document, const Ui& ui, const LoadOption& option);
  // A line of a form. `set` takes the word, or throws Error.
  using Set = std::function<void(std::string_view word)>;
  void draw_line(const Ui& ui, const OptionLook& look, const Set& set);

 private:
  struct State {
    TypedField field;
    std::string error;
  };
  void draw_control(const Ui& ui, const OptionLook& look, float width, const Set& set);
  void draw_in_line(Document& document, const Ui& ui, const OptionLook& look, float width);

  std::map<std::string_view, State> states_;  // by id
};

// Whether the method's load depends on the option, or somebody set it: then it is why it cannot be done.
bool is_offered(const Document& document, const LoadOption& option);

}  // namespace loadline::gui
