/*!
 * \file scheduler.h
 * \brief Running a block, and the blocks of a grid.
 */
#pragma once

#include <cstddef>

#include "block.h"

namespace tl_emu {

/*! \brief The launch has been given up. */
extern bool abandoned;

/*! \brief What a fiber starts with: the kernel, for the current thread. */
void RunThread();

/*! \brief Run the threads of the block; false if all that are left wait at a grid barrier. */
bool RunBlock();

/*! \brief Run all blocks one after another, up to grid barriers if there are any. */
void RunGrid(const Launch& launch, size_t threads);

}  // namespace tl_emu
