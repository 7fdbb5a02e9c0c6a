// Private to schema/: references that never reach a smaller value.
#pragma once

#include "postrider/schema/program.hpp"

namespace postrider::schema {

// Whether some node judges a value by itself again, through references and branches only. A $dynamicRef is
// not followed here, since its target is known at run time; there the depth is limited.
bool has_endless_loop(const Program& program);

}  // namespace postrider::schema
