/*!
 * \file dependent_launch.h
 * \brief Programmatic dependent launch, emulated; the twin of templates/tl/dependent_launch.h.
 *
 * Kernels run one after another, so what the one ahead wrote is always there.
 */
#pragma once

namespace tl {

inline void pdl_trigger() {}
inline void pdl_sync() {}

}  // namespace tl
