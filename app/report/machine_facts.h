// What machine a page's figures come from.
#pragma once

#include "app/report/asked_for.h"

namespace loadline::report {

// System, processor with its cores, and memory; not escaped.
OptionList machine_facts();

}  // namespace loadline::report
