// The load options as flags, for every command that loads a model.
#pragma once

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "core/load/answer/answer.h"
#include "core/load/request/load_options.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::cli {

class LoadFlags {
 public:
  // Adds PATH, the options offered to `user`, --request and --save-request. Must outlive parsing.
  LoadFlags(CLI::App& app, load::LoadUser user);

  // After parsing: the saved request, if one is named, overridden by the flags. Writes the result to
  // --save-request. Says on stderr which options of a saved request have no effect here, unless `quiet`.
  // Throws Error{usage | malformed | io}, also Error{usage} if no model is named.
  load::LoadRequest request(bool quiet = false);
  // The model, from the command line or the saved request; valid after request().
  const std::string& path() const { return path_; }
  // Ids of the options set on the command line or in the saved request.
  const std::vector<std::string_view>& given() const { return given_; }
  bool was_given(std::string_view id) const;
  // Throws Error{usage} if an option that is set would have no effect.
  void require_used(const load::LoadRequest& request, std::span<const load::Method* const> methods) const;

 private:
  std::string command_;
  load::LoadUser user_;
  OptionFlags flags_;
  std::string path_, request_file_, save_file_;
  std::vector<std::string_view> given_;
};

// Opens the model of a request: where that names the sides of pictures, shapes follow from them.
graph::MetaGraphPtr open_for(const Context& context, const std::string& path,
                             const load::LoadRequest& request);

// This machine as a target: asks the GPU drivers.
load::Target this_machine();
// This machine, the built-in data sheets and the user's own. Faults in their files go to stderr. Unless
// `measure`, the row of this machine has no figures.
load::Targets cli_targets(const Context& context, bool measure);

// The environment of the command line: the user's own assets and data sheets, and the rates measured on this
// machine. Faults in their files go to stderr.
struct CliEnvironment {
  CliEnvironment(const Context& context, const load::LoadRequest& request);
  load::LoadEnvironment load;
  load::Targets targets;
};

// The request as flags: " --method staged_ring --order file", without options that `method` does not support.
std::string request_words(const load::LoadRequest& request, const load::Method& method);
// The same as separate arguments.
std::vector<std::string> request_arguments(const load::LoadRequest& request, const load::Method& method);

// The request for all of its methods as flags: every option that differs from its default.
std::string request_words(const load::LoadRequest& request);

// The key "options" of the JSON output: every option offered to `user`; null for those not set.
Json options_json(const load::LoadRequest& request, load::LoadUser user);

// Throws Error{unsupported} if the method imports pages of files that cannot be mapped. The plan does not
// show this, because imported pages count as staging there.
void require_importable(const graph::MetaGraph& graph, const load::Method& method);

}  // namespace loadline::cli
