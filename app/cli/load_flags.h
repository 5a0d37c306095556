// The options of a load on the command line, for every command that asks for one.
#pragma once

#include "app/cli/command.h"
#include "app/cli/option_flags.h"
#include "core/load/answer.h"
#include "core/load/load_options.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::cli {

class LoadFlags {
 public:
  // Adds PATH, the options offered to `user`, --request and --save-request. Must outlive parsing.
  LoadFlags(CLI::App& app, LoadUser user);

  // After parsing: the saved request, if one is named, and the flags over it. Writes it to --save-request.
  // Throws Error{usage | malformed | io}, and Error{usage} where no model is named.
  LoadRequest request();
  // The model, from the command line or the saved request; after request().
  const std::string& path() const { return path_; }
  // Ids of options on the command line or in the saved request.
  const std::vector<std::string_view>& given() const { return given_; }
  bool was_given(std::string_view id) const;
  // Throws Error{usage} for an option that would be ignored.
  void require_used(const LoadRequest& request, std::span<const Method* const> methods) const;

 private:
  LoadUser user_;
  OptionFlags flags_;
  std::string path_, request_file_, save_file_;
  std::vector<std::string_view> given_;
};

// What every front end but the core knows: the user's own assets and data sheets, and the rates measured on
// this machine. What is wrong with their files is told on stderr.
struct CliEnvironment {
  CliEnvironment(const Context& context, const LoadRequest& request);
  LoadEnvironment load;
  Targets targets;
};

// The request as words of a command line: " --method staged_ring --order file", without options that
// `method` does not support.
std::string request_words(const LoadRequest& request, const Method& method);
// The same, each word by itself.
std::vector<std::string> request_arguments(const LoadRequest& request, const Method& method);

// The contract's "options": every option offered to `user`, absent ones as null.
Json options_json(const LoadRequest& request, LoadUser user);

// Throws Error{unsupported} where the method imports pages of files that cannot be mapped: its plan does not
// tell, as imported pages are staging there.
void require_importable(const MetaGraph& graph, const Method& method);

}  // namespace loadline::cli
