// The options of a load as a table, for every front end that asks for one.
#pragma once

#include "core/base/option.h"
#include "core/load/methods.h"
#include "core/load/request.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

// Who asks for a load; an option is offered to some of them.
enum class LoadUser : std::uint8_t { plan, rehearse, upload, pack };

// What options are grouped under.
namespace load_groups {
inline constexpr std::string_view kWhich = "Methods and order";
inline constexpr std::string_view kFit = "What it has to fit into";
inline constexpr std::string_view kSettings = "Settings of some methods";
inline constexpr std::string_view kPlaces = "Where weights go";
inline constexpr std::string_view kPass = "What follows the load";
inline constexpr std::string_view kSimulated = "What is simulated";
}  // namespace load_groups

struct LoadOption : Option<LoadRequest> {
  unsigned users = 0;  // bit i: LoadUser i
  // The methods that support it; null: all, or nothing that depends on the method.
  bool MethodTraits::*supported_by = nullptr;
  // Options of which one must be set for this one to mean anything; separated by commas.
  std::string_view needs = {};
  // Options with the same word here exclude each other.
  std::string_view excludes = {};
  // The symbol of its value in the laws of methods.
  std::string_view symbol = {};

  bool offered_to(LoadUser user) const { return (users >> static_cast<unsigned>(user) & 1) != 0; }
};

std::span<const LoadOption> load_options();
// Null if there is none.
const LoadOption* find_load_option(std::string_view id);

// Sets one option from a word and unsets those that it excludes. Throws Error{usage}: an id that there is not
// (with the nearest one), or a word that it does not take.
void set_load_option(LoadRequest& request, std::string_view id, std::string_view word);
// The option's value as set_load_option() takes it.
std::string load_option_text(const LoadRequest& request, const LoadOption& option);

// False for an option that changes nothing of this method's load.
bool supports(const Method& method, const LoadOption& option);
// The options that some methods support and others do not: those of this one.
std::vector<const LoadOption*> supported_options(const Method& method);

// What is not as in a LoadRequest{}: id and text, in the order of the table.
std::vector<std::pair<std::string_view, std::string>> changed_options(const LoadRequest& request);

// Why an option that is set would be ignored; nothing where all mean something.
struct UnusedOption {
  const LoadOption* option = nullptr;
  std::vector<std::string_view> supported_by = {};  // methods, where none of those chosen is among them
  std::vector<std::string_view> needs = {};         // options, where none of them is set
};
// `given` are ids that somebody set, whether or not to what they are anyway.
std::vector<UnusedOption> unused_options(const LoadRequest& request, std::span<const Method* const> methods,
                                         const std::vector<std::string_view>& given);

}  // namespace loadline
