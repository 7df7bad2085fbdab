/*!
 * \file fault.h
 * \brief Turns a fault of the processor in a kernel into a report.
 */
#pragma once

#include <csignal>

namespace tl_emu {

/*! \brief While it lives, memory faults of the calling host thread's fibers end the launch. */
class FaultScope {
 public:
  FaultScope();
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;

 private:
  stack_t old_stack_;
};

}  // namespace tl_emu
