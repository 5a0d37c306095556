// The files that `plan` writes: a chart, a page. They appear whole or not at all.
#pragma once

#include "app/cli/plan_page.h"

#include <string>
#include <string_view>

namespace loadline::cli {

// Throws Error{usage} unless `path` is empty or ends in `extension`: what is no picture stays as it is.
void check_picture_path(const std::string& path, std::string_view extension);

// Throw Error{io}.
void write_picture(const std::string& path, std::string_view text);
void write_chart(const std::string& path, const PlanAnswer& answer);
void write_page(const std::string& path, const PlanAnswer& answer, const OptionList& options);

}  // namespace loadline::cli
