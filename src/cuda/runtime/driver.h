/*!
 * \file driver.h
 * \brief NVIDIA's driver library, found when the first kernel is called.
 */
#ifndef TILELANG_CUDA_RUNTIME_DRIVER_H_
#define TILELANG_CUDA_RUNTIME_DRIVER_H_

#include <string>

#include "driver_api.h"

namespace tilelang {
namespace cuda {

class Driver {
 public:
  /*!
   * \brief Load and initialise the driver at `path`, once per process and path.
   * \param path A file, or the library's plain name for the system's own.
   *
   * \param who Beginning of messages; may be empty.
   *
   * Throws LaunchError if it cannot be loaded, is too old, or finds no device. A failure
   * is not remembered: a later call tries again.
   */
  static const Driver& Load(const std::string& path, const std::string& who);

  const DriverApi& api() const { return api_; }

  /*! \brief "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)". */
  std::string Describe(int code) const;

  /*! \brief Number of the device that is current in this thread; 0 without a context. */
  int CurrentDevice() const;

  /*! \brief Attribute of a device, 0 if the driver does not know it. */
  int Attribute(DeviceAttribute attribute, int device) const;

  std::string DeviceName(int device) const;

  /*! \brief "sm_90". */
  std::string DeviceArch(int device) const;

 private:
  DriverApi api_{};
};

/*! \brief Makes a context current in a scope, at no cost if it is already. */
class ContextScope {
 public:
  ContextScope(const Driver& driver, Context context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  /*! \brief Result code of making it current. */
  int code() const { return code_; }

 private:
  const Driver& driver_;
  int code_ = kSuccess;
  bool pushed_ = false;
};

/*! \brief Lets this thread load and unload code while a stream is being captured. */
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) {
    driver_.api().ThreadExchangeStreamCaptureMode(&mode_);
  }
  ~RelaxedCapture() { driver_.api().ThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = kCaptureModeRelaxed;
};

}  // namespace cuda
}  // namespace tilelang
#endif  // TILELANG_CUDA_RUNTIME_DRIVER_H_
