/*!
 * \file register_budget.h
 * \brief Register budgets, emulated; the twin of templates/tl/register_budget.h.
 */
#pragma once

namespace tl {

template <int count>
inline void inc_max_nreg() {}
template <int count>
inline void dec_max_nreg() {}

}  // namespace tl
