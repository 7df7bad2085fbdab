/*!
 * \file emulator.h
 * \brief Stands in for the device: includes all that generated CUDA source expects to find.
 *
 * Precompiled once per compiler; see tilelang/cuda/emulator.
 */
#pragma once

#define TL_EMULATOR 1

// Before any qualifier becomes a macro: the standard library uses some of the same names.
#include <cassert>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/runtime.h"
#include "emulator/qualifiers.h"
#include "emulator/builtins.h"
#include "emulator/atomics.h"
#include "emulator/launch.h"

#include <tl/cp_async.h>
#include <tl/ldmatrix.h>
#include <tl/mma.h>
#include <tl/sync.h>
#include <tl/warp.h>
