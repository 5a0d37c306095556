// Controls for the options of a load, drawn by what kind of value each takes.
#pragma once

#include "app/gui/ui.h"
#include "app/gui/widgets.h"
#include "app/gui/workspace.h"
#include "core/load/load_options.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// What the document knows of an option beside its row.
struct OptionLook {
  struct Word {
    std::string word;
    std::string shown;
  };
  std::vector<Word> words = {};  // to choose from; none: something is typed
  std::string in_force = {};     // the word that holds where the option is not set; empty: nothing
  std::uint64_t least = 0, most = UINT64_MAX;
};
// Nothing where the option would change nothing of this model and what is asked of it.
std::optional<OptionLook> look_of(const Document& document, const LoadOption& option);

// Keeps what is typed, and what was wrong with it.
class OptionControls {
 public:
  // A label and the control, on the line where they fit.
  void draw(Document& document, const Ui& ui, const LoadOption& option, bool first = false);
  // A line of a form.
  void draw_line(Document& document, const Ui& ui, const LoadOption& option);
  // The control alone, on the line where it fits.
  void draw_bare(Document& document, const Ui& ui, const LoadOption& option);

 private:
  struct State {
    TypedField field;
    std::string error;
  };
  void draw_control(Document& document, const Ui& ui, const LoadOption& option, const OptionLook& look,
                    float width);
  void draw_error(const Ui& ui, const LoadOption& option);
  void set(Document& document, const LoadOption& option, std::string_view word);

  std::map<std::string_view, State> states_;  // by id
};

// Whether the method's load depends on the option, or somebody set it: then it is why it cannot be done.
bool is_offered(const Document& document, const LoadOption& option);

}  // namespace loadline::gui
