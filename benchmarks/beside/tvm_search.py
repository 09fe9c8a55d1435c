"""TVM MetaSchedule's search for one case, by the Python of an environment that has TVM.

    python tvm_search.py '{"kind": "gemm", "sizes": [512, 512, 512]}' TRIALS FOLDER

Needs apache-tvm 0.27.0.post1 with apache-tvm-ffi 0.1.14.post1 (0.1.15.post2 ends with a fault in
the default rules), xgboost, cloudpickle, psutil, tornado and scipy; nothing of isamap.  Prints a
line of JSON for every batch that was measured: seconds since the search began, trials, the best
time of a call so far.
"""

import json
import sys
import time

import tvm
from tvm import te, topi
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.measure_callback import PyMeasureCallback


def tensors(kind: str, sizes: list[int]) -> list:
    """Return the tensors of a case in f32: inputs and weights, then the result."""
    if kind == "gemm":
        m, n, k = sizes
        a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        r = te.reduce_axis((0, k), name="r")
        return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]
    if kind == "conv":
        h, c, o, window = sizes
        x = te.placeholder((1, h, h, c), name="X")
        f = te.placeholder((window, window, c, o), name="F")
        return [x, f, topi.nn.conv2d_nhwc(x, f, 1, window // 2, 1, out_dtype="float32")]
    h, c = sizes
    x, f = te.placeholder((1, h, h, c), name="X"), te.placeholder((3, 3, c, 1), name="F")
    y = topi.nn.depthwise_conv2d_nhwc(x, f, (1, 1), (1, 1), (1, 1), out_dtype="float32")
    return [x, f, y]


def main() -> None:
    """Search, and print the curve."""
    case, trials, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    begun, best, count = time.time(), float("inf"), 0

    @derived_object
    class Curve(PyMeasureCallback):
        def apply(self, sched, task_id, candidates, builds, runs) -> None:
            nonlocal best, count
            for run in runs:
                count += 1
                if run.run_secs:
                    best = min(best, *(float(seconds) for seconds in run.run_secs))
            line = {"at": time.time() - begun, "trials": count, "best": best}
            print("curve " + json.dumps(line), flush=True)

    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": 1})
    function = te.create_prim_func(tensors(case["kind"], case["sizes"]))
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    evaluator = ms.runner.EvaluatorConfig(number=1, repeat=1, min_repeat_ms=10)
    ms.tune_tir(
        module,
        target,
        folder,
        trials,
        num_trials_per_iter=32,
        num_tuning_cores=1,
        seed=1,
        builder=ms.builder.LocalBuilder(max_workers=1, timeout_sec=180),
        runner=ms.runner.LocalRunner(timeout_sec=180, evaluator_config=evaluator),
        measure_callbacks=[ms.measure_callback.AddToDatabase(), Curve()],
    )


if __name__ == "__main__":
    main()
