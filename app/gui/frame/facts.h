// What is known about a selection: the inspector draws it, and it is copied as text.
#pragma once

#include "app/gui/state/document.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loadline::gui {

// --- The facts of each kind of selection.

struct Fact {
  using Value =
      std::variant<std::string, std::uint64_t, bool, std::vector<std::uint64_t>, std::vector<std::string>>;
  enum class Form : std::uint8_t { row, paragraph, good, warning, bad };

  std::string_view id;  // as which it is copied; empty: it is only drawn
  std::string label;
  Value value = {};
  std::vector<std::string> lines = {};  // as drawn, not escaped; none: it is only copied
  std::string hint = {};
  Form form = Form::row;
};

// Something that the selection is made of or used by, and that can be selected.
struct FactLink {
  std::string name;  // not escaped
  Selected to;
  std::uint64_t bytes = 0;  // 0: none are shown
};

struct SelectionFacts {
  std::string_view kind;                         // "Tensor"
  std::string title = {};                        // not escaped
  std::optional<graph::Severity> severity = {};  // of a finding
  std::string_view absent = {};                  // why nothing more is known; else empty
  std::vector<Fact> facts = {};
  std::vector<std::string_view> panels = {};  // ids of panels that show it, too
  std::string_view links_title = {};          // what the links are; empty: what it is made of
  std::vector<FactLink> links = {};
  std::size_t more_links = 0;  // left out
};

// What the selected operator reads beside the results of others: weights, and constants of the file.
std::vector<graph::TensorId> constants_of(const Document& document);
std::vector<graph::TensorId> constants_of(const ForwardScene& scene, const graph::Op& op);

// `selected` may be of an earlier state of the document, which has a model.
SelectionFacts facts_of(const Document& document, const Selected& selected);

// --- The facts as text that can be pasted elsewhere.

enum class CopyForm : std::uint8_t { text, json, markdown, name };
inline constexpr std::array<std::string_view, 4> kCopyFormNames = {"text", "json", "markdown", "name"};

// Text has a line "id: value" for each fact, Markdown a table; a name is that of what is selected alone.
std::string facts_text(const SelectionFacts& facts, CopyForm form);

}  // namespace loadline::gui
