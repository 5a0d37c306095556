// The options of a load as a table that every front end reads, and requests saved by it.
#pragma once

#include "core/base/option.h"
#include "core/load/request/method.h"
#include "core/load/request/request.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::assets {
struct AssetNode;
}  // namespace loadline::assets

namespace loadline::load {

// --- The options of a load as a table that every front end reads.

// The commands that load a model; each option is offered to some of them.
enum class LoadUser : std::uint8_t { plan, rehearse, upload, pack };
// Whether it takes one method and one order.
constexpr bool runs_one_load(LoadUser user) { return user == LoadUser::pack; }

// The headings that options are grouped under.
namespace load_groups {
inline constexpr std::string_view kWhich = "Methods and order";
inline constexpr std::string_view kFit = "Budgets";
inline constexpr std::string_view kSettings = "Method settings";
inline constexpr std::string_view kReads = "Reading";
inline constexpr std::string_view kPlaces = "Placement";
inline constexpr std::string_view kPass = "Forward pass";
inline constexpr std::string_view kTraining = "Training";
inline constexpr std::string_view kSimulated = "Simulation";
}  // namespace load_groups

struct OptionInContext;

// How an option depends on methods, other options and the model.
struct LoadOptionTerms {
  // The trait of methods that support the option; null: independent of the method.
  bool MethodTraits::*supported_by = nullptr;
  // Ids, separated by commas: the option has an effect only if one of them is set.
  std::string_view needs = {};
  // The trait of methods that it has an effect on without them; null: there are none.
  bool MethodTraits::*used_by = nullptr;
  // Options with the same word here exclude each other; empty: no exclusion.
  std::string_view excludes = {};
  // What depends on the model that is open (option_context.h); null: nothing.
  const OptionInContext* in_context = nullptr;
};

// The words for an option of several names where only one is taken. Empty: those of the row.
struct OneName {
  std::string_view value_name = {};
  std::string_view brief = {};
};

struct LoadOption : Option<LoadRequest> {
  unsigned users = 0;  // bit i: LoadUser i
  LoadOptionTerms terms = {};
  OneName one = {};  // for users that run one load

  bool offered_to(LoadUser user) const { return (users >> static_cast<unsigned>(user) & 1) != 0; }
};

std::span<const LoadOption> load_options();
// Null if there is none.
const LoadOption* find_load_option(std::string_view id);

// Sets one option from a word and unsets those that it excludes. Throws Error{usage} for an unknown id (with
// the nearest known id) or a word that the option does not take.
void set_load_option(LoadRequest& request, std::string_view id, std::string_view word);
// Unsets the options that this one excludes. `option` is a row of load_options().
void unset_excluded(LoadRequest& request, const LoadOption& option);
// The option's value in the form that set_load_option() reads.
std::string load_option_text(const LoadRequest& request, const LoadOption& option);

// False if the option has no effect on a load by this method.
bool supports(const Method& method, const LoadOption& option);
// The options that this method supports and some other methods do not.
std::vector<const LoadOption*> supported_options(const Method& method);

// The options that differ from a default LoadRequest: id and text, in table order.
std::vector<std::pair<std::string_view, std::string>> changed_options(const LoadRequest& request);

// An option that is set but has no effect, and the reason. unused_options() is empty if all options have an
// effect.
struct UnusedOption {
  const LoadOption* option = nullptr;
  std::vector<std::string_view> supported_by = {};  // methods, if none of the chosen ones supports it
  std::vector<std::string_view> needs = {};         // options, if none of them is set
};
// `given`: ids that the user set explicitly, even to the default value.
std::vector<UnusedOption> unused_options(const LoadRequest& request, std::span<const Method* const> methods,
                                         const std::vector<std::string_view>& given);

// --- Saved load requests: JSON files that every front end reads and writes.
//
//   {"schema_version": 2,
//    "model": "path/to/model",          may be left out; a relative path counts from the file's folder
//    "options": {"method": ["sequential"], "device_budget": 8589934592}}   ids of load_options()
//
// Relative paths of an order or of rates count from the file's folder too.
//
// Only options that differ from their default are written. Sizes and counts are numbers or texts such as
// "8GiB", flags are true or false, several names are a list.

inline constexpr int kRequestVersion = 2;

struct SavedRequest {
  LoadRequest request = {};
  std::optional<std::string> model = {};  // path from the working folder; as written if no such file exists
};

// Throws Error{malformed | limit} naming `path`, line, column and key: an unknown id (with the nearest known
// one), a value that the option does not take, an unsupported version.
SavedRequest parse_request(std::string_view json, const std::string& path);
// Reads the same from a file of at most 1 MiB. Also throws Error{io}.
SavedRequest read_request(const std::string& path);

// Sets the options of an object {id: value}. Throws Error{malformed} with the place of the value.
void read_request_options(LoadRequest& request, const assets::AssetNode& options);

// The text of a saved request in `file`: relative paths, the model's among them, are made relative to its
// folder.
std::string request_text_beside(LoadRequest request, const std::optional<std::string>& model,
                                const std::string& file);
// JSON that parse_request() reads back. `model` is written unchanged.
std::string request_text(const LoadRequest& request, const std::optional<std::string>& model = {});

}  // namespace loadline::load
