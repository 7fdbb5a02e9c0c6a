// Private to schema/: references that never reach a smaller value.
#pragma once

#include "postrider/schema/program.hpp"

namespace postrider::schema {

// True if a subschema applies itself to the same value again, through references and branches only. A
// $dynamicRef is not followed, since its target is known only at run time, where the depth is limited.
bool has_endless_loop(const Program& program);

}  // namespace postrider::schema
