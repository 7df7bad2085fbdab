/*!
 * \file plain_args.h
 * \brief Binds the usual arguments in one short pass.
 */
#ifndef TILELANG_BACKEND_COMMON_PLAIN_ARGS_H_
#define TILELANG_BACKEND_COMMON_PLAIN_ARGS_H_

#include <tvm/ffi/any.h>

#include <vector>

#include "plan.h"

namespace tilelang {
namespace runtime {

struct Frame;

/*!
 * \brief What the arguments are compared with, side by side in memory.
 *
 * Plain tensors have the declared dtype, element for element, and memory of the declared device.
 * Whatever is not plain is left to the binder, which accepts more and explains what is wrong.
 */
class PlainArgs {
 public:
  /*! \param inputs Parameter index of each argument. */
  PlainArgs(const Plan& plan, const std::vector<int>& inputs);

  /*!
   * \brief Fill the frame's values, tensors and device.
   * \return False if a tensor is not plain; throws for a wrong scalar, as the binder does.
   */
  bool Bind(const Plan& plan, const tvm::ffi::AnyView* args, Frame* frame) const;

  /*! \brief Compare shapes, strides and addresses once the symbols are known. */
  bool Fit(const Plan& plan, const Frame& frame) const;

 private:
  /*! \brief An extent or a stride: a constant, a symbol, or an expression of the plan. */
  struct Expected {
    enum class Form : uint8_t { kConst, kSymbol, kExpr } form;
    int64_t value;  // the constant, or the index of the symbol
    int64_t Eval(const IntExpr& expr, const int64_t* symbols) const {
      if (form == Form::kConst) return value;
      return form == Form::kSymbol ? symbols[value] : expr.Eval(symbols);
    }
  };

  struct Arg {
    int param;
    bool is_tensor;
    bool strided;  // strides are declared
    DLDataType type;
    DLDeviceType device;
    int ndim;
    uint64_t misaligned;  // address bits that are zero in aligned memory
    size_t expected;      // position of the extents, strides behind them
  };

  void Append(const std::vector<IntExpr>& exprs);

  std::vector<Arg> args_;
  std::vector<Expected> expected_;
};

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_PLAIN_ARGS_H_
